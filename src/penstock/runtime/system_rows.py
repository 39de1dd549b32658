"""The system tables: what is kept comes from the view store, what is true right now from the jobs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from penstock.catalog.system import find_system
from penstock.errors import InternalError, PenstockError
from penstock.runtime.batch_sizes import max_batch_rows
from penstock.runtime.dimension_report import dimension_rows, version_rows
from penstock.runtime.metrics import metric_rows
from penstock.runtime.record_places import record_places, with_places
from penstock.runtime.runs import kept_tracker
from penstock.runtime.states import JobState
from penstock.runtime.watermark_report import watermark_rows
from penstock.stores.arrow_types import arrow_type

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.runtime.engine import Engine
    from penstock.runtime.job import Job

_Positions = Mapping[str, Mapping[int, int]]  # by scan, where its partitions end
_ASKED_AT_ONCE: Final = 32


def system_table(engine: Engine, name: str, columns: Collection[str] | None = None) -> pa.Table:
    """A system table as it is now, with exactly its declared columns.

    The open windows of jobs are read out of Spark's state, which takes a second: only where `columns` asks for them.
    """
    short = name.lower().rpartition(".")[2]
    if short in engine.catalog_tables:
        return engine.catalog_tables[short](engine.session)
    if short == "window_aggregates":
        return _of_all_jobs(engine, name, lambda job: _without_ends(engine.open_windows(job)))
    if short == "triggers":
        return _of_all_jobs(engine, name, lambda job: _triggers(engine, job))
    if short == "join_buffers":
        return _of_all_jobs(engine, name, engine.join_buffers)
    if short == "watermarks":
        with_windows = columns is None or "pending_windows" in columns
        return rows_to_table(name, _watermarks(engine, with_windows=with_windows))
    if short in _LIVE:
        return rows_to_table(name, _LIVE[short](engine))
    found = engine.home.views.system_table(name)
    if found is None:
        raise InternalError(f"nobody answers {name}")
    return with_places(engine, found) if short in ("late_rows", "dead_letters") else found


def rows_to_table(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    """Rows of a system table in its declared columns; times are microseconds since 1970."""
    import pyarrow as pa

    table = find_system(name)
    assert table is not None
    columns: dict[str, pa.Array] = {}
    for column in table.columns:
        assert column.type is not None
        wanted = arrow_type(column.type)
        values = [row.get(column.name) for row in rows]
        if pa.types.is_timestamp(wanted):
            columns[column.name] = pa.array(values, pa.int64()).cast(wanted)
        elif pa.types.is_list(wanted) and pa.types.is_timestamp(wanted.value_type):
            columns[column.name] = pa.array(values, pa.list_(pa.int64())).cast(wanted)
        else:
            columns[column.name] = pa.array(values, wanted)
    return pa.table(columns)


def job_rows(engine: Engine) -> list[dict[str, Any]]:
    """What SHOW JOBS tells of each job. The lag has to be asked for, which takes as long as a broker that does not
    answer, however many jobs read from it."""
    jobs = tuple(engine.jobs.values())
    ends = _ends([job for job in jobs if _has_lag(job)])
    last_rows = engine.home.views.last_rows()
    return [
        {
            **_job_row(engine, job),
            "lag": _lag(job, ends[job.name]) if job.name in ends else None,
            "batch_rows": last_rows.get(job.name),
            "max_batch_rows": max_batch_rows(job.spec),
        }
        for job in jobs
    ]


def _job_row(engine: Engine, job: Job) -> dict[str, Any]:
    entry = engine.home.views.ledger(job.name)
    return {
        "name": job.name,
        "state": job.state.value,
        "sql": job.spec.sql,
        "batch_id": entry.batch_id if entry is not None else None,
        # That of the ledger: what a batch under way has found is only known when it is committed.
        "watermark": entry.watermark_us if entry is not None else None,
        "input_rows": int(entry.counters.get("input_rows", 0)) if entry is not None else 0,
        "restarts": job.restarts,
        "error": f"[{job.error.condition}] {job.error.message}" if job.error is not None else None,
        "started_at": job.started_at_us,
    }


def _has_lag(job: Job) -> bool:
    return job.last is not None and job.state not in (JobState.FAILED, JobState.RESTARTING)


def _lag(job: Job, latest: _Positions) -> int | None:
    """How many rows are there that the job has not committed."""
    if job.last is None:
        return None
    return sum(
        max(0, end - job.last.positions.get(scan, {}).get(partition, 0))
        for scan, ends in latest.items()
        for partition, end in ends.items()
    )


def _ends(jobs: Sequence[Job]) -> dict[str, _Positions]:
    """Where the input of each job ends now; without those that read from what does not answer. All are asked at once:
    who waits for one broker waits for all."""

    def ask(job: Job) -> _Positions | None:
        try:
            return job.current_positions()
        except PenstockError:
            return None

    if not jobs:
        return {}
    with ThreadPoolExecutor(min(len(jobs), _ASKED_AT_ONCE), thread_name_prefix="penstock-lag") as pool:
        found = zip(jobs, pool.map(ask, jobs), strict=True)
        return {job.name: ends for job, ends in found if ends is not None}


def _jobs(engine: Engine) -> list[dict[str, Any]]:
    return [_job_row(engine, job) for job in tuple(engine.jobs.values())]


def _watermarks(engine: Engine, *, with_windows: bool) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for job in engine.jobs.values():
        # What a job has reached is kept with its batches: it is there also where the job does not run.
        tracker = job.tracker or kept_tracker(job.spec, engine.home.views, engine.clock)
        if tracker is None:
            continue
        pending = _window_starts(engine, job) if with_windows else ()
        found += [
            {
                "job": row.job,
                "source": row.source,
                "partition": row.partition,
                "max_event_time": row.max_event_time,
                "current_watermark": row.current_watermark,
                "idle": row.idle,
                "pending_windows": list(row.pending_windows),
            }
            for row in watermark_rows(job.name, tracker, pending)
        ]
    return found


def _connector_offsets(engine: Engine) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    place_of = record_places(engine)
    jobs = tuple(engine.jobs.values())
    asked = _ends(jobs)
    for job in jobs:
        entry = engine.home.views.ledger(job.name)
        ends = asked.get(job.name, {})
        for kept in entry.offsets if entry is not None else ():
            end = ends.get(kept.connector_id, {}).get(kept.partition)
            topic, own = place_of(job.name, kept.connector_id, kept.partition)
            found.append(
                {
                    "connector_id": kept.connector_id,
                    "partition": kept.partition,
                    "offset": kept.offset,
                    "timestamp": kept.timestamp_us,
                    "job": job.name,
                    "end_offset": end - 1 if end is not None else None,
                    "lag": end - 1 - kept.offset if end is not None else None,
                    "topic": topic,
                    "topic_partition": own,
                }
            )
    return found


def _metrics(engine: Engine) -> list[dict[str, Any]]:
    import pyarrow as pa

    kept = engine.home.views.system_table("penstock.metrics")
    if kept is None:
        raise InternalError("nobody keeps penstock.metrics")
    place = kept.column_names.index("at")
    rows = kept.set_column(place, "at", kept.column("at").cast(pa.int64())).to_pylist()
    found = metric_rows(rows, tuple(engine.jobs.values()), engine.clock.now_us())
    for row in found:
        view = engine.jobs[row["job"]].spec.view if row["name"] == "state_rows" else None
        if view is not None:
            row["value"] += engine.home.views.kept_panes(view)
    return found


def _window_starts(engine: Engine, job: Job) -> tuple[int, ...]:
    """The starts of the windows that a job keeps open."""
    import pyarrow as pa

    state = engine.open_windows(job)
    return () if state is None else tuple(set(state.column("window_start").cast(pa.int64()).to_pylist()))


def _without_ends(windows: pa.Table | None) -> pa.Table | None:
    return None if windows is None else windows.drop_columns(["window_end"])


def _triggers(engine: Engine, job: Job) -> pa.Table | None:
    """What closes each open window of a job: its end, once the watermark is there."""
    import pyarrow as pa
    import pyarrow.compute as pc

    windows = engine.open_windows(job)
    if windows is None:
        return None
    ends = windows.column("window_end")
    watermark_us = job.last.watermark_ms * 1000 if job.last is not None else 0
    due = pc.less_equal(ends.cast(pa.int64()), watermark_us)
    return (
        windows.select(["key", "window_start", "window_end"])
        .append_column("state_key", windows.column("key"))
        .append_column("fired", due)
    )


def _of_all_jobs(engine: Engine, name: str, state_of: Callable[[Job], pa.Table | None]) -> pa.Table:
    """What Spark keeps for all jobs: the live groups of open windows, or joined rows."""
    import pyarrow as pa

    found = rows_to_table(name, [])
    for job in tuple(engine.jobs.values()):
        state = state_of(job)
        if state is not None:
            names = pa.array([job.name] * state.num_rows, pa.string())
            found = pa.concat_tables([found, state.add_column(0, "job", names).cast(found.schema)])
    return found


_LIVE: Final[Mapping[str, Callable[[Engine], list[dict[str, Any]]]]] = {
    "jobs": _jobs,
    "connector_offsets": _connector_offsets,
    "metrics": _metrics,
    "dimensions": dimension_rows,
    "dimension_versions": version_rows,
}
