"""`penstock.metrics`: what jobs have counted, as their ledgers keep it, and how they stand right now."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.runtime.job import Job


def metric_rows(kept: Iterable[dict[str, Any]], jobs: Iterable[Job], now_us: int) -> list[dict[str, Any]]:
    """The counters that are `kept` and the gauges of running jobs; nothing of jobs whose metrics are off."""
    found = tuple(jobs)
    silent = {job.name for job in found if not job.spec.measured}
    rows = [row for row in kept if row["job"] not in silent]
    for job in found:
        if job.name not in silent:
            rows += [
                {"job": job.name, "name": name, "value": float(value), "at": now_us}
                for name, value in sorted(_gauges(job, now_us).items())
            ]
    return sorted(rows, key=lambda row: (row["job"], row["name"]))


def _gauges(job: Job, now_us: int) -> dict[str, float]:
    """How long the last batch took, what Spark keeps and in how much memory, and how far event time is behind."""
    run = job.run
    if run is None or not job.state.active:
        return {}
    found: dict[str, float] = {}
    watermark_us = run.tracker.watermark_us
    if watermark_us is not None and job.spec.plan.uses_event_time:
        found["watermark_lag_ms"] = (now_us - watermark_us) // 1000
    with suppress(Exception):  # the query may end while it is asked
        progress = run.progress()
        if progress is not None:
            operators = progress.stateOperators
            found["batch_ms"] = progress.batchDuration
            found["state_rows"] = sum(operator.numRowsTotal for operator in operators)
            found["state_memory_bytes"] = sum(operator.memoryUsedBytes for operator in operators)
    return found
