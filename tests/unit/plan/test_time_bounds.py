"""Time bounds of joins, in every way they can be written (G11)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from penstock.plan.joins import conjuncts_of
from penstock.plan.time_bounds import TimeBounds, time_bounds
from penstock.sql.script import parse_statement
from penstock.sql.statements import Select

LEFT, RIGHT = {("l", "t")}, {("r", "u")}


def bounds(condition: str) -> TimeBounds:
    statement = parse_statement(f"SELECT 1 FROM l, r WHERE {condition}")
    assert isinstance(statement, Select)
    where = statement.query.tree.args["where"]
    assert isinstance(where, exp.Where)
    return time_bounds(conjuncts_of(where.this), LEFT, RIGHT)


SECOND = 1_000_000


@pytest.mark.parametrize(
    ("condition", "low", "high"),
    [
        ("l.t BETWEEN r.u - INTERVAL '4' HOUR AND r.u", -4 * 3600 * SECOND, 0),
        ("r.u BETWEEN l.t AND l.t + INTERVAL '10' SECOND", -10 * SECOND, 0),
        ("l.t >= r.u - INTERVAL '5' SECOND AND l.t < r.u + INTERVAL '5' SECOND", -5 * SECOND, 5 * SECOND),
        ("l.t + INTERVAL '1' SECOND > r.u", -SECOND, None),
        ("l.t = r.u", 0, 0),
        ("l.t <= r.u AND l.t <= r.u - INTERVAL '3' SECOND", None, -3 * SECOND),
        ("l.t > r.other", None, None),
        ("l.t > r.u OR l.t < r.u", None, None),
        ("(l.t >= r.u)", 0, None),
        ("INTERVAL '1' SECOND + r.u >= l.t", None, SECOND),
    ],
)
def test_bounds(condition: str, low: int | None, high: int | None) -> None:
    assert bounds(condition) == TimeBounds(low, high)


@given(st.integers(-100, 100), st.integers(-100, 100), st.booleans())
def test_either_side_first_is_the_same(low: int, high: int, flipped: bool) -> None:
    lower, upper = f"r.u + INTERVAL '{low}' SECOND", f"r.u + INTERVAL '{high}' SECOND"
    condition = f"{lower} <= l.t AND {upper} >= l.t" if flipped else f"l.t >= {lower} AND l.t <= {upper}"
    assert bounds(condition) == TimeBounds(low * SECOND, high * SECOND)


def test_words() -> None:
    assert TimeBounds(-60 * SECOND, 0).words("a.t", "b.t") == "a.t from b.t - 1 minute to b.t"
