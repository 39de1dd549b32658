"""ksqlDB's WITHIN between two streams, as a condition on their event times.

FROM orders o JOIN payments p WITHIN 1 HOUR ON o.id = p.order_id
-> FROM orders o JOIN payments p
   ON o.id = p.order_id AND p.ts BETWEEN o.ts - INTERVAL '1' HOUR AND o.ts + INTERVAL '1' HOUR
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.errors import NotYetError
from penstock.sql.nodes import Within
from penstock.sql.spans import span_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.plan.scope import Leaf


def has_grace(join: exp.Join) -> bool:
    """Whether WITHIN says how late rows may be."""
    within = join.args.get("nearest")
    return isinstance(within, Within) and within.args.get("grace") is not None


def with_time_bound(join: exp.Join, left: Sequence[Leaf], right: Leaf) -> exp.Join:
    """The join with WITHIN among its conditions; itself where it has none."""
    within = join.args.get("nearest")
    if not isinstance(within, Within):
        return join
    on = join.args.get("on")
    named = {column.table.casefold() for column in on.find_all(exp.Column)} if on is not None else set()
    timed = [leaf for leaf in left if _time(leaf) is not None]
    of_condition = [leaf for leaf in timed if leaf.alias.casefold() in named]
    earlier = [_time(leaf) for leaf in (timed if len(timed) == 1 else of_condition)]
    time = _time(right)
    if on is None or len(earlier) != 1 or earlier[0] is None or time is None:
        raise NotYetError(
            "DIALECT_NOT_YET",
            "WITHIN of ksqlDB between anything but two streams with an event time is not there yet",
            hint="ON … AND a.ts BETWEEN b.ts - INTERVAL '2' HOUR AND b.ts",
            span=span_of(join),
        )
    bounds = exp.Between(
        this=time,
        low=exp.Sub(this=earlier[0], expression=_interval(within.args["before"])),
        high=exp.Add(this=earlier[0].copy(), expression=_interval(within.args["after"])),
    )
    made = join.copy()
    made.set("nearest", None)
    made.set("on", exp.And(this=exp.Paren(this=on.copy()), expression=bounds))
    return made


def _time(leaf: Leaf) -> exp.Column | None:
    """The event time of a relation, by its name there."""
    found = [entry for entry in leaf.fields if entry.event_time and not entry.hidden]
    return exp.column(leaf.shown(found[0]), leaf.alias, quoted=True) if found else None


def _interval(micros: int) -> exp.Interval:
    return exp.Interval(this=exp.Literal.string(str(micros)), unit=exp.var("MICROSECOND"))
