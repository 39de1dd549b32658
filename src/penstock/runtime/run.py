"""One run of a job: from the start of its Spark query to its end."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.connectors.kafka_access import topic_names
from penstock.connectors.registry import source_of
from penstock.connectors.source import FollowedSource, OutsideSource
from penstock.errors import PenstockError, RuntimeFailure
from penstock.runtime.batches import BatchCallback
from penstock.runtime.failures import NO_ANSWER, TOO_LARGE, as_failure
from penstock.runtime.rereads import Rereads
from penstock.spark.core_frame import core_frame
from penstock.spark.output_count import counting
from penstock.spark.watermark_calls import QueryHandle
from penstock.stores.arrow_types import arrow_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery

    from penstock.catalog.model import SinkDefinition, SourceDefinition
    from penstock.clock import Clock
    from penstock.connectors.nudges import Nudges
    from penstock.runtime.batches import BatchDone
    from penstock.runtime.event_time import EventTimeTracker
    from penstock.runtime.job_spec import JobSpec
    from penstock.runtime.targets import Target
    from penstock.spark.checked_scan import CheckedScan
    from penstock.spark.dimension_frames import DimensionFrames, JoinMethod
    from penstock.stores.views import ViewStore
    from penstock.types import SqlType

_LEAVE_SECONDS: Final = 2.0


class Run:
    """A query that is started once and stopped once.

    `spark` is a session of the job's own, in which its scans have their views.
    """

    batches: type[BatchCallback] = BatchCallback

    def __init__(
        self,
        *,
        spec: JobSpec,
        spark: SparkSession,
        scans: Sequence[CheckedScan],
        dimensions: Sequence[DimensionFrames],
        target: Target,
        tracker: EventTimeTracker,
        store: ViewStore,
        checkpoint: Path,
        clock: Clock,
        types: Mapping[str, SqlType],
        nudges: Nudges,
        on_done: Callable[[BatchDone], None],
        on_end: Callable[[Run], None],
    ) -> None:
        self.spec = spec
        self.tracker = tracker
        self._nudges = nudges
        self._spark = spark
        self._scans = scans
        self._dimensions = dimensions
        self._target = target
        self._store = store
        self._checkpoint = checkpoint
        self._types = types
        self._on_end = on_end
        self._query: StreamingQuery | None = None
        self._handle: QueryHandle | None = None
        self.callback = self.batches(
            spec=spec,
            checkpoint=checkpoint,
            store=store,
            tracker=tracker,
            scans=scans,
            target=target,
            rereads=Rereads(spark, spec.plan, scans, dimensions),
            clock=clock,
            nudges=nudges,
            dimensions=dimensions,
            on_done=on_done,
        )

    def start(self) -> None:
        """Start the query; an error of Spark's analyzer is raised here, one of its planner ends the run."""
        try:
            self._query = self._started()
        except PenstockError:
            raise
        except Exception as error:
            raise as_failure(f"job {self.spec.name}", error) from error
        self._handle = QueryHandle(self._query)
        self.callback.use(self._handle)
        threading.Thread(target=self._watch, name=f"penstock-job-{self.spec.name}", daemon=True).start()

    def _started(self) -> StreamingQuery:
        frame = core_frame(self._spark, self.spec.plan, self._dimensions)
        return (
            (counting(frame) if self._target.counted else frame)
            .writeStream.outputMode("update" if self.spec.plan.kind == "update" else "append")
            .foreachBatch(self.callback)
            .option("checkpointLocation", f"file://{self._checkpoint.absolute()}")  # Hadoop encodes by itself
            .queryName(self.spec.name)
            .start()
        )

    def _watch(self) -> None:
        """Waits for the end of the query and tells the job."""
        assert self._query is not None
        with contextlib.suppress(Exception):
            self._query.awaitTermination()
        self._on_end(self)

    @property
    def failure(self) -> PenstockError | None:
        """Why the query ended by itself; None where it was asked to."""
        if self.callback.closing.is_set():
            return None
        error = self._raised()
        found = as_failure(f"job {self.spec.name}", error) if error is not None else None
        if found is None or isinstance(error, PenstockError):
            return found
        return self._lost(found) if found.condition == "SOURCE_DATA_LOST" else self._addressed(found)

    def _addressed(self, found: PenstockError) -> PenstockError:
        """Spark does not say which broker does not answer, nor which topic takes no record as large as one was."""
        if found.condition == "SOURCE_UNAVAILABLE":
            message = _behind(found.message, NO_ANSWER, _servers(scan.definition for scan in self._scans))
        elif found.condition == "SINK_UNAVAILABLE":
            message = _behind(found.message, NO_ANSWER, _servers(self.spec.sinks))
        elif found.condition == "SINK_REFUSED":
            topics = [name for sink in self.spec.sinks for name in topic_names(sink)]
            message = _behind(found.message, TOO_LARGE, ", ".join(topics))
        else:
            return found
        return RuntimeFailure(found.condition, message, hint=found.hint, detail=found.detail)

    @property
    def cause(self) -> BaseException | None:
        """The error as it was raised, for the question whether it may pass."""
        error = self._raised()
        if error is not None and self._skips_lost:
            found = as_failure(f"job {self.spec.name}", error)
            return found if found.condition != "SOURCE_DATA_LOST" else self._lost(found)
        return error

    @property
    def _skips_lost(self) -> bool:
        return any(scan.definition.options.values.get("on_data_loss") == "skip" for scan in self._scans)

    def _raised(self) -> BaseException | None:
        if self.callback.error is not None:
            return self.callback.error
        return self._query.exception() if self._query is not None else None

    def _lost(self, found: PenstockError) -> PenstockError:
        """What Spark says of records that are gone, with their place; where they may be skipped, it is tried again."""
        if self._skips_lost:
            message = found.message.replace("records that it has not read are gone", "what it reads is not there", 1)
            return RuntimeFailure(
                "SOURCE_UNAVAILABLE",
                message,
                hint="the job looks again by itself, and goes on behind what is lost, because of on_data_loss = 'skip'",
                detail=found.detail,
            )
        entry = self._store.ledger(self.spec.name)
        for scan in self._scans:
            source = source_of(scan.definition.options.connector)
            if entry is None or not isinstance(source, OutsideSource):
                continue
            reached = {each.partition: each.offset + 1 for each in entry.offsets if each.connector_id == scan.scan.id}
            with contextlib.suppress(PenstockError):
                told = source.gone(scan.request, reached)
                if told is not None:
                    skip = f"ALTER STREAM {scan.scan.relation} SET (on_data_loss = 'skip')"
                    return RuntimeFailure(
                        found.condition,
                        f"job {self.spec.name}: {told}",
                        hint=f"{skip} and RESUME JOB {self.spec.name} go on without them; or create the job again to "
                        "read what is there",
                        detail=found.detail,
                    )
        return found

    def begin_no_batch(self) -> None:
        """A batch that is under way is the last one."""
        self.callback.closing.set()

    def stop(self) -> None:
        """End the query at a batch boundary.

        Spark breaks when it is stopped while a callback runs. So the callback is asked to begin no batch, the one that
        is under way is let finish, and only then is Spark stopped.
        """
        self.begin_no_batch()
        if self._query is not None:
            with self.callback.busy:
                pass  # a batch that begins from here on ends itself; holding the lock on would block it, and Spark too
            with contextlib.suppress(Exception):
                self._leave()
                self._query.stop()
        with contextlib.suppress(Exception):
            self._target.close()

    def _leave(self) -> None:
        """Tell sources whose readers hold something; a query that has ended by itself has none any more."""
        for scan in self._scans:
            source = source_of(scan.definition.options.connector)
            if isinstance(source, FollowedSource) and self._query is not None and self._query.isActive:
                source.leave(scan.request, wait_s=_LEAVE_SECONDS)

    def move_time(self, move: Callable[[EventTimeTracker], object], *, wait: bool = True) -> bool:
        """Move event time while no batch runs, keep it, and let Spark close what it ends.

        A batch may wait for somebody who reads its rows: who cannot `wait` for that long does nothing then.
        """
        if not self.callback.busy.acquire(blocking=wait):
            return False
        try:
            before = self.tracker.watermark_us
            move(self.tracker)
            reached = self.tracker.watermark_us
            self._store.save_tracker(self.spec.name, self.tracker.to_json(), reached)
            if reached is None or (before is not None and reached <= before):
                return False
            if self.spec.plan.follows_time and self._handle is not None and self._handle.has_run():
                self._handle.set_between(reached // 1000)
                if self.spec.plan.closed_by_store:
                    self.nudge()  # Spark keeps nothing that the watermark closes, and runs no batch for it
            return True
        finally:
            self.callback.busy.release()

    def nudge(self) -> None:
        """Ask for one more batch, with or without rows."""
        self._nudges.add()

    def joins_otherwise(self, methods: Mapping[str, JoinMethod]) -> bool:
        """Whether the query joins a dimension in another way than this, by the readings of dimensions."""
        return any(methods[each.plan.id] != each.method for each in self._dimensions)

    def latest(self) -> dict[str, dict[int, int]]:
        """Where the input of each scan ends now; and where the changes do that views below make for a sink."""
        found = {
            scan.scan.id: dict(source_of(scan.definition.options.connector).latest(scan.request))
            for scan in self._scans
        }
        if self.spec.follows_views and self.spec.view is not None:
            found[self.spec.view] = {0: self._store.last_seq(self.spec.view) + 1}
        return found

    def looked(self, since_us: int) -> bool:
        """Whether `latest` tells of everything that was there at a moment."""
        return all(
            source.looked(scan.request, since_us)
            for scan in self._scans
            if isinstance(source := source_of(scan.definition.options.connector), FollowedSource)
        )

    def empty_result(self) -> pa.Table:
        """No rows, with the columns of the query."""
        import pyarrow as pa

        columns = [(column.name, column.type or self._types[column.name]) for column in self.spec.plan.columns]
        return pa.schema([(name, arrow_type(sql_type)) for name, sql_type in columns]).empty_table()

    def progress(self) -> StreamingQueryProgress | None:
        """What Spark tells of the last batch; None before the first is done."""
        return self._query.lastProgress if self._query is not None else None

    @property
    def handle(self) -> QueryHandle | None:
        return self._handle

    def schemas_differ(self) -> bool:
        """Whether a run that began now would read records by other schemas; raises where it could not read them."""
        try:
            return any(scan.schemas_differ(self._spark) for scan in self._scans)
        except PenstockError:
            raise
        except Exception as error:
            raise as_failure(f"job {self.spec.name}", error) from error

    @property
    def scans(self) -> Sequence[CheckedScan]:
        return self._scans


def _servers(definitions: Iterable[SourceDefinition | SinkDefinition]) -> str:
    """Where the brokers of some relations are, each once."""
    named = [definition.options.values.get("bootstrap_servers") for definition in definitions]
    servers = ", ".join(str(each) for each in dict.fromkeys(named) if each is not None)
    return servers and f"at {servers}"


def _behind(message: str, words: str, more: str) -> str:
    return message.replace(words, f"{words} {more}", 1) if more else message
