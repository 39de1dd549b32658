"""From produce to consume: how long a row takes through a job from topic to topic, in real-time mode and in batches.

    python -m benchmarks.realtime [--rate 200] [--seconds 600] [--mode realtime microbatch]

Starts a broker of its own. One partition; a producer sends rows at a fixed rate with the moment in them, the job
filters and copies them, and a consumer looks at its clock when one arrives: all on this machine, so one clock. The rows
of the first seconds are not counted. It lasts for two batches of real-time mode, so that rows that wait for the end of
one have their share. Prints milliseconds: median, 99 of 100, longest.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import penstock
from penstock.runtime.kafka_broker import KafkaBroker

WARM_UP_SECONDS = 10


def produce(address: str, topic: str, rate: int, seconds: int) -> None:
    """Rows at a fixed rate: each is sent at its own moment, however long the one before took."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": address, "linger.ms": 0})
    begin = time.time()
    for number in range(rate * seconds):
        time.sleep(max(0.0, begin + number / rate - time.time()))
        producer.produce(topic, json.dumps({"n": number, "at": time.time_ns() // 1000}))
        producer.poll(0)
    producer.flush()


def consume(address: str, topic: str, count: int, found: list[tuple[int, float]]) -> None:
    """The age of each row in milliseconds."""
    from confluent_kafka import Consumer, TopicPartition

    settings: dict[str, Any] = {"bootstrap.servers": address, "group.id": "clock", "fetch.wait.max.ms": 500}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, 0, 0)])
    end = time.monotonic() + 1_200
    while len(found) < count and time.monotonic() < end:
        message = consumer.poll(1.0)
        if message is None or message.error() is not None:
            continue
        now = time.time_ns() // 1000
        row = json.loads(message.value() or b"{}")
        found.append((row["n"], (now - row["at"]) / 1000))
    consumer.close()


def measure(address: str, mode: str, rate: int, seconds: int, state: Path) -> list[float]:
    """The ages of rows through one job."""
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    source, target = f"{mode}-in", f"{mode}-out"
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.create_topics([NewTopic(source, 1), NewTopic(target, 1)]).values():
        future.result()
    total = (WARM_UP_SECONDS + seconds) * rate
    found: list[tuple[int, float]] = []
    with penstock.connect(state, **{"kafka.bootstrap_servers": address}) as db:
        db.execute(f"""
            CREATE STREAM numbers (n BIGINT, at BIGINT) WITH (connector = 'kafka', topic = '{source}');
            CREATE SINK copied (n BIGINT, at BIGINT) WITH (connector = 'kafka', topic = '{target}');
            INSERT INTO copied WITH (mode = '{mode}') SELECT n, at FROM numbers WHERE n >= 0;
        """)
        reader = threading.Thread(target=consume, args=(address, target, total, found))
        reader.start()
        produce(address, source, rate, WARM_UP_SECONDS + seconds)
        reader.join()
    if len({n for n, _ in found}) != total:
        raise SystemExit(f"{mode}: {total} rows were sent, {len(found)} came")
    return sorted(age for number, age in found if number >= WARM_UP_SECONDS * rate)


def main() -> None:
    """Measure each mode in turn."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--mode", nargs="*", default=["realtime", "microbatch"])
    asked = parser.parse_args()
    print(f"{asked.rate} rows/s for {asked.seconds} s, one partition; ms from produce to consume")
    with tempfile.TemporaryDirectory() as place:
        broker = KafkaBroker(Path(place) / "broker")
        address = str(broker.start(0).address)
        try:
            for mode in asked.mode:
                ages = measure(address, mode, asked.rate, asked.seconds, Path(place) / mode)
                p50, p99 = (ages[int(len(ages) * share)] for share in (0.5, 0.99))
                print(f"{mode:10}  p50 {p50:7.1f}  p99 {p99:7.1f}  longest {ages[-1]:7.1f}")
        finally:
            broker.stop(delete=True)


if __name__ == "__main__":
    main()
