"""Time bounds between two streams: which conjuncts of a join keep both sides close in time.

o.ts BETWEEN s.ts - INTERVAL '4' HOUR AND s.ts      bounds o.ts - s.ts by -4 hours and 0
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from penstock.frozen import frozen
from penstock.plan.join_times import TimeColumn
from penstock.plan.windows import duration_words
from penstock.sql.durations import NotADuration, duration_us

FLIPPED: Final[dict[type[exp.Expr], type[exp.Expr]]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.EQ: exp.EQ,
}


@frozen
class TimeBounds:
    """Bounds of left time minus right time, in microseconds; None: not bounded on that side."""

    low_us: int | None = None
    high_us: int | None = None

    @property
    def complete(self) -> bool:
        return self.low_us is not None and self.high_us is not None

    def within(self, low: int | None, high: int | None) -> TimeBounds:
        lows = [bound for bound in (self.low_us, low) if bound is not None]
        highs = [bound for bound in (self.high_us, high) if bound is not None]
        return TimeBounds(max(lows) if lows else None, min(highs) if highs else None)

    def words(self, left: str, right: str) -> str:
        """The bounds for a reader: `o.ts from s.ts - 4 hours to s.ts`."""
        return f"{left} from {_shifted(right, self.low_us)} to {_shifted(right, self.high_us)}"


def _shifted(column: str, micros: int | None) -> str:
    if micros is None:
        return "any time"
    if micros == 0:
        return column
    return f"{column} {'+' if micros > 0 else '-'} {duration_words(abs(micros))}"


def time_bounds(conjuncts: list[exp.Expr], left: set[TimeColumn], right: set[TimeColumn]) -> TimeBounds:
    """The bounds that conjuncts put on the event times of two sides."""
    bounds = TimeBounds()
    for conjunct in conjuncts:
        for comparison in comparisons(conjunct):
            bounds = _apply(bounds, comparison, left, right)
    return bounds


def comparisons(conjunct: exp.Expr) -> list[exp.Expr]:
    """The comparisons that a condition is made of: two of a BETWEEN, none of what is no comparison."""
    if isinstance(conjunct, exp.Paren):
        return comparisons(conjunct.this)
    if isinstance(conjunct, exp.Between):
        low = exp.GTE(this=conjunct.this.copy(), expression=conjunct.args["low"].copy())
        high = exp.LTE(this=conjunct.this.copy(), expression=conjunct.args["high"].copy())
        return [low, high]
    return [conjunct] if type(conjunct) in FLIPPED else []


def _apply(bounds: TimeBounds, comparison: exp.Expr, left: set[TimeColumn], right: set[TimeColumn]) -> TimeBounds:
    first, second = _linear(comparison.args["this"]), _linear(comparison.args["expression"])
    if first is None or second is None:
        return bounds
    kind: type[exp.Expr] = type(comparison)
    if first[0] in right and second[0] in left:
        first, second, kind = second, first, FLIPPED[kind]
    elif not (first[0] in left and second[0] in right):
        return bounds
    difference = second[1] - first[1]  # left + a OP right + b, so left - right OP b - a
    if kind is exp.EQ:
        return bounds.within(difference, difference)
    if kind in (exp.LT, exp.LTE):
        return bounds.within(None, difference)
    return bounds.within(difference, None)


def _linear(node: exp.Expr) -> tuple[TimeColumn, int] | None:
    """A time column plus a constant, or None."""
    if isinstance(node, exp.Paren):
        return _linear(node.this)
    if isinstance(node, exp.Column):
        return (node.table, node.name), 0
    if isinstance(node, exp.Add | exp.Sub):
        base, interval = node.this, node.expression
        if isinstance(node, exp.Add) and isinstance(base, exp.Interval):
            base, interval = interval, base
        found = _linear(base)
        micros = constant_us(interval)
        if found is None or micros is None:
            return None
        return found[0], found[1] + (micros if isinstance(node, exp.Add) else -micros)
    return None


def constant_us(node: exp.Expr) -> int | None:
    """The length of an interval that is written out, in microseconds; None for months, and for anything else."""
    if isinstance(node, exp.Paren):
        return constant_us(node.this)
    if not isinstance(node, exp.Interval):
        return None
    try:
        return duration_us(node)
    except NotADuration:
        return None
