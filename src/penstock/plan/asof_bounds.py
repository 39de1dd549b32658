"""ASOF joins with more in their condition than equalities and the comparison that they go by: a tolerance, for example.

    FROM trades AS t ASOF LEFT JOIN quotes AS q
      ON t.symbol = q.symbol AND t.ts >= q.ts AND q.ts >= t.ts - INTERVAL '1' SECOND

Each row meets the last of those for which all of it holds. Engines' own ASOF joins know one comparison only, so the
first row in the order of time is asked for instead, for each row in front:

    FROM trades AS t LEFT JOIN LATERAL (
      SELECT * FROM quotes AS q WHERE … ORDER BY q.ts DESC LIMIT 1
    ) AS q ON TRUE
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from penstock.plan.joins import all_of, conjuncts_of
from penstock.plan.time_bounds import comparisons

_DESCENDS: Final = (exp.GT, exp.GTE)  # where what is joined stands on the right: its last row is the nearest one


def as_lateral(join: exp.Join) -> exp.Join | None:
    """The join as a LATERAL one; None where it goes by one comparison, or nothing says by which."""
    on, match = join.args.get("on"), join.args.get("match_condition")
    parts = [each for part in conjuncts_of(on) for each in comparisons(part) or [part]] if on is not None else []
    told = conjuncts_of(match) if match is not None else []
    others = [part for part in parts if not is_key_equality(part)]
    alias = join.this.alias_or_name
    compared = [order for order in (_order(part, alias) for part in (told or others)) if order is not None]
    if len(told) > 1 or len(others) + len(told) < 2 or len(compared) != 1:
        return None
    rows = exp.Select(
        expressions=[exp.Star()],
        from_=exp.From(this=join.this.copy()),
        where=exp.Where(this=all_of([*told, *parts])),
        order=exp.Order(expressions=compared),
        limit=exp.Limit(expression=exp.Literal.number(1)),
    )
    name = join.this.args["alias"].this if join.this.args.get("alias") else join.this.this
    item = exp.Lateral(this=exp.Subquery(this=rows), alias=exp.TableAlias(this=name.copy()))
    return exp.Join(this=item, side=join.side or None, on=exp.true() if join.side else None)


def is_key_equality(part: exp.Expr) -> bool:
    """Whether a condition is an equality of something with something, and not of one thing with a constant."""
    return isinstance(part, exp.EQ) and all(side.find(exp.Column) for side in (part.this, part.expression))


def _order(part: exp.Expr, alias: str) -> exp.Ordered | None:
    """The order in which the nearest row comes first, by a comparison of a column in front with one that is joined."""
    if not isinstance(part, exp.GT | exp.GTE | exp.LT | exp.LTE):
        return None
    one, other = part.this, part.expression
    if not isinstance(one, exp.Column) or not isinstance(other, exp.Column) or not one.table or not other.table:
        return None
    own = [side.table.casefold() == alias.casefold() for side in (one, other)]
    if own[0] == own[1]:
        return None
    descends = isinstance(part, _DESCENDS) == own[1]
    return exp.Ordered(this=(other if own[1] else one).copy(), desc=descends, nulls_first=not descends)
