"""Where the rows of a job go.

`take` runs the batch: it is the one action on Spark's frame. `write` hands rows to a place outside the view store,
before the batch is in the ledger, and tells how many; so a place that must not see a row twice has to know batches
itself. `deliver` hands them to somebody who waits for them, after the batch is in the ledger. `close` ends a run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from penstock.connectors.sink import FrameSink, HeldSink, Staged, StreamedSink
from penstock.failpoints import hit
from penstock.plan.job_plan import BATCH_VIEW
from penstock.stores.arrow_types import arrow_type
from penstock.stores.views.small_batches import SmallBatches

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from penstock.connectors.sink import Sink, SinkContext
    from penstock.plan.job_plan import JobPlan
    from penstock.stores.views import CommitResult, SeenVersion
    from penstock.types import SqlType

# Up to so many rows a batch is aggregated here, or by one task: a plan and a shuffle would cost more than the rest.
_SMALL: Final = 20_000
# What is taken out of batches for the view store pays where at most so large a part of the rows is left: the store
# itself does it several times as fast, but has to be given the rows. Where it does not, it is tried again after so many
# batches.
_PAYS: Final = 0.1
_ASKED_AGAIN: Final = 50


class Target(Protocol):
    """A place for the rows of a job; `view` is the view that the store keeps for it, if any."""

    view: str | None
    keeps_rows: bool  # the rows of a batch come into the view with its commit
    counted: bool  # Spark counts the rows as they pass, because `write` cannot tell how many there were

    def take(self, frame: DataFrame, input_rows: int, batch_id: int) -> pa.Table | None: ...

    def write(
        self,
        rows: pa.Table | None,
        batch_id: int,
        closing_us: int = 0,
        clock_us: int = 0,
        versions: tuple[SeenVersion, ...] = (),
    ) -> int | None: ...

    def deliver(self, rows: pa.Table | None, result: CommitResult) -> None: ...

    def close(self) -> None: ...


class ViewTarget:
    """A materialized view: the store takes the rows in the batch's own transaction.

    `types` are those that Spark finds for the columns of a batch.
    """

    keeps_rows: bool = True
    counted: bool = False

    def __init__(self, view: str, plan: JobPlan, types: Mapping[str, SqlType]) -> None:
        self.view: str | None = view
        self._plan = plan
        self._nothing = _empty(types) if plan.rests else None  # the batch only closes windows
        self._handed_on = 0  # so many large batches are handed over as they are
        # A join can make many rows of few; windows that the store joins are not joined in the batch.
        row_by_row = len(plan.scans) == 1 or plan.joined is not None
        self._small = SmallBatches.of(plan.merge, plan.reductions, types) if row_by_row else None

    def take(self, frame: DataFrame, input_rows: int, batch_id: int) -> pa.Table | None:
        if self._plan.batch is None:
            return frame.toArrow()
        if self._plan.finish is not None:
            return self._kept(frame, input_rows, self._plan.batch)
        if input_rows == 0 and self._nothing is not None:
            return self._nothing
        if input_rows <= _SMALL and self._small is not None:
            return self._small.reduced(frame.toArrow())
        if input_rows <= _SMALL:
            frame = frame.coalesce(1)
        frame.createOrReplaceTempView(BATCH_VIEW)
        return frame.sparkSession.sql(self._plan.batch).toArrow()

    def _kept(self, frame: DataFrame, input_rows: int, batch: str) -> pa.Table:
        """The rows of a batch that the view store keeps, and perhaps others: it takes those out itself. Where Spark
        finds few to take out, it is not asked for a while, as that costs more than to hand them over."""
        if input_rows <= _SMALL or self._handed_on > 0:
            self._handed_on -= input_rows > _SMALL
            return frame.toArrow()
        frame.createOrReplaceTempView(BATCH_VIEW)
        rows = frame.sparkSession.sql(batch).toArrow()
        if rows.num_rows > input_rows * _PAYS:
            self._handed_on = _ASKED_AGAIN
        return rows

    def write(
        self,
        rows: pa.Table | None,
        batch_id: int,
        closing_us: int = 0,
        clock_us: int = 0,
        versions: tuple[SeenVersion, ...] = (),
    ) -> int | None:
        """The rows go with the commit."""
        return None if rows is None else int(rows.num_rows)

    def deliver(self, rows: pa.Table | None, result: CommitResult) -> None:
        """Nothing: subscribers follow the store."""

    def close(self) -> None:
        """Nothing is held."""


def _empty(types: Mapping[str, SqlType]) -> pa.Table:
    import pyarrow as pa

    return pa.schema([(name, arrow_type(kind)) for name, kind in types.items()]).empty_table()


class ConsumerTarget(ViewTarget):
    """Somebody who reads the result as it comes, and holds the job back while they are busy.

    The rows of an append query are handed on as they are; of an updating one, the changes of the view that an
    in-memory store keeps for it.
    """

    def __init__(
        self,
        plan: JobPlan,
        put: Callable[[pa.Table], None],
        view: str | None,
        changes: Callable[[CommitResult], pa.Table | None],
        types: Mapping[str, SqlType],
    ) -> None:
        super().__init__(view or "", plan, types)
        self.view = view
        self._put = put
        self._changes = changes

    def deliver(self, rows: pa.Table | None, result: CommitResult) -> None:
        found = rows if self.view is None else self._changes(result)
        if found is not None and found.num_rows > 0:
            self._put(found)


class SinkTarget:
    """A connector that takes rows that are only added."""

    view: str | None = None
    keeps_rows: bool = False

    def __init__(
        self,
        sink: Sink,
        context: SinkContext,
        fit: Callable[[pa.Table], pa.Table],
        fit_frame: Callable[[DataFrame], DataFrame],
    ) -> None:
        """`fit` and `fit_frame` turn rows of the query into rows of the sink."""
        self._sink = sink
        self._context = context
        self._fit = fit
        self._fit_frame = fit_frame
        self._stages = isinstance(sink, FrameSink) and sink.stages(context.definition)
        self.counted = self._stages and isinstance(sink, FrameSink) and not sink.tells_rows
        self._staged: Staged | None = None

    def take(self, frame: DataFrame, input_rows: int, batch_id: int) -> pa.Table | None:
        if self._stages:
            assert isinstance(self._sink, FrameSink)
            few = frame.coalesce(1) if input_rows <= _SMALL else frame
            self._staged = self._sink.stage(self._fit_frame(few), self._context, batch_id)
            return None
        if self._sink.takes_frame:
            frame.write.format("noop").mode("overwrite").save()
            return None
        return frame.toArrow()

    def write(
        self,
        rows: pa.Table | None,
        batch_id: int,
        closing_us: int = 0,
        clock_us: int = 0,
        versions: tuple[SeenVersion, ...] = (),
    ) -> int | None:
        if self._stages and self._staged is not None:
            assert isinstance(self._sink, FrameSink)
            if self._staged.parts:
                hit("sink.before_write")
                self._sink.publish(self._staged, self._context, batch_id)
                hit("sink.after_write")
            return self._staged.rows
        if rows is None or rows.num_rows == 0:
            return None if rows is None else 0
        hit("sink.before_write")
        self._sink.write(self._fit(rows), self._context, batch_id)
        hit("sink.after_write")
        return int(rows.num_rows)

    def put(self, rows: pa.Table, batch_id: int, spark: SparkSession) -> int:
        """Write rows that come from the view store instead of Spark; how many."""
        if not self._stages:
            return self.write(rows, batch_id) or 0
        self.take(spark.createDataFrame(rows), rows.num_rows, batch_id)
        self.write(None, batch_id)
        return int(rows.num_rows)

    def deliver(self, rows: pa.Table | None, result: CommitResult) -> None:
        """Nothing: the rows are already there."""

    def streamed(self, frame: DataFrame) -> DataStreamWriter:
        """The rows of a query that Spark writes by itself, in its real-time mode."""
        assert isinstance(self._sink, StreamedSink)
        return self._sink.streamed(self._fit_frame(frame), self._context)

    def close(self) -> None:
        """The run ends: the sink lets go of what it holds for it."""
        if isinstance(self._sink, HeldSink):
            self._sink.leave(self._context)


class ClosedTarget(ViewTarget):
    """A connector that takes rows that the view store only adds: those of windows that it closes, or of joins that it
    answers once.

    They are kept in a view that nobody else sees. A batch comes into it first; the rows that it added are
    written to the sink, and then the batch goes into the ledger. A batch that is broken off in between is in the view
    already when it is run again, so the sink is given the same rows as before.
    """

    keeps_rows: bool = False

    def __init__(
        self,
        rows: SinkTarget,
        view: str,
        plan: JobPlan,
        types: Mapping[str, SqlType],
        closed: Callable[[pa.Table, int, int, int, tuple[SeenVersion, ...]], pa.Table],
    ) -> None:
        """`closed` brings a batch into the view and tells the rows that it has added, as those of the query."""
        super().__init__(view, plan, types)
        self._rows = rows
        self._closed = closed
        self._spark: SparkSession | None = None

    def take(self, frame: DataFrame, input_rows: int, batch_id: int) -> pa.Table | None:
        self._spark = frame.sparkSession
        return super().take(frame, input_rows, batch_id)

    def write(
        self,
        rows: pa.Table | None,
        batch_id: int,
        closing_us: int = 0,
        clock_us: int = 0,
        versions: tuple[SeenVersion, ...] = (),
    ) -> int | None:
        if rows is None:
            return None
        assert self._spark is not None, "a batch is taken before it is written"
        found = self._closed(rows, batch_id, closing_us, clock_us, versions)
        return self._rows.put(found, batch_id, self._spark) if found.num_rows else 0

    def close(self) -> None:
        """The run ends: the sink lets go of what it holds for it."""
        self._rows.close()


class ChangesTarget(ViewTarget):
    """A connector that takes the changes of a query whose rows change.

    The rows of the query are a view that nobody else sees. A batch comes into it first; the changes that it made are
    written to the sink, and then the batch goes into the ledger. A batch that is broken off in between is in the view
    already when it is run again, so the sink is given the same changes as before.
    """

    keeps_rows: bool = False

    def __init__(
        self,
        sink: Sink,
        context: SinkContext,
        view: str,
        plan: JobPlan,
        types: Mapping[str, SqlType],
        changed: Callable[[pa.Table, int, int, int, tuple[SeenVersion, ...]], pa.Table],
    ) -> None:
        """`changed` brings the rows of a batch into the view and tells the changes, as rows of the sink."""
        super().__init__(view, plan, types)
        self._sink = sink
        self._context = context
        self._changed = changed

    def write(
        self,
        rows: pa.Table | None,
        batch_id: int,
        closing_us: int = 0,
        clock_us: int = 0,
        versions: tuple[SeenVersion, ...] = (),
    ) -> int | None:
        if rows is None:
            return None
        found = self._changed(rows, batch_id, closing_us, clock_us, versions)
        if found.num_rows:
            hit("sink.before_write")
            self._sink.write(found, self._context, batch_id)
            hit("sink.after_write")
        return int(found.num_rows)

    def close(self) -> None:
        """The run ends: the sink lets go of what it holds for it."""
        if isinstance(self._sink, HeldSink):
            self._sink.leave(self._context)
