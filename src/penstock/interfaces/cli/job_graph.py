"""Which jobs stand above which: a job that reads what another writes comes after it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.interfaces.changes import Job


def upstream_first(jobs: Sequence[Job]) -> list[Job]:
    """The jobs, each behind those that write what it reads; a circle is broken where it is met."""
    done: dict[str, Job] = {}
    met: set[str] = set()

    def place(job: Job) -> None:
        if job.name in met:
            return
        met.add(job.name)
        for other in jobs:
            if _feeds(other, job):
                place(other)
        done[job.name] = job

    for job in jobs:
        place(job)
    return list(done.values())


def feeding(jobs: Sequence[Job], relations: Iterable[str]) -> list[Job]:
    """The jobs whose rows reach one of the relations, directly or through other jobs, upstream first."""
    wanted = {name.casefold() for name in relations}
    found: set[str] = set()
    grows = True
    while grows:
        grows = False
        for job in jobs:
            if job.name not in found and job.writes is not None and job.writes.casefold() in wanted:
                found.add(job.name)
                wanted |= {name.casefold() for name in job.reads}
                grows = True
    return upstream_first([job for job in jobs if job.name in found])


def fed_by(job: Job, jobs: Sequence[Job], relations: Iterable[str]) -> bool:
    """Whether rows of one of the relations reach a job, directly or through other jobs."""
    sources = {name.casefold() for name in relations}
    above = [job, *feeding(jobs, job.reads)]
    return any(name.casefold() in sources for one in above for name in one.reads)


def depth(jobs: Sequence[Job]) -> int:
    """How many jobs stand one above another at most."""
    levels: dict[str, int] = {}
    for job in upstream_first(jobs):
        levels[job.name] = 1 + max((levels.get(other.name, 0) for other in jobs if _feeds(other, job)), default=0)
    return max(levels.values(), default=0)


def _feeds(above: Job, below: Job) -> bool:
    return (
        above.writes is not None
        and above.name != below.name
        and above.writes.casefold() in {name.casefold() for name in below.reads}
    )
