"""RETRY DEAD LETTERS: after something was mended, records are read again."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import penstock
from penstock.errors import NotYetError, PenstockError
from penstock.failpoints import enabled
from penstock.formats import encode_rows
from penstock.formats.registry import head
from tests.kafka.conftest import Cluster
from tests.schema_registry import running_registry

pytestmark = pytest.mark.kafka

FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "long"},
    {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
]
KNOWN = json.dumps({"type": "record", "name": "Known", "fields": FIELDS})
LATER = json.dumps({"type": "record", "name": "Later", "fields": [*FIELDS, {"name": "more", "type": ["null", "int"]}]})


def records(number: int, schema: str, ids: range) -> list[bytes | str | None]:
    import pyarrow as pa

    times = pa.array([1_767_261_600_000 + each for each in ids], pa.timestamp("ms", "UTC"))
    rows = pa.table({"id": list(ids), "ts": times})
    return [head(number) + body for body in encode_rows(rows, "avro", {"avro.schema": schema}).to_pylist()]


def test_records_whose_schema_comes_later(cluster: Cluster, opened: Callable[..., penstock.Database]) -> None:
    """I11: each of them once, in a view, in a running sum and in a topic; what is still broken stays."""
    topic, out = cluster.topic(2), cluster.topic()
    with running_registry() as registry:
        registry.put(f"{topic}-value", KNOWN, 1)
        cluster.send(topic, records(1, KNOWN, range(5)), partition=0, key="k")
        cluster.send(topic, [*records(500, LATER, range(100, 103)), b"broken"], partition=1, key="late")
        db = opened()
        db.execute(f"""
            CREATE STREAM orders (id BIGINT, ts TIMESTAMP, k STRING METADATA FROM 'key', WATERMARK FOR ts) WITH (
              connector = 'kafka', topic = '{topic}', start = 'earliest', format = 'avro-confluent',
              'schema_registry.url' = '{registry.url}'
            );
            CREATE MATERIALIZED VIEW seen AS SELECT id, k FROM orders WHERE id <> 2;
            CREATE MATERIALIZED VIEW counted AS SELECT k, COUNT(*) AS n, SUM(id) AS total FROM orders GROUP BY k;
            CREATE MATERIALIZED VIEW minutes AS
              SELECT window_start, COUNT(*) AS n FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)
              GROUP BY window_start;
            CREATE SINK once (id BIGINT) WITH (connector = 'kafka', topic = '{out}', delivery = 'exactly_once');
            INSERT INTO once SELECT id FROM orders;
            CREATE SINK often WITH (connector = 'kafka', topic = '{out}-2', partitions = 1) AS SELECT id FROM orders;
        """)
        db.settle(180)
        dead = "SELECT partition, offset FROM penstock.dead_letters WHERE job = '{}' ORDER BY offset"
        everything = [(1, offset) for offset in range(4)]
        assert db.sql(dead.format("seen")).rows() == everything
        first = [(0, "k"), (1, "k"), (3, "k"), (4, "k")]
        assert db.sql("SELECT id, k FROM seen ORDER BY id").rows() == first
        db.execute("RETRY DEAD LETTERS FOR seen")  # nothing is mended yet
        assert db.sql("SELECT COUNT(*) FROM seen").rows() == [(4,)]

        registry.put(None, LATER, 500)
        db.execute("RETRY DEAD LETTERS FOR seen WHERE stream = 'orders' AND offset IN (1, 3)")
        assert db.sql(dead.format("seen")).rows() == [(1, 0), (1, 2), (1, 3)]
        assert db.sql("SELECT id, k FROM seen ORDER BY id").rows() == [*first, (101, "late")]
        db.execute("RETRY DEAD LETTERS FOR seen")
        mended = [*first, (100, "late"), (101, "late"), (102, "late")]
        assert db.sql("SELECT id, k FROM seen ORDER BY id").rows() == mended
        assert db.sql(dead.format("seen")).rows() == [(1, 3)]
        assert db.sql(dead.format("counted")).rows() == everything

        # One of the jobs breaks behind its sink: the batch runs again, with the same records, and writes them once.
        with enabled("sink.after_write", "error@1"):
            db.execute("RETRY DEAD LETTERS")
        assert db.sql("SELECT restarts FROM penstock.jobs WHERE name = 'insert_once'").rows() == [(1,)]
        assert db.sql("SELECT k, n, total FROM counted ORDER BY k").rows() == [("k", 5, 10), ("late", 3, 303)]
        assert sorted(json.loads(value)["id"] for value in cluster.values(out)) == [0, 1, 2, 3, 4, 100, 101, 102]
        # What Spark's own sink has written is counted on its way, and what was read again with it.
        assert sorted(json.loads(value)["id"] for value in cluster.values(f"{out}-2")) == [0, 1, 2, 3, 4, 100, 101, 102]
        counted = "SELECT value FROM penstock.metrics WHERE job = 'often' AND name = 'output_rows'"
        assert db.sql(counted).rows() == [(8.0,)]
        for job in ("seen", "counted", "insert_once"):
            assert db.sql(dead.format(job)).rows() == [(1, 3)], job
        # Windows have passed such rows by.
        assert db.sql(dead.format("minutes")).rows() == everything
        with pytest.raises(NotYetError, match="windows, joins or keys"):
            db.execute("RETRY DEAD LETTERS FOR minutes")
        db.execute("PAUSE JOB seen")
        with pytest.raises(PenstockError) as raised:
            db.execute("RETRY DEAD LETTERS FOR seen")
        assert raised.value.condition == "JOB_STATE"
        db.execute("RESUME JOB seen")

        # The job goes on, and a restart changes nothing.
        cluster.send(topic, records(1, KNOWN, range(5, 6)), partition=0, key="k")
        db.settle(180)
        assert db.sql("SELECT id, k FROM seen ORDER BY id").rows() == sorted([*mended, (5, "k")])
        db.close()
        db = opened()
        db.settle(180)
        assert db.sql("SELECT COUNT(*) FROM seen").rows() == [(8,)]
        assert db.sql(dead.format("seen")).rows() == [(1, 3)]
