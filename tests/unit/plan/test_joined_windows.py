"""Windows over joined rows that change, or that may come for ever, are windows over a subquery of them (G8, G16)."""

from __future__ import annotations

from typing import Final

import pytest

from penstock.errors import NotYetError
from penstock.plan.job_plan import plan_job
from penstock.plan.relation import Mode
from penstock.plan.spark_text import spark_sql
from tests.unit.plan.analysis import last, planned

STREAMS: Final = """
CREATE STREAM c (id BIGINT, k BIGINT, ts TIMESTAMP, PRIMARY KEY (id) NOT ENFORCED)
WITH (connector = 'topic', changes = 'upsert');
CREATE STREAM d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH (connector = 'topic', changes = 'upsert');
CREATE STREAM a (id BIGINT, k BIGINT, v BIGINT, s STRUCT<x BIGINT>, ns ARRAY<BIGINT>, ts TIMESTAMP,
    WATERMARK FOR ts AS ts - INTERVAL '1' SECOND);
CREATE STREAM b (id BIGINT, w BIGINT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '1' SECOND);
CREATE STREAM e (id BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND);
CREATE MATERIALIZED VIEW latest AS SELECT id, k, ts FROM c;
CREATE MATERIALIZED VIEW pairs AS SELECT a.id, a.k, a.ts, b.w FROM a JOIN b ON a.id = b.id;
CREATE MATERIALIZED VIEW added AS SELECT id, k, ts FROM a WHERE v > 0;
"""
TEN: Final = "INTERVAL '10' SECOND"
PAIRS: Final = "FROM a JOIN b ON a.id = b.id"

# Rows that come for ever, or change: each with the time of its windows.
ROWS: Final = {
    "FROM a JOIN c ON a.id = c.id": "a.ts",
    "FROM a LEFT JOIN d ON a.id = d.id": "ts",
    "FROM c LEFT JOIN d USING (id)": "c.ts",
    "FROM a, c WHERE a.id = c.id AND a.v > 0": "c.ts",
    PAIRS: "a.ts",
    "FROM a FULL JOIN b ON a.id = b.id": "b.at",
    "FROM a JOIN b ON a.id = b.id JOIN d ON d.id = a.id": "at",
    "FROM latest AS l JOIN a ON l.id = a.id": "l.ts",
    "FROM latest": "ts",
    "FROM pairs": "ts",
}  # fmt: skip
WINDOWS: Final = (f"TUMBLE({{}}, {TEN})", f"HOP({{}}, INTERVAL '5' SECOND, {TEN})", f"SESSION({{}}, {TEN})")


@pytest.mark.parametrize("emit", ["", " EMIT CHANGES"])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("rows", ROWS)
def test_the_store_answers(rows: str, window: str, emit: str) -> None:
    named = window.format(ROWS[rows])
    query = f"SELECT {named} AS w, COUNT(*) AS n {rows} GROUP BY {named}{emit}"
    query = query.replace(f"{named} AS w", f"{named.replace('(', '_START(', 1)} AS w")
    plan = planned(f"{STREAMS} CREATE MATERIALIZED VIEW v AS {query}")
    assert plan.mode is not Mode.APPEND
    job = plan_job(plan)
    assert job.finish is not None
    assert not job.uses_event_time


@pytest.mark.parametrize(
    "query",
    [
        # a window as a relation, beside what may come for ever
        (f"SELECT window_start, COUNT(*) AS n FROM TUMBLE(TABLE a, DESCRIPTOR(ts), {TEN}) AS x JOIN b ON x.id = b.id "
        "GROUP BY window_start, window_end"),
        (f"SELECT window_end, COUNT(*) AS n FROM CUMULATE(TABLE (SELECT a.ts {PAIRS}), DESCRIPTOR(ts), INTERVAL '5' SECOND, "
        f"{TEN}) GROUP BY window_start, window_end"),
        f"SELECT window_start, k FROM TUMBLE(TABLE latest, DESCRIPTOR(ts), {TEN})",
        # what waits for the watermark, over a join that waits for ever
        f"SELECT DISTINCT a.ts, a.k {PAIRS}",
        f"SELECT a.k, b.w {PAIRS} JOIN e ON a.id = e.id AND a.ts BETWEEN e.ts - INTERVAL '1' HOUR AND e.ts",
        # one time after the other
        ("SELECT a.v FROM a JOIN b ON a.id = b.id AND b.at BETWEEN a.ts AND a.ts + INTERVAL '1' MINUTE "
        "JOIN e ON e.id = a.id AND e.ts BETWEEN a.ts AND a.ts + INTERVAL '1' MINUTE "
        "JOIN e AS f ON f.id = b.id AND f.ts BETWEEN b.at AND b.at + INTERVAL '1' MINUTE"),
        # what is made of windows that show each change
        f"SELECT MAX(n) AS m FROM (SELECT d.name, COUNT(*) AS n FROM a JOIN d ON a.id = d.id GROUP BY d.name, TUMBLE(a.ts, {TEN}))",
        "SELECT k, LAG(k) OVER (ORDER BY ts) AS l FROM c",
        f"SELECT a.k, RANK() OVER (ORDER BY COUNT(*)) AS r {PAIRS} GROUP BY a.k, TUMBLE(a.ts, {TEN})",
    ],
)  # fmt: skip
def test_other_shapes(query: str) -> None:
    job = plan_job(planned(f"{STREAMS} CREATE MATERIALIZED VIEW v AS {query}"))
    assert job.finish is not None


