"""What Spark keeps is read as of the last batch that it has noted, which comes a moment after our ledger has it."""

from __future__ import annotations

from pathlib import Path
from threading import Timer
from types import SimpleNamespace
from typing import Any

from penstock.clock import ManualClock
from penstock.runtime.batches import BatchDone
from penstock.runtime.job import Job
from penstock.runtime.states import JobState


def job_at(checkpoint: Path, batch_id: int, state: JobState) -> Job:
    nothing: Any = SimpleNamespace(name="j")
    job = Job(nothing, nothing, ManualClock(), nothing, checkpoint)
    job.state = state
    job.last = BatchDone(batch_id, 0, {}, 1, False, False)
    return job


def test_spark_is_given_time_to_note_the_last_batch(tmp_path: Path) -> None:
    commits = tmp_path / "commits"
    commits.mkdir()
    (commits / "6").write_text("v1\n")
    later = Timer(0.2, (commits / "7").touch)
    later.start()
    job_at(tmp_path, 7, JobState.RUNNING).let_spark_note()
    assert (commits / "7").exists()
    later.join()


def test_a_job_that_does_not_run_notes_nothing_any_more(tmp_path: Path) -> None:
    """It would be waited for in vain, and it takes no time to say so."""
    for state in (JobState.STOPPED, JobState.PAUSED, JobState.FAILED):
        job = job_at(tmp_path, 7, state)
        job.let_spark_note()
        assert not job.noted()
