"""Memory streams, Nexmark's events and the HTTP sink in jobs: one database, over a restart and a failure."""

from __future__ import annotations

import json
import socket
import time
from collections import Counter
from collections.abc import Callable

import pyarrow as pa
import pytest

import penstock
from penstock import PenstockError
from penstock.failpoints import enabled
from tests.engine.answers import at, in_order, job, ms, read, until
from tests.unit.connectors.web_service import Answer, web_service

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

EVENTS = 20_000
SCRIPT = """
    CREATE STREAM m (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'memory', partitions = 2);
    CREATE STREAM untouched (v INT) WITH (connector = 'memory');
    CREATE MATERIALIZED VIEW minutes AS
    SELECT k, TUMBLE_START(ts, INTERVAL '1' MINUTE) AS s, SUM(v) AS total FROM m
    GROUP BY k, TUMBLE(ts, INTERVAL '1' MINUTE);
    CREATE MATERIALIZED VIEW seen AS SELECT COUNT(*) AS n FROM untouched;
"""


def test_memory_streams_last_as_long_as_the_database(opened: Callable[..., penstock.Database]) -> None:
    """I22: Arrow batches go in from Python, event time runs, settle waits; after a restart the job says what is gone."""
    db = opened()
    db.execute(SCRIPT)
    batch = pa.RecordBatch.from_pylist([{"k": "a", "v": 1, "ts": ms(1)}, {"k": "b", "v": 2, "ts": ms(2)}])
    assert [(place.partition, place.first_offset, place.count) for place in db.append("m", batch, partition=0)] == [
        (0, 0, 2)
    ]
    db.append("m", pa.table({"k": ["a"], "v": [40], "ts": [ms(59)]}), partition=1)
    db.append("m", [{"k": "a", "v": 7, "ts": ms(70)}], partition=0)
    db.append("m", [{"k": "a", "v": 8, "ts": ms(61)}], partition=1)
    db.settle()
    assert read(db, "minutes") == [("a", at(0), 41), ("b", at(0), 2)]
    with pytest.raises(PenstockError, match="can only be read"):
        db.execute("INSERT INTO m VALUES ('a', 1, NULL)")
    db.close()
    db = opened()
    until(lambda: job(db, "minutes").state == "failed")
    assert (job(db, "minutes").error or "").startswith("[SOURCE_DATA_LOST] the rows of memory stream m ")
    assert read(db, "minutes") == [("a", at(0), 41), ("b", at(0), 2)]  # what was there stays readable
    db.append("m", [{"k": "z", "v": n, "ts": ms(n)} for n in range(9)], partition=0)
    with pytest.raises(PenstockError, match="memory stream m"):
        db.execute("RESUME JOB minutes")  # more rows than were lost, and still others
    db.append("untouched", [{"v": 1}, {"v": 2}])
    db.execute("DROP MATERIALIZED VIEW minutes")
    db.settle()
    assert read(db, "seen") == [(2,)]
    db.execute(
        "DROP MATERIALIZED VIEW seen; DROP STREAM untouched; CREATE STREAM untouched (w INT) WITH (connector = 'memory')"
    )
    assert db.append("untouched", [{"w": 5}])[0].first_offset == 0


def test_nexmark_events_run_through_a_job(db: penstock.Database) -> None:
    """NEXMARK.md: bounded events over two partitions, counted by the minute and by auction; the same rows by SELECT."""
    options = f"connector = 'nexmark', event_count = {EVENTS}, seed = 3, event_gap = '10 ms', partitions = 2"
    db.execute(f"""
        CREATE TABLE events WITH ({options});
        CREATE TABLE bids WITH ({options}, table_type = 'bid', out_of_order = 0.2);
        CREATE MATERIALIZED VIEW minutes AS
        SELECT TUMBLE_START(dateTime, INTERVAL '1' MINUTE) AS s, COUNT(*) AS n, MAX(price) AS highest
        FROM bids GROUP BY TUMBLE(dateTime, INTERVAL '1' MINUTE);
    """)
    until(lambda: job(db, "minutes").state == "stopped")
    rows = db.sql("SELECT auction, price, dateTime FROM bids").rows()
    assert len(rows) == EVENTS * 46 // 50
    counted = Counter(time.replace(second=0, microsecond=0) for _, _, time in rows)
    highest = {
        minute: max(price for _, price, time in rows if time.replace(second=0, microsecond=0) == minute)
        for minute in counted
    }
    assert read(db, "minutes") == in_order([(minute, n, highest[minute]) for minute, n in counted.items()])
    assert db.sql("SELECT COUNT(*) FROM penstock.late_rows").rows() == [(0,)]
    kinds = db.sql(
        "SELECT event_type, COUNT(person.id), COUNT(auction.id), COUNT(bid.price) FROM events GROUP BY 1"
    ).rows()
    assert in_order(kinds) == [(0, 400, 0, 0), (1, 0, 1200, 0), (2, 0, 0, 18_400)]


