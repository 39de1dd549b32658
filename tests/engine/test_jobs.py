"""Jobs: what statements do to them, what is told of them, and what outlives the program."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

import penstock
from penstock import JobFailed, PenstockError
from tests.engine.answers import at, check_change_log, job, ms, read

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

STREAM = "CREATE STREAM s (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)"
TOTALS = "CREATE MATERIALIZED VIEW totals AS SELECT k, SUM(v) AS total FROM s GROUP BY k"
WINDOWS = """
CREATE MATERIALIZED VIEW windows AS
SELECT TUMBLE_START(ts, INTERVAL '10' SECOND) AS s, COUNT(*) AS n FROM s GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)
"""


def put(db: penstock.Database, *rows: tuple[str, int, float]) -> None:
    db.append("s", [{"k": k, "v": v, "ts": ms(second)} for k, v, second in rows])


def condition(db: penstock.Database, sql: str) -> str:
    with pytest.raises(PenstockError) as raised:
        db.execute(sql)
    return raised.value.condition


def test_life_of_a_job(opened: Callable[..., penstock.Database]) -> None:
    """PAUSE, RESUME, RESTART, STOP WITH DRAIN, and an opening in between: states are kept, rows count once (J4, E21)."""
    db = opened()
    db.execute(f"{STREAM}; {TOTALS}; {WINDOWS};")
    put(db, ("a", 1, 1), ("b", 2, 12))
    db.settle()
    found = db.execute("SHOW JOBS")
    assert found is not None
    assert found.columns[:8] == ["name", "state", "batch_id", "watermark", "input_rows", "lag", "restarts", "error"]
    shown = {row[0]: row for row in found.rows()}
    assert shown["totals"][1] == "running"
    assert shown["totals"][4:8] == (2, 0, 0, None)
    assert found.columns[8:10] == ["batch_rows", "max_batch_rows"]
    assert shown["totals"][8:10] == shown["windows"][8:10] == (2, 1_000_000), "batches without rows do not count"
    assert shown["windows"][3] == at(12)

    db.execute("PAUSE JOB totals")
    put(db, ("a", 10, 13))
    db.settle()  # a paused job is not waited for
    assert job(db, "totals").state == "paused"
    assert job(db, "totals").lag == 1
    assert read(db, "totals") == [("a", 1), ("b", 2)]
    db.execute("PAUSE JOB totals")  # again: nothing to do
    db.close()

    db = opened()
    assert job(db, "totals").state == "paused", "what was paused stays so"
    db.settle()
    assert job(db, "windows").state == "running", "what ran runs again"
    assert read(db, "totals") == [("a", 1), ("b", 2)]
    db.execute("RESUME JOB totals")
    db.settle()
    assert read(db, "totals") == [("a", 11), ("b", 2)]
    assert condition(db, "RESUME JOB totals") == "JOB_STATE"
    db.execute("RESTART JOB totals")
    put(db, ("b", 5, 14))
    db.settle()
    assert read(db, "totals") == [("a", 11), ("b", 7)]
    assert (job(db, "totals").batch_rows, job(db, "totals").max_batch_rows) == (1, 1_000_000)

    db.execute("STOP JOB windows WITH DRAIN")
    assert job(db, "windows").state == "stopped"
    assert read(db, "windows") == [(at(0), 1), (at(10), 3)]
    put(db, ("c", 1, 14.5), ("c", 1, 25), ("c", 1, 40))
    db.execute("RESUME JOB windows")
    db.settle()
    assert read(db, "windows") == [(at(0), 1), (at(10), 3), (at(20), 1)], (
        "drained windows stay closed, newer rows go on"
    )
    assert db.sql("SELECT event_time FROM penstock.late_rows").rows() == [(at(14.5),)]
    db.execute("STOP JOB windows")
    assert read(db, "windows") == [(at(0), 1), (at(10), 3), (at(20), 1)], "without DRAIN nothing is closed"
    check_change_log(db, "windows")
    check_change_log(db, "totals", ("k",))

    history = db.sql("SELECT job, from_state, to_state FROM penstock.job_history ORDER BY at").rows()
    for name in ("totals", "windows"):
        steps = [step for job_name, *step in history if job_name == name]
        assert all(before[1] == after[0] for before, after in pairwise(steps)), f"no step of {name} is missing: {steps}"
    states = [to_state for name, _, to_state in history if name == "totals"]
    assert states[:3] == ["starting", "running", "paused"]
    assert states[-3:] == ["stopped", "starting", "running"]
    assert ("windows", "running", "created") in history, "opened again"


def test_create_again_and_drop(db: penstock.Database) -> None:
    """A10, A12: the same definition is a no-op with a notice, another one OBJECT_EXISTS; DROP takes everything along."""
    script = f"{STREAM}; {TOTALS};"
    db.execute(script)
    put(db, ("a", 1, 1))
    db.settle()
    batch = job(db, "totals").batch_id
    db.notices()
    db.execute(script)
    assert any("totals" in notice for notice in db.notices())
    assert job(db, "totals").batch_id == batch, "nothing was started again"
    assert condition(db, TOTALS.replace("SUM(v)", "MAX(v)")) == "OBJECT_EXISTS"
    assert condition(db, STREAM.replace("v INT", "v BIGINT")) == "OBJECT_EXISTS"
    assert condition(db, "DROP STREAM s") == "DEPENDENT_OBJECTS"
    assert condition(db, "PAUSE JOB nobody") == "UNKNOWN_JOB"
    assert read(db, "totals") == [("a", 1)]
    files = db.path / "jobs" / "totals"
    assert files.exists()
    db.execute("DROP MATERIALIZED VIEW totals")
    assert not files.exists()
    assert db.jobs() == []
    assert condition(db, "SELECT * FROM totals") == "UNKNOWN_RELATION"
    assert db.sql("SELECT COUNT(*) FROM penstock.connector_offsets").rows() == [(0,)]
    # A new view of this name is a new view: it reads from the start, and its numbers begin anew.
    db.execute(TOTALS.replace("SUM(v)", "COUNT(v)"))
    db.settle()
    assert read(db, "totals") == [("a", 1)]
    assert [change.seq for change in check_change_log(db, "totals", ("k",))] == [1]
    db.execute("DROP MATERIALIZED VIEW totals; DROP STREAM s")
    assert list((db.path / "topics").glob("s*")) == []


def test_views_answer_streams_do_not(db: penstock.Database) -> None:
    """A6: a view is read with its batch and watermark, several as of one moment; a stream is UNBOUNDED_QUERY."""
    db.execute(f"{STREAM}; {TOTALS}; {WINDOWS};")
    put(db, ("a", 1, 1), ("b", 2, 12))
    db.settle()
    for query in ("SELECT * FROM s", "SELECT COUNT(*) FROM s"):
        with pytest.raises(PenstockError) as raised:
            db.sql(query)
        assert raised.value.condition == "UNBOUNDED_QUERY"
        assert raised.value.hint
    answer = db.sql("SELECT k, total * 2 AS twice FROM totals WHERE total > 1 ORDER BY k")
    assert (answer.columns, answer.rows()) == (["k", "twice"], [("b", 4)])
    windows = db.sql("SELECT n FROM windows")
    assert (windows.rows(), windows.batch_id, windows.watermark) == ([(1,)], job(db, "windows").batch_id, at(12))
    both = db.sql("SELECT (SELECT COUNT(*) FROM totals) + (SELECT COUNT(*) FROM windows) AS n")
    assert both.rows() == [(3,)]
    assert both.batch_id is None
    assert set(both.as_of) == {"totals", "windows"}
    assert answer.polars().rows() == [("b", 4)]
    assert answer.pandas()["twice"].tolist() == [4]
    assert db.metrics()["totals"]["input_rows"] == 2
    assert db.health()["status"] == "ok"


def test_failure_is_told_with_the_job(opened: Callable[..., penstock.Database]) -> None:
    """A query that breaks on a row ends its own job, by name, for everybody who waits; others go on."""
    db = opened()
    db.execute(f"{STREAM}; {TOTALS}; CREATE MATERIALIZED VIEW ratio AS SELECT k, 100 / v AS r FROM s")
    put(db, ("a", 4, 1))
    db.settle()
    put(db, ("b", 0, 2))
    with pytest.raises(JobFailed) as raised:
        db.settle()
    assert raised.value.job == "ratio"
    told = "[DATA_ERROR] job ratio: division by zero (in 100 / s.v)"
    assert raised.value.message == f"job ratio has failed: {told.replace('job ratio: ', '')}"
    assert str(raised.value.hint).startswith("TRY_DIVIDE gives NULL")
    assert db.sql("SELECT error FROM penstock.jobs WHERE name = 'ratio'").rows() == [(told,)]
    for query, part in (
        ("SELECT CAST(k AS INT) AS n FROM totals", "CAST(k AS INT)"),
        ("SELECT 1 / (total - total) AS n FROM totals", "1 / (total - total)"),  # by the view store: the only division
        ("SELECT 1 / (total - total) AS n, 1 / total AS m FROM totals", ""),  # which knows no place
        (
            "CREATE MATERIALIZED VIEW narrow AS SELECT k, CAST(v + 3000000000 AS INT) AS n FROM s",
            "CAST(v + 3000000000 AS INT)",
        ),
    ):
        with pytest.raises(PenstockError) as broken:
            db.execute(query)
        assert broken.value.condition == "DATA_ERROR"
        assert broken.value.span is not None
        assert query[broken.value.span.start : broken.value.span.end] == (part or query)
    with pytest.raises(JobFailed) as raised:
        list(db.subscribe("ratio", timeout=30))
    assert raised.value.job == "ratio"
    assert read(db, "ratio") == [("a", 25.0)]
    assert db.health() == {**db.health(), "status": "failing", "failed": ["ratio"]}
    put(db, ("c", 5, 3))
    with pytest.raises(JobFailed):
        db.settle()
    assert ("c", 5) in read(db, "totals")
    db.close()
    db = opened()
    found = job(db, "ratio")
    assert (found.state, found.error) == ("failed", told), "a failed job is not tried again by itself"
    with pytest.raises(JobFailed, match="TRY_DIVIDE gives NULL"):
        db.settle()
    db.execute("DROP MATERIALIZED VIEW ratio")
    db.settle()
    assert read(db, "totals") == [("a", 4), ("b", 0), ("c", 5)]


def test_a_pattern_that_no_text_matches_is_named(opened: Callable[..., penstock.Database]) -> None:
    """Of these Spark hands on what Java says, behind a first line that says nothing."""
    db = opened()
    db.execute(f"{STREAM}; CREATE MATERIALIZED VIEW matched AS SELECT k, 'x' RLIKE k AS found FROM s")
    put(db, ("x", 1, 1))
    db.settle()
    assert read(db, "matched") == [("x", True)]
    put(db, ("(", 1, 2))
    with pytest.raises(JobFailed) as raised:
        db.settle()
    told = "job matched has failed: [DATA_ERROR] ( is no regular expression: unclosed group"
    assert raised.value.message == told


def test_a_hint_says_where_one_reading_begins(opened: Callable[..., penstock.Database]) -> None:
    """Flink's OPTIONS: for the one job, and only where it begins; stopped, it goes on where it was (C11)."""
    db = opened()
    db.execute(STREAM)
    put(db, ("a", 1, 1))
    db.execute(
        f"{TOTALS}; CREATE MATERIALIZED VIEW newer AS "
        "SELECT k, SUM(v) AS total FROM s /*+ OPTIONS('scan.startup.mode' = 'latest-offset') */ GROUP BY k"
    )
    put(db, ("a", 10, 2))
    db.settle()
    assert read(db, "newer") == [("a", 10)]
    db.close()
    db = opened()
    put(db, ("a", 100, 3))
    db.execute("RESTART JOB newer")
    db.settle()
    assert read(db, "newer") == [("a", 110)]
    assert read(db, "totals") == [("a", 111)]
