"""The states of a job: which may follow which, and what is said of the others."""

from __future__ import annotations

import itertools

import pytest

from penstock.errors import RuntimeFailure
from penstock.runtime.states import TRANSITIONS, JobState, check_transition

S = JobState
ALLOWED = {
    "created": "starting paused stopped failed",
    "starting": "running restarting draining paused stopped failed",
    "running": "restarting draining paused stopped failed",
    "restarting": "starting paused stopped failed",
    "draining": "restarting stopped failed",
    "paused": "starting stopped",
    "stopped": "starting",
    "failed": "starting stopped",
}


@pytest.mark.parametrize(("before", "after"), list(itertools.product(JobState, JobState)))
def test_only_changes_that_make_sense_are_allowed(before: JobState, after: JobState) -> None:
    if after in ALLOWED[before].split():
        check_transition("j", before, after)
    else:
        with pytest.raises(RuntimeFailure, match=f"job j is {before} and cannot") as refused:
            check_transition("j", before, after)
        assert refused.value.condition == "JOB_STATE"
        assert refused.value.hint


def test_the_states_are_the_documented_ones_in_order() -> None:
    assert list(JobState) == list(ALLOWED)
    assert set(TRANSITIONS) == set(JobState)


@pytest.mark.parametrize(
    ("before", "after", "message", "hint"),
    [
        (S.STOPPED, S.PAUSED, "job v is stopped and cannot be paused", "RESUME JOB v starts it again"),
        (S.FAILED, S.DRAINING, "job v is failed and cannot be drained", "RESUME JOB v starts it again"),
        (S.PAUSED, S.DRAINING, "job v is paused and cannot be drained", "RESUME JOB v starts it again"),
        (S.PAUSED, S.PAUSED, "job v is paused and cannot be paused", "there is nothing to do"),
        (S.RUNNING, S.STARTING, "job v is running and cannot be started", "RESTART JOB v stops it at a batch boundary and starts it again"),
        (S.RESTARTING, S.DRAINING, "job v is restarting and cannot be drained", "wait until it runs"),
        (S.DRAINING, S.PAUSED, "job v is draining and cannot be paused", "it stops by itself when every window is closed"),
    ],
)  # fmt: skip
def test_a_refusal_says_what_to_do(before: JobState, after: JobState, message: str, hint: str) -> None:
    with pytest.raises(RuntimeFailure) as refused:
        check_transition("v", before, after)
    assert (refused.value.message, refused.value.hint) == (message, hint)


def test_a_job_that_has_failed_says_what_helps_it() -> None:
    """Where that is known, starting it again is not it."""
    error = RuntimeFailure("LATE_ROW", "a row came too late", hint="ALTER it")
    with pytest.raises(RuntimeFailure) as refused:
        check_transition("v", S.FAILED, S.PAUSED, error)
    assert refused.value.hint == "ALTER it"


def test_which_states_have_work_under_way() -> None:
    assert [state for state in JobState if state.active] == [S.STARTING, S.RUNNING, S.RESTARTING, S.DRAINING]


def test_every_state_can_be_reached_and_left() -> None:
    reached = set().union(*TRANSITIONS.values()) | {S.CREATED}
    assert reached == set(JobState)
    assert all(TRANSITIONS.values())
