"""A running aggregate in Spark's update mode: what its rows carry beside the result, and what it cannot read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.errors import NotYetError
from penstock.plan.closing import distinct_key
from penstock.plan.spark_blocks import selects, stream_joins, window_key
from penstock.plan.trees import aliased, call, dot, number

if TYPE_CHECKING:
    from penstock.plan.running import Running

KEEP_COLUMN: Final = "__keep"  # whether the row belongs to the view


def check_update(tree: exp.Expr, own: exp.Select) -> None:
    """Spark's update mode takes no rows of what emits them later: windows that close below, outer joins."""
    for block in selects(tree):
        outer = any(time.kind in ("left", "right", "full", "anti") for _, time in stream_joins(block))
        closed = block is not own and window_key(block) is not None
        if outer or closed or distinct_key(block) is not None:
            raise NotYetError(
                "QUERY_NOT_YET",
                "a running aggregate that Spark keeps over windows, outer joins or DISTINCT is not there yet",
                hint="use aggregates that the view store merges (COUNT, SUM, MIN, MAX, AVG) without state = 'spark'",
            )


def key_columns(block: Running) -> tuple[str, ...]:
    """The columns that tell the rows of a running aggregate apart: its keys, under a hidden name if nobody sees one."""
    return tuple(_shown(block, key) or f"__k{place}" for place, key in enumerate(_key_trees(block)))


def _key_trees(block: Running) -> list[exp.Expr]:
    """The keys; of a window, its end, and of grouping sets also which of them it is."""
    window, group = window_key(block.block), block.block.args.get("group")
    sets = any(
        isinstance(entry, exp.GroupingSets | exp.Cube | exp.Rollup) for entry in (group.expressions if group else ())
    )
    found = [dot(key.copy(), "end") if key == window else key for key in block.keys]
    return [*found, call("grouping_id")] if sets else found


def _shown(block: Running, key: exp.Expr) -> str | None:
    return next((name for name, item in block.items if item == key), None)


def update_tree(block: Running) -> exp.Select:
    """The aggregate in Spark's update mode: every row with its key, and whether HAVING holds for it."""
    items: list[exp.Expr] = [aliased(item.copy(), name) for name, item in block.items]
    for place, key in enumerate(_key_trees(block)):
        if _shown(block, key) is None:
            items.append(aliased(key.copy(), f"__k{place}"))
    keep = block.keep.copy() if block.keep is not None else None
    if not block.keys:
        # Spark gives a row for no input at all
        some = exp.GT(this=call("count", exp.Star()), expression=number(0))
        keep = some if keep is None else exp.And(this=some, expression=exp.Paren(this=keep))
    if keep is not None:
        items.append(aliased(keep, KEEP_COLUMN))
    tree = block.block.copy()
    tree.set("having", None)
    tree.set("expressions", items)
    return tree
