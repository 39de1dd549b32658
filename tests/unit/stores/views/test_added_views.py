"""Views that make rows of rows that are only added: they add rows themselves, and keep nothing but those."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.plan.job_plan import plan_job
from penstock.plan.relation import Mode
from tests.unit.plan.analysis import last, planned
from tests.unit.stores.views.chaining import Chained, jobs_of
from tests.unit.stores.views.finishing import STREAMS, VIEW, BrokenOffError, Finished

OVER_ROWS = {
    "a": "SELECT k, id, v FROM l WHERE id >= 0",
    "b": "SELECT k, v * 2 AS v FROM a WHERE v > 1",
    "c": "SELECT v FROM b WHERE k > 0",
}
TOGETHER = {
    "a": "SELECT k, v FROM l WHERE id >= 0",
    "b": "SELECT k, w FROM r WHERE id >= 0",
    "c": "SELECT k, v FROM a UNION ALL SELECT k, w FROM b WHERE w > 0",
}


def ops(found: Chained, name: str, since: int = 0) -> list[tuple[str, int | None, object]]:
    return [(each.op, each.batch_id, each.row) for each in found.store.changes(name, since)]


def test_rows_are_only_added_all_the_way_up() -> None:
    """Each batch logs what it brought, under its own number; a batch that brings nothing logs nothing."""
    jobs = jobs_of(OVER_ROWS)
    assert all(job.shows_closed for name, job in jobs.items() if name != "a")
    assert jobs["c"].how.endswith("answers the query: once, for each row of b that a batch brings")
    found = Chained(OVER_ROWS)
    found.make()
    found.add("a", 0, {"l": [(1, 1, 2, "a"), (1, 2, 2, "a"), (0, 3, 9, "a")]})
    found.add("a", 1, {"l": [(1, 4, 1, "a")]})
    found.add("a", 2, {"l": [(1, 5, 3, "a")]})
    found.check()
    assert ops(found, "c") == [("insert", 0, {"v": 4}), ("insert", 0, {"v": 4}), ("insert", 2, {"v": 6})]
    assert [each.seq for each in found.store.changes("c", 0)] == [1, 2, 3]
    found.store.close()


def test_a_view_that_is_made_later_has_the_rows_that_are_there_in_their_order() -> None:
    found = Chained(OVER_ROWS)
    found.make("a", "b")
    for number in range(5):
        found.add("a", number, {"l": [(1, number, number + 2, "a")]})
    found.make("c")
    found.check()
    assert [row for _, _, row in ops(found, "c")] == [{"v": 2 * number} for number in range(2, 7)]
    found.add("a", 5, {"l": [(1, 9, 9, "a")]})
    assert ops(found, "c", 5) == [("insert", 5, {"v": 18})]
    found.store.close()


def test_what_a_job_below_takes_back_leaves_the_log_without_a_gap(tmp_path: Path) -> None:
    """Rows of another job stand behind it, and their numbers go back; the next batches count on from there."""
    found = Chained(TOGETHER, tmp_path)
    found.make()
    for number in range(3):
        found.add("a", number, {"l": [(number, 1, 7, "a")]})
        found.add("b", number, {"r": [(number, 1, 8, "a")]})
    found.check()
    found.store.rollback("a", 0)
    expected = [{"k": 0, "v": 7}, {"k": 0, "v": 8}, {"k": 1, "v": 8}, {"k": 2, "v": 8}]
    assert [row for _, _, row in ops(found, "c")] == expected
    assert [each.seq for each in found.store.changes("c", 0)] == [1, 2, 3, 4]
    found.reopen()
    assert found.store.last_seq("c") == 4
    found.commit("a", 1, {"l": [(5, 1, 5, "a")]})
    assert [(each.seq, each.row) for each in found.store.changes("c", 4)] == [(5, {"k": 5, "v": 5})]
    found.store.close()


def test_a_view_that_stood_still_while_a_job_below_went_back(tmp_path: Path) -> None:
    """It is made what the views below are: the numbers of their rows may have been given twice."""
    found = Chained(TOGETHER, tmp_path)
    found.make()
    found.add("a", 0, {"l": [(0, 1, 7, "a")]})
    found.add("a", 1, {"l": [(1, 1, 7, "a"), (1, 1, 7, "a")]})
    found.store.hold("c")
    found.store.rollback("a", 0)
    found.commit("a", 1, {"l": [(2, 1, 7, "a"), (1, 1, 7, "a")]})
    assert found.view("c").total() == 3
    found.store.follow("c")
    assert found.view("c") == found.view("a")
    assert [each.seq for each in found.store.changes("c", 0)] == [1, 2, 3]
    found.reopen()
    found.commit("b", 0, {"r": [(4, 1, 8, "a")]})
    assert [(each.seq, each.row) for each in found.store.changes("c", 3)] == [(4, {"k": 4, "v": 8})]
    found.store.close()


def test_a_stream_with_a_table_keeps_no_rows_and_goes_back(tmp_path: Path) -> None:
    """Backfill, then live: each row is in the view once, however often its batch comes, and leaves with its batch."""
    streams = STREAMS.replace("STREAM r", "TABLE r").replace(
        "w BIGINT, s STRING)", "w BIGINT, s STRING) WITH (connector = 'file', path = '/data', format = 'json')"
    )
    found = Finished("SELECT k, v FROM l WHERE v > 0 UNION ALL SELECT k, w FROM r", tmp_path, streams)
    assert found.job.shows_closed
    batches = [{"l": [(number, 1, 7, "a"), (number, 1, 0, "a")], "r": [(number, 1, 8, "a")]} for number in range(4)]
    for number, batch in enumerate(batches):
        if number == 2:
            with pytest.raises(BrokenOffError):
                found.commit(number, batch, fails_at="view.before_commit")
        found.add(number, batch)
        found.commit(number, batch)  # Spark had not heard of it
        found.follow()
        assert found.view() == found.answer() == found.fold
    with found.store._database.snapshot() as reader:
        kept = reader.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'store'").fetchall()
    assert not [name for (name,) in kept if name[0] in "rlg" and name[1:2].isdigit()], "nothing is kept but the view"
    before = found.view()
    found.store.rollback("job", 1)
    rows = [change.row for change in found.store.changes(VIEW, 2)]
    assert rows == [{"k": 1, "v": 7}, {"k": 1, "v": 8}]
    found.reopen()
    for number in (2, 3):
        found.commit(number, batches[number])
    assert found.view() == before
    assert [change.seq for change in found.store.changes(VIEW, 0)] == list(range(1, 9))
    found.store.close()


PARENTS = (
    STREAMS
    + """
