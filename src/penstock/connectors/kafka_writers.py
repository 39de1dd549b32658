"""What writes the records of a job from our own process: plainly, or one transaction a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from penstock.connectors.kafka import topic_names
from penstock.connectors.kafka_access import access_of
from penstock.connectors.kafka_cluster import until_coordinated
from penstock.connectors.kafka_records import records
from penstock.connectors.kafka_tuning import producer_tuning
from penstock.connectors.option_values import text
from penstock.errors import OptionError, RuntimeFailure
from penstock.stores.written_batches import WrittenBatches, read_written

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.catalog.model import SinkDefinition
    from penstock.connectors.sink import SinkContext

_ANSWER_S: Final = 30.0
_LONGEST_S: Final = 40.0  # for what should take no longer than that
# As many records as a producer may hold before it is asked whether some have arrived.
_POLL_EVERY: Final = 10_000


class PlainWriter:
    """A producer that is told what did not arrive, and nothing of the rest; after an error it is of no use any more."""

    def __init__(self, context: SinkContext) -> None:
        from confluent_kafka import Producer

        more = {"delivery.report.only.error": True}
        self._producer: Any = _made(Producer, context, _producer_options(context, more, exact=False))

    def write(self, rows: pa.Table, context: SinkContext, width: int = 0) -> None:
        """Write rows and wait until the brokers have them."""
        from confluent_kafka import KafkaException

        failed: list[str] = []

        def told(error: Any, _: Any) -> None:
            if error is not None and not failed:
                failed.append(str(error.str()))

        try:
            _produce(self._producer, records(rows, context, width), context, on_delivery=told)
            left = self._producer.flush(_ANSWER_S)
        except KafkaException as error:
            raise _unavailable(context, str(error.args[0].str())) from error
        if failed or left:
            raise _unavailable(context, failed[0] if failed else "it did not take all records in time")

    def close(self) -> None:
        """Let go of the connections, and of what is still on its way after an error."""
        self._producer.purge()
        # Its own `close` would wait for a broker that may be gone; without a reference it ends at once.
        self._producer = None


class Transactions:
    """The transactional producer of a job, and the ledger that it keeps inside its transactions."""

    def __init__(self, context: SinkContext) -> None:
        from confluent_kafka import Consumer, KafkaException, Producer

        access = access_of(context.definition, context.state_path)
        prefix = text(context.definition.options.values, "transactional_id_prefix")
        prefix = prefix or access.properties.get("transaction.id.prefix") or "penstock"
        self._id = f"{prefix}-{context.producer}"
        self._ledger: WrittenBatches | None = None  # it is asked once, because nobody but us writes it from then on
        self._topic = topic_of(context.definition)
        more = {"transactional.id": self._id}
        self._producer: Any = _made(Producer, context, _producer_options(context, more, exact=True))
        own = {"group.id": f"{self._id}-ledger", "enable.auto.commit": False}
        self._consumer = Consumer({**access.librdkafka(), **own})
        try:
            # Whoever wrote under this id before is shut out from here on, and what they left open is taken back.
            self._producer.init_transactions(_ANSWER_S)
        except KafkaException as error:
            self.close()
            raise _unavailable(context, str(error.args[0].str())) from error

    def write(self, rows: pa.Table, context: SinkContext, batch_id: int, width: int) -> None:
        """One batch in one transaction, unless it is there already."""
        from confluent_kafka import KafkaException, TopicPartition

        try:
            ledger, mark = self._known(), context.input_hash(batch_id)
            if ledger.has(batch_id, mark, f"topic {self._topic}"):
                return
            written = ledger.with_batch(batch_id, mark)
            self._producer.begin_transaction()
            # What is not delivered breaks the transaction: nobody has to be told of each record.
            _produce(self._producer, records(rows, context, width), context)
            told = TopicPartition(self._topic, 0, batch_id + 1, written.text())
            group = self._consumer.consumer_group_metadata()
            _within(_LONGEST_S, self._producer.send_offsets_to_transaction, [told], group, _ANSWER_S)
            _within(_LONGEST_S, self._producer.commit_transaction, _ANSWER_S)
            self._ledger = written
        except TimeoutError as error:
            raise _unavailable(context, "it did not answer in time") from error
        except KafkaException as error:
            told_error: Any = error.args[0]
            if told_error.fatal() or told_error.name() in ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"):
                raise RuntimeFailure(
                    "SINK_REFUSED",
                    f"another writer has taken over {self._id} at topic {self._topic}",
                    hint="one process at a time writes for a job; RESUME JOB takes it back",
                ) from error
            raise _unavailable(context, str(told_error.str())) from error

    def _known(self) -> WrittenBatches:
        """What the ledger says."""
        from confluent_kafka import TopicPartition

        if self._ledger is None:
            asked = [TopicPartition(self._topic, 0)]
            (found,) = until_coordinated(lambda: self._consumer.committed(asked, timeout=_ANSWER_S), _ANSWER_S)
            self._ledger = read_written(found.metadata or "" if found.offset > 0 else "")
        return self._ledger

    def close(self) -> None:
        """Let go of the connections; an open transaction is taken back by the next start, or by its timeout."""
        self._producer.purge()
        # Its own `close` would wait for a broker that may be gone; without a reference it ends at once.
        self._producer = None
        self._consumer.close()


def _within(seconds: float, ask: Callable[..., object], *arguments: object) -> None:
    """Ask the client something that may never come back: it does not keep the time limit that it is given where the
    coordinator of a group has gone (librdkafka's issue 5456). TimeoutError then, and the client is of no use any more:
    the next one with the same id shuts it out. Its threads, some six, stay until the process ends: nobody can end them.
    """
    failed: list[BaseException] = []

    def asking() -> None:
        try:
            ask(*arguments)
        except BaseException as error:  # noqa: BLE001 - raised where it was asked
            failed.append(error)

    asked = Thread(target=asking, name="penstock-kafka-transaction", daemon=True)
    asked.start()
    asked.join(seconds)
    if asked.is_alive():
        raise TimeoutError
    if failed:
        raise failed[0]


def _produce(producer: Any, made: Iterable[Mapping[str, Any]], context: SinkContext, **more: Any) -> None:
    topic = topic_of(context.definition)
    for number, record in enumerate(made):
        while True:
            try:
                producer.produce(topic, **record, **more)
                break
            except BufferError:
                producer.poll(0.1)
        if number % _POLL_EVERY == 0:
            producer.poll(0)


def _producer_options(context: SinkContext, more: Mapping[str, object], *, exact: bool) -> dict[str, Any]:
    given = access_of(context.definition, context.state_path)
    tuned = producer_tuning(given.properties, exact=exact)
    # Java's way to choose a partition by key, so that both ways to write agree.
    return {"partitioner": "murmur2_random", "linger.ms": 5, **tuned, **given.librdkafka(), **more}


def _made(make: Callable[[dict[str, Any]], Any], context: SinkContext, options: dict[str, Any]) -> Any:
    """A client; one that cannot be made because of its options is the fault of the relation."""
    from confluent_kafka import KafkaException

    try:
        return make(options)
    except KafkaException as error:
        raise OptionError(
            "INVALID_OPTION",
            f"sink {context.definition.name} has a property of Kafka that cannot be: {error.args[0].str()}",
            hint="mend the option that the message names",
        ) from error


def topic_of(definition: SinkDefinition) -> str:
    """The topic that a sink writes to."""
    return topic_names(definition)[0]


def _unavailable(context: SinkContext, reason: str) -> RuntimeFailure:
    return RuntimeFailure(
        "SINK_UNAVAILABLE",
        f"topic {topic_of(context.definition)} of sink {context.definition.name} at "
        f"{access_of(context.definition, context.state_path).servers} cannot be written: {reason}",
        hint="the job tries again by itself; look at the broker and at bootstrap_servers",
    )
