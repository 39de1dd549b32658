"""The joins of a SELECT that has no key as a subquery of their own, which may have one.

    SELECT u.name, COUNT(DISTINCT r.id) FROM l LEFT JOIN r ON l.k = r.k JOIN u ON r.w = u.k GROUP BY u.name

Rows of l and r meet by one column, their pairs meet rows of u by another, and groups are by a third. Kept in between,
each step has a key: what a row touches is found without going through all the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.plan.finish_keys import keys_of
from penstock.plan.spark_blocks import aggregates, relations
from penstock.plan.trees import aliased, column, identifier, own_nodes, subquery

if TYPE_CHECKING:
    from collections.abc import Iterator

_JOINED: Final = "__joined"
_WHOLE: Final = ("laterals", "order", "limit", "offset")
_CLAUSES: Final = ("where", "group", "having", "distinct")


def set_joins_apart(query: exp.Select) -> bool:
    """Puts the first joins of a SELECT, as many as have a key, into a subquery of it, in place; whether it did."""
    joins = query.args.get("joins") or []
    if not joins or len(relations(query)) != len(joins) + 1 or any(query.args.get(clause) for clause in _WHOLE):
        return False
    if any(isinstance(node, exp.Subquery | exp.Exists) for part in _above(query, 0) for node in part.walk()):
        return False
    makes_more = aggregates(query) or query.args.get("distinct") is not None or _has_over(query)
    for count in range(len(joins) if makes_more else len(joins) - 1, 0, -1):
        made = _apart(query, count)
        if made is not None:
            for name, value in made.args.items():
                query.set(name, value)
            return True
    return False


def _apart(query: exp.Select, count: int) -> exp.Select | None:
    made = query.copy()
    assert isinstance(made, exp.Select)
    joins = made.args["joins"]
    aliases = list(relations(made))[: count + 1]
    names: dict[tuple[str, str], str] = {}
    read: list[exp.Expr] = []
    made.set("expressions", [_named(item) for item in made.expressions])
    for part in _above(made, count):
        for node in [*part.find_all(exp.Column)]:
            if node.table in aliases:
                place = (node.table, node.name)
                if place not in names:
                    names[place] = f"{node.table}_{node.name}_{len(names)}"
                    read.append(aliased(node.copy(), names[place]))
                node.set("this", identifier(names[place]))
                node.set("table", identifier(_JOINED))
    first = exp.Select(expressions=read, from_=made.args["from_"].copy(), joins=[join.copy() for join in joins[:count]])
    if not read or not keys_of(first):
        return None
    made.set("from_", exp.From(this=subquery(first, _JOINED)))
    made.set("joins", joins[count:])
    return made


def _above(query: exp.Select, count: int) -> Iterator[exp.Expr]:
    """What a SELECT does with the rows of its first joins."""
    yield from query.expressions
    yield from (query.args[clause] for clause in _CLAUSES if query.args.get(clause) is not None)
    yield from (join.args["on"] for join in query.args["joins"][count:] if join.args.get("on") is not None)


def _named(item: exp.Expr) -> exp.Expr:
    return aliased(column(item.name, item.table), item.name) if isinstance(item, exp.Column) else item


def _has_over(query: exp.Select) -> bool:
    return any(isinstance(node, exp.Window) for item in query.expressions for node in own_nodes(item))
