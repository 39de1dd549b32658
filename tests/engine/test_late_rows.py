"""Rows that come after their windows have closed (contract F)."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import pytest

import penstock
from penstock import JobFailed, PenstockError
from tests.engine.answers import at, check_change_log, job, ms, read

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

STREAM = "CREATE STREAM s (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)"
TUMBLE = (
    "SELECT TUMBLE_START(ts, INTERVAL '10' SECOND) AS s, COUNT(*) AS n FROM s GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)"
)


def test_every_late_row_is_told(db: penstock.Database) -> None:
    """F2, F3, F4, F5: fifty late rows are fifty rows in penstock.late_rows; no closed window opens again."""
    db.execute(f"""
        {STREAM};
        CREATE MATERIALIZED VIEW keeps AS {TUMBLE};
        CREATE MATERIALIZED VIEW drops WITH (late = 'drop') AS {TUMBLE};
        CREATE MATERIALIZED VIEW hops AS
        SELECT HOP_START(ts, INTERVAL '10' SECOND, INTERVAL '30' SECOND) AS s, COUNT(*) AS n
        FROM s GROUP BY HOP(ts, INTERVAL '10' SECOND, INTERVAL '30' SECOND);
    """)
    db.append("s", [{"k": "a", "v": 0, "ts": ms(second)} for second in (1, 9.999, 105)])
    db.settle()
    assert read(db, "keeps") == [(at(0), 2)]
    late = [{"k": f"late {n}", "v": n, "ts": ms(10 + n)} for n in range(50)]
    # Older than the watermark with an open window, and as old as the watermark: both in time.
    in_time = [{"k": "open", "v": 0, "ts": ms(103)}, {"k": "equal", "v": 0, "ts": ms(105)}]
    partly = [{"k": "partly", "v": 0, "ts": ms(85)}]  # of its windows [60, 90) and [70, 100) have closed, [80, 110) not
    (appended,) = db.append("s", [*late, *in_time, *partly])
    db.settle()

    told = db.sql("""
        SELECT stream, partition, offset, event_time, watermark, lateness, row FROM penstock.late_rows
        WHERE job = 'keeps' ORDER BY offset
    """).rows()
    assert len(told) == 51
    for n, (stream, partition, offset, event_time, watermark, lateness, row) in enumerate(told[:50]):
        assert (stream, partition, offset) == ("s", appended.partition, appended.first_offset + n)
        assert (event_time, watermark, lateness) == (at(10 + n), at(105), timedelta(seconds=95 - n))
        assert json.loads(row)["k"] == f"late {n}"
        assert json.loads(row)["v"] == n
    assert json.loads(told[50][6])["k"] == "partly"
    assert db.metrics()["keeps"]["late_rows"] == 51
    assert read(db, "keeps") == [(at(0), 2)]

    assert db.sql("SELECT COUNT(*) FROM penstock.late_rows WHERE job = 'drops'").rows() == [(0,)]
    assert db.metrics()["drops"]["late_rows"] == 51

    # The rows of 10 to 59 seconds have missed [-20, 10) to [50, 80); the one of 85 only some of its windows.
    assert db.sql("SELECT COUNT(*), MAX(event_time) FROM penstock.late_rows WHERE job = 'hops'").rows() == [
        (50, at(59))
    ]
    assert db.metrics()["hops"]["late_rows"] == 50
    assert db.metrics()["hops"]["partly_late_rows"] == 1

    for view in ("keeps", "drops", "hops"):
        db.drain(view)
        check_change_log(db, view)
    assert read(db, "keeps") == read(db, "drops") == [(at(0), 2), (at(100), 3)]
    hopped: dict[datetime, int] = dict(read(db, "hops"))
    assert hopped == {at(-20): 2, at(-10): 2, at(0): 2, at(80): 4, at(90): 3, at(100): 3}


def test_late_fail(db: penstock.Database) -> None:
    """F4: with late = 'fail' the job ends with an error that names the row, and its view stays as it was."""
    db.execute(f"{STREAM}; CREATE MATERIALIZED VIEW strict WITH (late = 'fail') AS {TUMBLE};")
    db.append("s", [{"ts": ms(5)}, {"ts": ms(20)}])
    db.settle()
    before = read(db, "strict")
    assert before == [(at(0), 1)]
    db.append("s", [{"ts": ms(25)}, {"ts": ms(7)}])
    with pytest.raises(JobFailed, match="LATE_ROW") as raised:
        db.settle()
    assert raised.value.job == "strict"
    assert "offset 3" in raised.value.message
    found = job(db, "strict")
    assert found.state == "failed"
    assert found.error is not None
    assert found.error.startswith("[LATE_ROW]")
    assert read(db, "strict") == before
    assert db.health()["failed"] == ["strict"]
    hint = raised.value.hint or ""
    assert hint.startswith("ALTER MATERIALIZED VIEW strict SET (late = 'keep') and then RESUME JOB strict, ")
    with pytest.raises(PenstockError, match="is failed and cannot be paused") as refused:
        db.execute("PAUSE JOB strict")
    assert refused.value.hint == hint
    with pytest.raises(JobFailed, match="LATE_ROW"):
        db.execute("RESUME JOB strict")
    db.execute("DROP MATERIALIZED VIEW strict")
    assert db.jobs() == []


def test_late_fail_is_mended_by_what_its_hint_says(db: penstock.Database) -> None:
    db.execute(f"{STREAM}; CREATE MATERIALIZED VIEW strict WITH (late = 'fail') AS {TUMBLE};")
    db.append("s", [{"ts": ms(5)}, {"ts": ms(20)}])
    db.settle()
    db.append("s", [{"ts": ms(25)}, {"ts": ms(7)}])
    with pytest.raises(JobFailed, match="LATE_ROW"):
        db.settle()
    db.execute("ALTER MATERIALIZED VIEW strict SET (late = 'keep')")
    assert db.notices()[-1] == "materialized view strict was altered"
    db.execute("RESUME JOB strict")
    db.settle()
    assert job(db, "strict").state == "running"
    assert db.sql("SELECT job, event_time FROM penstock.late_rows").rows() == [("strict", at(7))]


def test_what_alter_cannot_change_of_a_job_is_refused(db: penstock.Database) -> None:
    """It would find out at its next start, and fail."""
    db.execute(f"{STREAM}; CREATE MATERIALIZED VIEW counts AS SELECT k, COUNT(*) AS n FROM s GROUP BY k;")
    with pytest.raises(PenstockError) as refused:
        db.execute("ALTER MATERIALIZED VIEW counts SET (state = 'spark')")
    assert refused.value.condition == "STATE_INCOMPATIBLE"
    db.execute("RESTART JOB counts")
    assert job(db, "counts").state == "running"


def test_a_window_below_lateral_closes(db: penstock.Database) -> None:
    """F2, G13: a late row changes the answer of a LATERAL subquery, or of one in an expression, as little as that of a
    join."""

    def windows(stream: str) -> str:
        return (
            f"(SELECT window_start AS s, COUNT(*) AS n FROM TUMBLE(TABLE {stream}, DESCRIPTOR(ts), INTERVAL '10' SECOND) "
            "GROUP BY window_start, window_end)"
        )

    one, two = windows("s"), windows("other")
    inner = f"(SELECT w.n FROM {two} AS w WHERE w.s = x.s)"
    db.execute(f"""
        {STREAM};
        {STREAM.replace("STREAM s", "STREAM other")};
        CREATE MATERIALIZED VIEW joined AS SELECT x.s, x.n, y.n AS m FROM {one} AS x JOIN {two} AS y ON y.s = x.s;
        CREATE MATERIALIZED VIEW for_each AS SELECT x.s, x.n, y.n AS m FROM {one} AS x CROSS JOIN LATERAL {inner} AS y;
        CREATE MATERIALIZED VIEW applied AS SELECT x.s, x.n, y.n AS m FROM {one} AS x
        OUTER APPLY (SELECT w.n FROM {two} AS w WHERE w.s = x.s AND w.n >= x.n) AS y;
        CREATE MATERIALIZED VIEW of_value AS SELECT x.s, x.n, (SELECT MAX(w.n) FROM {two} AS w WHERE w.s = x.s) AS m FROM {one} AS x;
    """)
    views = ("joined", "for_each", "applied", "of_value")
    for stream in ("s", "other"):
        db.append(stream, [{"k": "a", "v": 0, "ts": ms(second)} for second in (1, 2, 11, 105)])
        db.settle()
    for view in views:
        assert read(db, view) == [(at(0), 2, 2), (at(10), 1, 1)], view
    db.append("other", [{"k": "late", "v": 0, "ts": ms(second)} for second in (3, 12, 125)])
    db.append("s", [{"k": "late", "v": 0, "ts": ms(second)} for second in (4, 125)])
    db.settle()
    for view in views:
        db.drain(view)
        assert read(db, view) == [(at(0), 2, 2), (at(10), 1, 1), (at(100), 1, 1), (at(120), 1, 1)], view
        check_change_log(db, view)
        told = db.sql(f"SELECT stream, COUNT(*) FROM penstock.late_rows WHERE job = '{view}' GROUP BY stream").rows()
        assert sorted(told) == [("other", 2), ("s", 1)], view
