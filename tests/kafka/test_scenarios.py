"""Scenarios of the texts, against a real broker: the guide's walkthrough, quotes with their best, what a group is told."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock import StreamingSQLExecutor
from penstock import cyarrow as ca
from penstock.errors import JobFailed
from penstock.runtime.kafka_broker import KafkaBroker
from tests.kafka.conftest import Cluster
from tests.project import ROOT

pytestmark = pytest.mark.kafka

GUIDE = ROOT / "tests" / "fixtures" / "seeds" / "003_streaming_guide.sql"


def until(holds: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def guide() -> tuple[str, str]:
    """The table and the query of the guide, as written there."""
    section = GUIDE.read_text("utf-8").split("\n---\n")[1]
    table, _, query = re.sub(r"^-- .*\n", "", section, flags=re.MULTILINE).split(";", 2)
    return table.strip(), query.strip()


def trade(symbol: str, price: float, volume: int, at: str) -> str:
    return json.dumps({"symbol": symbol, "price": price, "volume": volume, "ts": f"2026-01-01T10:{at}Z"})


def test_the_walkthrough_of_the_guide(cluster: Cluster, tmp_path: Path) -> None:
    """V8, SC1, M13, I9, I12, L7: trades in, windows out, and nothing of the text is changed but the brokers' address."""
    table, query = guide()
    topic = cluster.create("market-trades", 16)
    executor = StreamingSQLExecutor(
        state_backend="tonbo",
        timer_backend="rocksdb",
        state_path=tmp_path / "state",
        checkpoint_interval_seconds=60,
        max_parallelism=16,
    )
    with executor:
        executor.execute_ddl(f"SET kafka.bootstrap_servers = '{cluster.address}'")
        executor.execute_ddl(table)
        securities = ca.Table.from_pydict(
            {
                "instrumentId": ["AAPL", "MSFT", "GOOGL"],
                "NAME": ["Apple Inc", "Microsoft", "Alphabet"],
                "SECTOR": ["Technology", "Technology", "Technology"],
            }
        )
        executor.register_dimension_table("securities", securities, broadcast=True)

        async def windows() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = []
            async for batch in executor.execute_streaming_sql(query):
                found += batch.to_pylist()
                if len(found) >= 3:
                    break
            return found

        async def fed() -> list[dict[str, Any]]:
            # It begins at the latest offset, so trades are sent when its start is pinned.
            reading = asyncio.create_task(windows())
            engine = executor.database._engine

            def started() -> bool:
                return reading.done() or any(job.last is not None for job in engine.all_jobs())

            await asyncio.to_thread(until, started)
            cluster.send(topic, [trade("AAPL", 150, 10, "00:01"), trade("AAPL", 152, 20, "00:59")], partition=3)
            cluster.send(topic, [trade("MSFT", 300, 5, "00:30"), trade("PENNY", 1, 1, "00:30")], partition=7)
            cluster.send(topic, [trade("UNKN", 500, 1, "00:10")], partition=15)
            for partition in range(16):
                cluster.send(topic, [trade("AAPL", 1, 1, "01:06")], partition=partition)
            return await asyncio.wait_for(reading, 300)

        found = sorted(asyncio.run(fed()), key=lambda row: str(row["symbol"]))
        shown = [(*[row[name] for name in list(row)[:3]], f"{row['window_start']:%H:%M}") for row in found]
        assert shown == [
            ("AAPL", "Apple Inc", "Technology", "10:00"),
            ("MSFT", "Microsoft", "Technology", "10:00"),
            ("UNKN", None, None, "10:00"),
        ]
        assert list(found[0]) == [
            "symbol", "security_name", "sector", "window_start", "avg_price", "total_volume", "trade_count"
        ]  # fmt: skip
        assert [(row["avg_price"], row["total_volume"], row["trade_count"]) for row in found] == [
            (151.0, 30, 2), (300.0, 5, 1), (500.0, 1, 1)
        ]  # fmt: skip
        physical = executor.database.execute(f"EXPLAIN PHYSICAL {query}")
        assert physical is not None
        text = "\n".join(str(row[0]) for row in physical.rows())
        assert "BroadcastHashJoin" in text
        # 16 partitions and a limit of 8: two each.
        executor.execute_ddl(
            "CREATE TABLE shared (symbol STRING) WITH ('connector' = 'kafka', 'topic' = 'market-trades', "
            "'max-parallelism' = '8')"
        )
        physical = executor.database.execute("EXPLAIN PHYSICAL SELECT symbol FROM shared")
        assert physical is not None
        assert "Coalesce 8" in "\n".join(str(row[0]) for row in physical.rows())


