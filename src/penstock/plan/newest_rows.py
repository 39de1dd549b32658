"""Subqueries with the times at which their rows came: what is made of several rows has the time of the newest.

    SELECT DISTINCT k FROM s   ->   SELECT k, MAX(now) AS now FROM (SELECT k, NOW() AS now FROM s) GROUP BY k

A set operation is answered in the same way, over the rows of both sides, each with the side that it came from:

    a EXCEPT b   ->   SELECT k, MAX(now) AS now
                      FROM (SELECT k, NOW() AS now, 1 AS side FROM a UNION ALL SELECT k, NOW() AS now, 2 AS side FROM b)
                      GROUP BY k HAVING MIN(side) = 1 AND MAX(side) = 1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Sequence

_ROWS: Final = "__came"
_SIDE: Final = "__qualified_side"
_MODIFIERS: Final = ("order", "limit", "offset", "with_")


def with_newest(query: exp.Query, times: Sequence[exp.Expr]) -> exp.Query | None:
    """The query with more columns, the times of its rows; None where there is no such query. `times` are calls of the
    clock under their names."""
    made = query.copy()
    if isinstance(made, exp.Select):
        return _select(made, times)
    if isinstance(made, exp.SetOperation):
        return _set(made, times)
    return None


def _select(query: exp.Select, times: Sequence[exp.Expr]) -> exp.Query | None:
    distinct = query.args.get("distinct")
    if not isinstance(distinct, exp.Distinct) or distinct.args.get("on") is not None:
        query.set("expressions", [*query.expressions, *(each.copy() for each in times)])
        return query
    names = _names(query)
    if names is None or any(query.args.get(clause) for clause in _MODIFIERS):
        return None
    query.set("distinct", None)
    query.set("expressions", [*query.expressions, *(each.copy() for each in times)])
    return _grouped(query, names, [exp.column(each.alias, table=_ROWS, quoted=True) for each in times])


def _set(query: exp.SetOperation, times: Sequence[exp.Expr]) -> exp.Query | None:
    """Of UNION and EXCEPT a row has the time of the newest that made it, of INTERSECT that of the newest of both."""
    if any(query.args.get(clause) for clause in _MODIFIERS) or query.args.get("by_name"):
        return None
    every = not query.args.get("distinct")
    union = isinstance(query, exp.Union)
    names = _names(query)
    if (every and not union) or (names is None and not every):
        return None
    sides: list[exp.Query] = []
    for place, side in enumerate((query.this, query.expression), start=1):
        inner = side.this if isinstance(side, exp.Subquery) else side
        tag = [] if union else [exp.alias_(exp.Literal.number(place), _SIDE, quoted=True)]
        found = with_newest(inner, times) if isinstance(inner, exp.Query) else None
        if found is None or (tag and not isinstance(found, exp.Select)):
            return None
        if tag:
            found.set("expressions", [*found.expressions, *tag])
        sides.append(found)
    whole = exp.Union(this=sides[0], expression=sides[1], distinct=False)
    if every or names is None:
        return whole
    columns: list[exp.Expr] = [exp.column(each.alias, table=_ROWS, quoted=True) for each in times]
    if union:
        return _grouped(whole, names, columns)
    side_of = exp.column(_SIDE, table=_ROWS, quoted=True)
    upto = exp.Literal.number(1 if isinstance(query, exp.Except) else 2)
    first = exp.EQ(this=_call("MIN", side_of), expression=exp.Literal.number(1))
    last = exp.EQ(this=_call("MAX", side_of), expression=upto)
    return _grouped(whole, names, columns, exp.And(this=first, expression=last))


def _grouped(
    query: exp.Query, names: Sequence[str], times: Sequence[exp.Expr], having: exp.Expr | None = None
) -> exp.Select:
    """The rows of a query without duplicates, each with the newest of its times."""
    keys = [exp.column(name, table=_ROWS, quoted=True) for name in names]
    newest = [exp.alias_(_call("MAX", each), each.name, quoted=True) for each in times]
    return exp.Select(
        expressions=[*(exp.alias_(key.copy(), key.name, quoted=True) for key in keys), *newest],
        from_=exp.From(this=exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(_ROWS, quoted=True)))),
        group=exp.Group(expressions=[key.copy() for key in keys]),
        having=exp.Having(this=having) if having is not None else None,
    )


def _names(query: exp.Expr) -> list[str] | None:
    """The columns of a query; None where they cannot be told from its text."""
    while not isinstance(query, exp.Select):
        if not isinstance(query, exp.SetOperation | exp.Subquery):
            return None
        query = query.this
    names = [item.alias_or_name for item in query.expressions]
    plain = all(name and name != "*" for name in names) and len({name.casefold() for name in names}) == len(names)
    return names if plain else None


def _call(name: str, value: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[value.copy()])
