"""Queries that run while somebody reads them, whatever keeps their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from penstock.plan.job_plan import plan_job
from penstock.runtime.ephemeral import EphemeralQuery
from penstock.runtime.view_query import ViewQuery

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.plan.logical import LogicalPlan
    from penstock.runtime.engine import Engine


class LiveQuery(Protocol):
    """A running query. Any thread may close it."""

    def start(self, timeout: float) -> None:
        """Start it, and wait until it runs."""

    def next_batch(self) -> pa.RecordBatch | None:
        """The next rows; None when it has ended."""

    def collect(self, timeout: float) -> pa.Table:
        """Read all there is now, close every window, and return the whole result."""

    def close(self) -> None:
        """End it and remove what it left."""


def live_query(engine: Engine, logical: LogicalPlan, *, batch_rows: int, keep_rows: bool = False) -> LiveQuery:
    """A query that is ready to start. What it reads of materialized views changes in the store that keeps those, so
    its own rows are kept there, too; else they are nobody's but its reader's.

    `keep_rows`: for `collect`, instead of `next_batch`.
    """
    plan = plan_job(logical)
    if plan.views:
        return ViewQuery(engine, logical, plan, batch_rows=batch_rows)
    return EphemeralQuery(engine, logical, plan, batch_rows=batch_rows, keep_rows=keep_rows)
