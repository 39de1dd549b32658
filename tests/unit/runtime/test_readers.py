"""Readers of a query's rows: none is lost at its end, and one that does not read holds up nobody else."""

from __future__ import annotations

import queue
from threading import Event, RLock, Thread
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.runtime.ephemeral import EphemeralQuery
from penstock.runtime.run import Run
from penstock.runtime.states import JobState


@pytest.mark.parametrize("end", [JobState.STOPPED, JobState.FAILED])
def test_rows_that_come_in_the_last_moment_are_handed_out(end: JobState) -> None:
    query = EphemeralQuery.__new__(EphemeralQuery)
    job = SimpleNamespace(state=JobState.RUNNING, failure=lambda: RuntimeError("it has failed"))

    class JustTooLate(queue.Queue[Any]):
        def get(self, block: bool = True, timeout: float | None = None) -> Any:
            if job.state is JobState.RUNNING:  # nothing is there; then the last batch comes, and the job ends
                self.put("rows")
                job.state = end
                raise queue.Empty
            return super().get(block=False)

    query.job, query._rows, query._closing = job, JustTooLate(), Event()  # type: ignore[assignment]
    query._engine, query._left = SimpleNamespace(closed=False), None  # type: ignore[assignment]
    assert query.next_batch() == "rows"
    if end is JobState.STOPPED:
        assert query.next_batch() is None
    else:
        with pytest.raises(RuntimeError, match="it has failed"):
            query.next_batch()


def test_time_is_not_moved_while_a_batch_waits_for_its_reader() -> None:
    """The thread that looks after all jobs moves it, and must not wait for one of them."""
    run = Run.__new__(Run)
    busy, held, done = RLock(), Event(), Event()
    run.callback = SimpleNamespace(busy=busy)  # type: ignore[assignment]

    def batch() -> None:
        with busy:
            held.set()
            assert done.wait(60)

    thread = Thread(target=batch)
    thread.start()
    assert held.wait(60)
    moved: list[object] = []
    assert run.move_time(moved.append, wait=False) is False
    assert moved == []
    done.set()
    thread.join(60)
