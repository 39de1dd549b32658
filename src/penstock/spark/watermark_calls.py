"""The calls into Spark's JVM with which we own its watermark, all of them, in one place.

Spark moves its watermark by the largest time seen over all partitions. Ours is the minimum over partitions and sources,
so Spark's own is switched off (a delay longer than time itself) and set from outside: inside a batch's callback, or
between batches under the lock that Spark takes while it plans. None of this is public API: `check_calls` looks at every
session start whether the installed Spark still has it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import RuntimeFailure
from penstock.frozen import frozen

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

# Spark itself never moves time when its delay is as long as any time that can come in: 2^63 - 1 microseconds.
_NEVER: Final = "106751991 days 4 hours 54.775807 seconds"
EVENT_TIME_METADATA: Final = "spark.watermarkDelayMs"
_EVERY_BATCH: Final = 1 << 60
_SEPARATOR: Final = "\x1f"
_WHOLE: Final = frozenset({"byte", "short", "integer", "long"})
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_RUNTIME: Final = "org.apache.spark.sql.execution.streaming.runtime"
_PROGRESS: Final = f"{_RUNTIME}.ProgressContext"
_STATE_METRICS: Final = "extractStateOperatorMetrics"
# Class, method, and the JVM's types of its arguments.
_CALLS: Final = (
    (f"{_RUNTIME}.StreamingQueryWrapper", "streamingQuery", ()),
    (f"{_RUNTIME}.MicroBatchExecution", "lastExecution", ()),
    (f"{_RUNTIME}.MicroBatchExecution", "watermarkTracker", ()),
    (f"{_RUNTIME}.MicroBatchExecution", "awaitProgressLock", ()),
    (f"{_RUNTIME}.MicroBatchExecution", "getLatestExecutionContext", ()),
    (f"{_RUNTIME}.StreamExecutionContext", "batchId", ()),
    (f"{_RUNTIME}.IncrementalExecution", "observedMetrics", ()),
    (f"{_RUNTIME}.IncrementalExecution", "watermarkPropagator", ()),
    (f"{_RUNTIME}.WatermarkTracker", "setWatermark", ("long",)),
    (f"{_RUNTIME}.WatermarkTracker", "currentWatermark", ()),
    (f"{_RUNTIME}.WatermarkPropagator", "purge", ("long",)),
    (_PROGRESS, _STATE_METRICS, (f"{_RUNTIME}.IncrementalExecution",)),
)


@frozen
class OperatorState:
    """A stateful operator of a batch: how many rows it keeps, has written, has removed, and has dropped as late."""

    name: str
    total: int
    updated: int
    removed: int
    dropped: int


def own_watermark(frame: DataFrame, column: str) -> DataFrame:
    """The frame with `column` marked as its event time, whose watermark only we move.

    The mark holds for every row, however far ahead its time lies. What comes next must not need a projection of its own
    below it: rows are marked, then observed, then filtered, so that Spark generates code for two stages and not three.
    """
    return frame.withWatermark(column, _NEVER)


def delayed(column: str, delay_ms: int) -> Column:
    """A marked column with its declared delay in the metadata.

    Operators that forget by it (duplicates within the watermark) would else keep state for ever.
    """
    from pyspark.sql import functions

    return functions.col(_quoted(column)).alias(column, metadata={EVENT_TIME_METADATA: delay_ms})


class QueryHandle:
    """A running query of Spark, as the engine needs it: its metrics, and its watermark.

    `observed`, `dropped_rows` and `operators` speak of the batch that runs, when asked inside its callback once its
    action is done, and of the last one otherwise.
    """

    def __init__(self, query: StreamingQuery) -> None:
        self.query = query
        self._execution: Any = query._jsq.streamingQuery()  # noqa: SLF001 - no public way
        self._gateway = _gateway()
        self._state_metrics = _method(self._gateway, _PROGRESS, _STATE_METRICS, (f"{_RUNTIME}.IncrementalExecution",))
        self._state_metrics.setAccessible(True)
        self._observed: dict[str, tuple[tuple[str, str], ...]] = {}

    def has_run(self) -> bool:
        """Whether a batch has been planned since the query was started; before that no watermark can be moved."""
        return self._execution.lastExecution() is not None

    def batch_id(self) -> int:
        """The number of the batch that runs or comes next; -1 before the first is begun."""
        context = self._execution.getLatestExecutionContext()
        return -1 if context is None else int(context.batchId())

    def watermark_ms(self) -> int:
        """Spark's watermark now, in milliseconds since 1970."""
        return int(self._execution.watermarkTracker().currentWatermark())

    def set_inside(self, watermark_ms: int) -> None:
        """Set the watermark of the next batch; for a callback, when its batch is done."""
        self._execution.watermarkTracker().setWatermark(watermark_ms)

    def set_between(self, watermark_ms: int) -> None:
        """Set the watermark while no batch runs; Spark then runs one by itself if there is something to close.

        Waits for a batch that is being planned. Spark has tried the next batch out with the old watermark already and
        must forget it, or it fails with "watermark has been changed for the same batch".
        """
        if not self.has_run():
            raise RuntimeFailure(
                "JOB_STATE", "the watermark of a query cannot be set before its first batch", hint="wait for it"
            )
        with self.no_planning():
            self._execution.lastExecution().watermarkPropagator().purge(_EVERY_BATCH)
            self._execution.watermarkTracker().setWatermark(watermark_ms)

    @contextmanager
    def no_planning(self) -> Iterator[None]:
        """While this is held Spark plans no batch: which batches its offset log has does not change."""
        lock = self._execution.awaitProgressLock()
        lock.lock()
        try:
            yield
        finally:
            lock.unlock()

    def observed(self) -> dict[str, dict[str, object]]:
        """The metrics of `observe()` by name and column: times in microseconds since 1970, whole numbers as they are.

        A metric must be a number, a boolean, a time or a date. Each call into the JVM costs a fraction of a millisecond
        in every batch, so a row comes as one text.
        """
        last = self._execution.lastExecution()
        if last is None:
            return {}
        rows = last.observedMetrics()
        if not self._observed:
            names = rows.keys().mkString(_SEPARATOR)
            self._observed = {name: _columns(rows.apply(name)) for name in names.split(_SEPARATOR) if name}
        found: dict[str, dict[str, object]] = {}
        for name, columns in self._observed.items():
            texts = rows.apply(name).mkString(_SEPARATOR).split(_SEPARATOR)
            found[name] = {column: _value(text, kind) for (column, kind), text in zip(columns, texts, strict=True)}
        return found

    def operators(self) -> tuple[OperatorState, ...]:
        """The stateful operators of the plan, the one nearest to the result first."""
        last = self._execution.lastExecution()
        if last is None:
            return ()
        context = self._execution.getLatestExecutionContext()
        states = self._state_metrics.invoke(context, self._arguments((last,))).mkString("[", ",", "]")
        return tuple(
            OperatorState(
                state["operatorName"],
                state["numRowsTotal"],
                state["numRowsUpdated"],
                state["numRowsRemoved"],
                state["numRowsDroppedByWatermark"],
            )
            for state in json.loads(states)
        )

    def dropped_rows(self) -> int:
        """How many rows or groups the stateful operators have dropped as late: above zero where a row was late."""
        return sum(operator.dropped for operator in self.operators())

    def _arguments(self, given: tuple[Any, ...]) -> Any:
        array = self._gateway.new_array(self._gateway.jvm.java.lang.Object, len(given))
        for place, argument in enumerate(given):
            array[place] = argument
        return array

    def state_rows(self) -> int:
        """How many rows all stateful operators keep."""
        return sum(operator.total for operator in self.operators())


