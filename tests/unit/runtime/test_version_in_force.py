"""Which version of a dimension is shown: one that jobs at work have been told of (L10, L13)."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from penstock.runtime.dimensions import Dimensions
from penstock.runtime.states import JobState
from penstock.stores.dimension_pins import pin, pins_file
from penstock.stores.dimensions import DimensionStore


def test_a_version_is_in_force_when_the_jobs_that_run_know_of_it(tmp_path: Path) -> None:
    store = DimensionStore(tmp_path / "dimensions")
    jobs = [
        SimpleNamespace(
            state=state,
            checkpoint=tmp_path / f"job{number}" / "checkpoint",
            spec=SimpleNamespace(looks_up=lambda name: name == "d"),
        )
        for number, state in enumerate((JobState.RUNNING, JobState.RUNNING, JobState.STOPPED))
    ]
    engine: Any = SimpleNamespace(home=SimpleNamespace(dimensions=store), all_jobs=lambda: jobs)
    dimensions = Dimensions(engine)
    first = store.add("d", pa.table({"id": [1]}), 0)
    assert dimensions.in_force("d") == first, "jobs that have pinned nothing find the newest"
    for job in jobs:
        pin(pins_file(job.checkpoint), "d", 0, first.number)
    second = store.add("d", pa.table({"id": [1, 2]}), 0)
    assert dimensions.in_force("d") == first
    pin(pins_file(jobs[0].checkpoint), "d", 5, second.number)
    assert dimensions.in_force("d") == first, "the other one that runs was not told yet"
    pin(pins_file(jobs[1].checkpoint), "d", 5, second.number)
    assert dimensions.in_force("d") == second, "one that does not run is told when it starts"
