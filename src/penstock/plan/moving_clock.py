"""Temporal filters: conditions on the clock whose answer changes as time goes on, without any row that comes.

    SELECT k, COUNT(*) FROM clicks WHERE ts > NOW() - INTERVAL '1' HOUR GROUP BY k

RisingWave writes them so, Materialize with `mz_now()`. The view store moves a clock of the view with each batch. Where
a condition speaks of one row, it is turned round: the row is shown until `ts + 1 hour`. The store keeps that time with
the row, takes it out when the clock has passed it, and answers the keys of such rows anew. Any other condition on the
clock is asked again as it stands, for everything that it is asked of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from sqlglot import exp

from penstock.catalog.argument_types import kind_of
from penstock.frozen import frozen
from penstock.plan.finish_plan import CLOCK_CALL, CLOSED_AFTER, CLOSED_UPTO
from penstock.plan.kept_clock import is_clock_call
from penstock.plan.names import is_proctime
from penstock.plan.time_bounds import FLIPPED, comparisons, constant_us
from penstock.plan.trees import call, nondeterministic_call, nondeterministic_name, own_nodes, type_of, typed
from penstock.types import BIGINT, TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterator

# Materialize's function: there it stands in temporal filters alone, so it is that in every dialect.
MOVING: Final = "mz_now"
_DAYS: Final = ("current_date", "curdate")
_UNITS: Final = {"HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000, "MICROSECOND": 1}
_COMPARED: Final = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.EQ, exp.Between)
_NUMBERS: Final = ("WHOLE", "FRACTION")
_DIALECTS: Final = ("risingwave",)


@frozen
class ClockBound:
    """A time of a row: `until` it the row is shown, or `since`, the time itself included."""

    side: Literal["since", "until"]
    time: exp.Expr


def with_moving_clock(written: exp.Select, dialect: str) -> exp.Select:
    """The SELECT with `mz_now()` for the clock in its conditions, where the dialect means that by it."""
    if dialect not in _DIALECTS or not any(is_clock_call(node) for node in _condition_nodes(written)):
        return written
    made = written.copy()
    for node in list(_condition_nodes(made)):
        if is_clock_call(node) and not is_proctime(node):
            moving: exp.Expr = exp.Anonymous(this=MOVING, expressions=[])
            moving.meta.update(node.meta)
            if isinstance(node, exp.CurrentDate) or node.name.casefold() in _DAYS:
                moving = exp.Cast(this=moving, to=exp.DataType.build("DATE"))
            node.replace(moving)
    return made


def with_moments(bound: exp.Expr) -> exp.Expr:
    """A comparison of the clock with numbers as one with times: in Materialize they are milliseconds since 1970.

    mz_now() <= EXTRACT(EPOCH FROM ts) * 1000 + 5000
    """
    if not isinstance(bound, _COMPARED):
        return bound
    sides = [name for name in ("this", "expression", "low", "high") if bound.args.get(name) is not None]
    if any(moving_call(bound.args[name]) is bound.args[name] for name in sides):
        for name in sides:
            if _is_number(bound.args[name]):
                bound.set(name, _moment(bound.args[name]))
    return bound


def _is_number(node: exp.Expr) -> bool:
    """Whether a bound term is a number, by its type or, where nobody knows that, by its form."""
    if isinstance(node, exp.Paren):
        return _is_number(node.this)
    known = kind_of(type_of(node))
    if known is not None or node.find(exp.Interval) is not None:
        return known in _NUMBERS
    if isinstance(node, exp.Add | exp.Sub):
        return _is_number(node.this) or _is_number(node.expression)
    return isinstance(node, exp.Mul | exp.Div)


def _moment(number: exp.Expr) -> exp.Expr:
    """The time of a number of milliseconds, to the microsecond."""
    micros = call("round", exp.Mul(this=exp.Paren(this=number), expression=exp.Literal.number(1000)))
    whole = exp.Cast(this=micros, to=exp.DataType.build("BIGINT", dialect="spark"))
    return typed(call("timestamp_micros", typed(whole, BIGINT)), TIMESTAMP)


def moving_call(tree: exp.Expr | None) -> exp.Expr | None:
    """The first call of the moving clock in a bound tree."""
    for node in tree.walk() if tree is not None else ():
        if nondeterministic_call(node) is node and nondeterministic_name(node).casefold() == MOVING:
            return node
    return None


def settle_clock(tree: exp.Expr) -> None:
    """Puts the clock of the view in the place of such calls in the conditions of a tree that the store answers."""
    for node in list(tree.walk()):
        if moving_call(node) is not node:
            continue
        around = node.find_ancestor(exp.Where, exp.Having, exp.Join, exp.Select)
        if around is not None and not isinstance(around, exp.Select):
            node.replace(typed(call(CLOCK_CALL), TIMESTAMP))


def reads_clock(tree: exp.Expr) -> bool:
    """Whether a tree of the finish asks the clock of the view."""
    return any(_is_clock(node) for node in tree.walk())


def asks_marks(tree: exp.Expr) -> bool:
    """Whether a tree asks the store for what differs from batch to batch: the clock, or which windows close."""
    marks = (CLOCK_CALL, CLOSED_AFTER, CLOSED_UPTO)
    return any(isinstance(node, exp.Anonymous) and node.name in marks for node in tree.walk())


def clock_bounds(conjunct: exp.Expr) -> list[ClockBound] | None:
    """What a condition says of the times between which a row is shown; None where it says anything else.

    ts > clock - 1 hour AND ts <= clock   ->   until ts + 1 hour, since ts
    """
    found: list[ClockBound] = []
    for comparison in comparisons(conjunct):
        bound = _bound(comparison)
        if bound is None:
            return None
        found.append(bound)
    return found or None


def _bound(comparison: exp.Expr) -> ClockBound | None:
    row, moved, kind = comparison.args["this"], _moved_clock(comparison.args["expression"]), type(comparison)
    if moved is None:
        row, moved, kind = comparison.args["expression"], _moved_clock(comparison.args["this"]), FLIPPED[kind]
    if moved is None or kind is exp.EQ or reads_clock(row) or type_of(row) != TIMESTAMP:
        return None
    # row OP clock + moved. A row with just the time of the clock is in or out: times are whole microseconds.
    if kind in (exp.GT, exp.GTE):
        return ClockBound("until", _shifted(row, -moved + (1 if kind is exp.GTE else 0)))
    return ClockBound("since", _shifted(row, -moved + (1 if kind is exp.LT else 0)))


def _moved_clock(node: exp.Expr) -> int | None:
    """By how much a term is the clock moved, in microseconds; None where it is something else."""
    if isinstance(node, exp.Paren):
        return _moved_clock(node.this)
    if _is_clock(node):
        return 0
    if isinstance(node, exp.Add | exp.Sub):
        base, interval = node.this, node.expression
        if isinstance(node, exp.Add) and isinstance(base, exp.Interval):
            base, interval = interval, base
        found, micros = _moved_clock(base), constant_us(interval)
        if found is not None and micros is not None:
            return found + (micros if isinstance(node, exp.Add) else -micros)
    return None


def _shifted(time: exp.Expr, micros: int) -> exp.Expr:
    if micros == 0:
        return time.copy()
    unit, size = next((unit, size) for unit, size in _UNITS.items() if micros % size == 0)
    length = exp.Interval(this=exp.Literal.string(str(abs(micros) // size)), unit=exp.var(unit))
    kind = exp.Add if micros > 0 else exp.Sub
    moved = time.copy() if isinstance(time, exp.Column) else exp.Paren(this=time.copy())
    return typed(kind(this=moved, expression=length), TIMESTAMP)


def _is_clock(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name == CLOCK_CALL


def _condition_nodes(select: exp.Select) -> Iterator[exp.Expr]:
    """The nodes of the conditions of a SELECT itself."""
    trees = [select.args.get(clause) for clause in ("where", "having", "qualify")]
    trees += [join.args.get("on") for join in select.args.get("joins") or []]
    for tree in trees:
        if tree is not None:
            yield from own_nodes(tree)
