"""One run of a job in Spark's real-time mode.

Spark reads, computes and writes by itself, row by row, in batches that last a minute; we only follow. When a batch is
over, its offsets, counts and dead letters go into the ledger. A run that breaks in between repeats what it has written
since its batch began: at least once.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final

from penstock.runtime.batches import BatchCallback, BatchDone
from penstock.runtime.realtime import batch_length
from penstock.runtime.rereads import OffsetRange
from penstock.runtime.run import Run
from penstock.runtime.targets import SinkTarget
from penstock.spark.core_frame import core_frame
from penstock.spark.offset_log import committed
from penstock.stores.views import BatchCommit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql.streaming.query import StreamingQuery

_LOOK_SECONDS: Final = 0.1


class FollowedBatches(BatchCallback):
    """Batches that Spark has run without calling us."""

    def running(self, batch_id: int) -> None:
        """The tasks of a run are there; `batch_id` is the last batch that was done before, -1 for none."""
        positions = {scan.scan.id: dict(scan.request.first or {}) for scan in self._scans}
        if batch_id >= 0:
            positions = {name: dict(each) for name, each in self._all_positions(self._read(batch_id)).items()}
        self._on_done(BatchDone(batch_id, 0, positions, 0, skipped=True, ended=False))

    def note(self, batch_id: int, bad: Sequence[int | None]) -> None:
        """Write down what a batch was: where it ends, and those of its records that were bad, so many of each scan."""
        with self.busy:
            logged = self._read(batch_id)
            before = self._read(batch_id - 1) if batch_id > 0 else None
            ranges = [
                OffsetRange(before.sources[place] if before is not None else None, logged.sources[place])
                for place in range(len(self._scans))
            ]
            counts = [self._row_counts(scan, span) for scan, span in zip(self._scans, ranges, strict=True)]
            input_rows = sum(sum(each.values()) for each in counts)
            dead = self._stray.dead(ranges, bad, logged)
            lost = self._lost(ranges)
            self._store.commit(
                BatchCommit(
                    job=self._spec.name,
                    batch_id=batch_id,
                    offsets_hash=logged.hash,
                    tracker=self._tracker.to_json(),
                    dead=dead,
                    offsets=self._partition_offsets(logged),
                    counters={
                        "input_rows": float(input_rows),
                        **({"lost_offsets": float(lost)} if lost else {}),
                        **({"dead_letters": float(dead.num_rows)} if dead is not None else {}),
                    },
                    input_rows=input_rows,
                    started_at_us=logged.timestamp_ms * 1000,
                )
            )
            self._acknowledge(logged)
            self._on_done(self._done(logged, input_rows, skipped=False))

    def bad(self, observed: dict[str, dict[str, object]] | None) -> list[int | None]:
        """How many records of each scan were bad, None: nobody has counted, so there may be some."""
        if observed is None:
            return [None if scan.checked else 0 for scan in self._scans]
        found = [observed.get(scan.observation, {}).get("bad", 0) for scan in self._scans]
        return [count if isinstance(count, int) else 0 for count in found]


class RealtimeRun(Run):
    """A query in real-time mode, and the thread that follows it."""

    callback: FollowedBatches
    batches = FollowedBatches

    def start(self) -> None:
        """Start the query. What an earlier run had done and nobody noted is noted first."""
        entry = self._store.ledger(self.spec.name)
        done = committed(self._checkpoint)
        for batch_id in range(0 if entry is None else entry.batch_id + 1, -1 if done is None else done + 1):
            self.callback.note(batch_id, self.callback.bad(None))
        super().start()
        threading.Thread(target=self._follow, name=f"penstock-follow-{self.spec.name}", daemon=True).start()

    def _started(self) -> StreamingQuery:
        assert isinstance(self._target, SinkTarget)
        self._spark.conf.set("spark.sql.adaptive.enabled", "false")
        frame = core_frame(self._spark, self.spec.plan)
        writer: Any = self._target.streamed(frame)  # PySpark's types do not know the trigger yet
        query: StreamingQuery = (
            writer.outputMode("update")
            .trigger(realTime=f"{batch_length(self.spec).total_seconds():g} seconds")
            .option("checkpointLocation", f"file://{self._checkpoint.absolute()}")
            .queryName(self.spec.name)
            .start()
        )
        return query

    def _follow(self) -> None:
        """Until the query ends: tell that it runs, and note its batches."""
        query, told, noted = self._query, False, committed(self._checkpoint)
        assert query is not None
        try:
            while query.isActive and not self.callback.closing.is_set():
                if not told and self._tasks_run(query):
                    told = True
                    self.callback.running(-1 if noted is None else noted)
                progress = query.lastProgress
                if progress is not None and (noted is None or progress.batchId > noted):
                    counts = {name: row.asDict() for name, row in progress.observedMetrics.items()}
                    noted = progress.batchId
                    self.callback.note(noted, self.callback.bad(counts))
                time.sleep(_LOOK_SECONDS)
        except Exception as error:  # noqa: BLE001 - whatever it is, the job ends with it
            if not self.callback.closing.is_set():
                self.callback.error = error
                query.stop()

    def _tasks_run(self, query: StreamingQuery) -> bool:
        """Whether the tasks that stay on the partitions have begun."""
        tracker = self._spark.sparkContext.statusTracker()
        for number in tracker.getJobIdsForGroup(str(query.runId)):
            job = tracker.getJobInfo(number)
            for stage in job.stageIds if job is not None else ():
                info = tracker.getStageInfo(stage)
                if info is not None and info.numActiveTasks > 0:
                    return True
        return False
