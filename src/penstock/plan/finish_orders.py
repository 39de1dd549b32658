"""Orders that leave nothing open: the same rows get the same numbers, whichever batch brought them.

ROW_NUMBER, LAG, a frame of ROWS and LIMIT take one of several rows that their order does not tell apart. In a view the
choice must not change from batch to batch, so the other columns are added to the order, behind what the user wrote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.plan.spark_blocks import aggregates, group_keys, outputs, relations
from penstock.plan.store_asked import AskedOfSpark
from penstock.plan.store_terms import DiffersError, Term, in_some_order
from penstock.plan.store_text import kept_query
from penstock.plan.store_unnest import makes_rows_of
from penstock.plan.trees import column, own_nodes, settling

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.errors import Span
    from penstock.types import SqlType

_CHOOSING: Final = frozenset({"row_number", "lag", "lead", "first_value", "ntile"})


class NotFinishableError(Exception):
    """The view store cannot answer this query; the message says why, `hint` what to write instead, and `span`, where
    one place is to blame, which."""

    def __init__(self, why: str, hint: str | None = None, span: Span | None = None) -> None:
        super().__init__(why)
        self.hint = hint
        self.span = span


def settle_orders(tree: exp.Expr, types: Mapping[str, Mapping[str, SqlType | None]]) -> None:
    """Makes the orders of a tree total, in place."""
    for block in tree.find_all(exp.Select, exp.SetOperation):
        order = block.args.get("order")
        if block.args.get("limit") is None and block.args.get("offset") is None:
            if order is not None:
                raise NotFinishableError("a view has no order")
        else:
            if order is None:  # any rows will do, but always the same ones
                order = exp.Order(expressions=[])
                block.set("order", order)
            _extend(order, [column(name) for name in outputs(block)])
        if isinstance(block, exp.Select):
            _settle_over(block, types)


def _settle_over(block: exp.Select, types: Mapping[str, Mapping[str, SqlType | None]]) -> None:
    windows = [node for item in block.expressions for node in own_nodes(item) if isinstance(node, exp.Window)]
    if not any(_chooses(over) for over in windows):
        return
    more = group_keys(block) if aggregates(block) else _columns(block, types)
    for over in windows:
        if _chooses(over):
            if over.args.get("order") is None:
                over.set("order", exp.Order(expressions=[]))
            keys = over.args.get("partition_by") or []
            _extend(over.args["order"], [entry for entry in more if entry not in keys])
            if not over.args["order"].expressions:
                over.set("order", None)


def _chooses(over: exp.Window) -> bool:
    function = over.this
    while isinstance(function, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        function = function.this
    spec = over.args.get("spec")
    name = function.name.lower() if isinstance(function, exp.Anonymous) else ""
    kind = str(spec.args.get("kind")).upper() if spec is not None else None
    # RANGE goes by the values of the order: the rows that are equal in it are in a frame together
    return kind == "ROWS" or (kind is None and name in _CHOOSING)


def _columns(block: exp.Select, types: Mapping[str, Mapping[str, SqlType | None]]) -> list[exp.Expr]:
    """The columns of what a SELECT reads that can be ordered by."""
    found: list[exp.Expr] = []
    for alias, below in relations(block).items():
        columns = (
            types[below.name] if isinstance(below, exp.Table) else dict(kept_query(below, types, AskedOfSpark())[1])
        )
        found += [column(name, alias) for name, kind in columns.items() if _has_order(kind)]
    for join in block.args.get("joins") or []:
        if makes_rows_of(join.this) is not None:
            found += [column(name.name, join.this.alias) for name in join.this.args["alias"].columns]
    return found


def _has_order(kind: SqlType | None) -> bool:
    try:
        in_some_order(Term("", kind))
    except DiffersError:
        return False
    return True


def _extend(order: exp.Order, more: list[exp.Expr]) -> None:
    there = [entry.this for entry in order.expressions]
    for entry in more:
        if entry not in there:
            order.append("expressions", settling(exp.Ordered(this=entry.copy(), desc=False, nulls_first=True)))
