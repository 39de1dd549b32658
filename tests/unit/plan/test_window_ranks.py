"""Ranks and OVER within windows: by Spark when a window closes, or by the view store while it is open (G13)."""

from __future__ import annotations

import pytest

from penstock.plan.explain import plan_text
from penstock.plan.job_plan import JobPlan, plan_job
from tests.unit.plan.analysis import labels, last, planned

ROWS = "TUMBLE(TABLE trades, DESCRIPTOR(ts), INTERVAL '1' MINUTE)"
SESSIONS = "SESSION(TABLE trades PARTITION BY symbol, DESCRIPTOR(ts), INTERVAL '1' MINUTE)"
COUNTS = f"SELECT window_start, window_end, symbol, COUNT(*) AS n FROM {ROWS} GROUP BY window_start, window_end, symbol"


def view(query: str) -> str:
    return f"CREATE MATERIALIZED VIEW mv AS {query}"


def job_of(query: str) -> JobPlan:
    return plan_job(planned(view(query)))


@pytest.mark.parametrize("rank", ["RANK", "DENSE_RANK", "ROW_NUMBER"])
@pytest.mark.parametrize("rows", [ROWS, f"({COUNTS})"])
@pytest.mark.parametrize("kept", ["", " QUALIFY place <= 3"])
def test_ranks_wait_for_the_end_of_a_window(rank: str, rows: str, kept: str) -> None:
    order = "n" if "COUNT" in rows else "price"
    query = f"SELECT symbol, {rank}() OVER (PARTITION BY window_start ORDER BY {order} DESC) AS place FROM {rows}{kept}"
    job = job_of(query)
    assert job.kind == "append"
    assert job.spread_us == 60_000_000
    assert job.late is not None
    text = plan_text(planned(view(query)))
    assert f"functions {rank}" in text
    assert "the rows of each open window; dropped when the watermark passes the end of the window" in text
    assert labels(planned(view(query))).count("WindowTopN" if kept else "WindowRank") == 1


def test_several_ranks_of_one_order_are_found_together() -> None:
    over = "OVER (PARTITION BY window_start, window_end ORDER BY price)"
    job = job_of(f"SELECT price, RANK() {over} AS a, DENSE_RANK() {over} AS b, ROW_NUMBER() {over} AS c FROM {ROWS}")
    assert job.kind == "append"
    assert job.core.count("array_sort") == 1
    other = "OVER (PARTITION BY window_start, window_end ORDER BY volume)"
    assert job_of(f"SELECT price, RANK() {over} AS a, RANK() {other} AS b FROM {ROWS}").kind == "finish"


def test_what_is_not_ranked_within_one_window_changes() -> None:
    """Sessions of several keys may begin together, and end at other times."""
    sessions = f"SELECT window_start, window_end, symbol, COUNT(*) AS n FROM {SESSIONS} GROUP BY window_start, window_end, symbol"
    ranked = f"SELECT symbol, RANK() OVER (PARTITION BY {{by}} ORDER BY n) AS place FROM ({sessions})"
    assert job_of(ranked.format(by="window_start, window_end")).kind == "append"
    assert job_of(ranked.format(by="window_start")).kind == "finish"
    assert (
        job_of(f"SELECT symbol, RANK() OVER (PARTITION BY symbol ORDER BY n) AS place FROM ({COUNTS})").kind == "finish"
    )


def test_open_windows_are_ranked_by_the_store() -> None:
    ranked = f"SELECT symbol, RANK() OVER (PARTITION BY window_start ORDER BY price) AS place FROM {ROWS}"
    for query in (f"{ranked} EMIT CHANGES", f"{ranked} QUALIFY place <= 3 EMIT CHANGES"):
        job = job_of(query)
        assert job.kind == "finish"
        assert job.finish is not None
        assert [set(rows.shown) for rows in job.finish.rows] == [{"symbol", "price", "window_start"}]
        assert len(job.finish.keys) == 1
        assert "by (window_start)" in job.how


def test_other_functions_over_the_rows_of_a_window_are_answered_by_the_store() -> None:
    for function in ("SUM(price)", "LAG(price)", "FIRST_VALUE(symbol)"):
        job = job_of(f"SELECT price, {function} OVER (PARTITION BY window_start ORDER BY ts) AS x FROM {ROWS}")
        assert job.kind == "finish"
        assert job.core.count("window(") == 1


def test_ranks_of_closed_windows_go_to_a_sink_of_appended_rows() -> None:
    sink = "CREATE SINK out (symbol STRING, n BIGINT) WITH (connector = 'file', path = '/tmp/out', format = 'json');"
    ranked = f"SELECT symbol, n FROM ({COUNTS}) QUALIFY RANK() OVER (PARTITION BY window_start ORDER BY n DESC) = 1"
    assert last(f"{sink} INSERT INTO out {ranked}").error is None
