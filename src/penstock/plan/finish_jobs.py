"""The jobs of queries that the view store answers: Spark hands rows over, or has no part in it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from penstock.errors import NotYetError
from penstock.plan.final_windows import late_rows_text, with_event_times
from penstock.plan.fingerprint import StateDescription
from penstock.plan.finishing import Finished, finished, only_adds
from penstock.plan.job_dimensions import kept_beside
from penstock.plan.job_model import JobPlan, OutputColumn
from penstock.plan.job_over import job_over
from penstock.plan.job_scans import job_scans
from penstock.plan.read_once import read_once
from penstock.plan.view_rows import parents_of, sink_words

if TYPE_CHECKING:
    from penstock.plan.final_windows import FinalWindows
    from penstock.plan.logical import LogicalPlan

_IN_SPARK: Final = (
    "leave the option out, and the view store keeps what the query needs; Spark keeps one GROUP BY over rows that are "
    "only added, with COUNT, SUM, AVG, MIN and MAX, also over DISTINCT values and with FILTER, or SELECT DISTINCT; "
    "with the option or without, it keeps rankings of windows that close and joins within a bound of time"
)


def finish_job(plan: LogicalPlan, state: str | None) -> JobPlan:
    """The job of a query whose rows the view store keeps, or some of them."""
    if state == "spark":
        raise NotYetError(
            "QUERY_NOT_YET",
            "a query that the view store answers, with state = 'spark', is not there yet",
            hint=_IN_SPARK,
        )
    made = finished(plan)
    if made.core is None:
        return _view_job(plan, made)
    core, together = read_once(made.core, plan)
    found = job_scans(plan, core, static=made.static)
    if made.windows is not None:
        found = with_event_times(plan, found)
    how = f"{made.how}; one reading of {' and '.join(together)} for all that is made of it" if together else made.how
    job = job_over(plan, found, "finish", found.tree, how=how, key=made.plan.unique or (), batch=made.batch)
    columns = tuple(OutputColumn(field.name, kind) for field, kind in zip(plan.columns, made.types, strict=True))
    more = _kept_facts(made)
    views = parents_of(made.plan)
    if views:
        more["views"] = [rows.read for rows in made.plan.rows if rows.of_view]
    if kept_dimensions := [rows.read for rows in made.plan.rows if rows.dimension]:
        more["dimensions"] = kept_dimensions
    kept = StateDescription(json.dumps({**json.loads(job.state), **more}, sort_keys=True))
    written = "; its changes are written to the sink" if views and plan.root.kind in ("sink", "topic") else ""
    if made.windows is not None:
        job = _following_time(job, made, made.windows)
    return replace(
        job,
        how=f"{job.how}{written}",
        columns=columns,
        finish=made.plan,
        state=kept.text,
        fingerprint=kept.fingerprint,
        views=views,
        dimensions=(*job.dimensions, *kept_beside(made.dimensions, job.dimensions)),
    )


def _kept_facts(made: Finished) -> dict[str, object]:
    """What of an answer another one differs by, so that it cannot go on with its state."""
    changed = {rows.relation: list(rows.changed_by) for rows in made.plan.rows if rows.changes is not None}
    more: dict[str, object] = {"answers": [stage.text for stage in made.plan.stages]}
    if changed:
        more["replaced by"] = changed
    if timed := {rows.relation: rows.shown_while for rows in made.plan.rows if rows.shown_while}:
        more["shown while"] = timed
    if fewer := {rows.relation: rows.words for rows in made.plan.rows if rows.fewer}:
        more["kept rows"] = fewer
    if any(stage.once for stage in made.plan.stages):
        more["once"] = [stage.once for stage in made.plan.stages]
    if any(stage.meets for stage in made.plan.stages):
        more["meets"] = [stage.meets for stage in made.plan.stages]
    if made.plan.view.pairs:
        more["pairs"] = True
    if made.windows is not None:
        more["closes"] = str(made.windows.spec)
    return more


def _following_time(job: JobPlan, made: Finished, windows: FinalWindows) -> JobPlan:
    """The job of windows that the view store closes as the watermark goes on."""
    views = {scan.relation: scan.view for scan in reversed(job.scans)}
    late = late_rows_text(windows, views, made.conditions)
    return replace(job, uses_event_time=True, spread_us=windows.spec.size_us, late=late)


def _view_job(plan: LogicalPlan, made: Finished) -> JobPlan:
    """The job of a query over materialized views alone: Spark has no part in it."""
    views = parents_of(made.plan)
    added = only_adds(plan)
    answers = [[rows.read for rows in made.plan.rows], [stage.text for stage in made.plan.stages]]
    described: dict[str, object] = {
        "scans": dict.fromkeys(views), "kept by": "the view store", "answers": answers
    }  # fmt: skip
    if timed := {rows.relation: rows.shown_while for rows in made.plan.rows if rows.shown_while}:
        described["shown while"] = timed
    if any(stage.meets for stage in made.plan.stages):
        described["meets"] = [stage.meets for stage in made.plan.stages]
    state = StateDescription(json.dumps(described, ensure_ascii=False, sort_keys=True))
    return JobPlan(
        kind="append" if added else "finish",
        scans=(),
        core="",
        steps=(),
        batch=None,
        reductions=(),
        merge=None,
        key=() if added else made.plan.unique or (),
        columns=tuple(OutputColumn(field.name, kind) for field, kind in zip(plan.columns, made.types, strict=True)),
        uses_event_time=False,
        spread_us=0,
        late=None,
        kept=(),
        fingerprint=state.fingerprint,
        state=state.text,
        how=sink_words(views, made.how, added=added) if plan.root.kind in ("sink", "topic") else made.how,
        finish=made.plan,
        views=views,
        dimensions=kept_beside(made.dimensions, ()),
    )
