"""ksqlDB's values by offset, and how long its windows wait for late rows."""

from __future__ import annotations

import pytest

from penstock.plan.nodes import Scan
from penstock.plan.script import analyze_script
from tests.unit.plan.analysis import last, planned, spark

STREAM = """CREATE STREAM o (k BIGINT, v BIGINT, part INT METADATA FROM 'partition', place BIGINT METADATA FROM 'offset',
    ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND);"""


@pytest.mark.parametrize(
    ("call", "written"),
    [
        ("LATEST_BY_OFFSET(v)", "max_by(`o`.`v`, {0}) FILTER(WHERE NOT `o`.`v` IS NULL)"),
        ("EARLIEST_BY_OFFSET(v, FALSE)", "min_by(`o`.`v`, {0})"),
    ],
)
def test_one_value(call: str, written: str) -> None:
    place = "CAST(`o`.`place` AS DECIMAL(20, 0)) * 100000 + `o`.`part`"
    found = spark(f"{STREAM} CREATE MATERIALIZED VIEW mv AS SELECT k, {call} AS x FROM o GROUP BY k")
    assert written.format(place) in found


def test_several_values_are_in_the_order_of_their_offsets() -> None:
    query = "SELECT k, LATEST_BY_OFFSET(v, 3) AS l, EARLIEST_BY_OFFSET(v, 2) AS e FROM o GROUP BY k"
    found = spark(f"{STREAM} CREATE MATERIALIZED VIEW mv AS {query}")
    assert "reverse(slice(" in found
    assert ", 1, 3))" in found
    assert ", 1, 2)" in found


@pytest.mark.parametrize("arguments", ["", "v, 0", "v, k", "v, 1, 2"])
def test_what_it_takes(arguments: str) -> None:
    error = last(f"{STREAM} SELECT k, LATEST_BY_OFFSET({arguments}) AS x FROM o GROUP BY k").error
    assert error is not None
    assert "LATEST_BY_OFFSET takes a column" in error.message


@pytest.mark.parametrize(
    ("window", "delay_s"),
    [
        ("TUMBLING (SIZE 1 HOUR)", 1),
        ("TUMBLING (SIZE 1 HOUR, GRACE PERIOD 10 MINUTES)", 600),
        ("HOPPING (SIZE 1 HOUR, ADVANCE BY 10 MINUTES, GRACE PERIOD 0 SECONDS, RETENTION 7 DAYS)", 0),
        ("SESSION (60 SECONDS, RETENTION 7 DAYS, GRACE PERIOD 1 HOUR)", 3600),
    ],
)
def test_a_window_waits_as_long_as_it_says(window: str, delay_s: int) -> None:
    text = (
        f"{STREAM} CREATE MATERIALIZED VIEW mv AS SELECT k, COUNT(*) AS n FROM o WINDOW {window} GROUP BY k EMIT FINAL"
    )
    for script in (text, STREAM + str(last(text).canonical)):  # it is kept in its canonical spelling
        report = analyze_script(script)[-1]
        assert report.plan is not None, report.error
        (scan,) = (node for node in report.plan.nodes() if isinstance(node, Scan))
        assert scan.event_time is not None
        assert scan.event_time.delay_us == delay_s * 1_000_000
    assert any("RETENTION" in notice for notice in last(text).notices) == ("RETENTION" in window)


def test_only_that_query_waits() -> None:
    inner = "SELECT k, COUNT(*) AS n FROM o GROUP BY k, TUMBLE(ts, INTERVAL '1' MINUTE, GRACE => INTERVAL '1' HOUR)"
    plan = planned(f"{STREAM} CREATE MATERIALIZED VIEW mv AS {inner} UNION ALL SELECT k, v FROM o")
    delays = [node.event_time.delay_us for node in plan.nodes() if isinstance(node, Scan) and node.event_time]
    assert delays == [3_600_000_000, 1_000_000]
