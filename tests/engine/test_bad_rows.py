"""Records that cannot be used: what becomes of them under each policy, and which jobs mind."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime

import pytest

import penstock
from penstock import JobFailed, PenstockError
from tests.engine.answers import EPOCH, at, job, ms, read

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

COLUMNS = "(id INT NOT NULL, n INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)"
RECORDS = [
    '{"id": 1, "n": 10, "ts": 1000, "more": "ignored"}',
    '{"id": 2, "ts": "1970-01-01T02:00:02+02:00"}',
    "not json at all",
    '{"id": null, "n": 4, "ts": 3000}',
    '{"id": 5, "n": 3000000000, "ts": 3000}',
    '{"id": 6, "n": 6}',
    '{"id": 7, "n": 7, "ts": "2999-01-01 00:00:00"}',
    '{"id": 8, "n": -8, "ts": "1969-12-31 23:59:59"}',
    '{"id": 9, "n": 9, "ts": "1970-01-01T00:00:09.5Z"}',
]
FAR = datetime(2999, 1, 1, tzinfo=UTC)


def test_bad_records_among_many(db: penstock.Database) -> None:
    """B4, C3, I11: of records that come by the thousand most are read on another way, and the bad ones are told all the same."""
    db.execute(f"""
        CREATE STREAM many {COLUMNS} WITH (connector = 'topic', format = 'json', partitions = 2);
        CREATE MATERIALIZED VIEW rows AS SELECT id, n, ts FROM many;
        CREATE MATERIALIZED VIEW windowed AS
        SELECT TUMBLE_START(ts, INTERVAL '5' SECOND) AS s, COUNT(*) AS n FROM many
        GROUP BY TUMBLE(ts, INTERVAL '5' SECOND);
    """)
    good = [json.dumps({"id": 100 + number, "n": number, "ts": 1000}) for number in range(3_000)]
    odd = ['{"id": 50, "n": 1, "n": 2, "ts": 1000}', '{"id": 51, "n": 3, "ts": 1000, "s": "\\u00e9"}']
    trailing = '{"id": 52, "n": 1, "ts": 1000,}'
    db.append("many", [*good[:1_500], *RECORDS, *odd, trailing, *good[1_500:]])
    db.settle()
    usual = [(100 + number, number, at(1)) for number in range(3_000)]
    whole = [(1, 10, at(1)), (2, None, at(2)), (6, 6, None), (7, 7, FAR), (8, -8, at(-1)), (9, 9, at(9.5))]
    found = sorted(read(db, "rows"), key=lambda row: row[0])
    assert found == [*whole, (50, 2, at(1)), (51, 3, at(1)), *usual]
    letters = db.sql("SELECT CAST(raw AS STRING) FROM penstock.dead_letters WHERE job = 'rows' ORDER BY 1").rows()
    assert letters == sorted((text,) for text in (RECORDS[2], RECORDS[3], RECORDS[4], trailing))
    db.drain("windowed")
    assert read(db, "windowed") == [(at(0), 3_005), (at(5), 1)]  # it does not look at n


def test_json_policies(db: penstock.Database) -> None:
    """B4, B5, B8, C3, D15, D16, I11, DEC3, DEC14: dead letters with the bytes, place and reason, judged for each job."""
    db.execute(f"""
        CREATE STREAM j {COLUMNS} WITH (connector = 'topic', format = 'json');
        CREATE STREAM nulls {COLUMNS} WITH (connector = 'topic', topic = 'j', format = 'json', bad_data = 'null');
        CREATE STREAM strict {COLUMNS} WITH (connector = 'topic', topic = 'j', format = 'json', bad_data = 'fail');
        CREATE MATERIALIZED VIEW rows AS SELECT id, n, ts FROM j;
        CREATE MATERIALIZED VIEW ids AS SELECT id FROM j;
        CREATE MATERIALIZED VIEW windowed AS
        SELECT TUMBLE_START(ts, INTERVAL '5' SECOND) AS s, COUNT(*) AS n FROM j GROUP BY TUMBLE(ts, INTERVAL '5' SECOND);
        CREATE MATERIALIZED VIEW lenient AS SELECT id, n, ts FROM nulls;
        CREATE MATERIALIZED VIEW failing AS SELECT id, n FROM strict;
    """)
    db.append("j", RECORDS[:2])
    db.settle()
    assert read(db, "failing") == [(1, 10), (2, None)]
    started = datetime.now(UTC)
    db.append("j", RECORDS[2:])
    with pytest.raises(JobFailed, match="BAD_RECORD") as raised:
        db.settle()
    assert raised.value.job == "failing"
    assert "offset 2" in raised.value.message
    assert read(db, "failing") == [(1, 10), (2, None)]
    # As the error says: what ALTER changes counts when the job goes on.
    db.execute("ALTER STREAM strict SET (bad_data = 'dead_letter')")
    db.execute("RESUME JOB failing")
    db.settle()
    assert [id_ for id_, _ in read(db, "failing")] == [1, 2, 6, 7, 8, 9]
    db.execute("DROP MATERIALIZED VIEW failing")
    db.settle()

    whole = [(1, 10, at(1)), (2, None, at(2)), (6, 6, None), (7, 7, FAR), (8, -8, at(-1)), (9, 9, at(9.5))]
    assert read(db, "rows") == whole
    # A job minds only the columns it reads.
    assert read(db, "ids") == [(1,), (2,), (5,), (6,), (7,), (8,), (9,)]
    db.drain("windowed")
    counted = read(db, "windowed")
    assert counted == [(at(0), 3), (at(5), 1)]
    lenient = read(db, "lenient")
    assert (5, None, at(3)) in lenient
    assert len(lenient) == 7

    told = db.sql(
        "SELECT job, stream, partition, offset, raw, reason, error, recorded_at FROM penstock.dead_letters"
    ).rows()
    for _, _, _, offset, raw, _, error, recorded_at in told:
        assert raw == RECORDS[offset].encode()
        assert error
        assert recorded_at >= started.replace(microsecond=0)
    reasons = {(name, offset): reason for name, _, _, offset, _, reason, _, _ in told}
    assert len(reasons) == len(told), "each once for each job"
    assert {offset: reason for (name, offset), reason in reasons.items() if name == "rows"} == {
        2: "malformed", 3: "not_null", 4: "malformed",
    }  # fmt: skip
    assert {offset: reason for (name, offset), reason in reasons.items() if name == "ids"} == {
        2: "malformed",
        3: "not_null",
    }
    assert {offset: reason for (name, offset), reason in reasons.items() if name == "windowed"} == {
        2: "malformed", 3: "not_null", 5: "null_time", 6: "future_time", 7: "before_1970",
    }  # fmt: skip
    assert {offset: reason for (name, offset), reason in reasons.items() if name == "lenient"} == {
        2: "not_null",
        3: "not_null",
    }
    assert {stream for _, stream, *_ in told} == {"j", "nulls"}
    overflow = next(row for row in told if row[0] == "rows" and row[3] == 4)
    assert "3000000000" in overflow[6]
    assert db.metrics()["windowed"]["dead_letters"] == 5


def test_poison_time_closes_nothing(db: penstock.Database) -> None:
    """One row far ahead of the clock is set aside, and windows stay open; the limit is max_future_drift."""
    db.execute("""
        CREATE STREAM s (v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (max_future_drift = INTERVAL '1' HOUR);
        CREATE MATERIALIZED VIEW w AS
        SELECT TUMBLE_START(ts, INTERVAL '10' SECOND) AS s, COUNT(*) AS n FROM s GROUP BY TUMBLE(ts, INTERVAL '10' SECOND);
    """)
    now = time.time()
    soon = round(now) + 1800
    db.append("s", [{"v": 1, "ts": ms(now)}, {"v": 2, "ts": ms(now + 7200)}, {"v": 3, "ts": ms(soon)}])
    db.settle()
    assert job(db, "w").watermark == at(soon)
    letters = db.sql("SELECT reason, raw FROM penstock.dead_letters").rows()
    assert [(reason, json.loads(raw)["v"]) for reason, raw in letters] == [("future_time", 2)]
    assert [n for _, n in read(db, "w")] == [1]


def test_append_refuses_what_does_not_fit(db: penstock.Database) -> None:
    """B4, B7: a value that a typed topic cannot hold is refused whole, with nothing appended."""
    db.execute("CREATE STREAM typed (id INT NOT NULL, big BIGINT, ts TIMESTAMP) WITH (partitions = 2)")
    for rows in (
        [{"id": 1}, {"id": 3_000_000_000}],
        [{"id": 1, "big": 2**63}],
        [{"id": "text"}],
        [{"id": 1, "unknown": 2}],
    ):
        with pytest.raises(PenstockError) as raised:
            db.append("typed", rows)
        assert raised.value.condition == "INVALID_ROWS", rows
    with pytest.raises(PenstockError):
        db.append("typed", [{"id": 1}], partition=2)
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT id, ts FROM typed")
    db.append("typed", [{"id": 1, "ts": "1970-01-01 00:00:01"}, {"id": 2, "ts": EPOCH}, {"id": 3, "ts": 2000}])
    db.append("typed", [])
    db.settle()
    assert read(db, "v") == [(1, at(1)), (2, at(0)), (3, at(2))]


def test_raw_texts(db: penstock.Database) -> None:
    """I10, I11: bytes that are no text go where all goes that cannot be read; a column of bytes takes them."""
    db.execute("""
        CREATE STREAM lines (line STRING) WITH (connector = 'topic', topic = 'r', format = 'raw');
        CREATE STREAM bytes (line BINARY) WITH (connector = 'topic', topic = 'r', format = 'raw');
        CREATE MATERIALIZED VIEW texts AS SELECT line FROM lines;
        CREATE MATERIALIZED VIEW kept AS SELECT line FROM bytes;
    """)
    db.append("lines", ["a", "", b"\xff\x00", "é"])
    db.settle()
    assert sorted(read(db, "texts")) == [("",), ("a",), ("é",)]
    assert sorted(read(db, "kept")) == [(b"",), (b"a",), ("é".encode(),), (b"\xff\x00",)]
    letters = db.sql("SELECT job, stream, offset, raw, reason, error FROM penstock.dead_letters").rows()
    assert letters == [("texts", "lines", 2, b"\xff\x00", "malformed", 'column "line": not valid UTF-8')]
