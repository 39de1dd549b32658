"""The run of a sink over materialized views: no Spark. A thread follows the log of a view and writes what it holds.

Each commit of the view becomes one batch of the job. Which changes that is follows from where the batch before ended,
and is the same whenever it is asked for; so a batch that was cut off between the sink and the ledger is written once
more under the same number, which a sink that knows batches takes once.

Of a view that rows are only added to, the rows of a commit are read from the view itself. What changes, or comes from
several views, is kept as a view that nobody sees, built on the others like any view on views: its changes are those of
the sink.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Final

from penstock.connectors.sink import HeldSink
from penstock.errors import InternalError, PenstockError
from penstock.failpoints import hit
from penstock.runtime.batches import BatchDone
from penstock.runtime.failures import as_failure
from penstock.runtime.sinks import open_sink
from penstock.runtime.view_run import ViewRun
from penstock.stores.views import BatchCommit, PartitionOffset

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from penstock.clock import Clock
    from penstock.runtime.home import Home
    from penstock.runtime.job_spec import JobSpec
    from penstock.runtime.run import Run
    from penstock.runtime.sinks import OpenSink
    from penstock.stores.views import Commit, SeenVersion

_WAIT: Final = 0.5  # seconds until it is looked again whether the run is to end
_STOP_SECONDS: Final = 120.0
_TIDY_EVERY: Final = 20  # batches after which changes that are written are let go of


class ViewSinkRun(ViewRun):
    """A sink that follows views."""

    def __init__(
        self,
        spec: JobSpec,
        home: Home,
        clock: Clock,
        on_done: Callable[[BatchDone], None],
        on_end: Callable[[Run], None],
        versions: Callable[[], tuple[SeenVersion, ...]],
    ) -> None:
        super().__init__(spec, home.views, clock, on_done, versions)
        self._home = home
        self._on_end = on_end
        self._sink: OpenSink | None = None
        self._closing = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"penstock-job-{spec.name}", daemon=True)

    @property
    def followed(self) -> str:
        """The view whose log is read."""
        return self.spec.plan.views[0] if self.spec.view is None else self.spec.view

    def start(self) -> None:
        """Open the sink, let the hidden view follow, and begin where the last batch ended."""
        if self.spec.view is not None:
            self._follow(self.spec.view)
        types = {column.name: column.type for column in self.spec.plan.columns if column.type is not None}
        self._sink = open_sink(self.spec, self._home, types)
        batch_id, upto = self._reached()
        self._on_done(self._done(batch_id, upto, 0, skipped=True))
        self._thread.start()

    def _reached(self) -> tuple[int, int]:
        """The last batch, and the last change that is written."""
        entry = self._store.ledger(self.spec.name)
        if entry is None:
            return -1, 0
        return entry.batch_id, next(at.offset for at in entry.offsets if at.connector_id == self.followed)

    def _done(self, batch_id: int, upto: int, changes: int, *, skipped: bool) -> BatchDone:
        return BatchDone(batch_id, 0, {self.followed: {0: upto + 1}}, changes, skipped, ended=False)

    def _run(self) -> None:
        try:
            while not self._closing.is_set():
                _, upto = self._reached()
                commit = self._store.commit_after(self.followed, upto)
                if commit is None:
                    self._store.wait_for(self.followed, upto, _WAIT)
                else:
                    self._write(commit)
        except BaseException as error:  # noqa: BLE001 - told to the job, which decides whether it may pass
            self._error = error
        finally:
            self._let_go()
            self._on_end(self)

    def _write(self, commit: Commit) -> None:
        """One commit of the view: to the sink, then into the ledger."""
        started_us = self._clock.now_us()
        batch_id = self._reached()[0] + 1
        rows = self._rows(commit)
        if self._sink is None:
            raise InternalError(f"job {self.spec.name} writes before it was started")
        if rows.num_rows and not self._sink.sink.takes_frame:
            hit("sink.before_write")
            self._sink.sink.write(rows, self._sink.context, batch_id)
            hit("sink.after_write")
        counters = {"input_rows": float(commit.changes)}
        if self.spec.measured:
            counters["output_rows"] = float(rows.num_rows)
        self._store.commit(
            BatchCommit(
                job=self.spec.name,
                batch_id=batch_id,
                offsets_hash=f"{commit.since}..{commit.upto}",
                watermark_us=commit.watermark_us,
                tracker=self.tracker.to_json(),
                offsets=(PartitionOffset(self.followed, 0, commit.upto, commit.at_us),),
                counters=counters,
                input_rows=commit.changes,
                started_at_us=started_us,
                size_bytes=rows.nbytes,
            ),
            at=hit,
        )
        if self.spec.view is not None and batch_id % _TIDY_EVERY == 0:
            self._store.forget_changes(self.spec.view, commit.upto)
        self._on_done(self._done(batch_id, commit.upto, commit.changes, skipped=False))

    def _rows(self, commit: Commit) -> pa.Table:
        plan = self.spec.plan
        assert self._sink is not None
        if self.spec.view is not None:
            changes = self._store.changes_of(self.spec.view, commit)
            return self._sink.fit(changes.after) if plan.shows_closed else self._sink.rows_of(changes)
        assert plan.finish is not None
        return self._sink.fit(self._store.added_by(self.followed, commit, plan.finish, len(plan.columns)))

    @property
    def failure(self) -> PenstockError | None:
        if self._closing.is_set() or self._error is None:
            return None
        return as_failure(f"job {self.spec.name}", self._error)

    @property
    def cause(self) -> BaseException | None:
        return self._error

    def begin_no_batch(self) -> None:
        self._closing.set()

    def stop(self) -> None:
        """End at a batch boundary: the batch that is under way is let finish."""
        self.begin_no_batch()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(_STOP_SECONDS)

    def _let_go(self) -> None:
        with contextlib.suppress(Exception):
            if self._sink is not None and isinstance(self._sink.sink, HeldSink):
                self._sink.sink.leave(self._sink.context)

    def latest(self) -> dict[str, dict[int, int]]:
        return {self.followed: {0: self._store.last_seq(self.followed) + 1}}
