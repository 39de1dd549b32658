"""How many rows a batch of a job may have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.connectors.custom import CustomSource
from penstock.connectors.reading import MAX_ROWS, MOST_OWN_ROWS, most_rows
from penstock.connectors.registry import source_of
from penstock.runtime.realtime import is_realtime

if TYPE_CHECKING:
    from penstock.runtime.job_spec import JobSpec


def max_batch_rows(spec: JobSpec) -> int | None:
    """The most rows that Spark reads for one batch, of all streams together; None where no number bounds it: in
    real-time mode, and where the commits of a view are the batches."""
    if not spec.sources or is_realtime(spec):
        return None
    asked = spec.options.max_rows_per_batch
    return sum(
        most_rows(
            source,
            asked,
            MOST_OWN_ROWS if isinstance(source_of(source.options.connector), CustomSource) else MAX_ROWS,
        )
        for source in spec.sources
    )
