"""How long settle waits in all, and what it says when that was not enough."""

from __future__ import annotations

from threading import Condition
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.runtime.job import Job
from penstock.runtime.job_control import settle
from penstock.runtime.states import JobState


class SlowClock:
    """Time that passes by a second with every look at it."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 1.0
        return self.now


class StuckJob(SimpleNamespace):
    """A job that is asked to wait for its input and never gets there."""

    wait = Job.wait


def test_the_whole_time_is_told() -> None:
    job: Any = StuckJob(
        name="stuck",
        state=JobState.RUNNING,
        error=None,
        run=object(),
        last=object(),
        _changed=Condition(),
        wait_looked=lambda *_: None,
        wait_positions=lambda *_: {},
        unwritten=lambda: False,
    )
    job.wait_reached = lambda _, left, whole: job.wait(lambda: False, left, "reading its input", whole=whole)
    job.spec = SimpleNamespace(plan=SimpleNamespace(views=()), sources=(), sinks=(), view="stuck")
    engine: Any = SimpleNamespace(check_open=lambda: None, clock=SlowClock(), jobs={"stuck": job})
    with pytest.raises(TimeoutError, match=r"job stuck: reading its input took longer than 4\.5 seconds"):
        settle(engine, 4.5)
