"""Which versions of dimensions the view store is to have, for the rows of them that it keeps.

The list of a job says which version a batch sees, and never says another one of a batch that is planned. So a batch
that runs again after a crash is given what it was given before. A view without batches sees what is newest.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from penstock.errors import InternalError
from penstock.stores.dimension_pins import pinned, read_pins
from penstock.stores.dimensions import read_version
from penstock.stores.views import SeenVersion

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa

    from penstock.plan.job_plan import JobPlan
    from penstock.spark.dimension_frames import DimensionFrames
    from penstock.stores.dimensions import DimensionStore


def versions_of_batch(dimensions: Sequence[DimensionFrames], batch_id: int) -> tuple[SeenVersion, ...]:
    """The versions that a batch of a job sees."""
    found: list[SeenVersion] = []
    for frames in dimensions:
        if frames.method != "kept":
            continue
        name = frames.plan.relation
        number = frames.number if frames.pins is None else pinned(read_pins(frames.pins), name, batch_id)
        if number is None:
            raise InternalError(f"batch {batch_id} has no version of dimension {name}")
        found.append(SeenVersion(name, number, partial(_rows, name, frames.directory, number, frames.plan.columns)))
    return tuple(found)


def newest_versions(plan: JobPlan, store: DimensionStore) -> tuple[SeenVersion, ...]:
    """The newest versions of the dimensions whose rows a view without batches keeps."""
    found: list[SeenVersion] = []
    for dimension in plan.dimensions:
        name, number = dimension.relation, store.latest(dimension.relation).number
        found.append(SeenVersion(name, number, partial(_rows, name, store.directory(name), number, dimension.columns)))
    return tuple(found)


def _rows(name: str, directory: Path, number: int, columns: tuple[str, ...]) -> pa.Table:
    return read_version(name, directory, number).select(list(columns))
