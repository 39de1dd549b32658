"""Only the columns that are needed: a tree whose subqueries and scans give nothing that nobody reads.

Spark prunes by itself, but a scan must know beforehand which columns to decode.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.plan.session_rows import prune_rows
from penstock.plan.spark_blocks import aggregates, makes_rows, outputs, relations
from penstock.plan.trees import aliased, number

_NOTHING = "__nothing"
_WANTED = "penstock_wanted"


def prune(tree: exp.Expr) -> None:
    """Takes columns that are not needed out of the subqueries of a tree, in place."""
    _prune(tree, None)


def keep_columns(item: exp.Subquery, names: tuple[str, ...]) -> None:
    """Says that columns of a subquery are needed, whoever reads them."""
    item.meta[_WANTED] = names


def _prune(query: exp.Expr, needed: set[str] | None) -> None:
    if isinstance(query, exp.SetOperation):
        _sides(query, needed)
    elif isinstance(query, exp.Select):
        _select(query, needed)


def _sides(query: exp.SetOperation, needed: set[str] | None) -> None:
    if query.args.get("distinct") or not isinstance(query, exp.Union):
        needed = None
    names = [outputs(side) for side in (query.this, query.expression)]
    places = [place for place, name in enumerate(names[0]) if needed is None or name in needed] or [0]
    for side, own in zip((query.this, query.expression), names, strict=True):
        _prune(side, {own[place] for place in places})


def _select(select: exp.Select, needed: set[str] | None) -> None:
    order = select.args.get("order")
    if needed is not None and order is not None:  # by output names, which stand there without a relation
        needed = needed | {node.name for node in order.find_all(exp.Column) if not node.table}
    whole = aggregates(select) and select.args.get("group") is None  # one row, and only because it aggregates
    if needed is not None and not whole and select.args.get("distinct") is None:
        grouped = aggregates(select)
        kept = [
            item for item in select.expressions if item.alias_or_name in needed or (makes_rows(item) and not grouped)
        ]
        select.set("expressions", kept or [aliased(number(1), _NOTHING)])
    prune_rows(select)
    read = columns_read(select)
    for alias, below in relations(select).items():
        if not isinstance(below, exp.Table):
            wanted = below.parent.meta.get(_WANTED, ()) if below.parent is not None else ()
            _prune(below, read.get(alias, set()).union(wanted))


def columns_read(select: exp.Select) -> dict[str, set[str]]:
    """The columns that a SELECT itself reads, by the alias of the relation they belong to."""
    below = {id(query) for query in relations(select).values()}
    found: dict[str, set[str]] = {}
    aliases = list(relations(select))
    for node in select.walk(prune=lambda inner: id(inner) in below):
        if isinstance(node, exp.Column):
            owner = node.table or (aliases[0] if len(aliases) == 1 else "")
            found.setdefault(owner, set()).add(node.name)
    return found
