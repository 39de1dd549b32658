"""The runs of stored jobs: where their scans begin, and what takes their rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.connectors.registry import source_of
from penstock.connectors.source import OutsideSource, ScanRequest
from penstock.runtime.runs import check_fingerprint, make_run
from penstock.runtime.sinks import shared_target, sink_target
from penstock.runtime.targets import Target, ViewTarget
from penstock.runtime.view_run import ViewRun
from penstock.runtime.view_sink_run import ViewSinkRun
from penstock.stores.views import SeenVersion

if TYPE_CHECKING:
    from penstock.runtime.engine import Engine
    from penstock.runtime.home import Home
    from penstock.runtime.job import Job
    from penstock.runtime.job_spec import JobSpec
    from penstock.runtime.run import Run
    from penstock.types import SqlType


def start_positions(home: Home, spec: JobSpec, keep: Path) -> dict[str, dict[int, int]]:
    """Where scans begin that do not begin at the oldest row, as of now; `keep` is the job's own directory."""
    found: dict[str, dict[int, int]] = {}
    for scan, definition in zip(spec.plan.scans, spec.sources, strict=True):
        source = source_of(definition.options.connector)
        if isinstance(source, OutsideSource):
            asked = ScanRequest(scan.id, definition, (), home.path, 0, spec.name, keep=keep)
            found[scan.id] = dict(source.first(asked))
            continue
        if definition.options.values.get("start") != "latest":
            continue
        request = ScanRequest(scan.id, definition, (), home.path, 0, spec.name)
        found[scan.id] = dict(source.latest(request))
    return found


def run_of_job(engine: Engine, job: Job, run_number: int) -> Run:
    """The next run of a job, by its definition as it is now."""
    from penstock.runtime.job_statements import spec_now

    spec = spec_now(engine, job.spec)
    check_fingerprint(spec, job.spec.plan.state)
    job.spec = spec
    home, clock = engine.home, engine.clock

    def versions() -> tuple[SeenVersion, ...]:
        return engine.dimensions.newest_of_views(spec.plan)

    def ended(run: Run) -> None:
        engine.run_ended(job, run)

    if spec.plan.of_views and spec.sink is not None:
        return ViewSinkRun(spec, home, clock, job.batch_done, ended, versions)
    if spec.plan.of_views:
        return ViewRun(spec, home.views, clock, job.batch_done, versions)
    facts = home.views.job_facts(job.name)
    home.views.save_job(job.name, run=run_number)
    first = {
        scan: {int(partition): int(offset) for partition, offset in positions.items()}
        for scan, positions in (facts.get("first") or {}).items()
    }
    return make_run(
        spec,
        spark=home.spark(spec.jar_sets),
        store=home.views,
        checkpoint=job.checkpoint,
        state_path=home.path,
        run_number=run_number,
        first=first,
        target=lambda types: _target(home, spec, types),
        clock=clock,
        functions=engine.functions,
        dimensions=engine.dimensions.of_job(spec, job.checkpoint),
        on_done=job.batch_done,
        on_end=ended,
        roots=home.roots,
    )


def _target(home: Home, spec: JobSpec, types: Mapping[str, SqlType]) -> Target:
    if spec.view is not None and spec.sink is None:
        return ViewTarget(spec.view, spec.plan, types)
    if spec.branches:
        return shared_target(spec, home)
    return sink_target(spec, home, types)
