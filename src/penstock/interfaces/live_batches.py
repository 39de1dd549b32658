"""The batches of a query that runs while somebody reads it, for an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.catalog.model import SourceDefinition
from penstock.options.settings import default_settings

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.plan.logical import LogicalPlan
    from penstock.plan.session import Session
    from penstock.runtime.live_queries import LiveQuery


async def live_batches(start: Callable[[], LiveQuery]) -> AsyncGenerator[pa.RecordBatch]:
    """Start a query and hand out its batches; whatever ends the loop, the query is closed.

    Waiting for rows takes a thread for long, and those of the event loop are few: so it has two of its own, the second
    to close the query while the first still waits.
    """
    threads = ThreadPoolExecutor(2, "penstock-stream")
    loop = asyncio.get_running_loop()
    query: LiveQuery | None = None
    starting = loop.run_in_executor(threads, start)
    try:
        query = await asyncio.shield(starting)
        while (batch := await loop.run_in_executor(threads, query.next_batch)) is not None:
            yield batch
    finally:
        if query is None:  # it failed, or the loop was cancelled while it starts
            with suppress(Exception):
                query = await starting
        if query is not None:
            await loop.run_in_executor(threads, query.close)
        threads.shutdown(wait=False)


def batch_rows(session: Session, plan: LogicalPlan) -> int:
    """The most rows of a batch for a reader: the least `batch_size` that a stream declares, else the setting."""
    read = {scan.relation for scan in plan.scans()}
    declared = [
        found.options.values["batch_size"]
        for found in session.catalog
        if isinstance(found, SourceDefinition) and found.name.text in read and "batch_size" in found.options.given
    ]
    setting = {**default_settings(), **session.settings}["batch_size"]
    return min(size for size in (declared or [setting]) if isinstance(size, int))
