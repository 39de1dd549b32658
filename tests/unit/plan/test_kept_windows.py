"""Windows of rows that change, and sessions before they close, are answered by the view store (D20, G8, G16)."""

from __future__ import annotations

import pytest

from penstock.plan.explain import plan_text
from penstock.plan.job_plan import plan_job
from penstock.plan.relation import Mode
from tests.unit.plan.analysis import last, planned

STREAMS = """
CREATE STREAM c (id BIGINT, k BIGINT, ts TIMESTAMP, PRIMARY KEY (id) NOT ENFORCED)
WITH (connector = 'topic', changes = 'upsert');
CREATE STREAM timed (id BIGINT, k BIGINT, ts TIMESTAMP, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '1' SECOND,
  PRIMARY KEY (id) NOT ENFORCED) WITH (connector = 'topic', changes = 'upsert');
CREATE STREAM versioned (id BIGINT, k BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND,
  PRIMARY KEY (id) NOT ENFORCED) WITH (connector = 'topic', changes = 'upsert', version_column = 'k');
CREATE STREAM l (id BIGINT, k BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND);
"""
SESSION = "SESSION(TABLE l PARTITION BY id, DESCRIPTOR(ts), INTERVAL '10' SECOND)"


@pytest.mark.parametrize(
    "query",
    [
        (
            "SELECT window_start, k, COUNT(*) AS n FROM TUMBLE(TABLE c, DESCRIPTOR(ts), INTERVAL '10' SECOND) "
            "GROUP BY window_start, window_end, k"
        ),
        (
            "SELECT window_end, SUM(id) AS n FROM HOP(TABLE c, DESCRIPTOR(ts), INTERVAL '4' SECOND, INTERVAL '10' SECOND) "
            "GROUP BY window_start, window_end"
        ),
        (
            "SELECT window_end, SUM(id) AS n FROM CUMULATE(TABLE c, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND) "
            "GROUP BY window_start, window_end"
        ),
        "SELECT k, TUMBLE_END(ts, INTERVAL '10' SECOND) AS e, COUNT(*) AS n FROM c GROUP BY k, TUMBLE(ts, INTERVAL '10' SECOND)",
        "SELECT k, SESSION_START(ts, INTERVAL '10' SECOND), COUNT(*) AS n FROM c GROUP BY k, SESSION(ts, INTERVAL '10' SECOND)",
        f"SELECT k, window_start, COUNT(*) AS n FROM {SESSION} GROUP BY k, window_start, window_end EMIT CHANGES",
        f"SELECT MAX(n) AS m FROM (SELECT id, COUNT(*) AS n FROM {SESSION} GROUP BY id, window_start, window_end) EMIT CHANGES",
        f"SELECT id, window_start FROM {SESSION} EMIT CHANGES",
        "SELECT k, COUNT(*) AS n FROM c GROUP BY k, SESSION(PROCTIME(), INTERVAL '10' SECOND)",
        (
            "SELECT k, SESSION_START(PROCTIME(), INTERVAL '10' SECOND) AS s, SESSION_END(PROCTIME(), INTERVAL '10' SECOND) AS e, "
            "SUM(id) AS n FROM c GROUP BY k, SESSION(PROCTIME(), INTERVAL '10' SECOND)"
        ),
    ],
)
def test_the_store_answers(query: str) -> None:
    job = plan_job(planned(f"{STREAMS} CREATE MATERIALIZED VIEW v AS {query}"))
    assert job.finish is not None
    assert not job.uses_event_time
    assert all(stage.keys for stage in job.finish.stages[:-1])


