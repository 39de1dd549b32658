"""From a source to the temporary view that a job's query reads: decoded, checked, observed, with our own event time.

Every scan goes the same way, as a stream while the job runs and as a batch when an offset range is read again:

    source -> decode bytes -> metadata and computed columns -> is the row good? -> event time -> watch -> good rows

What makes a row bad is one list of checks. While the stream runs they are a single condition and a count; only when
that count is above zero is the range read again, to tell which rows were bad and why.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from datetime import timedelta
from typing import TYPE_CHECKING

from penstock.connectors.metadata_columns import deleted, with_metadata
from penstock.connectors.registry import source_of
from penstock.connectors.source import ScanRequest
from penstock.formats import KeptReadings, decode
from penstock.formats.keys import key_fields, key_format, key_options
from penstock.formats.registry import uses_registry
from penstock.frozen import frozen
from penstock.plan.changed_rows import DELETED, PLACE
from penstock.plan.computed import bind_computed
from penstock.plan.scan_columns import needed_columns
from penstock.plan.spark_text import spark_sql
from penstock.spark.format_outside import outside_for
from penstock.spark.watch import Watch
from penstock.spark.watermark_calls import delayed, own_watermark

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from penstock.catalog.model import ColumnDefinition, SourceDefinition
    from penstock.plan.job_plan import ScanPlan
    from penstock.plan.session import Session

BAD = "__bad"
SOURCE_ROW = "__source"
DEFAULT_DRIFT = timedelta(days=1)
_DAY_US = 86_400_000_000
_JSON = frozenset({"json", "debezium-json"})
_TEXTS = _JSON | {"csv", "raw"}  # formats whose records people can read


@frozen
class CheckedScan:
    """One scan of a job, ready to be turned into frames."""

    scan: ScanPlan
    definition: SourceDefinition
    session: Session
    request: ScanRequest
    partitions: int
    uses_event_time: bool  # the job closes windows: rows without a usable time are bad
    watch: Watch = field(default_factory=Watch, compare=False)
    kept: KeptReadings = field(default_factory=KeptReadings, compare=False)  # schemas, the same for all scans of a run

    @property
    def observation(self) -> str:
        """The name under which Spark reports what was seen of the scan in real-time mode."""
        return f"observed{self.scan.view}"

    @property
    def policy(self) -> str:
        return str(self.definition.options.values.get("bad_data", "dead_letter"))

    @property
    def tracked(self) -> bool:
        """Whether the largest event times are looked at."""
        return self.scan.event_time is not None

    @property
    def schemas_come(self) -> bool:
        """Whether records may come with a schema that nobody knew when the stream began."""
        options = self.definition.options
        keys = key_fields(options.connector, options.values)
        return uses_registry(options.format, options.values) or (
            bool(keys) and uses_registry(key_format(options.values), key_options(options.values))
        )

    @property
    def checked(self) -> bool:
        """Whether a row can be bad at all."""
        return bool(self._checks_apply())

    def judges(self, other: CheckedScan) -> bool:
        """Whether every row that is bad for another scan is bad for this one too: then it need not be told twice."""
        if self.scan.relation != other.scan.relation or not set(other._checks_apply()) <= set(self._checks_apply()):
            return False
        return self._typed or set(other.scan.columns) <= set(self.scan.columns)

    def stream(self, spark: SparkSession) -> DataFrame:
        """The good rows as a stream, with the columns that the query needs."""
        from pyspark.sql import functions as f

        frame = self._declared(source_of(self._connector).stream(spark, self.request), self.scan.columns)
        clock = _Clock(f.current_timestamp(), f.current_date())
        frame = self._judged(frame, clock)
        event_time = self.scan.event_time if self.uses_event_time else None
        if event_time is None:
            return self._watched(frame, clock).select(*self._shown())
        frame = self._watched(own_watermark(frame, event_time.column), clock)
        marked = delayed(event_time.column, event_time.delay_us // 1000)
        name = _quoted(event_time.column)
        return frame.select(*[marked if shown == name else shown for shown in self._shown()])

    def good_again(self, spark: SparkSession, start: str | None, end: str, batch_time_ms: int) -> DataFrame:
        """The good rows of an offset range, each with where it came from: `__source`."""
        from pyspark.sql import functions as f

        frame = self._again(spark, start, end, batch_time_ms)
        if not self._typed:
            frame = self._declared(frame, self._all_columns())  # it is judged, now the whole row is read
        source = f.struct(
            f.lit(self.scan.id).alias("scan"),
            f.col("__partition").alias("partition"),
            f.col("__offset").alias("offset"),
            self._row_text(frame).alias("row"),
        )
        return self._good(frame.withColumn(SOURCE_ROW, source)).select(*self._shown(), SOURCE_ROW)

    def good_rows(self, spark: SparkSession, end: str, batch_time_ms: int) -> DataFrame:
        """The good rows from the oldest one up to an offset, with the columns that the query needs and no others."""
        raw = source_of(self._connector).between(spark, self.request, None, end)
        frame = self._judged(self._declared(raw, self.scan.columns), _Clock.at(batch_time_ms))
        return self._good(frame).select(*self._shown())

    def good_places(
        self, spark: SparkSession, places: Sequence[tuple[int, int]], end: str, batch_time_ms: int
    ) -> list[tuple[int, int]]:
        """Which of these rows are good, by partition and offset; those that are gone are not."""
        raw = self._rows_at(spark, places, end)
        frame = self._judged(self._declared(raw, self.scan.columns), _Clock.at(batch_time_ms))
        found = self._good(frame).select("__partition", "__offset").toArrow()
        return sorted(zip(*(found.column(name).to_pylist() for name in ("__partition", "__offset")), strict=True))

    def rows_at(self, spark: SparkSession, places: Sequence[tuple[int, int]], end: str) -> DataFrame:
        """These rows, which are known to be good, with the columns that the query needs."""
        frame = self._declared(self._rows_at(spark, places, end), self.scan.columns)
        return frame.select(*self._shown())

    def _rows_at(self, spark: SparkSession, places: Sequence[tuple[int, int]], end: str) -> DataFrame:
        from pyspark.sql import functions as f

        raw = source_of(self._connector).between(spark, self.request, None, end)
        wanted = spark.createDataFrame(list(places), "__partition INT, __offset BIGINT")
        return raw.join(f.broadcast(wanted), ["__partition", "__offset"], "left_semi")

    def bad_again(self, spark: SparkSession, start: str | None, end: str, batch_time_ms: int) -> DataFrame:
        """The bad rows of an offset range: partition, offset, raw, reason, error."""
        from pyspark.sql import functions as f

        frame = self._again(spark, start, end, batch_time_ms)
        raw = self._row_text(frame).cast("binary") if self._typed else f.col("__value")
        reason: Column = f.lit(None).cast("string")
        error: Column = f.lit(None).cast("string")
        for check in reversed(list(self._checks(_Clock.at(batch_time_ms)))):
            reason = f.when(check.fails, f.lit(check.reason)).otherwise(reason)
            error = f.when(check.fails, check.error).otherwise(error)
        return frame.filter(f.col(BAD)).select(
            f.col("__partition").alias("partition"),
            f.col("__offset").alias("offset"),
            raw.alias("raw"),
            reason.alias("reason"),
            error.alias("error"),
        )

    def schemas_differ(self, spark: SparkSession) -> bool:
        """Whether records would be read otherwise if the job began now; raises where they could not be read at all."""
        if self._typed or not self.kept.differ():
            return False
        nothing = spark.createDataFrame([], "__key BINARY, __value BINARY")
        self._decoded(nothing, self.scan.columns, KeptReadings())
        return True

    # the steps

    def _physical(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The columns in the records that declared ones among `names` are made of, and those that checks look at."""
        wanted = self._wanted(names)
        return tuple(entry.name for entry in self.definition.columns if entry.physical and entry.name in wanted)

    def _wanted(self, names: tuple[str, ...]) -> set[str]:
        return needed_columns(self.definition, {*names, *self._needed_for_checks()})

    @property
    def _typed(self) -> bool:
        """Whether rows come with their columns; else they are bytes to decode."""
        return source_of(self._connector).typed(self.definition)

    @property
    def _connector(self) -> str:
        return self.definition.options.connector

    def _again(self, spark: SparkSession, start: str | None, end: str, batch_time_ms: int) -> DataFrame:

        # Bytes are judged by the columns that the stream reads, and no others: what it took cannot be bad here.
        names = self._all_columns() if self._typed else self.scan.columns
        raw = source_of(self._connector).between(spark, self.request, start, end)
        return self._judged(self._declared(raw, names), _Clock.at(batch_time_ms))

    def _shown(self) -> list[str]:
        """What the query sees: its columns, and of rows that replace each other what tells the later one."""
        more = (DELETED, *PLACE) if self.scan.changes else ()
        return [_quoted(name) for name in (*self.scan.columns, *more)]

    def _all_columns(self) -> tuple[str, ...]:
        return tuple(entry.name for entry in self.definition.columns)

    def _declared(self, frame: DataFrame, names: tuple[str, ...]) -> DataFrame:
        """The frame with the declared columns among `names`, and with those that the checks look at."""
        wanted = self._wanted(names)
        if not self._typed:
            frame = self._decoded(frame, names, self.kept)
        if self.scan.changes and DELETED not in frame.columns:
            frame = frame.withColumn(DELETED, deleted(frame, self.definition))
        frame = with_metadata(frame, self.definition, tuple(wanted))
        for entry in self.definition.columns:
            if entry.computed is not None and entry.name in wanted:
                frame = frame.withColumn(entry.name, self._computed(entry))
        return frame

    def _decoded(self, frame: DataFrame, names: tuple[str, ...], kept: KeptReadings) -> DataFrame:
        outside = outside_for(self.request.state_path, self.request.roots, kept)
        return decode(frame, self.definition, self._physical(names), outside)

    def _computed(self, entry: ColumnDefinition) -> Column:
        from pyspark.sql import functions as f

        assert entry.computed is not None
        bound, _ = bind_computed(self.definition, entry.computed, self.session)
        value = f.expr(spark_sql(bound, pretty=False))
        return value if entry.type is None else value.cast(entry.type.spark())

    def _judged(self, frame: DataFrame, clock: _Clock) -> DataFrame:
        from pyspark.sql import functions as f

        bad: Column = f.lit(False)
        for check in self._checks(clock):
            bad = bad | check.fails
        return frame.withColumn(BAD, bad) if self.checked else frame

    def _good(self, frame: DataFrame) -> DataFrame:
        from pyspark.sql import functions as f

        return frame.filter(~f.col(BAD)) if self.checked else frame

    def _watched(self, frame: DataFrame, clock: _Clock) -> DataFrame:
        """The good rows. Bad ones are counted, and the largest event time of each partition is found."""
        from pyspark.sql import functions as f

        if self.request.realtime:
            # Nobody is asked between two batches there: Spark tells of each what was observed.
            counted = f.count_if(f.col(BAD)).alias("bad")
            return self._good(frame.observe(self.observation, counted)) if self.checked else frame
        if not self.checked and not self.tracked:
            return frame
        bad = f.col(BAD) if self.checked else f.lit(False)
        counts, micros = f.lit(False), f.lit(0).cast("BIGINT")
        if self.scan.event_time is not None:
            micros = f.unix_micros(_quoted(self.scan.event_time.column))
            counts = ~bad & f.col("__partition").isNotNull()
            if "time" not in self._checks_apply():
                counts = counts & (micros >= 0) & ~clock.is_behind(micros, self.drift)
            elif self.scan.changes:
                counts = counts & micros.isNotNull()
        return self.watch.over(frame, bad, counts, f.col("__partition"), micros)

    @property
    def drift(self) -> timedelta:
        """How far a row may lie ahead of the clock."""
        found = self.definition.options.values.get("max_future_drift")
        return found if isinstance(found, timedelta) else DEFAULT_DRIFT

    # what makes a row bad

    def _checks_apply(self) -> tuple[str, ...]:
        strict = self.policy != "null" or self.schemas_come
        found = ["malformed"] if not self._typed and strict else []
        if any(True for _ in self._not_null()):
            found.append("not_null")
        if self.uses_event_time and self.tracked:
            found.append("time")
        return tuple(found)

    def _not_null(self) -> Iterator[ColumnDefinition]:
        return (entry for entry in self.definition.columns if not entry.nullable)

    def _needed_for_checks(self) -> set[str]:
        needed = {entry.name for entry in self._not_null()}
        if self.scan.event_time is not None:
            needed.add(self.scan.event_time.column)
        return needed

    def _checks(self, clock: _Clock) -> Iterator[_Check]:
        """Each way a row can be bad, the first that holds names it."""
        from pyspark.sql import functions as f

        applies = self._checks_apply()
        if "malformed" in applies:
            error = f.col("__error")
            yield _Check(error.isNotNull(), "malformed", error)
        for entry in self._not_null():
            text = f'column "{entry.name}" is NOT NULL and has no value'
            missing = f.col(_quoted(entry.name)).isNull()
            if self.scan.changes and entry.name not in self.definition.primary_key:
                missing = missing & ~f.col(DELETED)  # of a deleted row there is only the key
            yield _Check(missing, "not_null", f.lit(text))
        if "time" in applies:
            assert self.scan.event_time is not None
            name = self.scan.event_time.column
            time = f.col(_quoted(name))
            if not self.scan.changes:  # else it may be a deletion, or take a row out of its windows
                yield _Check(time.isNull(), "null_time", f.lit(f'the event time "{name}" is NULL'))
            micros = f.unix_micros(time)
            shown = f.date_format(time, "yyyy-MM-dd HH:mm:ss")
            yield _Check(
                f.coalesce(clock.is_behind(micros, self.drift), f.lit(False)),
                "future_time",
                f.concat(f.lit(f'the event time "{name}" '), shown, f.lit(" is further ahead than max_future_drift")),
            )
            yield _Check(
                f.coalesce(micros < 0, f.lit(False)),
                "before_1970",
                f.concat(f.lit(f'the event time "{name}" '), shown, f.lit(" is before 1970")),
            )

    def _row_text(self, frame: DataFrame) -> Column:
        """The input row as text: a record of text as it came, the columns of any other row as JSON."""
        from pyspark.sql import functions as f

        if not self._typed and self.definition.options.format in _TEXTS:
            value = f.col("__value").cast("string")
            return value if self.definition.options.format in _JSON else f.to_json(f.struct(value.alias("value")))
        present = set(frame.columns)
        names = [entry.name for entry in self.definition.columns if entry.name in present]
        return f.to_json(f.struct(*[_quoted(name) for name in names]), {"ignoreNullFields": "false"})


