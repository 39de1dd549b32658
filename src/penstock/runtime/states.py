"""The states of a job, and which one may follow which.

created ──> starting ──> running ──> draining ──> stopped
               │  ^         │  │                     │
               v  │         v  └─────> paused ───────┤ RESUME
            restarting <────┘                        v
               └────────────> failed ───────────> starting
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from penstock.errors import PenstockError, RuntimeFailure


class JobState(StrEnum):
    """What a job is doing, as SHOW JOBS tells it."""

    CREATED = "created"
    STARTING = "starting"
    RUNNING = "running"
    RESTARTING = "restarting"
    DRAINING = "draining"
    PAUSED = "paused"
    STOPPED = "stopped"
    FAILED = "failed"

    @property
    def active(self) -> bool:
        """Whether the job has work under way, or will have without anybody asking."""
        return self in _ACTIVE


_ACTIVE: Final = frozenset({JobState.STARTING, JobState.RUNNING, JobState.RESTARTING, JobState.DRAINING})

TRANSITIONS: Final[dict[JobState, frozenset[JobState]]] = {
    JobState.CREATED: frozenset({JobState.STARTING, JobState.PAUSED, JobState.STOPPED, JobState.FAILED}),
    JobState.STARTING: frozenset(
        {
            JobState.RUNNING,
            JobState.RESTARTING,
            JobState.DRAINING,
            JobState.PAUSED,
            JobState.STOPPED,
            JobState.FAILED,
        }
    ),
    JobState.RUNNING: frozenset(
        {JobState.RESTARTING, JobState.DRAINING, JobState.PAUSED, JobState.STOPPED, JobState.FAILED}
    ),
    JobState.RESTARTING: frozenset({JobState.STARTING, JobState.PAUSED, JobState.STOPPED, JobState.FAILED}),
    # An error that may pass interrupts a drain; the drain is asked for again once the job runs.
    JobState.DRAINING: frozenset({JobState.RESTARTING, JobState.STOPPED, JobState.FAILED}),
    JobState.PAUSED: frozenset({JobState.STARTING, JobState.STOPPED}),
    JobState.STOPPED: frozenset({JobState.STARTING}),
    JobState.FAILED: frozenset({JobState.STARTING, JobState.STOPPED}),
}

_WAIT: Final = "wait until it runs"


def check_transition(job: str, before: JobState, after: JobState, error: PenstockError | None = None) -> None:
    """Refuse, with JOB_STATE, a change of state that makes no sense; `error` is why the job has failed, if it has."""
    if after not in TRANSITIONS[before]:
        cure = error.hint if error is not None and before is JobState.FAILED else None
        raise RuntimeFailure(
            "JOB_STATE",
            f"job {job} is {before} and cannot {_VERBS[after]}",
            hint=cure or _hint(job, before, after),
        )


_VERBS: Final = {
    JobState.CREATED: "be created again",
    JobState.STARTING: "be started",
    JobState.RUNNING: "run",
    JobState.RESTARTING: "be restarted",
    JobState.DRAINING: "be drained",
    JobState.PAUSED: "be paused",
    JobState.STOPPED: "be stopped",
    JobState.FAILED: "fail",
}


def _hint(job: str, before: JobState, after: JobState) -> str:
    """What to do instead."""
    if before is after:
        return "there is nothing to do"
    if before is JobState.DRAINING:
        return "it stops by itself when every window is closed"
    if before is JobState.RUNNING:
        return f"RESTART JOB {job} stops it at a batch boundary and starts it again"
    if before.active:
        return _WAIT
    return f"RESUME JOB {job} starts it again"