@pytest.mark.parametrize(
    ("query", "names", "rows"),
    [
        (
            f"SELECT a.k, d.id, COUNT(*) FROM a JOIN d ON a.id = d.id GROUP BY a.k, d.id, TUMBLE(ts, {TEN})",
            ["k", "id", "count"],
            ["k", "id", "ts"],
        ),
        # a column comes before an output of its name, in GROUP BY and in HAVING
        (
            (
                f"SELECT a.k + 1 AS v, SUM(a.v) AS id FROM a JOIN d ON a.id = d.id GROUP BY a.k, TUMBLE(a.ts, {TEN}) "
                "HAVING SUM(v) > 1 AND a.k > 2"
            ),
            ["v", "id"],
            ["k", "v_2", "ts"],
        ),
        (
            (
                f"SELECT a.k + 1 AS z, SUM(a.v) AS total FROM a JOIN d ON a.id = d.id GROUP BY z, TUMBLE(a.ts, {TEN}) "
                "HAVING total > 1"
            ),
            ["z", "total"],
            ["k", "v", "ts"],
        ),
        (
            (
                f"SELECT a.s.x, SUM(SIZE(FILTER(a.ns, k -> k > a.k))) AS n FROM a JOIN d ON a.id = d.id "
                f"GROUP BY a.s.x, TUMBLE(a.ts, {TEN})"
            ),
            ["x", "n"],
            ["x", "ns", "k_2", "ts"],
        ),
        (
            (
                f"SELECT UPPER(d.name) AS name, COUNT(*) AS n FROM a JOIN d ON a.id = d.id "
                f"GROUP BY UPPER(d.name), SESSION(a.ts, {TEN})"
            ),
            ["name", "n"],
            ["key", "ts"],
        ),
    ],
)
def test_names(query: str, names: list[str], rows: list[str]) -> None:
    plan = planned(f"{STREAMS} CREATE MATERIALIZED VIEW v AS {query}")
    assert [field.name for field in plan.columns] == names
    text = spark_sql(plan.spark, pretty=False)
    assert [text.count(f"AS `{name}`") > 0 for name in rows] == [True] * len(rows)


def test_a_sink_takes_the_windows_by_their_bounds() -> None:
    bounds = f"TUMBLE_START(a.ts, {TEN}) AS s, TUMBLE_END(a.ts, {TEN}) AS e"
    query = f"SELECT a.k, {bounds}, COUNT(*) AS n FROM a JOIN c ON a.id = c.id GROUP BY a.k, TUMBLE(a.ts, {TEN})"
    plan = planned(f"{STREAMS} CREATE SINK v WITH (connector = 'topic', changes = 'upsert') AS {query}")
    assert plan.mode is Mode.UPSERT
    assert set(plan.root.key or ()) == {"k", "s", "e"}
    timed = query.replace("COUNT(*) AS n", f"TUMBLE_ROWTIME(a.ts, {TEN}) AS t")
    assert planned(f"{STREAMS} CREATE MATERIALIZED VIEW v AS {timed}").kept


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        (f"SELECT k, COUNT(*) AS n FROM added GROUP BY k, TUMBLE(ts, {TEN})", "panes"),
        (f"SELECT k, COUNT(*) AS n FROM added GROUP BY k, TUMBLE(ts, {TEN}) EMIT CHANGES", "windows"),
        ((f"SELECT a.k, COUNT(*) AS n FROM a JOIN b ON a.id = b.id AND a.ts BETWEEN b.at - {TEN} AND b.at "
         f"GROUP BY a.k, TUMBLE(a.ts, {TEN})"), "append"),
    ],
)  # fmt: skip
def test_what_closes_is_not_kept_row_by_row(query: str, kind: str) -> None:
    assert plan_job(planned(f"{STREAMS} CREATE MATERIALIZED VIEW v AS {query}")).kind == kind


@pytest.mark.parametrize("rows", ["FROM a JOIN c ON a.id = c.id", "FROM c JOIN a ON a.id = c.id", PAIRS])
@pytest.mark.parametrize("window", ["TUMBLE(a.ts, {})", "HOP(a.ts, INTERVAL '5' SECOND, {})"])
def test_windows_over_joined_rows_are_shown_when_they_close(rows: str, window: str) -> None:
    """The rows of `a` bring the watermark."""
    query = f"SELECT COUNT(*) AS n {rows} GROUP BY {window.format(TEN)} EMIT FINAL"
    job = plan_job(planned(f"{STREAMS} CREATE MATERIALIZED VIEW v AS {query}"))
    assert job.finish is not None
    assert job.finish.closing is not None
    assert [each.event_time is not None for each in job.scans if each.relation == "a"] == [True]


@pytest.mark.parametrize(
    ("rows", "window"),
    [("FROM a JOIN c ON a.id = c.id", "SESSION"), ("FROM latest AS a", "TUMBLE"), (PAIRS, "SESSION")],
)
def test_what_is_never_final_is_not_waited_for(rows: str, window: str) -> None:
    report = last(
        f"{STREAMS} CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n {rows} GROUP BY {window}(a.ts, {TEN}) EMIT FINAL"
    )
    if report.error is None:
        assert report.plan is not None
        with pytest.raises(NotYetError):
            plan_job(report.plan)
