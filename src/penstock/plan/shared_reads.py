"""Which INSERTs of a statement set are one job, that reads their stream once for all of them.

Those that only pick, filter and compute rows of one stream: what they have in common is the reading. Whatever keeps
state, follows event time or looks at other relations has a query of its own: Spark runs one such query into one place.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.catalog.define import as_sink
from penstock.errors import PenstockError
from penstock.frozen import frozen
from penstock.plan.insert_options import insert_options
from penstock.plan.job_plan import JobPlan, plan_job
from penstock.plan.trees import nondeterministic_call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.plan.logical import LogicalPlan
    from penstock.plan.session import Session
    from penstock.sql.statements import Insert

_NAMED: Final = 3  # so many targets stand in the name of a job


@frozen
class InsertJob:
    """A job of a statement set, and the INSERTs that it runs, by their places in the set."""

    name: str
    places: tuple[int, ...]


def insert_jobs(inserts: Sequence[Insert], plans: Sequence[LogicalPlan], session: Session) -> tuple[InsertJob, ...]:
    """The jobs of a statement set, in the order of their first INSERTs; INSERT … VALUES is none."""
    groups: list[tuple[str | None, list[int]]] = []
    for place, (insert, plan) in enumerate(zip(inserts, plans, strict=True)):
        if isinstance(insert.query.tree, exp.Values):
            continue
        relation = _relation(insert, plan, session)
        joined = next((places for shared, places in groups if shared == relation and relation is not None), None)
        if joined is None:
            groups.append((relation, [place]))
        elif insert.target.text.casefold() in {inserts[other].target.text.casefold() for other in joined}:
            groups.append((None, [place]))  # a sink knows the batches of a job by one name
        else:
            joined.append(place)
    return tuple(InsertJob(_name([inserts[place] for place in places], session), tuple(places)) for _, places in groups)


def _name(inserts: Sequence[Insert], session: Session) -> str:
    targets = []
    for insert in inserts:
        found = session.catalog.find(insert.target)
        targets.append(insert.target.text if found is None else found.name.text)
    if len(inserts) == 1:
        options = insert_options(inserts[0], session)
        return options.job_name or f"insert_{targets[0]}"
    more = [f"and_{len(targets) - _NAMED}_more"] if len(targets) > _NAMED else []
    return "_".join(["insert", *targets[:_NAMED], *more])


def _relation(insert: Insert, plan: LogicalPlan, session: Session) -> str | None:
    """The stream whose rows an INSERT can take from a reading that others share; None where it cannot."""
    if insert_options(insert, session).given or nondeterministic_call(plan.spark) is not None:
        return None
    try:
        found = session.catalog.find(insert.target)
        if found is None or any(entry.type is None for entry in as_sink(found, insert.target).columns):
            return None
        job = plan_job(plan)
    except PenstockError:
        return None  # told when it is planned by itself
    return job.scans[0].relation if _only_passes(job) and not job.scans[0].reading else None


def _only_passes(job: JobPlan) -> bool:
    """Whether rows of one stream pass through the job, each by itself."""
    if job.kind != "append" or len(job.scans) != 1 or job.uses_event_time or job.processing is not None:
        return False
    scan = job.scans[0]
    apart = job.kept or job.steps or job.dimensions or job.static or job.views or job.finish or job.lookup
    return not apart and not scan.changes and scan.event_time is None and bool(scan.columns)


def one_reading(jobs: Sequence[JobPlan], declared: Sequence[str]) -> JobPlan:
    """The plan that hands over the rows of a stream with the columns that any of these jobs need."""
    first = jobs[0]
    needed = {name for job in jobs for name in job.scans[0].columns}
    scan = replace(first.scans[0], columns=tuple(name for name in declared if name in needed))
    return replace(
        first,
        scans=(scan,),
        core=f"SELECT * FROM {scan.view}",
        columns=(),
        functions=tuple(dict.fromkeys(name for job in jobs for name in job.functions)),
        in_place=tuple(dict.fromkeys(name for job in jobs for name in job.in_place)),
        how=f"one reading of {scan.relation} for {len(jobs)} INSERTs",
    )
