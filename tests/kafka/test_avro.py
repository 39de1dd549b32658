"""Avro records in topics of a real broker, and in embedded ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

import penstock
from penstock.errors import JobFailed
from penstock.formats import encode_rows
from tests.kafka.conftest import Cluster

pytestmark = pytest.mark.kafka

SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Trade",
        "namespace": "shop",
        "fields": [
            {"name": "symbol", "type": "string"},
            {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
            {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "count", "type": "long"},
            {"name": "side", "type": {"type": "enum", "name": "Side", "symbols": ["BUY", "SELL"]}},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
        ],
    }
)


def trades(counts: list[int]) -> list[bytes]:
    """Records of the schema above."""
    import pyarrow as pa

    moment = datetime(2026, 1, 1, 10, 0, 1, tzinfo=UTC)
    rows = [
        {"symbol": f"s{n}", "price": Decimal("1.25"), "ts": moment, "count": n, "side": "SELL", "tags": ["x", "y"]}
        for n in counts
    ]
    found: list[bytes] = encode_rows(pa.Table.from_pylist(rows), "avro", {"avro.schema": SCHEMA}).to_pylist()
    return found


def test_records_of_a_schema_in_and_out_with_poison_among_them(
    cluster: Cluster, opened: Callable[..., penstock.Database]
) -> None:
    """SC31: one record of a hundred is broken; all of them and only them are dead letters, with their bytes."""
    topic, out, exact = cluster.topic(2), cluster.topic(), cluster.topic()
    good = trades(list(range(500)))
    poison = [
        b"",
        b"\x00",
        good[0] + b"z",
        good[0][:-1],
        b"\xff" * 9,
        b"\x80\x80\x80\x80\x80\x10",
        b"not avro",
        good[1] * 2,
    ]
    sent: list[bytes | str | None] = []
    places: dict[int, bytes] = {}
    for number, record in enumerate(good):
        if number % 100 == 50:
            for bad in poison[:2]:
                places[len(sent)] = bad
                sent.append(bad)
            poison = poison[2:]
        sent.append(record)
    cluster.send(topic, sent, partition=1)
    # A number that its column has no place for.
    cluster.send(topic, trades([2**40]), partition=0)
    db = opened()
    db.execute(f"""
        CREATE STREAM trades (
          symbol STRING NOT NULL, price DECIMAL(10, 2), ts TIMESTAMP, count INT, side STRING, tags ARRAY<STRING>,
          part INT METADATA FROM 'partition', WATERMARK FOR ts
        ) WITH (connector = 'kafka', topic = '{topic}', start = 'earliest', format = 'avro', 'avro.schema' = '{SCHEMA}');
        CREATE STREAM as_nulls (symbol STRING, count INT) WITH (
          connector = 'kafka', topic = '{topic}', start = 'earliest', format = 'avro', 'avro.schema' = '{SCHEMA}',
          bad_data = 'null'
        );
        CREATE STREAM strict (count INT) WITH (
          connector = 'kafka', topic = '{topic}', start = 'earliest', format = 'avro', 'avro.schema' = '{SCHEMA}',
          bad_data = 'fail'
        );
        CREATE MATERIALIZED VIEW seen AS SELECT symbol, price, ts, count, side, tags[1] AS tag, part FROM trades;
        CREATE MATERIALIZED VIEW nulls AS SELECT symbol, count FROM as_nulls;
        CREATE SINK copy (symbol STRING, total DECIMAL(12, 2), at TIMESTAMP, tags ARRAY<STRING>, "when" DATE, o STRUCT<a INT>) WITH (
          connector = 'kafka', topic = '{out}', format = 'avro', 'key.fields' = 'symbol'
        );
        CREATE SINK once (symbol STRING, price DECIMAL(10, 2), ts TIMESTAMP, count BIGINT, side STRING, tags ARRAY<STRING>) WITH (
          connector = 'kafka', topic = '{exact}', format = 'avro', 'avro.schema' = '{SCHEMA}', delivery = 'exactly_once'
        );
        INSERT INTO copy SELECT symbol, price, ts, tags, CAST(ts AS DATE), STRUCT(count AS a) FROM trades;
        INSERT INTO once SELECT symbol, price, ts, count, side, tags FROM trades;
    """)
    db.settle(120)
    rows = db.sql("SELECT * FROM seen ORDER BY count").rows()
    moment = datetime(2026, 1, 1, 10, 0, 1, tzinfo=UTC)
    assert rows == [(f"s{n}", Decimal("1.25"), moment, n, "SELL", "x", 1) for n in range(500)]
    letters = db.sql(
        "SELECT partition, offset, raw, reason, error FROM penstock.dead_letters WHERE job = 'seen' ORDER BY partition, offset"
    ).rows()
    assert [row[:4] for row in letters] == [
        (0, 0, trades([2**40])[0], "malformed"),
        *((1, offset, raw, "malformed") for offset, raw in sorted(places.items())),
    ]
    assert letters[0][4] == f'column "count": {2**40} does not fit INT'
    assert {row[4] for row in letters[1:]} == {"empty record", "malformed avro: not a record of the schema"}
    assert db.sql("SELECT COUNT(*), COUNT(symbol), COUNT(count) FROM nulls").rows() == [(509, 501, 500)]
    db.execute("CREATE MATERIALIZED VIEW stops AS SELECT count FROM strict")
    with pytest.raises(JobFailed, match="partition 0, offset 0"):
        db.settle(120)

    # What was written can be read back, by a schema that is made of the columns, and by the given one.
    db.execute(f"""
        CREATE TABLE back (symbol STRING, total DECIMAL(12, 2), at TIMESTAMP, tags ARRAY<STRING>, "when" DATE, o STRUCT<a INT>)
          WITH (connector = 'kafka', topic = '{out}', start = 'earliest', 'end' = 'latest', format = 'avro');
    """)
    found = db.sql('SELECT symbol, total, at, tags, "when", o.a FROM back ORDER BY 6 LIMIT 1').rows()
    assert found == [("s0", Decimal("1.25"), moment, ["x", "y"], moment.date(), 0)]
    assert db.sql("SELECT COUNT(*) FROM back").rows() == [(500,)]
    assert {record.key() for record in cluster.records(out)} == {f"s{n}".encode() for n in range(500)}
    assert sorted(record.value() for record in cluster.records(exact)) == sorted(good)


def test_an_embedded_topic_of_avro(db: penstock.Database) -> None:
    db.execute("""
        CREATE STREAM kept (n INT, s STRING, t TIMESTAMP) WITH (connector = 'topic', format = 'avro');
        CREATE MATERIALIZED VIEW seen AS SELECT n, s, t FROM kept;
        INSERT INTO kept VALUES (1, 'a', TIMESTAMP '2026-01-01 10:00:00'), (2, NULL, NULL);
    """)
    db.append("kept", [b"broken"])
    db.settle(120)
    at: Any = datetime(2026, 1, 1, 10, tzinfo=UTC)
    assert db.sql("SELECT * FROM seen ORDER BY n").rows() == [(1, "a", at), (2, None, None)]
    assert db.sql("SELECT stream, offset, raw FROM penstock.dead_letters").rows() == [("kept", 2, b"broken")]
