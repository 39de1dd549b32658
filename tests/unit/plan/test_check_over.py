"""What is wrong in OVER is told at its place, before anything runs (G14, G16, H2)."""

from __future__ import annotations

import pytest

from penstock.plan.job_plan import plan_job
from tests.unit.plan.analysis import last, planned, spark

FRAMES = {
    "ROWS BETWEEN CURRENT ROW AND 2 PRECEDING": "INVALID_ARGUMENT",
    "ROWS BETWEEN UNBOUNDED FOLLOWING AND CURRENT ROW": "INVALID_ARGUMENT",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED PRECEDING": "INVALID_ARGUMENT",
    "ROWS BETWEEN 1 PRECEDING AND 3 PRECEDING": "INVALID_ARGUMENT",
    "ROWS BETWEEN 3 FOLLOWING AND 1 FOLLOWING": "INVALID_ARGUMENT",
    "ROWS 2 FOLLOWING": "INVALID_ARGUMENT",
    "ROWS BETWEEN -1 PRECEDING AND CURRENT ROW": "INVALID_ARGUMENT",
    "RANGE BETWEEN 5 PRECEDING AND CURRENT ROW": "TYPE_MISMATCH",  # the order is a time
    "RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND INTERVAL '5' MINUTE PRECEDING": "INVALID_ARGUMENT",
    "RANGE BETWEEN INTERVAL '-1' MINUTE PRECEDING AND CURRENT ROW": "INVALID_ARGUMENT",
}
VIEW = "CREATE MATERIALIZED VIEW v AS SELECT symbol, price, {} AS x FROM {}"


@pytest.mark.parametrize("relation", ["trades", "(SELECT symbol, price, volume, ts FROM trades) AS t"])
@pytest.mark.parametrize("frame", FRAMES)
def test_impossible_frames(frame: str, relation: str) -> None:
    query = VIEW.format(f"SUM(volume) OVER (PARTITION BY symbol ORDER BY ts {frame})", relation)
    report = last(query)
    assert report.error is not None
    assert report.error.condition == FRAMES[frame]
    assert report.error.span is not None
    assert (report.error.span.length, report.error.hint is not None) == (len(frame), True)


@pytest.mark.parametrize(
    ("call", "condition", "place"),
    [
        ("SUM(volume) OVER (ORDER BY ts ROWS BETWEEN 1.5 PRECEDING AND CURRENT ROW)", "INVALID_ARGUMENT", "1.5"),
        ("SUM(price) OVER (ORDER BY ts ROWS BETWEEN volume PRECEDING AND CURRENT ROW)", "INVALID_ARGUMENT", "volume"),
        ("SUM(volume) OVER (ORDER BY ts, price RANGE 5 PRECEDING)", "INVALID_ARGUMENT", "RANGE 5 PRECEDING"),
        ("SUM(volume) OVER (ORDER BY symbol RANGE 5 PRECEDING)", "TYPE_MISMATCH", "RANGE 5 PRECEDING"),
        (
            "SUM(volume) OVER (ORDER BY volume RANGE INTERVAL '5' DAY PRECEDING)",
            "TYPE_MISMATCH",
            "RANGE INTERVAL '5' DAY PRECEDING",
        ),
        ("SUM(volume) OVER (PARTITION BY symbol GROUPS 1 PRECEDING)", "INVALID_ARGUMENT", "GROUPS 1 PRECEDING"),
        ("NTILE(0) OVER (ORDER BY ts)", "INVALID_ARGUMENT", "0"),
        ("NTILE(volume) OVER (ORDER BY ts)", "INVALID_ARGUMENT", "volume"),
        ("NTH_VALUE(price, 0) OVER (ORDER BY ts)", "INVALID_ARGUMENT", "0"),
        ("LAG(price, 'x') OVER (ORDER BY ts)", "INVALID_ARGUMENT", "'x'"),
        ("RANK() OVER (PARTITION BY symbol)", "INVALID_ARGUMENT", "RANK"),
        ("RANK() OVER (ORDER BY ts SESSION WITH GAP INTERVAL '1' MINUTE)", "INVALID_ARGUMENT", "RANK"),
        (
            "COUNT(*) OVER (PARTITION BY symbol SESSION WITH GAP INTERVAL '1' MINUTE)",
            "INVALID_ARGUMENT",
            "SESSION WITH GAP INTERVAL '1' MINUTE",
        ),
        ("COUNT(*) OVER (ORDER BY ts SESSION WITH GAP INTERVAL '1' MONTH)", "INVALID_ARGUMENT", "INTERVAL '1' MONTH"),
        ("COUNT(*) OVER (ORDER BY volume SESSION WITH GAP 0)", "INVALID_ARGUMENT", "0"),
        ("COUNT(*) OVER (ORDER BY volume SESSION WITH GAP volume)", "INVALID_ARGUMENT", "volume"),
    ],
)
def test_mistakes_are_told_at_their_place(call: str, condition: str, place: str) -> None:
    error = last(VIEW.format(call, "trades")).error
    assert error is not None
    assert (error.condition, error.span and error.span.length) == (condition, len(place))
    assert error.hint


@pytest.mark.parametrize(
    "call",
    [
        "ROW_NUMBER() OVER (PARTITION BY symbol)",
        "ROW_NUMBER() OVER ()",
        "LAG(price) OVER (PARTITION BY symbol)",
        "SUM(volume) OVER (PARTITION BY symbol ROWS 1 PRECEDING)",
    ],
)
def test_without_an_order_it_is_always_the_same_one(call: str) -> None:
    job = plan_job(planned(VIEW.format(call, "trades")))
    assert job.finish is not None
    over = job.finish.view.text.split("ORDER BY", 1)[1]
    assert over.count("NULLS FIRST") >= 2


def test_rows_of_a_table_are_numbered_in_any_order() -> None:
    assert "ROW_NUMBER() OVER (ORDER BY 1" in spark("SELECT id, ROW_NUMBER() OVER () AS n FROM names").replace(
        "row_number", "ROW_NUMBER"
    )


def test_lag_may_look_ahead() -> None:
    job = plan_job(planned(VIEW.format("LAG(price, -1) OVER (ORDER BY ts)", "trades")))
    assert job.kind == "finish"
