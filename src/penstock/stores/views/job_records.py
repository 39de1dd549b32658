"""What the view store keeps of jobs beside their batches: facts, history, and the places of rows they left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.stores.views import records

if TYPE_CHECKING:
    from threading import RLock

    from penstock.stores.views.database import ViewDatabase
    from penstock.stores.views.model import JobTransition


class JobRecords:
    """The jobs' side of the store."""

    _database: ViewDatabase
    _lock: RLock

    def save_job(self, job: str, **facts: Any) -> None:
        """Keep facts of a job, beside those that are kept already."""
        with self._lock, self._database.transaction() as writer:
            records.write_facts(writer, job, {**records.read_facts(writer, job), **facts})

    def late_places(self, job: str, since: int) -> set[tuple[str, int, int]]:
        """Stream, partition and offset of the late rows of a job from an offset on."""
        with self._database.snapshot() as reader:
            return records.late_places(reader, job, since)

    def dead_places(self, job: str) -> list[tuple[str, int, int]]:
        """Stream, partition and offset of the dead letters of a job."""
        with self._database.snapshot() as reader:
            return records.dead_places(reader, job)

    def last_rows(self) -> dict[str, int]:
        """How many rows the last batch of each job had that had any."""
        with self._database.snapshot() as reader:
            return records.last_rows(reader)

    def job_facts(self, job: str) -> dict[str, Any]:
        """What was kept of a job; empty for an unknown one."""
        with self._database.snapshot() as reader:
            return records.read_facts(reader, job)

    def job_names(self) -> tuple[str, ...]:
        """The jobs that facts are kept of."""
        with self._database.snapshot() as reader:
            return records.known_jobs(reader)

    def add_transition(self, step: JobTransition) -> None:
        """Add a row to penstock.job_history."""
        with self._lock, self._database.transaction() as writer:
            records.write_transition(writer, step)
