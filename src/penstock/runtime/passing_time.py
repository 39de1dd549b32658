"""Views whose rows come and go as time goes on: where no rows come for them, a batch without any is asked for.

The store knows when the next row is to come in or to go out; nothing is asked for before that time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from penstock.clock import Clock
    from penstock.runtime.job import Job

_LOOK_EVERY: Final = 1.0


class PassingTime:
    """Looks after the clocks of views. One thread uses it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._looked: dict[str, float] = {}

    def look(self, job: Job) -> None:
        """Let time go on for a running job where something is due by it."""
        finish = job.spec.plan.finish
        if finish is None or not finish.moves:
            return
        now = self._clock.monotonic()
        if now - self._looked.get(job.name, now - _LOOK_EVERY) < _LOOK_EVERY:
            return
        self._looked[job.name] = now
        due = job.due_us()
        if due is not None and due <= self._clock.now_us():
            job.nudge()
