"""Each grouping set gives its rows, the same one twice as well, and no key is taken to tell those apart (G5, G9)."""

from __future__ import annotations

import pytest
from sqlglot import exp, parse_one

from penstock.plan.grouping_sets import repeats_a_set
from penstock.plan.job_plan import JobPlan, plan_job
from penstock.plan.relation import Mode
from tests.unit.plan.analysis import planned, spark

WINDOW = "TUMBLE(ts, INTERVAL '10' SECOND)"


def job(query: str) -> JobPlan:
    return plan_job(planned(f"CREATE MATERIALIZED VIEW v AS {query}"))


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("k", False),
        ("k, k, (k, g)", False),
        ("GROUPING SETS ((k), (g))", False),
        ("GROUPING SETS ((k, g), (g, k))", True),
        ("GROUPING SETS ((), ())", True),
        ("GROUPING SETS (ROLLUP (k), (k))", True),
        ("k, ROLLUP (k)", True),
        ("k, ROLLUP (g)", False),
        ("ROLLUP (k, k)", True),
        ("CUBE (k, g)", False),
        ("CUBE ((k, g), g)", True),
        ("ROLLUP (k), CUBE (g)", False),
        ("ROLLUP (k), ROLLUP (k)", True),
    ],
)
def test_which_sets_repeat(keys: str, expected: bool) -> None:
    group = parse_one(f"SELECT 1 FROM t GROUP BY {keys}", dialect="postgres").args["group"]
    sets = [entry for name in ("grouping_sets", "rollup", "cube") for entry in group.args.get(name) or []]
    assert repeats_a_set(exp.Group(expressions=[*group.expressions, *sets])) is expected


@pytest.mark.parametrize(
    "keys", ["GROUPING SETS ((symbol), (symbol))", "symbol, ROLLUP (symbol)", "symbol, GROUPING SETS ((), ())"]
)
def test_rows_that_are_there_twice_have_no_key(keys: str) -> None:
    made = job(f"SELECT symbol, COUNT(*) AS n FROM trades GROUP BY {keys}")
    assert (made.kind, made.key) == ("finish", ())
    assert made.finish is not None
    assert made.finish.unique is None


def test_sets_that_differ_keep_their_key() -> None:
    made = job("SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol, GROUPING SETS (())")
    assert made.finish is not None
    assert made.finish.unique == ("symbol",)


def test_every_set_is_handed_on() -> None:
    text = spark(f"SELECT symbol, COUNT(*) AS n FROM trades GROUP BY {WINDOW}, GROUPING SETS ((symbol), (symbol))")
    assert "GROUPING SETS ((`trades`.`symbol`), (`trades`.`symbol`))" in text


def test_both_bounds_are_one_window() -> None:
    text = spark(
        "SELECT window_start, symbol, COUNT(*) AS n FROM TUMBLE(TABLE trades, DESCRIPTOR(ts), INTERVAL '10' SECOND) "
        "GROUP BY GROUPING SETS ((window_start, window_end, symbol), (window_start, window_end))"
    )
    assert text.count("`__window`, ") + text.count("`__window`)") >= 2
    assert "`__window`, `trades`.`__window`" not in text


def test_windows_that_change_with_a_repeated_set_are_the_stores() -> None:
    plan = planned(
        "CREATE MATERIALIZED VIEW v AS SELECT symbol, COUNT(*) AS n FROM trades "
        f"GROUP BY {WINDOW}, GROUPING SETS ((symbol), (symbol)) EMIT CHANGES"
    )
    assert plan.root.mode is Mode.RETRACT
    assert plan_job(plan).kind == "finish"
