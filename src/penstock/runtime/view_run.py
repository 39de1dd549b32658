"""The run of a view that is built on other views alone: no Spark, and no batches of its own.

The view store refreshes it with every batch of the views below. To start it is to let it follow them, which fills it
first where it stood still.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.runtime.batches import BatchDone
from penstock.runtime.event_time import EventTimeTracker
from penstock.runtime.run import Run
from penstock.runtime.runs import view_spec_of
from penstock.stores.arrow_types import arrow_type

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from pyspark.sql.streaming.listener import StreamingQueryProgress

    from penstock.clock import Clock
    from penstock.runtime.job_spec import JobSpec
    from penstock.stores.views import SeenVersion, ViewStore


class ViewRun(Run):
    """A view that follows others."""

    def __init__(
        self,
        spec: JobSpec,
        store: ViewStore,
        clock: Clock,
        on_done: Callable[[BatchDone], None],
        versions: Callable[[], tuple[SeenVersion, ...]],
    ) -> None:
        """`versions` gives those of the dimensions that it keeps the rows of."""
        self.spec = spec
        self.seen: dict[str, int] = {}  # by dimension, the version that it has been told of
        self._versions = versions
        self.tracker = EventTimeTracker([], clock.now_us())
        self._store = store
        self._clock = clock
        self._on_done = on_done
        self._scans = ()
        self._dimensions = ()

    def start(self) -> None:
        """Make the view where it is not there yet, filled from those below, and let it follow them."""
        assert self.spec.view is not None
        self._follow(self.spec.view)
        entry = self._store.ledger(self.spec.view)
        self._on_done(BatchDone(-1 if entry is None else entry.batch_id, 0, {}, 0, skipped=False, ended=False))

    def _follow(self, view: str) -> None:
        versions = self._versions()
        self._store.create_view(view_spec_of(self.spec, {}), versions)
        self._store.follow(view, versions)
        self.see(versions)

    def see(self, versions: tuple[SeenVersion, ...]) -> None:
        """There are new versions of dimensions: what it shows is answered with them."""
        if self.spec.view is not None and versions:
            self._store.see(self.spec.view, versions)
        self.seen = {each.relation: each.number for each in versions}

    @property
    def failure(self) -> PenstockError | None:
        return None

    @property
    def cause(self) -> BaseException | None:
        return None

    def begin_no_batch(self) -> None:
        """It has no batches."""

    def stop(self) -> None:
        """Nothing runs; the job holds the view when it is stopped, and not when the database is closed."""

    def nudge(self) -> None:
        """It has no batches; where the clock decides what it shows, time goes on."""
        finish = self.spec.plan.finish
        if self.spec.view is not None and finish is not None and finish.moves:
            self._store.move_clock(self.spec.view, self._clock.now_us())

    def move_time(self, move: Callable[[EventTimeTracker], object], *, wait: bool = True) -> bool:
        """It has no event time of its own."""
        return False

    def empty_result(self) -> pa.Table:
        import pyarrow as pa

        known = [(column.name, column.type) for column in self.spec.plan.columns]
        return pa.schema([(name, arrow_type(kind)) for name, kind in known if kind is not None]).empty_table()

    def progress(self) -> StreamingQueryProgress | None:
        return None

    @property
    def handle(self) -> None:
        return None
