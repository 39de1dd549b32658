"""`state_ttl` where Spark, or nobody, kept the rows by itself: first rows of keys by arrival, and views over views (G3);
and views of rows that are written out."""

from __future__ import annotations

import duckdb
import pytest

from tests.databases import Opened
from tests.engine.answers import at, check_change_log, read, until
from tests.engine.beside_duckdb import answer_of

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

CONSTANTS = {
    "one": "SELECT 1 AS a, 'x' AS b, CAST(NULL AS INT) AS c, TIMESTAMP '2026-01-01 10:00:00' AS t",
    "few": "SELECT a, b FROM (VALUES (1, 'one'), (2, 'two'), (3, NULL)) AS s(a, b) WHERE a > 1",
    "counted": "SELECT COUNT(*) AS n, SUM(a) AS t FROM (VALUES (1), (2)) AS s(a)",
}
LENGTH = 4  # seconds


def test_first_rows_and_views_over_views_forget(opened: Opened) -> None:
    with opened() as db:
        db.execute(
            "CREATE STREAM s (k INT, v INT) WITH (connector = 'topic'); "
            "CREATE MATERIALIZED VIEW added AS SELECT k, v FROM s WHERE v > 0; "
            f"CREATE MATERIALIZED VIEW firsts WITH (state_ttl = '{LENGTH} seconds') AS SELECT DISTINCT ON (k) k, v FROM s; "
            f"CREATE MATERIALIZED VIEW sums WITH (state_ttl = '{LENGTH} seconds') AS "
            "SELECT k, COUNT(*) AS n, SUM(v) AS t FROM added GROUP BY k"
        )
        db.append("s", [{"k": 1, "v": 1}])
        db.settle(180)
        db.append("s", [{"k": 1, "v": 2}, {"k": 2, "v": 3}])
        db.settle(180)
        # On a slow machine a row may be forgotten before it is looked at: the changes have it all the same. It may be
        # forgotten before the next one of its key comes, too: that is the first then, and else it is not there.
        seen = list(db.subscribe("firsts", since=0, timeout=0.1))
        places = {tuple((change.row or {}).values()): change.seq for change in seen if change.op == "insert"}
        assert places[1, 1] == 1
        assert (2, 3) in places
        gone = [change.seq for change in seen if change.before == {"k": 1, "v": 1}]
        assert (1, 2) not in places or min(gone) < places[1, 2], seen
        until(lambda: read(db, "firsts") == [] == read(db, "sums"), 180)
        assert [row[:2] for row in read(db, "added")] == [(1, 1), (1, 2), (2, 3)]
        changes = check_change_log(db, "sums", key=("k",))
        told = [tuple(change.row.values()) for change in changes if change.row is not None]
        assert (2, 1, 3) in told
        assert {(1, 2, 3), (1, 1, 2)} & {*told}
        db.append("s", [{"k": 1, "v": 9}])
        since = changes[-1].seq
        until(lambda: len(list(db.subscribe("sums", since=since, timeout=0.1))) >= 2, 180)
        came, went = list(db.subscribe("sums", since=since, timeout=0.1))[:2]
        assert (came.op, came.row, went.op) == ("insert", {"k": 1, "n": 1, "t": 9}, "delete")
        until(lambda: read(db, "firsts") == [], 180)
        check_change_log(db, "firsts", key=("k",))


def test_first_rows_of_a_view_over_several_streams(opened: Opened) -> None:
    """The row that came first wins, whichever stream it came by; what was forgotten is first again."""
    with opened() as db:
        db.execute(
            "CREATE STREAM s (k INT, v INT); CREATE STREAM t (k INT, v INT); "
            "CREATE VIEW two AS SELECT k, v FROM s UNION ALL SELECT k, v FROM t WHERE v < 100; "
            f"CREATE MATERIALIZED VIEW firsts WITH (state_ttl = '{LENGTH} seconds') AS SELECT DISTINCT ON (k) k, v FROM two"
        )
        for stream, k, v in (("t", 1, 1), ("s", 1, 2), ("t", 2, 200), ("s", 2, 3), ("t", 2, 4)):
            db.append(stream, [{"k": k, "v": v}])
            db.settle(180)
        firsts = [c.row for c in db.subscribe("firsts", since=0, timeout=0.1) if c.op == "insert"]
        assert firsts[:1] == [{"k": 1, "v": 1}]
        assert {"k": 2, "v": 3} in firsts
        until(lambda: read(db, "firsts") == [], 180)
        db.append("s", [{"k": 1, "v": 5}])
        until(lambda: {"k": 1, "v": 5} in [c.row for c in db.subscribe("firsts", since=0, timeout=0.1)], 180)
        check_change_log(db, "firsts", key=("k",))


def test_views_of_rows_that_are_written_out(opened: Opened) -> None:
    oracle = duckdb.connect()
    with opened() as db:
        for name, query in CONSTANTS.items():
            oracle.execute(f"CREATE VIEW {name} AS {query}")
            db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        assert read(db, "one") == [(1, "x", None, at(1_767_261_600))]
        db.execute(
            "CREATE STREAM s (k INT) WITH (connector = 'topic'); "
            "CREATE MATERIALIZED VIEW named AS SELECT s.k, few.b FROM s LEFT JOIN few ON s.k = few.a; "
            "CREATE MATERIALIZED VIEW above AS SELECT n, a FROM counted JOIN few ON few.a = counted.n"
        )
    oracle.execute("CREATE TABLE s AS SELECT * FROM (VALUES (1), (2), (4)) AS s(k)")
    with opened() as db:
        db.append("s", [{"k": 1}, {"k": 2}, {"k": 4}])
        db.settle(180)
        db.execute("PAUSE JOB few; RESUME JOB few")
        queries = {
            **{name: f"SELECT * FROM {name}" for name in CONSTANTS},
            "named": "SELECT s.k, few.b FROM s LEFT JOIN few ON s.k = few.a",
            "above": "SELECT n, a FROM counted JOIN few ON few.a = counted.n",
        }
        for name, query in queries.items():
            assert read(db, name) == answer_of(oracle, query), name
        assert {job.state for job in db.jobs()} == {"running"}
        for name in CONSTANTS:
            db.execute(f"DROP MATERIALIZED VIEW {name} CASCADE")
        assert db.jobs() == []
