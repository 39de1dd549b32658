"""Views on views in a running database: a chain of three and a diamond, through pauses, failures and a restart (G16,
G18). The breadth of shapes is in tests/unit/stores/views/test_chain.py, which needs no Spark."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import penstock
from penstock.errors import PenstockError
from tests.databases import Opened
from tests.engine.answers import check_change_log, read, until

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

SCRIPT = """
CREATE STREAM sales (k BIGINT, v BIGINT) WITH (connector = 'topic');
CREATE MATERIALIZED VIEW a AS SELECT k, COUNT(*) AS n, SUM(v) AS t FROM sales GROUP BY k;
CREATE MATERIALIZED VIEW b AS SELECT n, COUNT(*) AS keys, SUM(t) AS t FROM a GROUP BY n;
CREATE MATERIALIZED VIEW c AS SELECT SUM(n * keys) AS sold, SUM(t) AS t FROM b;
CREATE MATERIALIZED VIEW d AS SELECT a.k, b.keys FROM a JOIN b ON a.n = b.n;
"""
JOINED = (
    "SELECT (SELECT SUM(n) FROM a) AS a, (SELECT SUM(n * keys) FROM b) AS b, (SELECT SUM(sold) FROM c) AS c, "
    "(SELECT COUNT(*) FROM a) AS keys, (SELECT COUNT(*) FROM d) AS d"
)


def test_a_chain_shows_one_batch_and_outlives_pauses_failures_and_restarts(opened: Opened) -> None:
    wrong: list[Any] = []
    with opened() as db:
        db.execute(SCRIPT)
        stop = threading.Event()
        reader = threading.Thread(target=_watch, args=(db, stop, wrong))
        reader.start()
        for number in range(12):
            db.append("sales", [{"k": (number * 5 + place) % 13, "v": place} for place in range(4)])
        db.settle(180)
        stop.set()
        reader.join(120)
        assert not wrong
        _check(db, 48)
        # a fourth view over what is there, which cannot follow for long
        db.execute("CREATE MATERIALIZED VIEW narrow AS SELECT k, CAST(t AS TINYINT) AS t FROM a")
        db.execute("CREATE MATERIALIZED VIEW above AS SELECT COUNT(*) AS n FROM narrow")
        _refusals(db)
        db.execute("PAUSE JOB b")
        kept = read(db, "b")
        db.append("sales", [{"k": 1, "v": 1_000}])
        with pytest.raises(penstock.JobFailed, match="job narrow has failed"):
            db.settle(180)
        assert read(db, "b") == kept
        states = {job.name: job.state for job in db.jobs()}
        assert states == {
            "a": "running", "b": "paused", "c": "running", "d": "running", "narrow": "failed", "above": "running",
        }  # fmt: skip
        held, fresh = db.sql("SELECT * FROM b").as_of["b"], db.sql("SELECT * FROM a").as_of["a"]
        assert held < fresh
        with pytest.raises(PenstockError, match="TINYINT"):
            db.execute("RESUME JOB narrow")
    with opened() as db:
        assert {job.name: job.state for job in db.jobs()}["b"] == "paused"
        db.execute("RESUME JOB b")
        db.append("sales", [{"k": 1, "v": -1_000}])
        with pytest.raises(penstock.JobFailed, match="job narrow has failed"):
            db.settle(180)
        _check(db, 50)
        db.execute("RESUME JOB narrow")
        db.settle(180)
        assert read(db, "above") == [(13,)]
        assert {job.state for job in db.jobs()} == {"running"}
        _beside(db)
        for view in ("a", "b", "c", "d", "narrow", "above"):
            check_change_log(db, view, key=())
        explained = "\n".join(row[0] for row in db.execute("EXPLAIN SELECT * FROM c").rows())  # type: ignore[union-attr]
        assert "materialized view" in explained
        db.execute("DROP MATERIALIZED VIEW a CASCADE")
        _forgotten(db)
        db.execute("DROP MATERIALIZED VIEW recent CASCADE")
        assert db.jobs() == []


def _beside(db: penstock.Database) -> None:
    """A stream beside a view of the same stream, and a sink over both in one: each row with what the view says now."""
    db.execute(
        "CREATE MATERIALIZED VIEW e AS SELECT sales.k, sales.v, a.n FROM sales JOIN a ON sales.k = a.k; "
        "CREATE STREAM copies (k BIGINT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) "
        "WITH (connector = 'topic', changes = 'upsert'); "
        "INSERT INTO copies SELECT k, MAX(n) AS n FROM e GROUP BY k"
    )
    db.append("sales", [{"k": 1, "v": 0}, {"k": 99, "v": 0}])
    db.settle(180)
    db.settle(180)  # once more: the view below may have been the last
    assert db.sql("SELECT COUNT(*) AS n FROM e").rows() == [(52,)]
    assert db.sql("SELECT COUNT(*) AS n FROM e JOIN a ON e.k = a.k WHERE e.n <> a.n").rows() == [(0,)]
    copied = db.select_once("SELECT k, n FROM copies").rows()
    assert sorted(copied) == db.sql("SELECT k, n FROM a ORDER BY k").rows()
    db.execute("PAUSE JOB e")
    db.append("sales", [{"k": 99, "v": 0}])
    db.settle(180)
    assert db.sql("SELECT COUNT(*) AS n, MAX(n) AS m FROM e WHERE k = 99").rows() == [(1, 2)], (
        "it follows the view below"
    )
    db.execute("RESUME JOB e")
    db.settle(180)
    assert db.sql("SELECT COUNT(*) AS n, MAX(n) AS m FROM e WHERE k = 99").rows() == [(2, 2)]
    check_change_log(db, "e", key=())


def _forgotten(db: penstock.Database) -> None:
    """G3: with a state_ttl keys leave the view, also where no rows come any more, and begin anew when they come back."""
    db.execute(
        "CREATE MATERIALIZED VIEW recent WITH (state_ttl = '2 seconds') AS "
        "SELECT k, COUNT(*) AS n FROM sales GROUP BY k; "
        "CREATE MATERIALIZED VIEW active AS SELECT COUNT(*) AS keys FROM recent"
    )
    db.settle(180)
    until(lambda: read(db, "recent") == [], 180)
    assert read(db, "active") == [(0,)]
    changes = check_change_log(db, "recent", key=("k",))
    # On a slow machine a key may be forgotten between two batches that bring rows of it.
    counted = sum(
        change.row["n"] - (change.before["n"] if change.before is not None else 0)
        for change in changes
        if change.row is not None
    )
    assert counted == 53
    inserts = [change for change in changes if change.op == "insert"]
    assert len([change for change in changes if change.op == "delete"]) == len(inserts) >= 14
    db.append("sales", [{"k": 5, "v": 1}])
    since = changes[-1].seq
    until(lambda: len(list(db.subscribe("recent", since=since, timeout=0.1))) >= 2, 180)
    came, went = list(db.subscribe("recent", since=since, timeout=0.1))
    assert (came.op, came.row, went.op, went.before) == ("insert", {"k": 5, "n": 1}, "delete", {"k": 5, "n": 1})


def _watch(db: penstock.Database, stop: threading.Event, wrong: list[Any]) -> None:
    """Joins all views of the chain until it is told to stop: they must always add up, and show one batch."""
    while not stop.is_set():
        found = db.sql(JOINED)
        a, b, c, keys, d = found.rows()[0]
        if len({a or 0, b or 0, c or 0}) > 1 or keys != d or len({*found.as_of.values()}) > 1:
            wrong.append((found.rows(), found.as_of))


def _check(db: penstock.Database, sold: int) -> None:
    a, b, c, keys, d = db.sql(JOINED).rows()[0]
    assert (a, b, c, keys) == (sold, sold, sold, d)


def _refusals(db: penstock.Database) -> None:
    with pytest.raises(PenstockError) as refused:
        db.execute("DROP MATERIALIZED VIEW a")
    assert refused.value.condition == "DEPENDENT_OBJECTS"
    with pytest.raises(PenstockError) as refused:
        db.execute(
            "CREATE OR REPLACE MATERIALIZED VIEW a AS SELECT k, COUNT(*) AS n, SUM(v) + 1 AS t FROM sales GROUP BY k"
        )
    assert refused.value.condition == "DEPENDENT_OBJECTS"