def test_the_best_quotes_of_each_window(cluster: Cluster, db: penstock.Database) -> None:
    """SC24: without deletes and prices of 0, enriched by id modulo 3, the two best a side, best bid and offer."""
    topic, out = cluster.topic(), cluster.topic()
    rows = [
        (n, "bid" if n % 2 else "offer", float(n * 7 % 23) - 2, "DELETE" if n % 5 == 0 else "UPDATE", n // 3)
        for n in range(60)
    ]
    names = ("id", "side", "price", "action")
    sent = [
        json.dumps({**dict(zip(names, row[:4], strict=True)), "ts": f"2026-01-01T10:00:{row[4]:02}Z"}) for row in rows
    ]
    cluster.send(topic, [*sent, json.dumps({"id": 0, "price": 1.0, "action": "END", "ts": "2026-01-01T10:01:00Z"})])
    db.register_dimension("securities", ca.Table.from_pydict({"sid": [0, 1, 2], "name": ["A", "B", "C"]}))
    ranked = """
        SELECT window_start, name, side, price, place FROM (
          SELECT window_start, window_end, s.name, q.side, q.price, ROW_NUMBER() OVER (
            PARTITION BY window_start, window_end, s.name, q.side ORDER BY q.price DESC) AS place
          FROM TUMBLE(TABLE quotes, DESCRIPTOR(ts), INTERVAL '10' SECOND) AS q
          JOIN securities AS s ON MOD(q.id, 3) = s.sid
          WHERE action <> 'DELETE' AND price > 0
        ) AS r WHERE place <= 2
    """
    db.execute(f"""
        CREATE STREAM quotes (id BIGINT, side STRING, price DOUBLE, action STRING, ts TIMESTAMP, WATERMARK FOR ts)
          WITH (connector = 'kafka', topic = '{topic}', start = 'earliest');
        CREATE MATERIALIZED VIEW best AS
          SELECT window_start, name, MAX(CASE WHEN side = 'bid' THEN price END) AS bid,
                 MIN(CASE WHEN side = 'offer' THEN price END) AS offer
          FROM TUMBLE(TABLE quotes, DESCRIPTOR(ts), INTERVAL '10' SECOND) AS q
          JOIN securities AS s ON MOD(q.id, 3) = s.sid
          WHERE action <> 'DELETE' AND price > 0 GROUP BY window_start, name;
        CREATE SINK top (window_start TIMESTAMP, name STRING, side STRING, price DOUBLE, place INT)
          WITH (connector = 'kafka', topic = '{out}', delivery = 'exactly_once');
        INSERT INTO top {ranked};
    """)
    db.settle(180)
    kept = [row for row in rows if row[3] != "DELETE" and row[2] > 0]
    best: set[tuple[Any, ...]] = set()
    top: set[tuple[Any, ...]] = set()
    for window in range(2):
        for key, name in enumerate("ABC"):
            here = [row for row in kept if row[4] // 10 == window and row[0] % 3 == key]
            sides = {
                side: sorted((row[2] for row in here if row[1] == side), reverse=True) for side in ("bid", "offer")
            }
            best.add((window * 10, name, sides["bid"][0], sides["offer"][-1]))
            top |= {
                (window * 10, name, side, price, place)
                for side, prices in sides.items()
                for place, price in enumerate(prices[:2], start=1)
            }
    found = db.sql("SELECT EXTRACT(second FROM window_start), name, bid, offer FROM best").rows()
    assert {(int(row[0]), *row[1:]) for row in found} == best
    written = [json.loads(value) for value in cluster.values(out)]
    assert len(written) == len(top)
    assert {
        (int(row["window_start"][17:19]), row["name"], row["side"], row["price"], row["place"]) for row in written
    } == top


def test_a_group_is_told_and_not_believed(cluster: Cluster, opened: Callable[..., penstock.Database]) -> None:
    """I20, J1: our own offsets are the truth; a consumer group has them, too, where the relation asks for it."""
    from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
    from confluent_kafka.admin import AdminClient

    topic = cluster.topic(2)
    group = f"lag-tools-{topic}"

    def committed() -> dict[int, int]:
        consumer = Consumer(cluster.client(**{"group.id": group}))
        try:
            found = consumer.committed([TopicPartition(topic, number) for number in range(2)], timeout=30)
            return {one.partition: one.offset for one in found}
        finally:
            consumer.close()

    for partition in range(2):
        cluster.send(topic, [json.dumps({"n": n}) for n in range(5 + partition)], partition=partition)
    db = opened()
    db.execute(f"""
        CREATE STREAM told (n INT) WITH (
          connector = 'kafka', topic = '{topic}', start = 'earliest', group_id = '{group}', commit_offsets = 'true');
        CREATE STREAM quiet (n INT) WITH (
          connector = 'kafka', topic = '{topic}', start = 'earliest', group_id = '{group}-quiet');
        CREATE MATERIALIZED VIEW seen AS SELECT n FROM told;
        CREATE MATERIALIZED VIEW unseen AS SELECT n FROM quiet;
    """)
    db.settle(120)
    until(lambda: committed() == {0: 5, 1: 6})
    admin = AdminClient(cluster.client())
    groups = admin.list_consumer_groups(request_timeout=30).result()
    assert f"{group}-quiet" not in {one.group_id for one in groups.valid}
    # Somebody sets the group back: nothing is read again.
    back = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, number, 0) for number in range(2)])
    db.close()
    admin.alter_consumer_group_offsets([back])[group].result(60)
    cluster.send(topic, [json.dumps({"n": 100})], partition=0)
    db = opened()
    db.settle(120)
    assert db.sql("SELECT COUNT(*), MAX(n) FROM seen").rows() == [(12, 100)]
    until(lambda: committed() == {0: 6, 1: 6})