def test_each_of_the_windows_of_a_row_is_one_reading() -> None:
    query = "SELECT id, window_end FROM HOP(TABLE c, DESCRIPTOR(ts), INTERVAL '4' SECOND, INTERVAL '10' SECOND)"
    job = plan_job(planned(f"{STREAMS} CREATE MATERIALIZED VIEW v AS {query}"))
    assert job.finish is not None
    assert len(job.finish.rows) == 1
    assert [len(stage.leaves) for stage in job.finish.stages] == [3]


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        (f"SELECT id, window_start, COUNT(*) AS n FROM {SESSION} GROUP BY id, window_start, window_end EMIT CHANGES", "windows"),
        (f"SELECT k, window_start, COUNT(*) AS n FROM {SESSION} GROUP BY k, window_start, window_end", "append"),
        ("SELECT k, COUNT(*) AS n FROM l GROUP BY k, SESSION(ts, INTERVAL '10' SECOND)", "append"),
    ],
)  # fmt: skip
def test_others_stay_where_they_were(query: str, kind: str) -> None:
    assert plan_job(planned(f"{STREAMS} CREATE MATERIALIZED VIEW v AS {query}")).kind == kind


@pytest.mark.parametrize("view", ["SELECT k, id FROM l", "SELECT k, MAX(id) AS id FROM l GROUP BY k"])
def test_sessions_of_the_clock_stand_over_views(view: str) -> None:
    query = "SELECT k, COUNT(*) AS n FROM below GROUP BY k, SESSION(PROCTIME(), INTERVAL '10' SECOND)"
    plan = planned(f"{STREAMS} CREATE MATERIALIZED VIEW below AS {view}; CREATE MATERIALIZED VIEW v AS {query}")
    assert plan_job(plan).kind in ("finish", "windows")


LATEST = "(SELECT id, MAX(ts) AS ts FROM l GROUP BY id)"
TEN = "INTERVAL '10' SECOND"
TUMBLED = f"TUMBLE(TABLE c, DESCRIPTOR(ts), {TEN})"
COUNTED = f"(SELECT k, window_end AS e, COUNT(*) AS n FROM {TUMBLED} GROUP BY k, window_start, window_end)"


