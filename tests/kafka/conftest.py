"""A real broker for the tests of Kafka, and databases; one broker and one Spark session for all of them."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.runtime.kafka_broker import KafkaBroker
from penstock.spark.jar_cache import JarCache
from tests.databases import Opened, databases

_LOG = logging.getLogger(__name__)
_count = itertools.count()


class Cluster:
    """The broker as tests use it: topics, records in, records out."""

    def __init__(self, address: str) -> None:
        self.address = address

    def client(self, **more: object) -> dict[str, Any]:
        return {"bootstrap.servers": self.address, "log_level": 0, **more}

    def create(self, topic: str, partitions: int = 1, **config: str) -> str:
        from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

        admin = AdminClient(self.client())
        asked = admin.create_topics([NewTopic(topic, partitions, 1, config=config)], operation_timeout=60)
        asked[topic].result(60)
        self._wait_for_partitions(topic, partitions)
        return topic

    def grow(self, topic: str, partitions: int) -> None:
        """Give a topic more partitions."""
        from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]

        admin = AdminClient(self.client())
        asked = admin.create_partitions([NewPartitions(topic, partitions)], operation_timeout=60)
        asked[topic].result(60)
        self._wait_for_partitions(topic, partitions)

    def _wait_for_partitions(self, topic: str, partitions: int, seconds: float = 60.0) -> None:
        """Until whoever asks is told of all of them: the broker knows a moment later than it answers who made them."""
        from confluent_kafka.admin import AdminClient

        admin, end = AdminClient(self.client()), time.monotonic() + seconds
        while True:
            told = admin.list_topics(timeout=30).topics.get(topic)
            led = [] if told is None else [one for one in told.partitions.values() if one.leader >= 0]
            if len(led) == partitions:
                return
            assert time.monotonic() < end, f"topic {topic} has {len(led)} partitions of {partitions}"
            time.sleep(0.05)

    def topic(self, partitions: int = 1, **config: str) -> str:
        """A new topic of a name that no other test has."""
        return self.create(f"topic-{next(_count)}", partitions, **config)

    def send(
        self,
        topic: str,
        values: Sequence[bytes | str | None],
        *,
        partition: int = 0,
        key: bytes | str | None = None,
        headers: Mapping[str, bytes] | Sequence[tuple[str, bytes | None]] | None = None,
        timestamp_ms: int = 0,
    ) -> None:
        """Write records and wait until the broker has them."""
        from confluent_kafka import Producer

        failed: list[object] = []
        producer = Producer(self.client(**{"linger.ms": 0}))
        for value in values:
            producer.produce(
                topic,
                value,
                key=key,
                partition=partition,
                headers=list(headers.items() if isinstance(headers, Mapping) else headers or ()),
                timestamp=timestamp_ms,
                on_delivery=lambda error, _: None if error is None else failed.append(error),
            )
            producer.poll(0)
        assert producer.flush(60) == 0
        assert not failed, f"topic {topic} has not taken {len(failed)} records: {failed[0]}"

    def records(self, topic: str, *, committed: bool = True) -> list[Any]:
        """Every record of a topic as of now; `committed`: once no transaction is open any more."""
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        if committed:
            self.wait_until_nothing_is_open(topic)
        level = "read_committed" if committed else "read_uncommitted"
        consumer = Consumer(
            self.client(**{"group.id": f"test-{next(_count)}", "isolation.level": level, "enable.partition.eof": True})
        )
        try:
            partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
            consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
            waiting, found = set(partitions), []
            while waiting:
                message = consumer.poll(30)
                assert message is not None, f"topic {topic} does not end"
                if message.error() is not None:
                    waiting.discard(message.partition())
                else:
                    found.append(message)
            return sorted(found, key=lambda one: (one.partition(), one.offset()))
        finally:
            consumer.close()

    def ends(self, topic: str, *, committed: bool) -> dict[int, int]:
        """Where each partition ends; `committed`: where the first transaction begins that is open still."""
        from confluent_kafka import IsolationLevel, TopicPartition
        from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

        admin = AdminClient(self.client())
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        asked = {
            TopicPartition(topic, number): OffsetSpec.latest()  # type: ignore[no-untyped-call]
            for number in admin.list_topics(topic, timeout=30).topics[topic].partitions
        }
        found = admin.list_offsets(asked, isolation_level=level, request_timeout=30)
        return {place.partition: told.result(30).offset for place, told in found.items()}

    def wait_until_nothing_is_open(self, topic: str, seconds: float = 60.0) -> None:
        """The last stable offset is the end: every transaction was committed or taken back. The marks of one that was
        come a moment after its answer."""
        end = time.monotonic() + seconds
        while (stable := self.ends(topic, committed=True)) != (last := self.ends(topic, committed=False)):
            assert time.monotonic() < end, f"topic {topic} is stable up to {stable} and ends at {last}"
            time.sleep(0.05)

    def values(self, topic: str) -> list[str]:
        return [record.value().decode() for record in self.records(topic)]


@pytest.fixture(scope="session")
def jars() -> None:
    """The jars, before any Spark session starts."""
    JarCache().install(["kafka", "avro"], _LOG.info)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    found = KafkaBroker(tmp_path_factory.mktemp("broker"))
    found.start(0, _LOG.info)
    yield found
    found.stop(delete=True)


@pytest.fixture(scope="session")
def cluster(broker: KafkaBroker, jars: None) -> Cluster:
    address = broker.state().address
    assert address is not None
    return Cluster(address)


@pytest.fixture
def opened(tmp_path: Path, cluster: Cluster) -> Iterator[Opened]:
    with databases(tmp_path, **{"kafka.bootstrap_servers": cluster.address}) as opens:
        yield opens


@pytest.fixture
def db(opened: Opened) -> penstock.Database:
    return opened()