@pytest.mark.soak
def test_a_broker_that_stays_away(opened: Callable[..., penstock.Database], cluster: Cluster, tmp_path: Path) -> None:
    """SC11, SC31: three tries more, a second apart, then the error with the address; mended, the job goes on."""
    broker = KafkaBroker(tmp_path / "broker")
    try:
        state = broker.start(0)
        own = Cluster(str(state.address))
        topic = own.topic()
        own.send(topic, [json.dumps({"n": n}) for n in range(3)])
        db = opened(**{"restart_attempts": 3, "restart_delay": "1 s", "kafka.bootstrap_servers": own.address})
        db.execute(f"""
            CREATE STREAM s (n INT) WITH (connector = 'kafka', topic = '{topic}', start = 'earliest');
            CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n, SUM(n) AS total FROM s;
        """)
        db.settle(120)
        broker.stop()
        # An idle job asks its broker all the time: it notices by itself.
        until(lambda: db.sql("SELECT state FROM penstock.jobs").rows() == [("failed",)], 400)
        with pytest.raises(JobFailed, match="SOURCE_UNAVAILABLE") as raised:
            db.settle()
        assert own.address in raised.value.message
        told = db.sql("SELECT to_state FROM penstock.job_history WHERE job = 'v'").rows()
        # The first start, and three more of which none came as far as running.
        states = Counter(name for (name,) in told)
        assert (states["starting"], states["running"], told[-1]) == (4, 1, ("failed",))
        assert state.port is not None
        broker.start(state.port)
        own.send(topic, [json.dumps({"n": 10})])
        db.execute("RESUME JOB v")
        db.settle(120)
        assert db.sql("SELECT n, total FROM v").rows() == [(4, 13)]
        db.close()
    finally:
        broker.stop(delete=True)
