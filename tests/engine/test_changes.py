"""The changes of a view as somebody follows them: from a snapshot, from a number, while they come."""

from __future__ import annotations

import threading

import pytest

import penstock
from penstock import PenstockError
from penstock.interfaces.subscription import QueryChanges
from tests.engine.answers import at, job, ms, read, until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

SCRIPT = """
CREATE STREAM s (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts);
CREATE MATERIALIZED VIEW totals AS SELECT k, SUM(v) AS total FROM s GROUP BY k;
CREATE MATERIALIZED VIEW windows WITH (changelog_retention = INTERVAL '3' SECOND) AS
SELECT TUMBLE_START(ts, INTERVAL '10' SECOND) AS s, COUNT(*) AS n FROM s GROUP BY TUMBLE(ts, INTERVAL '10' SECOND);
"""


def test_only_from_now_on(db: penstock.Database) -> None:
    """Without a snapshot: of a view from the call on, of a query once it has read what is there, in many batches."""
    db.execute(
        "CREATE STREAM few (k STRING, v INT) WITH (connector = 'topic', start = 'earliest', max_rows_per_batch = 2)"
    )
    db.execute("CREATE MATERIALIZED VIEW sums AS SELECT k, SUM(v) AS total FROM few GROUP BY k")
    db.append("few", [{"k": k, "v": 1} for k in "abcdefgh"])
    db.settle()
    assert list(db.subscribe("sums", timeout=0.1, snapshot=False)) == []
    assert list(db.subscribe("SELECT k FROM few", timeout=0.1, snapshot=False)) == []
    now = [db.subscribe("sums", timeout=0.1, snapshot=False, changes=form) for form in (None, "upsert")]
    behind = db.subscribe("sums", since=7, timeout=0.1, snapshot=False)
    queries = [
        QueryChanges(db._engine, db._subscribed(sql), None, snapshot=False)
        for sql in ("SELECT k, COUNT(*) AS n FROM few GROUP BY k", "SELECT k, total * 10 AS tens FROM sums")
    ]
    for query in queries:
        query.start()
    db.append("few", [{"k": "a", "v": 4}, {"k": "x", "v": 1}])
    db.settle()
    told = [[(c.op, c.row or c.before) for c in changes] for changes in now]
    assert told[0] == [("update", {"k": "a", "total": 5}), ("insert", {"k": "x", "total": 1})]
    assert told[1] == [("upsert", {"k": "a", "total": 5}), ("upsert", {"k": "x", "total": 1})]
    assert [c.seq for c in behind] == [8, 9, 10]
    for query, expected in zip(
        queries,
        (
            [("update", {"k": "a", "n": 2}), ("insert", {"k": "x", "n": 1})],
            [("update", {"k": "a", "tens": 50}), ("insert", {"k": "x", "tens": 10})],
        ),
        strict=True,
    ):
        changes = query.changes(None, 30)
        assert sorted(((c.op, c.row) for c in (next(changes), next(changes))), key=str, reverse=True) == expected
        query.close()


def put(db: penstock.Database, *rows: tuple[str, int, float]) -> None:
    db.append("s", [{"k": k, "v": v, "ts": ms(second)} for k, v, second in rows])
    db.settle()


def _forms(db: penstock.Database) -> None:
    """The changes up to here in the other forms, and what cannot be asked for (G16)."""
    assert [(c.seq, c.op, c.row) for c in db.subscribe("totals", since=1, timeout=0.1, changes="upsert")] == [
        (2, "upsert", {"k": "b", "total": 2}), (3, "upsert", {"k": "a", "total": 11}),
    ]  # fmt: skip
    assert [(c.op, c.before or c.row) for c in db.subscribe("totals", since=2, timeout=0.1, changes="retract")] == [
        ("delete", {"k": "a", "total": 1}), ("insert", {"k": "a", "total": 11}),
    ]  # fmt: skip
    assert [c.row for c in db.subscribe("totals", since=2, timeout=0.1, changes="debezium")] == [
        {"before": {"k": "a", "total": 1}, "after": {"k": "a", "total": 11}, "op": "u"}
    ]
    whole = [(c.op, c.row) for c in db.subscribe("totals", timeout=0.1, changes="upsert")]
    assert whole == [("upsert", {"k": "a", "total": 11}), ("upsert", {"k": "b", "total": 2})]
    with pytest.raises(PenstockError) as refused:
        db.subscribe("totals", changes="append")
    assert refused.value.condition == "SINK_CANNOT_UPDATE"
    with pytest.raises(PenstockError, match="cannot be told as"):
        db.subscribe("totals", changes="log")  # type: ignore[arg-type]


