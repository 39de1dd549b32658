"""Protocol Buffers messages in topics of a real broker."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

import penstock
from penstock.formats.protobuf_confluent import front, message_path
from penstock.formats.protobuf_messages import message_type
from tests.kafka.conftest import Cluster
from tests.protobuf_files import trade_descriptors
from tests.schema_registry import running_registry

pytestmark = pytest.mark.kafka


def test_messages_in_and_out_with_poison_among_them(cluster: Cluster, db: penstock.Database, tmp_path: Path) -> None:
    """SC31: what is no message is a dead letter, and what was written is read back."""
    file = tmp_path / "trade.desc"
    file.write_bytes(trade_descriptors())
    trade = message_type(file.read_bytes(), "Trade")
    topic, out, exact = cluster.topic(), cluster.topic(), cluster.topic()
    messages = []
    for number in range(100):
        one = trade(symbol=f"s{number}", price=number / 2, count=number, side=2, tags=["a", "b"], levels={"x": number})
        one.ts.FromDatetime(datetime(2026, 1, 1, 10, 0, tzinfo=UTC))
        one.place.city = "Bern"
        messages.append(one.SerializeToString())
    cluster.send(
        topic,
        [*messages[:50], b"\xff\xff\xff", None, *messages[50:], trade(symbol="t", count=2**40).SerializeToString()],
    )
    options = f"format = 'protobuf', 'protobuf.descriptor' = '{file}', message = 'shop.Trade'"
    columns = (
        "symbol STRING, price DECIMAL(10, 2), count INT, side STRING, ts TIMESTAMP, place STRUCT<city STRING>, "
        "tags ARRAY<STRING>, note STRING, levels MAP<STRING, BIGINT>"
    )
    db.execute(f"""
        CREATE STREAM trades ({columns}) WITH (connector = 'kafka', topic = '{topic}', start = 'earliest', {options});
        CREATE MATERIALIZED VIEW seen AS
          SELECT symbol, price, count, side, ts, place.city AS city, tags[2] AS tag, note, levels['x'] AS x FROM trades;
        CREATE SINK copied ({columns}) WITH (connector = 'kafka', topic = '{out}', {options});
        CREATE SINK once (symbol STRING, count INT) WITH (
          connector = 'kafka', topic = '{exact}', {options}, delivery = 'exactly_once'
        );
        INSERT INTO copied SELECT symbol, price, count, side, ts, place, tags, note, levels FROM trades;
        INSERT INTO once SELECT symbol, count FROM trades;
    """)
    db.settle(180)
    at = datetime(2026, 1, 1, 10, 0, tzinfo=UTC)
    assert db.sql("SELECT * FROM seen ORDER BY count").rows() == [
        (f"s{n}", Decimal(n) / 2, n, "SELL", at, "Bern", "b", None, n) for n in range(100)
    ]
    dead = db.sql("SELECT offset, raw, error FROM penstock.dead_letters WHERE job = 'seen' ORDER BY offset").rows()
    assert [row[0] for row in dead] == [50, 51, 102]
    assert [row[1:] for row in dead] == [
        (b"\xff\xff\xff", "malformed protobuf"),
        (None, "empty record"),
        (trade(symbol="t", count=2**40).SerializeToString(), f'column "count": {2**40} does not fit INT'),
    ]
    back = sorted(trade.FromString(record.value()).count for record in cluster.records(out))
    assert back == list(range(100))
    whole = trade.FromString(cluster.records(out)[7].value())
    assert whole == trade.FromString(messages[whole.count])
    assert sorted(trade.FromString(record.value()).symbol for record in cluster.records(exact)) == sorted(
        f"s{n}" for n in range(100)
    )


def test_messages_with_the_number_of_their_schema(cluster: Cluster, db: penstock.Database, tmp_path: Path) -> None:
    """Written by a sink that registers its schema, and read by a source; what has no number is a dead letter."""
    file = tmp_path / "trade.desc"
    file.write_bytes(trade_descriptors())
    trade = message_type(file.read_bytes(), "Trade")
    messages = [trade(symbol=f"s{number}", count=number).SerializeToString() for number in range(100)]
    topic = cluster.topic()
    cluster.send(topic, list(messages))
    options = f"format = 'protobuf', 'protobuf.descriptor' = '{file}', message = 'shop.Trade'"
    db.execute(f"""
        CREATE STREAM trades (symbol STRING, count INT)
          WITH (connector = 'kafka', topic = '{topic}', start = 'earliest', {options})
    """)
    framed = cluster.topic()
    with running_registry() as registry:
        known = f"{options}, 'schema_registry.url' = '{registry.url}'"
        db.execute(f"""
            CREATE SINK numbered (symbol STRING, count INT) WITH (connector = 'kafka', topic = '{framed}', {known});
            INSERT INTO numbered SELECT symbol, count FROM trades;
            CREATE STREAM again (symbol STRING, count INT)
              WITH (connector = 'kafka', topic = '{framed}', start = 'earliest', {known});
            CREATE MATERIALIZED VIEW read_back AS SELECT symbol, count FROM again;
        """)
        db.settle(180)
        cluster.send(framed, [messages[0], front(999, message_path(file.read_bytes(), "Trade")) + messages[7]])
        db.settle(180)
        assert len(registry.subject(f"{framed}-value")) == 1
    assert db.sql("SELECT symbol, count FROM read_back ORDER BY count, symbol").rows() == sorted(
        [*((f"s{n}", n) for n in range(100)), ("s7", 7)], key=lambda row: (row[1], row[0])
    )
    dead = db.sql("SELECT raw FROM penstock.dead_letters WHERE job = 'read_back'").rows()
    assert dead == [(messages[0],)]
