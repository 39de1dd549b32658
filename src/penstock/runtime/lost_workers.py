"""Python workers of Spark that end while they run functions of the user: by `os._exit`, by a crash, killed for memory.

Spark can say no more than that a worker is gone. That may pass, as when the machine was short of memory for a moment,
so the job is started again; but a function that ends its process on a row would do so for ever. A job that loses its
workers some times in a row, with no batch done in between, has failed, and its functions are named.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from penstock.errors import PenstockError, RuntimeFailure
from penstock.plan.computed import computed_functions

if TYPE_CHECKING:
    from penstock.runtime.job import Job

_GONE: Final = re.compile(r"Python worker exited unexpectedly")
_TRIES: Final = 3


class LostWorkers:
    """How often in a row the jobs of an engine have lost their workers."""

    def __init__(self) -> None:
        self._times: dict[str, int] = {}

    def lasting(self, job: Job, error: PenstockError) -> PenstockError | None:
        """The error with which a run has ended, where it has ended so too often; else None."""
        if not worker_gone(error):
            self._times.pop(job.name, None)
            return None
        times = 1 if job.last is not None else self._times.get(job.name, 0) + 1
        found = gone_in_functions(f"job {job.name}", error, functions_of(job)) if times >= _TRIES else None
        if found is None:
            self._times[job.name] = times
        else:
            self._times.pop(job.name)  # whoever starts it now has mended something
        return found


def functions_of(job: Job) -> Sequence[str]:
    """The functions of the user that a job calls, in its query or in the columns of its sources."""
    spec = job.spec
    computed = [name for source in spec.sources for name in computed_functions(source, spec.session.catalog)]
    return tuple(dict.fromkeys([*spec.plan.functions, *computed]))


def worker_gone(error: PenstockError) -> bool:
    """Whether Spark says that a Python worker has ended."""
    return error.condition == "SPARK_FAILED" and _GONE.search(f"{error.message} {error.detail or ''}") is not None


def gone_in_functions(where: str, error: PenstockError, functions: Sequence[str]) -> RuntimeFailure | None:
    """An error of Spark as FUNCTION_FAILED, where a worker is gone that ran functions of the user; else None."""
    if not functions or not worker_gone(error):
        return None
    named = f"function {functions[0]}" if len(functions) == 1 else f"one of the functions {', '.join(functions)}"
    return RuntimeFailure(
        "FUNCTION_FAILED",
        f"{where}: a Python worker ended while it ran {named}",
        hint="look for what ends a process: os._exit, a crash in a native library, more memory than there is; what "
        "workers print is in logs/ of the state directory",
        detail=error.detail,
    )
