"""What of a query the watermark closes: windows, joins within a bound, and duplicates that are forgotten."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from penstock.plan.join_times import JoinTime, TimeColumn, time_output
from penstock.plan.relation import WINDOW_COLUMN
from penstock.plan.spark_blocks import (
    aggregates,
    first_keys,
    is_window_call,
    item_of,
    length_us,
    relations,
    selects,
    stream_joins,
    window_call,
    window_key,
)

# Spark lets go of a row one millisecond after its bound, and computes the bound in whole milliseconds.
_ROUNDING_US: Final = 2_000


def time_joins(select: exp.Select) -> list[tuple[exp.Join, JoinTime]]:
    """The joins of a SELECT whose rows the watermark lets go of."""
    return [(join, time) for join, time in stream_joins(select) if time.closes]


def distinct_key(select: exp.Select) -> exp.Column | None:
    """The time or window by which a SELECT DISTINCT forgets its rows; None where it forgets none."""
    if select.args.get("distinct") is None:
        return None
    name, keys = time_output(select), first_keys(select)
    if keys and name not in keys:
        return None  # every key is kept
    found = item_of(select, name) if name is not None else None
    return found if isinstance(found, exp.Column) else None


def closes(select: exp.Select) -> bool:
    """Whether something in a SELECT itself waits for the watermark."""
    return window_key(select) is not None or bool(time_joins(select)) or distinct_key(select) is not None


def waits(tree: exp.Expr) -> bool:
    """Whether something in a query waits for the watermark."""
    return any(closes(select) for select in selects(tree))


def final_time(select: exp.Select, wanted: str | None) -> TimeColumn | None:
    """The column behind the time or window that a SELECT groups by, forgets by, or hands up; `wanted` is the output
    by which the query around goes, where it goes by one."""
    key = window_key(select)
    if isinstance(key, exp.Anonymous):
        key = key.expressions[0]
    elif key is None and not aggregates(select):
        name = wanted or time_output(select)
        key = item_of(select, name) if name is not None else None
    if isinstance(key, exp.Anonymous) and (is_window_call(key) or key.name.lower() == "window_time"):
        key = key.expressions[0]
    return (key.table, key.name) if isinstance(key, exp.Column) else None


def spread_us(tree: exp.Expr) -> int:
    """How far behind the largest event time a query has emitted everything and keeps nothing: the sum of what each
    operator waits for, along its longest path.

    A row of time t is in windows that end at t + size at the latest, a session that it is the last row of ends at
    t + gap, a join waits for partners up to its bound, and the time of a closed window lies before its end: each
    operator of a chain adds its own length. One that is grouped, joined or made distinct by the window of the query
    below it ends together with it and adds nothing.
    """
    if isinstance(tree, exp.SetOperation):
        return max(spread_us(tree.this), spread_us(tree.expression))
    if not isinstance(tree, exp.Select):
        return 0
    below = {alias: spread_us(inner) for alias, inner in relations(tree).items()}
    joined = {join.this.alias_or_name for join, _ in stream_joins(tree)}
    found = max((length for alias, length in below.items() if alias not in joined), default=0)
    for join, time in stream_joins(tree):
        found = max(found, below.get(join.this.alias_or_name, 0)) + _join_us(tree, time)
    key = window_key(tree)
    if key is None:
        key = distinct_key(tree)
        key = key if key is not None and key.name == WINDOW_COLUMN else None
    call = window_call(tree, key) if key is not None else None
    return found + (length_us(call[1]) if call is not None else 0)


def _join_us(select: exp.Select, time: JoinTime) -> int:
    if time.bound == "interval":
        return max(0, -time.low_us, time.high_us) + _ROUNDING_US
    return max((_window_us(select, *side) for side in time.columns), default=0)


def _window_us(select: exp.Select, alias: str, name: str) -> int:
    """The length of the window of a side of a join; nothing where that window has closed below it."""
    inner = relations(select).get(alias)
    if not isinstance(inner, exp.Select) or aggregates(inner):
        return 0
    item = item_of(inner, name)
    call = window_call(inner, item) if item is not None else None
    return length_us(call[1]) if call is not None else 0