@pytest.mark.parametrize(
    ("query", "told"),
    [
        (f"SELECT COUNT(*) AS n FROM {LATEST} AS x GROUP BY TUMBLE(ts, {TEN})", "computed from several rows"),
        (f"SELECT COUNT(*) AS n FROM latest GROUP BY TUMBLE(ts, {TEN})", "no watermark comes with rows of a view"),
        (f"SELECT COUNT(*) AS n FROM timed GROUP BY TUMBLE(ts, {TEN})", '"ts" is not the event time of "timed"'),
        (f"SELECT COUNT(*) AS n FROM c GROUP BY SESSION(ts, {TEN})", "a session of rows that change"),
        (f"SELECT MAX(n) AS m FROM (SELECT k, COUNT(*) AS n FROM c GROUP BY k, TUMBLE(ts, {TEN}))", "here stands more"),
        (f"SELECT k, COUNT(*) AS n FROM {TUMBLED} GROUP BY k", "here stands more"),
        (f"SELECT DISTINCT k FROM {TUMBLED} GROUP BY k, window_end", "here stands more"),
        (f"SELECT DISTINCT k FROM {TUMBLED}", "here stands more"),
        (f"SELECT window_end, COUNT(*) AS n FROM {TUMBLED} GROUP BY window_end ORDER BY n LIMIT 3", "here stands more"),
        (f"SELECT k FROM {TUMBLED} UNION ALL SELECT k FROM {TUMBLED}", "one window"),
        (f"SELECT k FROM {TUMBLED} UNION ALL SELECT k FROM l", "here stands more"),
        (f"SELECT k, window_start, SUM(COUNT(*)) OVER (PARTITION BY k) AS t FROM {TUMBLED} GROUP BY k, window_start",
         "here stands more"),
        (f"SELECT x.window_end, COUNT(*) AS n FROM l LEFT JOIN {TUMBLED} AS x ON x.k = l.k GROUP BY x.window_end",
         "here stands more"),
        (
            (
                f"SELECT k, COUNT(*) AS n FROM (SELECT * FROM timed WHERE at > mz_now() - INTERVAL '1' HOUR) AS x "
                f"GROUP BY k, TUMBLE(at, {TEN})"
            ),
            "goes by event time",
        ),
        (
            (
                f"SELECT x.k, COUNT(*) AS n FROM (SELECT k, ts FROM l WHERE id > 1) AS x JOIN c ON x.k = c.k "
                f"GROUP BY x.k, TUMBLE(x.ts, {TEN})"
            ),
            "with its conditions above the windows",
        ),
        (f"SELECT a.k FROM {COUNTED} AS a JOIN {COUNTED} AS b ON a.k = b.k AND a.e = b.e", "one window"),
    ],
)  # fmt: skip
def test_windows_of_rows_that_change_whose_end_nobody_knows_are_refused(query: str, told: str) -> None:
    """The reason is told, with what to write instead."""
    view = f"CREATE MATERIALIZED VIEW latest AS {LATEST[1:-1]};"
    error = last(f"{STREAMS} {view} CREATE MATERIALIZED VIEW v AS {query} EMIT FINAL").error
    assert error is not None
    assert told in f"{error.message}: {error.hint}"
    assert error.span is not None


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        (f"SELECT k, COUNT(*) AS n FROM timed GROUP BY k, TUMBLE(at, {TEN})", "goes when the windows of its at"),
        (f"SELECT k, COUNT(*) AS n FROM c GROUP BY k, TUMBLE(ts, {TEN})", "goes when the windows of its ts"),
        (f"SELECT k, window_end, COUNT(*) AS n FROM {TUMBLED} WHERE id > 1 GROUP BY k, window_end HAVING COUNT(*) > 1",
         "goes when the windows of its ts"),
        (f"SELECT id, window_end FROM {TUMBLED}", "goes when the windows of its ts"),
        ((f"SELECT window_end, MAX(n) AS m FROM (SELECT k, window_end, COUNT(*) AS n FROM {TUMBLED} GROUP BY k, window_end) "
         "GROUP BY window_end"), "goes when the windows of its ts"),
        (f"SELECT l.k, COUNT(*) AS n FROM l JOIN c ON l.k = c.k GROUP BY l.k, TUMBLE(l.ts, {TEN})",
         "a row of l goes when the windows of its ts"),
        (f"SELECT l.k, COUNT(*) AS n FROM l JOIN l AS o ON l.k = o.id GROUP BY l.k, TUMBLE(l.ts, {TEN})", "nothing bounds it"),
        ((f"SELECT x.k, x.window_end, COUNT(*) AS n FROM TUMBLE(TABLE l, DESCRIPTOR(ts), {TEN}) AS x LEFT JOIN c ON x.k = c.k "
         "GROUP BY x.k, x.window_end"), "a row of l goes when the windows of its ts"),
        # others of the same key are told apart by the version of a row that has gone
        (f"SELECT k, COUNT(*) AS n FROM versioned GROUP BY k, TUMBLE(ts, {TEN})", "as many rows as there are at the source"),
        # another reading of the rows sees them after their windows have closed
        (f"SELECT x.window_end, COUNT(*) AS n FROM {TUMBLED} AS x JOIN c AS y ON x.k = y.id GROUP BY x.window_end",
         "as many rows as there are at the source"),
    ],
)  # fmt: skip
def test_windows_of_rows_that_change_are_shown_when_they_close(query: str, kept: str) -> None:
    """The rows are only added, by the store, behind the watermark; EXPLAIN says what bounds the rows that are kept."""
    made = planned(f"{STREAMS} CREATE MATERIALIZED VIEW v AS {query} EMIT FINAL")
    assert made.mode is Mode.APPEND
    job = plan_job(made)
    assert job.finish is not None
    assert job.finish.closing is not None
    assert job.uses_event_time
    assert job.closed_by_store
    assert job.shows_closed
    assert job.spread_us == 10_000_000
    text = plan_text(made)
    assert "append: rows are only added" in text
    assert "when the watermark has passed its end" in text
    assert kept in text


