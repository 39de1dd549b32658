"""Queries whose answers come for as long as somebody looks: rows of streams, of views, and changes.

Each is followed by a thread of its own that hands over tables; the main thread prints them, so that Ctrl-C reaches it
between two tables. A follower waits until its last table was taken: a slow reader slows it down, and nothing piles up.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from penstock.frozen import frozen
from penstock.interfaces.cli.answers import new_rows
from penstock.interfaces.cli.change_tables import QuerySubscription, Subscription
from penstock.sql.statements import Subscribe, SubscribeQuery

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.interfaces.cli.engine_port import EnginePort
    from penstock.plan.script import StatementReport

# How often a view is looked at again, and how long a subscription waits before it looks whether it should end.
_PULSE: Final = 0.25
# How long to wait for a query to stop once it was told to; a batch may be on its way.
_SECONDS_TO_END: Final = 30.0


@frozen
class Event:
    """Rows of a followed query, or its end, with the error that ended it if one did."""

    report: StatementReport
    rows: pa.Table | None = None
    error: BaseException | None = None


class Followers:
    """The queries that are followed."""

    def __init__(self, engine: EnginePort) -> None:
        self._engine = engine
        self._events: queue.Queue[Event] = queue.Queue(maxsize=1)
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._cancels: list[Callable[[], None]] = []
        self._running = 0

    def __len__(self) -> int:
        """How many have been started."""
        return len(self._threads)

    @property
    def running(self) -> int:
        """How many have not ended."""
        return self._running

    def stream(self, report: StatementReport) -> None:
        """Follow a query over streams: every row once, as it comes."""
        self._start(report, self._stream_rows)

    def view(self, report: StatementReport) -> None:
        """Follow a query over views: its answer, then after each batch the rows that are new in it."""
        self._start(report, self._view_rows)

    def subscription(self, report: StatementReport) -> None:
        """Follow the changes of a view or of a query."""
        self._start(report, self._changes)

    def next(self, seconds: float) -> Event | None:
        """What came next, if anything came in time."""
        try:
            event = self._events.get(timeout=seconds)
        except queue.Empty:
            return None
        self._running -= event.rows is None
        return event

    def stop(self) -> None:
        """End all of them and wait until they have ended."""
        self._stopping.set()
        for cancel in self._cancels:
            cancel()
        for thread in self._threads:
            thread.join(_SECONDS_TO_END)

    def _start(self, report: StatementReport, follow: Callable[[StatementReport], None]) -> None:
        def work() -> None:
            error: BaseException | None = None
            try:
                follow(report)
            except Exception as raised:  # noqa: BLE001 - handed to the main thread, which reports it
                error = raised
            self._put(Event(report, error=error))

        thread = threading.Thread(target=work, name=f"follow-{report.span.line}", daemon=True)
        self._threads.append(thread)
        self._running += 1
        thread.start()

    def _put(self, event: Event) -> bool:
        """Hand over an event; False when nobody looks any more."""
        while not self._stopping.is_set():
            try:
                self._events.put(event, timeout=_PULSE)
            except queue.Full:
                continue
            return True
        return False

    def _stream_rows(self, report: StatementReport) -> None:
        import pyarrow as pa

        async def follow() -> None:
            task, loop = asyncio.current_task(), asyncio.get_running_loop()
            assert task is not None
            self._cancels.append(lambda: _cancel(loop, task))
            batches = self._engine.stream_statement(report)
            try:
                async for batch in batches:
                    # In a thread, so that a reader that waits does not keep the query from being stopped.
                    table = pa.Table.from_batches([batch])
                    if not await asyncio.to_thread(self._put, Event(report, table)):
                        return
            except asyncio.CancelledError:
                return
            finally:
                close = getattr(batches, "aclose", None)
                if close is not None:
                    await close()

        asyncio.run(follow())

    def _view_rows(self, report: StatementReport) -> None:
        seen: pa.Table | None = None
        as_of: dict[str, int] | None = None
        while not self._stopping.is_set():
            result = self._engine.run_statement(report)
            assert result is not None
            if dict(result.as_of) != as_of:
                fresh = new_rows(seen, result.arrow())
                seen, as_of_before, as_of = result.arrow(), as_of, dict(result.as_of)
                if (fresh.num_rows or as_of_before is None) and not self._put(Event(report, fresh)):
                    return
            self._stopping.wait(_PULSE)

    def _changes(self, report: StatementReport) -> None:
        if isinstance(report.statement, SubscribeQuery):
            query = QuerySubscription(self._engine, report)
            try:
                self._told(report, query)
            finally:
                query.close()
            return
        assert isinstance(report.statement, Subscribe)
        self._told(report, Subscription(self._engine, report.statement))

    def _told(self, report: StatementReport, followed: Subscription | QuerySubscription) -> None:
        while not self._stopping.is_set():
            for together in followed.changes(_PULSE):
                if not self._put(Event(report, followed.table(together))):
                    return


def _cancel(loop: asyncio.AbstractEventLoop, task: asyncio.Task[None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(task.cancel)