def test_subscribe(db: penstock.Database) -> None:
    """From the whole view or from a number on, each change once and in order; expired numbers are an error, not silence."""
    db.execute(SCRIPT)
    put(db, ("a", 1, 1), ("b", 2, 2))
    assert [(c.op, c.before, c.row) for c in db.subscribe("totals", since=0, timeout=0.1)] == [
        ("insert", None, {"k": "a", "total": 1}), ("insert", None, {"k": "b", "total": 2}),
    ]  # fmt: skip
    put(db, ("a", 10, 11))
    every = list(db.subscribe("totals", since=0, timeout=0.1))
    assert [change.seq for change in every] == [1, 2, 3]
    assert (every[2].op, every[2].before, every[2].row) == ("update", {"k": "a", "total": 1}, {"k": "a", "total": 11})
    assert every[2].batch_id == job(db, "totals").batch_id
    assert [change.seq for change in db.subscribe("totals", since=2, timeout=0.1)] == [3]
    assert list(db.subscribe("totals", since=3, timeout=0.1)) == []
    _forms(db)
    for since, told in ((4, "has no change 4 yet: its newest is 3"), (-1, "zero or more"), ("x", "zero or more")):
        with pytest.raises(PenstockError, match=told) as refused:
            db.subscribe("totals", since=since)  # type: ignore[arg-type]
        assert refused.value.condition == "INVALID_ARGUMENT"

    # A snapshot first, then what comes; the loop of another thread sees it as it comes.
    seen: list[penstock.Change] = []
    begun = threading.Event()

    def follow() -> None:
        for change in db.subscribe("totals", timeout=60):
            seen.append(change)
            begun.set()
            if change.row == {"k": "c", "total": 5}:
                return

    thread = threading.Thread(target=follow)
    thread.start()
    assert begun.wait(60)
    put(db, ("b", 5, 12), ("c", 5, 13))
    thread.join(60)
    assert not thread.is_alive()
    snapshot = [change.row for change in seen[:2] if change.op == "insert"]
    assert sorted(snapshot, key=str) == [{"k": "a", "total": 11}, {"k": "b", "total": 2}]
    assert {c.seq for c in seen[:2]} == {3}, "the snapshot is as of the last number"
    assert [(c.op, c.row) for c in seen[2:]] in (
        [("update", {"k": "b", "total": 7}), ("insert", {"k": "c", "total": 5})],
        [("insert", {"k": "c", "total": 5})],
    )
    with pytest.raises(PenstockError):
        db.subscribe("s")
    with pytest.raises(PenstockError):
        db.execute("SUBSCRIBE TO totals")

    windows = [change.row for change in db.subscribe("windows", timeout=0.1)]
    assert windows == [{"s": at(0), "n": 2}]

    def expired() -> bool:
        try:
            list(db.subscribe("windows", since=0, timeout=0.1))
        except PenstockError as error:
            return error.condition == "CHANGELOG_EXPIRED"
        return False

    until(expired)
    assert read(db, "windows") == [(at(0), 2)], "only the log is trimmed"
    db.execute("ALTER MATERIALIZED VIEW windows SET (changelog_retention = INTERVAL '1' HOUR); RESTART JOB windows")
    put(db, ("d", 1, 30))
    assert [change.seq for change in db.subscribe("windows", since=1, timeout=0.1)] == [2]
