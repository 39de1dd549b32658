"""What we ask a Kafka cluster ourselves: its topics, where partitions begin and end, what a group has read."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import OptionError, RuntimeFailure

if TYPE_CHECKING:
    from penstock.connectors.kafka_access import KafkaAccess

Partition = tuple[str, int]  # a topic, and the number of one of its partitions
# How long a broker may take to answer before it counts as not there.
ANSWER_S: Final = 10.0
_LEADER_S: Final = 0.2  # until the leader of a partition is asked for again
_SEEN_S: Final = 0.02


class KafkaCluster:
    """The cluster behind an access. Connections are made when they are needed, and kept.

    `condition` is what it is called when nobody answers, by what it is asked for.
    """

    def __init__(self, access: KafkaAccess, condition: str = "SOURCE_UNAVAILABLE") -> None:
        self._access = access
        self._condition = condition
        self._lock = Lock()
        self._client: Any = None
        self._last_error: str | None = None

    @property
    def servers(self) -> str:
        return self._access.servers

    def partitions(self, topics: Collection[str], pattern: str | None = None) -> list[Partition]:
        """The partitions of topics, or of those that a pattern matches as a whole; a topic that is not there has none.

        Never creates a topic by asking for it.
        """
        found = self._ask(lambda client: client.list_topics(timeout=ANSWER_S)).topics
        if pattern is not None:
            expression = topic_expression(pattern)
            topics = [name for name in found if expression.fullmatch(name) and not name.startswith("__")]
        return sorted((name, number) for name in topics if name in found for number in found[name].partitions)

    def ends(self, partitions: Iterable[Partition], *, committed: bool) -> dict[Partition, int]:
        """The next offset of each partition; `committed`: behind what open transactions hold back."""
        return self._offsets(partitions, "latest", committed=committed)

    def wait_until_seen(self, topic: str, seconds: float) -> None:
        """Return when readers of committed records see what a topic has by now, or after so long.

        A transaction is committed before the brokers have written that down in each of its partitions.
        """
        until, partitions = time.monotonic() + seconds, self.partitions([topic])
        wanted = self.ends(partitions, committed=False)
        while time.monotonic() < until:
            seen = self.ends(partitions, committed=True)
            if all(seen[one] >= end for one, end in wanted.items()):
                return
            time.sleep(_SEEN_S)

    def begins(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The oldest offset of each partition."""
        return self._offsets(partitions, "earliest", committed=False)

    def at_time(self, partitions: Iterable[Partition], timestamp_ms: int) -> dict[Partition, int]:
        """The first offset of each partition that is not older than a moment; its end where there is none."""
        asked = list(partitions)
        # No record is older than 1970, and brokers take smaller numbers for something else.
        found = self._offsets(asked, max(0, timestamp_ms), committed=False)
        ends = self.ends(asked, committed=False)
        return {one: offset if offset >= 0 else ends[one] for one, offset in found.items()}

    def group_offsets(self, group: str, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """What a consumer group has committed; partitions that it has not are left out.

        A consumer is asked, not the client for administrators: that one takes the process with it where the group has
        no coordinator yet, as on a broker that is new.
        """
        from confluent_kafka import Consumer, KafkaException, TopicPartition

        own = {"group.id": group, "enable.auto.commit": False, "error_cb": self._note_error}
        consumer = Consumer({**self._access.librdkafka(), **own})
        asked = [TopicPartition(*one) for one in partitions]
        try:
            answer = until_coordinated(lambda: consumer.committed(asked, timeout=ANSWER_S), ANSWER_S)
        except KafkaException as error:
            raise self._unavailable(error) from error
        finally:
            consumer.close()
        return {(one.topic, one.partition): one.offset for one in answer if one.offset >= 0}

    def commit_group(self, group: str, offsets: Mapping[Partition, int]) -> None:
        """Tell a consumer group where we are, for tools that look there; nobody waits for the answer."""
        from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

        told = [TopicPartition(topic, number, offset) for (topic, number), offset in offsets.items()]
        if told:
            asked = ConsumerGroupTopicPartitions(group, told)
            self._ask(lambda client: client.alter_consumer_group_offsets([asked], request_timeout=ANSWER_S))

    def topic_ids(self, topics: Collection[str]) -> dict[str, str]:
        """What tells a topic from another one that has its name later."""
        from confluent_kafka import TopicCollection

        if not topics:
            return {}
        asked = TopicCollection(list(topics))
        futures = self._ask(lambda client: client.describe_topics(asked, request_timeout=ANSWER_S))
        return {name: str(self._result(future).topic_id) for name, future in futures.items()}

    def create_topic(self, topic: str, partitions: int, replication: int | None) -> None:
        """Make a topic; one that is there already stays as it is."""
        from confluent_kafka import KafkaError, KafkaException
        from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

        new = NewTopic(topic, partitions, -1 if replication is None else replication)
        futures = self._ask(lambda client: client.create_topics([new], operation_timeout=ANSWER_S))
        try:
            futures[topic].result(ANSWER_S * 2)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return
            if error.args[0].retriable() or error.args[0].code() < 0:  # errors of the client's own
                raise self._unavailable(error) from error
            raise OptionError(
                "INVALID_OPTION",
                f"topic {topic} cannot be made at {self.servers}: {_reason(error)}",
                hint="look at partitions and replication_factor, or create the topic first",
            ) from error
        except FutureTimeout as error:
            raise self._unavailable(error) from error

    def _offsets(self, partitions: Iterable[Partition], where: str | int, *, committed: bool) -> dict[Partition, int]:
        from confluent_kafka import IsolationLevel, TopicPartition
        from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

        if isinstance(where, int):
            spec = OffsetSpec.for_timestamp(where)
        else:
            known: Any = OffsetSpec  # its own methods have no types
            spec = known.latest() if where == "latest" else known.earliest()
        asked = {TopicPartition(*one): spec for one in partitions}
        if not asked:
            return {}
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        found: dict[Partition, int] = {}
        end = time.monotonic() + ANSWER_S
        while asked:
            futures = self._ask(partial(_list_offsets, asked, level))
            for one, future in futures.items():
                if self._has_no_leader(future) and time.monotonic() < end:
                    continue
                found[one.topic, one.partition] = int(self._result(future).offset)
            asked = {one: spec for one in asked if (one.topic, one.partition) not in found}
            if asked:
                time.sleep(_LEADER_S)
        return found

    def _has_no_leader(self, future: Any) -> bool:
        """Whether nobody is in charge of a partition, or somebody else by now: of a topic that was just made, or while
        brokers come and go. That passes."""
        from concurrent.futures import wait

        from confluent_kafka import KafkaError, KafkaException

        wait([future], ANSWER_S * 2)
        error = future.exception() if future.done() else None
        return isinstance(error, KafkaException) and error.args[0].code() in (
            KafkaError.NOT_LEADER_FOR_PARTITION,
            KafkaError.LEADER_NOT_AVAILABLE,
        )

    def _result(self, future: Any) -> Any:
        from confluent_kafka import KafkaException

        try:
            return future.result(ANSWER_S * 2)
        except (KafkaException, FutureTimeout) as error:
            raise self._unavailable(error) from error

    def _ask(self, question: Callable[[Any], Any]) -> Any:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        with self._lock:
            if self._client is None:
                config: dict[str, Any] = {**self._access.librdkafka(), "error_cb": self._note_error}
                try:
                    self._client = AdminClient(config)
                except KafkaException as error:
                    # The reason names a property, never its value.
                    raise OptionError(
                        "INVALID_OPTION", f"the client of Kafka refuses its options: {_reason(error)}"
                    ) from None
            client = self._client
        try:
            return question(client)
        except KafkaException as error:
            raise self._unavailable(error) from error

    def _note_error(self, error: Any) -> None:
        self._last_error = str(error.str())

    def _unavailable(self, error: Exception) -> RuntimeFailure:
        reason = _reason(error)
        if self._last_error is not None and self._last_error not in reason:
            reason = f"{reason}; {self._last_error}"
        return RuntimeFailure(
            self._condition,
            f"no broker of Kafka answers at {self.servers}: {reason}",
            hint="look at bootstrap_servers, kafka.security.protocol and whether the broker runs; "
            "`penstock kafka up` starts one here",
        )


def topic_expression(pattern: str) -> re.Pattern[str]:
    """The names of topics that a pattern stands for."""
    try:
        return re.compile(pattern)
    except re.error as error:
        raise OptionError(
            "INVALID_OPTION", f"topic_pattern is no regular expression: {error}", hint="such as 'trades-.*'"
        ) from None


def until_coordinated(ask: Callable[[], Any], seconds: float) -> Any:
    """The answer of a consumer group, which may have nobody in charge of it yet: its first question finds that out."""
    from confluent_kafka import KafkaException

    end = time.monotonic() + seconds
    while True:
        try:
            return ask()
        except KafkaException as error:
            passes = error.args[0].retriable() or "coordinator" in str(error).lower()
            if not passes or time.monotonic() > end:
                raise
            time.sleep(_LEADER_S)


def _list_offsets(asked: Mapping[Any, Any], level: Any, client: Any) -> Any:
    return client.list_offsets(asked, isolation_level=level, request_timeout=ANSWER_S)


def _reason(error: Exception) -> str:
    told: Any = error.args[0] if error.args else None
    text = told.str() if hasattr(told, "str") else str(error)
    return text.strip() or type(error).__name__
