"""What writes the records of a job exactly once: one transaction a batch, with the ledger of the batches inside it."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from penstock.connectors.kafka_access import access_of
from penstock.connectors.kafka_cluster import until_coordinated
from penstock.connectors.kafka_records import records
from penstock.connectors.kafka_writers import (
    ANSWER_S,
    TOO_LARGE,
    Largest,
    made,
    produce,
    producer_options,
    too_large,
    topic_of,
    unavailable,
)
from penstock.connectors.option_values import text
from penstock.errors import RuntimeFailure
from penstock.failpoints import hit
from penstock.stores.written_batches import WrittenBatches, read_written

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.connectors.sink import SinkContext

_LOG: Final = logging.getLogger(__name__)
_LONGEST_S: Final = 40.0  # for what should take no longer than that
_LOOK_S: Final = 0.5
_TIMEOUT: Final = "transaction.timeout.ms"
# A broker says the same of a writer that another one has shut out, and of one whose transaction it has taken back.
_SHUT_OUT: Final = frozenset({"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"})
# What a client says of a record that comes after an error, instead of the error.
_AFTER_AN_ERROR: Final = frozenset({"_FATAL", "_STATE"})


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
        options = producer_options(context, {"transactional.id": self._id}, exact=True)
        self._timeout_ms = int(options[_TIMEOUT])
        self._producer: Any = made(Producer, context, options)
        own = {"group.id": f"{self._id}-ledger", "enable.auto.commit": False}
        self._consumer = Consumer({**access.librdkafka(), **own})
        try:
            # Whoever wrote under this id before is shut out from here on, and what they left open is taken back.
            self._producer.init_transactions(ANSWER_S)
        except KafkaException as error:
            self.close()
            told: Any = error.args[0]
            if told.name() == "INVALID_TRANSACTION_TIMEOUT":
                raise RuntimeFailure(
                    "SINK_REFUSED",
                    f"topic {self._topic} of sink {context.definition.name}: the broker lets no transaction last "
                    f"{self._timeout_ms} ms",
                    hint=f"lower 'kafka.{_TIMEOUT}' of the sink, or raise transaction.max.timeout.ms of the brokers",
                ) from error
            raise unavailable(context, str(told.str())) from error

    def write(self, rows: pa.Table, context: SinkContext, batch_id: int, width: int) -> None:
        """One batch in one transaction, unless it is there already."""
        from confluent_kafka import KafkaException, TopicPartition

        begun, largest, known, written = _Moment(), Largest(), None, None
        try:
            known, mark = self._known(), context.input_hash(batch_id)
            if known.has(batch_id, mark, f"topic {self._topic}"):
                return
            if not known.marks and context.in_doubt(batch_id):
                _LOG.warning(
                    "job %s: the brokers have forgotten which batches topic %s has, as they do after "
                    "offsets.retention.minutes; batch %d is written, and may be there twice",
                    context.job,
                    self._topic,
                    batch_id,
                )
            written = known.with_batch(batch_id, mark)
            begun = _Moment()
            self._producer.begin_transaction()
            # What is not delivered breaks the transaction: nobody has to be told of each record.
            produce(self._producer, largest.of(records(rows, context, width)), context)
            told = TopicPartition(self._topic, 0, batch_id + 1, written.text())
            self._send_offsets([told])
            self._wait_for_records([told])
            hit("sink.before_commit")
            _within(_LONGEST_S, self._producer.commit_transaction, ANSWER_S)
            self._ledger = written
        except TimeoutError as error:
            raise unavailable(context, "it did not answer in time") from error
        except KafkaException as error:
            cause = self._cause(error.args[0])
            if cause.name() in _SHUT_OUT:
                raise self._shut_out(context, begun, (known, written)) from error
            if cause.name() == TOO_LARGE:
                self._take_back()  # the job has failed: no next start of it does that soon
                raise too_large(context, largest.bytes) from error
            raise unavailable(context, str(cause.str())) from error

    def _send_offsets(self, offsets: list[Any]) -> None:
        group = self._consumer.consumer_group_metadata()
        _within(_LONGEST_S, self._producer.send_offsets_to_transaction, offsets, group, ANSWER_S)

    def _wait_for_records(self, offsets: list[Any]) -> None:
        """Until the brokers have all records. A commit would wait for them, too; but those behind a record that is not
        taken never arrive, and it would say only that, after its whole time."""
        end = time.monotonic() + ANSWER_S
        while self._producer.flush(_LOOK_S):
            if time.monotonic() > end:
                raise TimeoutError
            self._send_offsets(offsets)  # this tells of such a record, and else it changes nothing

    def _cause(self, told: Any) -> Any:
        """The error behind one: of a record that comes after an error the client says only that it is too late."""
        from confluent_kafka import KafkaException, TopicPartition

        if told.name() not in _AFTER_AN_ERROR:
            return told
        try:
            self._send_offsets([TopicPartition(self._topic, 0, 1)])  # it is not committed, whatever is answered
        except KafkaException as error:
            return error.args[0]
        except TimeoutError:
            pass
        return told

    def _shut_out(
        self, context: SinkContext, begun: _Moment, ours: tuple[WrittenBatches | None, ...]
    ) -> RuntimeFailure:
        """What it means that the broker takes nothing from this writer any more.

        It says the same where another writer has begun and where a transaction lasted too long and was taken back.
        Before that time nobody but another writer can have done it. After it, another writer has, if it has written:
        then the ledger is not what we know. Else the next start takes up the batch again.
        """
        if begun.seconds_ago() * 1_000 >= self._timeout_ms:
            try:
                found = self._read_ledger()
            except Exception as error:  # noqa: BLE001 - the next start asks again
                return unavailable(context, f"its ledger cannot be read: {error}")
            if found in ours:
                return unavailable(
                    context,
                    f"the transaction lasted longer than {self._timeout_ms / 1_000:g} s and was taken back",
                    hint=f"the batch is written again; where that takes as long, raise 'kafka.{_TIMEOUT}' of the sink, "
                    "or bound batches with max_rows_per_batch",
                )
        return RuntimeFailure(
            "SINK_REFUSED",
            f"another writer has taken over {self._id} at topic {self._topic}",
            hint="one process at a time writes for a job; RESUME JOB takes it back",
        )

    def _take_back(self) -> None:
        """Readers of committed records do not wait for what will not come."""
        with contextlib.suppress(Exception):
            self._producer.purge()
            _within(_LONGEST_S, self._producer.abort_transaction, ANSWER_S)

    def _known(self) -> WrittenBatches:
        """What the ledger says."""
        if self._ledger is None:
            self._ledger = self._read_ledger()
        return self._ledger

    def _read_ledger(self) -> WrittenBatches:
        from confluent_kafka import TopicPartition

        asked = [TopicPartition(self._topic, 0)]
        (found,) = until_coordinated(lambda: self._consumer.committed(asked, timeout=ANSWER_S), ANSWER_S)
        return read_written(found.metadata or "" if found.offset > 0 else "")

    def close(self) -> None:
        """Let go of the connections; an open transaction is taken back by the next start, or by its timeout."""
        self._producer.purge()
        # Its own `close` would wait for a broker that may be gone; without a reference it ends at once.
        self._producer = None
        self._consumer.close()


class _Moment:
    """When something was. A machine that sleeps stops one clock, and one that is set changes the other."""

    def __init__(self) -> None:
        self._monotonic, self._wall = time.monotonic(), time.time()

    def seconds_ago(self) -> float:
        return max(time.monotonic() - self._monotonic, time.time() - self._wall)


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