CREATE STREAM s (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'topic');
CREATE TABLE old (k STRING, v INT, ts TIMESTAMP) WITH (connector = 'file', path = '/data', format = 'json');
CREATE TABLE now_of (k STRING, n INT, PRIMARY KEY (k) NOT ENFORCED) WITH (connector = 'topic', changes = 'upsert');
CREATE MATERIALIZED VIEW p AS SELECT k, v, ts FROM s WHERE v > 0;
CREATE MATERIALIZED VIEW c AS SELECT k, ts FROM p WHERE v > 5;
CREATE MATERIALIZED VIEW w AS SELECT window_start, window_end, COUNT(*) AS n
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;
CREATE MATERIALIZED VIEW sums AS SELECT k, SUM(v) AS v FROM s GROUP BY k;
"""
)


@pytest.mark.parametrize(
    ("query", "mode"),
    [
        ("SELECT k FROM c WHERE k <> 'a'", Mode.APPEND),
        ("SELECT k, ts FROM c UNION ALL SELECT k, ts FROM p", Mode.APPEND),
        ("SELECT n FROM w WHERE n > 10", Mode.APPEND),
        ("SELECT k, v, ts FROM s UNION ALL SELECT k, v, ts FROM old", Mode.APPEND),
        ("SELECT k, v FROM s UNION ALL SELECT k, v FROM p", Mode.APPEND),
        ("SELECT k, v FROM p UNION ALL SELECT k, v FROM sums", Mode.RETRACT),
        ("SELECT k, v FROM s UNION ALL SELECT k, n FROM now_of", Mode.RETRACT),
        ("SELECT DISTINCT k FROM p", Mode.UPSERT),
        ("SELECT k FROM p WHERE ts > mz_now() - INTERVAL '1' HOUR", Mode.RETRACT),
        ("SELECT k FROM p WHERE k IN (SELECT k FROM c)", Mode.RETRACT),
    ],
)
def test_what_only_adds_rows(query: str, mode: Mode) -> None:
    assert planned(f"{PARENTS} CREATE MATERIALIZED VIEW x AS {query};").mode is mode


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k FROM c",
        "SELECT k FROM c UNION ALL SELECT k FROM p",
        "SELECT k, v FROM s UNION ALL SELECT k, v FROM old",
    ],
)
def test_a_sink_of_added_rows_takes_them(query: str) -> None:
    plan = planned(f"{PARENTS} CREATE SINK x WITH (connector = 'file', path = '/out', format = 'json') AS {query};")
    assert plan.mode is Mode.APPEND
    job = plan_job(plan)
    assert job.kind == "append" or job.shows_closed


@pytest.mark.parametrize("emit", ["", " EMIT FINAL"])
def test_windows_close_over_a_chain_of_added_rows(emit: str) -> None:
    minutes = (
        "SELECT window_start, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE {0}, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) "
        f"GROUP BY window_start, window_end{emit}"
    )
    both = "CREATE MATERIALIZED VIEW both AS SELECT ts FROM c UNION ALL SELECT ts FROM p;"
    for name in ("c", "both"):
        plan = planned(f"{PARENTS}{both} CREATE MATERIALIZED VIEW x AS {minutes.format(name)};")
        job = plan_job(plan)
        assert (plan.mode, {scan.relation for scan in job.scans}, job.views) == (Mode.APPEND, {"s"}, ())
        assert "`v` > 5" in job.core


def test_an_append_sink_over_what_changes_is_still_refused() -> None:
    sink = "CREATE SINK x WITH (connector = 'file', path = '/out', format = 'json') AS SELECT k FROM sums;"
    error = last(PARENTS + sink).error
    assert error is not None
    assert error.condition == "SINK_CANNOT_UPDATE"
