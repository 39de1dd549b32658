"""What SHOW JOBS, EXPLAIN WATERMARK and EXPLAIN PHYSICAL answer, from the engine as it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.errors import RuntimeFailure, UnsupportedError
from penstock.runtime.runs import kept_tracker
from penstock.runtime.states import JobState
from penstock.runtime.watermark_report import explain_watermark

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.plan.script import StatementReport
    from penstock.runtime.engine import Engine


def jobs_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """SHOW JOBS."""
    import pyarrow as pa

    utc = pa.timestamp("us", tz="UTC")
    return pa.table(
        {
            "name": pa.array([row["name"] for row in rows], pa.string()),
            "state": pa.array([row["state"] for row in rows], pa.string()),
            "batch_id": pa.array([row["batch_id"] for row in rows], pa.int64()),
            "watermark": pa.array([row["watermark"] for row in rows], pa.int64()).cast(utc),
            "input_rows": pa.array([row["input_rows"] for row in rows], pa.int64()),
            "lag": pa.array([row["lag"] for row in rows], pa.int64()),
            "restarts": pa.array([row["restarts"] for row in rows], pa.int64()),
            "error": pa.array([row["error"] for row in rows], pa.string()),
            "batch_rows": pa.array([row["batch_rows"] for row in rows], pa.int64()),
            "max_batch_rows": pa.array([row["max_batch_rows"] for row in rows], pa.int64()),
        }
    )


def watermark_table(engine: Engine, name: str) -> pa.Table:
    """EXPLAIN WATERMARK: the partitions of a job, and in a sentence what holds its watermark back."""
    import pyarrow as pa

    job = engine.find_job(name)
    # What a job has reached is kept with its batches: it is there also where the job does not run.
    tracker = job.tracker or kept_tracker(job.spec, engine.home.views, engine.clock)
    if tracker is None:
        raise RuntimeFailure(
            "JOB_STATE",
            f"job {job.name} is {job.state} and has had no batch yet",
            hint="ask again in a moment"
            if job.state.active or job.state is JobState.CREATED
            else f"RESUME JOB {job.name}",
        )
    found = explain_watermark(job.name, tracker, engine.clock.now_us())
    sentence = found.sentence if job.state.active else f"{found.sentence}; job {job.name} is {job.state}"
    utc = pa.timestamp("us", tz="UTC")
    return pa.table(
        {
            "source": pa.array([row.source for row in found.rows], pa.string()),
            "partition": pa.array([row.partition for row in found.rows], pa.int32()),
            "max_event_time": pa.array([row.max_event_time for row in found.rows], pa.int64()).cast(utc),
            "watermark": pa.array([row.watermark for row in found.rows], pa.int64()).cast(utc),
            "state": pa.array([row.state for row in found.rows], pa.string()),
            "holds_back": pa.array([row.holds_back for row in found.rows], pa.bool_()),
            "explanation": pa.array([sentence] * len(found.rows), pa.string()),
        }
    )


def physical_table(engine: Engine, report: StatementReport) -> pa.Table:
    """EXPLAIN PHYSICAL: the plan of Spark."""
    import pyarrow as pa

    if report.plan is None:
        raise UnsupportedError(
            "UNSUPPORTED_STATEMENT",
            "there is no query to explain",
            hint="EXPLAIN PHYSICAL SELECT …",
            span=report.span,
        )
    text = engine.physical_plan(report.plan)
    return pa.table({"plan": pa.array(text.splitlines(), pa.string())})