def check_calls(spark: SparkSession, more: tuple[tuple[str, str, tuple[str, ...]], ...] = ()) -> None:
    """Make sure that the installed Spark has every call of this module, and more of them; SPARK_FAILED, naming the
    version, if not."""
    from py4j.protocol import Py4JJavaError

    gateway = _gateway()
    for class_name, method, kinds in (*_CALLS, *more):
        try:
            _method(gateway, class_name, method, kinds)
        except Py4JJavaError as error:
            raise RuntimeFailure(
                "SPARK_FAILED",
                f"Spark {spark.version} does not have {class_name}.{method}, which Penstock needs",
                hint="install a Spark that this version knows: pip install 'pyspark>=4.2,<4.4'",
            ) from error


def _gateway() -> Any:
    from pyspark import SparkContext

    return SparkContext._gateway  # noqa: SLF001 - there is no public way to the JVM


def _method(gateway: Any, class_name: str, method: str, kinds: tuple[str, ...]) -> Any:
    """A method of a class, its own or an inherited one, as Java's reflection gives it."""
    java = gateway.jvm.java.lang
    loader = java.Thread.currentThread().getContextClassLoader()
    arguments = gateway.new_array(java.Class, len(kinds))
    for place, kind in enumerate(kinds):
        arguments[place] = java.Long.TYPE if kind == "long" else loader.loadClass(kind)
    holder = loader.loadClass(class_name)
    return (holder.getDeclaredMethod if class_name == _PROGRESS else holder.getMethod)(method, arguments)


def _columns(row: Any) -> tuple[tuple[str, str], ...]:
    """The names and types of a row's columns."""
    return tuple((field["name"], field["type"]) for field in json.loads(row.schema().json())["fields"])


def _value(text: str, kind: str) -> object:
    """A value of a JVM row, written by the JVM, in Python: a time in microseconds since 1970."""
    if text == "null":
        return None
    if kind in _WHOLE:
        return int(text)
    if kind in {"timestamp", "date"}:
        return _microseconds(text)
    if kind == "boolean":
        return text == "true"
    if kind.startswith("decimal"):
        return Decimal(text)
    return float(text)


def _microseconds(text: str) -> int:
    """A time as the JVM writes it, without a zone and in UTC; one that Python cannot hold is the farthest it can.

    >>> _microseconds("1969-12-31 23:59:59.5"), _microseconds("1970-01-02")
    (-500000, 86400000000)
    >>> _microseconds("294247-01-10 04:00:54.775") == _microseconds("9999-12-31 23:59:59.999999")
    True
    """
    try:
        moment = datetime.fromisoformat(text[:26]).replace(tzinfo=UTC)
    except ValueError:
        # The JVM's largest time is in the year 294247.
        moment = datetime.max.replace(tzinfo=UTC)
    return (moment - EPOCH) // timedelta(microseconds=1)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
