"""Of which rows a query has to know how often they are there, and of which only that they are there.

    SELECT k, COUNT(DISTINCT v), MAX(w) FROM l GROUP BY k

gives the same however often a row of l comes. So do DISTINCT, GROUP BY alone, set operations without ALL, and the
relations that EXISTS, IN and semi joins only look into. What is kept for such an answer are distinct rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.plan.spark_blocks import aggregates, scans
from penstock.plan.trees import aggregate_text, own_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

_ALIKE: Final = frozenset(
    {"min", "max", "bool_and", "every", "bool_or", "some", "any", "approx_count_distinct", "grouping", "grouping_id"}
)
_OF_DISTINCT: Final = frozenset({"count", "sum", "avg", "mean"})
_LOOKED_INTO: Final = frozenset({"SEMI", "ANTI"})


def counted_scans(query: exp.Expr, *, counts: bool = True) -> set[str]:
    """The scans of a query of whose rows it counts how often they are there; `counts`: so does who reads its answer."""
    return set(_counted(query, counts=counts))


def _counted(query: exp.Expr, *, counts: bool) -> Iterator[str]:
    """`counts`: what is around the query has to know how often its rows are there."""
    if isinstance(query, exp.Table):
        yield from [query.name] if counts else []
    elif isinstance(query, exp.Subquery):
        yield from _counted(query.this, counts=counts)
    elif isinstance(query, exp.SetOperation):
        yield from _of_set(query, counts=counts)
    elif isinstance(query, exp.Select):
        yield from _of_select(query, counts=counts)
    else:
        yield from (table.name for table in scans(query))


def _of_set(query: exp.SetOperation, *, counts: bool) -> Iterator[str]:
    distinct = bool(query.args.get("distinct"))
    inner = not distinct and (counts or not isinstance(query, exp.Union) or _is_cut_off(query))
    yield from _counted(query.this, counts=inner)
    yield from _counted(query.expression, counts=inner)


def _of_select(query: exp.Select, *, counts: bool) -> Iterator[str]:
    inner = _counts_rows(query, counts=counts)
    from_ = query.args.get("from_")
    if isinstance(from_, exp.From):
        yield from _counted(from_.this, counts=inner)
    for join in query.args.get("joins") or []:
        looked_into = join.kind.upper() in _LOOKED_INTO
        item = join.this.this if isinstance(join.this, exp.Lateral) else join.this
        yield from _counted(item, counts=inner and not looked_into)
    yield from _of_expressions(query)


def _counts_rows(query: exp.Select, *, counts: bool) -> bool:
    """Whether a SELECT has to know how often the rows are there that it reads."""
    if query.args.get("laterals") or any(join.method for join in query.args.get("joins") or []):
        return True  # which of several rows is met is another matter
    if aggregates(query):
        order = query.args.get("order")
        trees = [*query.expressions, query.args.get("having"), *(order.expressions if order is not None else [])]
        nodes = [node for tree in trees if tree is not None for node in own_nodes(tree)]
        return any(aggregate_text(node) is not None and not _is_alike(node) for node in nodes)
    if any(isinstance(node, exp.Window) for item in query.expressions for node in own_nodes(item)):
        return True
    distinct = query.args.get("distinct")
    if isinstance(distinct, exp.Distinct):
        return distinct.args.get("on") is not None
    return counts or _is_cut_off(query)


def _is_alike(node: exp.Expr) -> bool:
    """Whether an aggregate gives the same however often a row is there."""
    call = node.this if isinstance(node, exp.Filter) else node
    if not isinstance(call, exp.Anonymous):
        return False
    name = call.name.lower()
    of_distinct = bool(call.expressions) and isinstance(call.expressions[0], exp.Distinct)
    return name in _ALIKE or (name in _OF_DISTINCT and of_distinct)


def _is_cut_off(query: exp.Expr) -> bool:
    return query.args.get("limit") is not None or query.args.get("offset") is not None


def _of_expressions(query: exp.Select) -> Iterator[str]:
    """The queries inside the expressions of a SELECT: EXISTS and IN look into theirs."""
    trees = [query.args.get(clause) for clause in ("where", "group", "having", "order")] + list(query.expressions)
    trees += [join.args.get("on") for join in query.args.get("joins") or []]
    for tree in trees:
        if tree is None:
            continue
        for node in tree.walk(prune=lambda inner: isinstance(inner, exp.Exists | exp.Query)):
            if isinstance(node, exp.Exists):
                yield from _counted(node.this, counts=False)
            elif isinstance(node, exp.Query):
                yield from _counted(node, counts=not (isinstance(node.parent, exp.In) and node.arg_key == "query"))