@frozen
class _Clock:
    """The time of a batch: `today` is its day, or None where the batch is over and its time is a plain number."""

    now: Column
    today: Column | None

    @classmethod
    def at(cls, batch_time_ms: int) -> _Clock:
        from pyspark.sql import functions as f

        return cls(f.timestamp_millis(f.lit(batch_time_ms)), None)

    def is_behind(self, micros: Column, drift: timedelta) -> Column:
        """Whether a time is further ahead of the clock than a row may be.

        In numbers: to add an interval to a time, Spark would ask the calendar for every row. NULL where the time is too
        far back to count the distance.

        Spark writes the time of a batch as a number into the code that it generates, so that every batch would have new
        code to compile and to warm up (half a second of each large batch). What a lambda compares is not in that code,
        but takes a tenth of a microsecond: so only rows ahead of this morning by more than the drift are shown to it.
        """
        from pyspark.sql import functions as f

        allowed = f.lit(drift // timedelta(microseconds=1))
        if self.today is None:
            return f.try_subtract(micros, f.unix_micros(self.now)) > allowed
        exactly = f.exists(f.array(f.unix_micros(self.now)), lambda now: f.try_subtract(micros, now) > allowed)
        this_morning = f.unix_date(self.today).cast("BIGINT") * _DAY_US
        return (f.try_subtract(micros, this_morning) > allowed) & exactly


@frozen
class _Check:
    fails: Column  # never NULL
    reason: str
    error: Column


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