def test_a_sink_of_appended_rows_takes_windows_that_close() -> None:
    sink = f"CREATE SINK out WITH (connector = 'topic', topic = 'o') AS SELECT k, COUNT(*) AS n FROM c GROUP BY k, TUMBLE(ts, {TEN})"
    assert planned(f"{STREAMS} {sink} EMIT FINAL").mode is Mode.APPEND
    error = last(f"{STREAMS} {sink} EMIT CHANGES").error
    assert error is not None
    assert error.condition == "SINK_CANNOT_UPDATE"


@pytest.mark.parametrize("emit", ["", " EMIT CHANGES"])
@pytest.mark.parametrize(
    "query",
    [
        f"SELECT TUMBLE_START(ts, INTERVAL '10' SECOND) AS s, COUNT(*) AS n FROM {LATEST} AS x GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)",
        f"WITH x AS {LATEST} SELECT COUNT(*) AS n FROM x GROUP BY HOP(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND)",
        f"SELECT id, COUNT(*) AS n FROM {LATEST} AS x GROUP BY id, SESSION(ts, INTERVAL '10' SECOND)",
        (
            "SELECT x.id, window_end FROM TUMBLE(TABLE (SELECT k AS id, MIN(ts) AS at FROM l GROUP BY k), DESCRIPTOR(at), "
            "INTERVAL '10' SECOND) AS x"
        ),
    ],
)
def test_windows_over_groups_of_a_query_show_each_change(query: str, emit: str) -> None:
    plan = planned(f"{STREAMS} CREATE MATERIALIZED VIEW v AS {query}{emit}")
    assert plan.mode is not Mode.APPEND
    assert plan_job(plan).kind == "finish"


def test_a_time_that_is_no_time_stays_refused() -> None:
    query = "SELECT COUNT(*) AS n FROM (SELECT id, MAX(k) AS at FROM l GROUP BY id) AS x GROUP BY TUMBLE(at, INTERVAL '1' SECOND)"
    error = last(f"{STREAMS} CREATE MATERIALIZED VIEW v AS {query}").error
    assert error is not None
    assert error.condition == "MISSING_EVENT_TIME"


def test_every_version_is_kept_where_an_earlier_one_is_asked_for() -> None:
    rates = """CREATE STREAM rates (cur STRING, rate BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND,
        PRIMARY KEY (cur) NOT ENFORCED) WITH (connector = 'topic', changes = 'upsert');
        CREATE STREAM o (id BIGINT, cur STRING, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND);"""
    join = "FROM o JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.cur = r.cur"
    job = plan_job(planned(f"{rates} CREATE MATERIALIZED VIEW v AS SELECT o.id, r.rate {join}"))
    assert job.finish is not None
    assert [rows.changed_by for rows in job.finish.rows] == [(), ("cur", "ts")]
    both = f"SELECT o.id, r.rate, x.rate AS last {join} JOIN rates AS x ON x.cur = o.cur"
    assert last(f"{rates} CREATE MATERIALIZED VIEW v AS {both}").error is not None


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT l.id, RAND() AS t FROM l LEFT JOIN c ON l.id = c.id", "RAND differs"),
        (
            "SELECT l.id, x FROM l LEFT JOIN c ON c.id = l.id LATERAL VIEW variant_explode(PARSE_JSON(CAST(l.k AS STRING))) y AS p, k, x",
            "write UNNEST",
        ),
    ],
)
def test_what_stands_in_the_way_is_told(query: str, words: str) -> None:
    error = last(f"{STREAMS} CREATE MATERIALIZED VIEW v AS {query}").error
    assert error is not None
    assert words in f"{error.message}; {error.hint}"