def test_http_sink_sends_a_batch_again_with_the_same_keys(
    opened: Callable[..., penstock.Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    """I15: at least once with idempotency keys, over a crash behind the request and an outage; secrets stay hidden."""
    monkeypatch.setenv("HOOK_TOKEN", "canary-token")
    with web_service() as service:
        db = opened()
        db.execute(f"""
            CREATE SECRET hook AS '{service.url}/in/canary-path';
            CREATE STREAM s (id INT, name STRING);
            CREATE SINK hooks WITH (connector = 'http', url = SECRET hook, token = '${{env:HOOK_TOKEN}}',
                rows_per_request = 2, backoff = '10 ms', max_retries = 1) AS SELECT id, name FROM s WHERE id > 0;
        """)
        with enabled("sink.after_write", "error@1"):
            db.append("s", [{"id": n, "name": f"n{n}"} for n in range(6)])
            until(lambda: len(service.got) >= 6)
        db.settle()
        assert [json.loads(body) for body in service.bodies] == 2 * [
            [{"id": 1, "name": "n1"}, {"id": 2, "name": "n2"}],
            [{"id": 3, "name": "n3"}, {"id": 4, "name": "n4"}],
            [{"id": 5, "name": "n5"}],
        ]
        assert [each.key for each in service.got[:3]] == [each.key for each in service.got[3:]]
        assert len({each.key for each in service.got}) == 3
        assert service.got[0].headers["authorization"] == "Bearer canary-token"
        assert job(db, "hooks").restarts == 1
        service.got.clear()
        service.answers = [Answer(503)] * 3  # two tries of the batch, and one after the restart
        db.append("s", [{"id": 9, "name": "again"}])
        until(lambda: len(service.got) == 4)
        db.settle()
        assert len({each.key for each in service.got}) == 1
        service.answers = [Answer(401, body=b"who is canary-token?")]
        db.append("s", [{"id": 10, "name": "refused"}])
        until(lambda: job(db, "hooks").state == "failed")
        error = job(db, "hooks").error or ""
        assert error == f"[SINK_REFUSED] sink hooks: {service.url} answers with 401: who is ********?"
        shown = db.sql("SELECT value FROM penstock.options").rows(), db.execute("SHOW CREATE SINK hooks").rows()  # type: ignore[union-attr]
        assert "canary" not in str(shown)
        db.execute("RESUME JOB hooks")
        until(lambda: json.loads(service.got[-1].body) == [{"id": 10, "name": "refused"}] and len(service.got) == 6)
        monkeypatch.delenv("HOOK_TOKEN")
        with pytest.raises(PenstockError, match="HOOK_TOKEN is not set"):
            db.execute(
                "CREATE SINK more WITH (connector = 'http', url = 'http://h', token = '${env:HOOK_TOKEN}') AS SELECT id FROM s"
            )
        assert {each.name for each in db.jobs()} == {"hooks"}


def test_a_service_that_is_not_there_is_told_when_its_sink_is_created(db: penstock.Database) -> None:
    """The statement is answered in seconds with the address, whether nobody listens or nothing is taken."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        nobody = f"http://127.0.0.1:{listening.getsockname()[1]}"
    db.execute("CREATE STREAM s (id INT)")
    db.append("s", [{"id": 1}])
    with web_service() as service:
        service.by_path = lambda _: Answer(503)
        for url, told in ((nobody, "refuses connections"), (service.url, "answers with 503")):
            began = time.monotonic()
            with pytest.raises(PenstockError) as raised:
                db.execute(
                    f"CREATE SINK hooks WITH (connector = 'http', url = '{url}', max_retries = 3) AS SELECT id FROM s"
                )
            assert raised.value.condition == "SINK_UNAVAILABLE"
            assert raised.value.message == f"sink hooks: {url} {told}, after 4 tries"
            assert "by itself" not in (raised.value.hint or "")
            assert time.monotonic() - began < 150, "not the whole time that a job is given to start"
            assert db.jobs() == []
        service.by_path = lambda _: None
        db.execute(f"CREATE SINK hooks WITH (connector = 'http', url = '{service.url}') AS SELECT id FROM s")
        db.settle()
        assert [json.loads(body) for body in service.bodies][-1] == {"id": 1}
