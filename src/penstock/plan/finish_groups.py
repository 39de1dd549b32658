"""The groups of a SELECT that has no key as a subquery of their own, which may have one.

    SELECT auction, SUM(price) AS s FROM bid GROUP BY auction ORDER BY s DESC LIMIT 10

The ten largest sums have no key, but the sums have one. Kept in between, a bid changes one of them, and what is
answered as a whole are groups and not all the rows behind them. The same goes for rankings of groups, and for groups
that are compared with something else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.plan.decimal_types import spark_type
from penstock.plan.spark_blocks import aggregates, relations
from penstock.plan.trees import aggregate_text, aliased, column, stand_in, subquery, typed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_GROUPED: Final = "__grouped"
_INSIDE: Final = ("from_", "joins", "where", "group")
_ABOVE: Final = ("having", "order")


def set_groups_apart(query: exp.Select) -> exp.Subquery | None:
    """Puts the groups of a SELECT, where it does more than group, into a subquery of it, in place; None: it cannot."""
    keys = _plain_keys(query)
    if not keys or not _does_more(query) or outer_aliases(query):
        return None
    made = query.copy()
    aliases = {*relations(made)}
    if any(outer_aliases(inner) & aliases for part in _above(made) for inner in _queries(part)):
        return None
    taken: list[tuple[exp.Expr, str]] = []  # keys and aggregates, and under which names

    def take(node: exp.Expr) -> exp.Expr:
        known = next((name for value, name in taken if value == node), None)
        if known is None:
            words = f"{node.name}_" if isinstance(node, exp.Column) else "value_"
            known = f"{words}{len(taken)}"
            taken.append((node.copy(), known))
        return stand_in(typed(column(known, _GROUPED), spark_type(node)), node)

    for item in made.expressions:
        if isinstance(item, exp.Column):
            item.replace(aliased(item.copy(), item.name))
    for part in _above(made):
        _replace(part, keys, take)
    if not taken or any(node.table in aliases for part in _above(made) for node in _own_columns(part)):
        return None
    inner = exp.Select(
        expressions=[aliased(value, name) for value, name in taken],
        **{clause: made.args[clause] for clause in _INSIDE if made.args.get(clause)},
    )
    having = made.args.get("having")
    item = subquery(inner, _GROUPED)
    for clause in (*_INSIDE, "having"):
        made.set(clause, None)
    made.set("from_", exp.From(this=item))
    if having is not None:
        made.set("where", exp.Where(this=having.this))
    query.args.clear()
    for name, value in made.args.items():
        query.set(name, value)
    return item


def _plain_keys(query: exp.Select) -> list[exp.Expr]:
    """What a SELECT groups by; none where it does not, or by sets of keys, or reads what makes rows."""
    group = query.args.get("group")
    if not isinstance(group, exp.Group) or not aggregates(query) or query.args.get("laterals"):
        return []
    sets = (exp.GroupingSets, exp.Cube, exp.Rollup, exp.Tuple)
    return [] if any(isinstance(entry, sets) for entry in group.expressions) else list(group.expressions)


def _does_more(query: exp.Select) -> bool:
    if query.args.get("limit") is not None or query.args.get("offset") is not None:
        return True
    # what is inside of an aggregate is done with rows
    nodes = [node for part in _above(query) for node in part.walk(prune=lambda node: aggregate_text(node) is not None)]
    return any(isinstance(node, exp.Window | exp.Exists | exp.Subquery) for node in nodes)


def _above(query: exp.Select) -> Iterator[exp.Expr]:
    """What a SELECT does with its groups."""
    yield from query.expressions
    yield from (query.args[clause] for clause in _ABOVE if query.args.get(clause) is not None)


def _replace(node: exp.Expr, keys: list[exp.Expr], take: Callable[[exp.Expr], exp.Expr]) -> None:
    """Puts columns in the place of keys and aggregates, but for those inside of other queries."""
    for child in list(node.iter_expressions()):
        if child in keys or aggregate_text(child) is not None:
            child.replace(take(child))
        elif not isinstance(child, exp.Query):
            _replace(child, keys, take)


def _own_columns(part: exp.Expr) -> Iterator[exp.Column]:
    for node in part.walk(prune=lambda inner: isinstance(inner, exp.Query)):
        if isinstance(node, exp.Column):
            yield node


def _queries(part: exp.Expr) -> Iterator[exp.Expr]:
    """The queries inside an expression."""
    for node in part.walk(prune=lambda inner: isinstance(inner, exp.Query)):
        if isinstance(node, exp.Query):
            yield node


def queries_within(query: exp.Select) -> list[exp.Expr]:
    """The queries inside the expressions of a SELECT, which are asked for values or looked into."""
    parts = [*query.expressions, *(query.args[clause] for clause in ("where", "having") if query.args.get(clause))]
    return [inner.this if isinstance(inner, exp.Subquery) else inner for part in parts for inner in _queries(part)]


def outer_aliases(query: exp.Expr) -> set[str]:
    """The relations around a query whose columns it reads."""
    if isinstance(query, exp.Subquery):
        return outer_aliases(query.this)
    if isinstance(query, exp.SetOperation):
        return outer_aliases(query.this) | outer_aliases(query.expression)
    own: set[str] = set(relations(query)) if isinstance(query, exp.Select) else set()
    own |= {join.this.alias for join in query.args.get("joins") or [] if isinstance(join.this, exp.Lateral)}
    found: set[str] = set()
    for child in query.iter_expressions():
        found |= {node.table for node in _own_columns(child) if node.table}
        for inner in _queries(child):
            found |= outer_aliases(inner)
    return found - own
