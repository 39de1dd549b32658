"""Jobs that run several INSERTs of a statement set, when one of their targets goes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.catalog.text import canonical_text
from penstock.errors import InternalError
from penstock.runtime.states import JobState
from penstock.sql.script import parse_statement
from penstock.sql.statements import StatementSet

if TYPE_CHECKING:
    from penstock.runtime.engine import Engine
    from penstock.runtime.job import Job


def leave_targets(engine: Engine, gone: Collection[str]) -> None:
    """Let such jobs go on without the targets that are dropped, where others are left."""
    for job in tuple(engine.jobs.values()):
        targets = {sink.name.text for sink in job.spec.sinks}
        dropped = targets.intersection(gone)
        if dropped and dropped != targets and not any(job.spec.uses(name) for name in gone):
            _go_on_without(engine, job, dropped)


def _go_on_without(engine: Engine, job: Job, dropped: Collection[str]) -> None:
    statement = parse_statement(job.spec.sql)
    if not isinstance(statement, StatementSet):
        raise InternalError(f"job {job.name} has several targets and is no statement set")
    kept = [
        (insert, branch)
        for insert, branch in zip(statement.inserts, job.spec.branches, strict=True)
        if branch.sink.name.text not in dropped
    ]
    text = canonical_text(StatementSet(inserts=tuple(insert for insert, _ in kept)))
    with job.control:
        runs = job.state.active
        reason = f"{', '.join(sorted(dropped))} dropped"
        if runs:
            job.stop(JobState.STOPPED, reason)
        job.spec = replace(job.spec, sql=text, branches=tuple(branch for _, branch in kept))
        engine.home.views.save_job(job.name, statement=text)
        if runs:
            job.start(reason)
