"""How a job goes: its files first, then what the store keeps of it, so that a crash on the way leaves no half.

The facts of a job are the last to go. Killed before that, the next opening finds facts of a job that nothing defines,
and begins again. Files that no job owns must never stay: a job that is later created under the same name would go on
from them.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection
from typing import TYPE_CHECKING

from penstock.failpoints import hit

if TYPE_CHECKING:
    from penstock.runtime.home import Home


def forget_job(home: Home, name: str, view: str | None) -> None:
    """Remove a job that nothing defines any more, with its view."""
    if home.views.job_facts(name):
        # An INSERT is defined by its facts alone. Without a statement they say that the job is to be forgotten.
        home.views.save_job(name, statement=None)
    hit("job.before_files")
    shutil.rmtree(home.checkpoint(name).parent, ignore_errors=True)
    hit("job.before_facts")
    if view is not None:
        home.views.drop_view(view)
    home.views.forget_job(name)


def sweep(home: Home, jobs: Collection[str], views: Collection[str]) -> None:
    """Remove the files of jobs and the rows of views that nothing defines any more."""
    kept = {home.checkpoint(name).parent for name in jobs}
    for directory in home.jobs.iterdir() if home.jobs.is_dir() else ():
        if directory not in kept:
            shutil.rmtree(directory, ignore_errors=True)
    for spec in reversed(home.views.specs()):  # those that are built on others first
        if spec.name not in views:
            home.views.drop_view(spec.name)
