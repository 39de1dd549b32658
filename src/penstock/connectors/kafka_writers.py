"""What writes the records of a job from our own process, and what its errors mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from penstock.connectors.kafka_access import access_of, topic_names
from penstock.connectors.kafka_records import records
from penstock.connectors.kafka_tuning import producer_tuning
from penstock.errors import OptionError, RuntimeFailure

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.catalog.model import SinkDefinition
    from penstock.connectors.sink import SinkContext

ANSWER_S: Final = 30.0
TOO_LARGE: Final = "MSG_SIZE_TOO_LARGE"
# As many records as a producer may hold before it is asked whether some have arrived.
_POLL_EVERY: Final = 10_000


class PlainWriter:
    """A producer that is told what did not arrive, and nothing of the rest; after an error it is of no use any more."""

    def __init__(self, context: SinkContext) -> None:
        from confluent_kafka import Producer

        more = {"delivery.report.only.error": True}
        self._producer: Any = made(Producer, context, producer_options(context, more, exact=False))

    def write(self, rows: pa.Table, context: SinkContext, width: int = 0) -> None:
        """Write rows and wait until the brokers have them."""
        from confluent_kafka import KafkaException

        failed: list[Any] = []
        largest = Largest()

        def told(error: Any, _: Any) -> None:
            if error is not None and not failed:
                failed.append(error)

        left = 0
        try:
            produce(self._producer, largest.of(records(rows, context, width)), context, on_delivery=told)
            left = self._producer.flush(ANSWER_S)
        except KafkaException as error:
            failed.insert(0, error.args[0])
        if failed and failed[0].name() == TOO_LARGE:
            raise too_large(context, largest.bytes)
        if failed or left:
            raise unavailable(context, str(failed[0].str()) if failed else "it did not take all records in time")

    def close(self) -> None:
        """Let go of the connections, and of what is still on its way after an error."""
        self._producer.purge()
        # Its own `close` would wait for a broker that may be gone; without a reference it ends at once.
        self._producer = None


class Largest:
    """How large the largest record was that passed."""

    def __init__(self) -> None:
        self.bytes = 0

    def of(self, made: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        for record in made:
            size = len(record.get("value") or b"") + len(record.get("key") or b"")
            self.bytes = max(self.bytes, size)
            yield record


def produce(producer: Any, made: Iterable[Mapping[str, Any]], context: SinkContext, **more: Any) -> None:
    """Hand records to a producer, as fast as it takes them."""
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


def producer_options(context: SinkContext, more: Mapping[str, object], *, exact: bool) -> dict[str, Any]:
    """How librdkafka writes, by the options of the sink."""
    given = access_of(context.definition, context.state_path)
    tuned = producer_tuning(given.properties, exact=exact)
    # Java's way to choose a partition by key, so that both ways to write agree.
    return {"partitioner": "murmur2_random", "linger.ms": 5, **tuned, **given.librdkafka(), **more}


def made(make: Callable[[dict[str, Any]], Any], context: SinkContext, options: dict[str, Any]) -> Any:
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


def unavailable(context: SinkContext, reason: str, *, hint: str | None = None) -> RuntimeFailure:
    """An error that may pass."""
    return RuntimeFailure(
        "SINK_UNAVAILABLE",
        f"{_named(context)} cannot be written: {reason}",
        hint=hint or "look at the broker and at bootstrap_servers; a job that runs tries again by itself",
    )


def too_large(context: SinkContext, size: int) -> RuntimeFailure:
    """A record that neither the client nor the broker takes, however often it is tried. The broker measures several
    records together, and does not say which of them it was."""
    return RuntimeFailure(
        "SINK_REFUSED",
        f"{_named(context)} takes no record as large as in this batch: the largest has {size} bytes",
        hint="raise 'kafka.max.request.size' of the sink (1000000 where it is not given) and max.message.bytes of the "
        "topic, then RESUME JOB; where each record is small enough for the topic, lower 'kafka.batch.size' instead",
    )


def _named(context: SinkContext) -> str:
    servers = access_of(context.definition, context.state_path).servers
    return f"topic {topic_of(context.definition)} of sink {context.definition.name} at {servers}"
