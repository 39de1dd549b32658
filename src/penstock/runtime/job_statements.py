"""From a definition or statement that starts a job to what the job is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.catalog.define import as_sink
from penstock.catalog.model import MaterializedViewDefinition, ObjectKey, SinkDefinition, SourceDefinition
from penstock.catalog.text import canonical_text
from penstock.errors import InternalError
from penstock.options import resolve_view_options, sink_job_options, with_options_of_reading
from penstock.plan.analyze import analyze
from penstock.plan.insert_options import insert_options
from penstock.plan.job_plan import plan_job
from penstock.plan.made_jobs import check_insert_options
from penstock.plan.shared_reads import insert_jobs, one_reading
from penstock.runtime.job_spec import Branch, JobSpec, changes_view
from penstock.runtime.realtime import check_realtime
from penstock.sql.script import parse_statement
from penstock.sql.statements import Insert, Name, StatementSet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.options.resolved import ResolvedViewOptions
    from penstock.plan.job_plan import JobPlan
    from penstock.plan.logical import LogicalPlan
    from penstock.plan.session import Session
    from penstock.runtime.engine import Engine


def sources_of(plan: JobPlan, session: Session) -> tuple[SourceDefinition, ...]:
    """The definition behind each scan of a job."""
    found: list[SourceDefinition] = []
    for scan in plan.scans:
        definition = session.catalog[ObjectKey("relation", scan.relation)]
        if not isinstance(definition, SourceDefinition):
            raise InternalError(f"a job reads {scan.relation}, which is no source")
        options = with_options_of_reading(definition.options, scan.reading)
        found.append(replace(definition, options=options) if scan.reading else definition)
    return tuple(found)


def reader_spec(
    engine: Engine, name: str, plan: JobPlan, view: str | None, options: ResolvedViewOptions | None = None
) -> JobSpec:
    """A query that nobody keeps, as a job: it runs while somebody reads it, and no statement stands behind it."""
    return JobSpec(
        name=name,
        kind="ephemeral",
        sql="",
        plan=plan,
        sources=sources_of(plan, engine.session),
        options=options or reader_options(engine, name),
        session=engine.session,
        view=view,
    )


def reader_options(engine: Engine, name: str) -> ResolvedViewOptions:
    """What the settings say of such a job."""
    return resolve_view_options((), Name(name), engine.session.settings)


def spec_now(engine: Engine, spec: JobSpec) -> JobSpec:
    """A job as the catalog defines it now: what ALTER changes counts from the next start of the jobs it concerns."""
    key = ObjectKey("relation", spec.name)
    owner = engine.session.catalog[key] if spec.kind in ("view", "sink") and key in engine.session.catalog else None
    if isinstance(owner, MaterializedViewDefinition) and owner.text != spec.sql:
        return view_spec(engine, owner)
    if isinstance(owner, SinkDefinition) and owner.text != spec.sql:
        return sink_spec(engine, owner)
    return replace(spec, sources=sources_of(spec.plan, engine.session))


def view_spec(engine: Engine, definition: MaterializedViewDefinition) -> JobSpec:
    """The job of a materialized view."""
    session = engine.session_of(definition)
    logical = analyze(parse_statement(definition.text), session).plan
    if logical is None:
        raise InternalError(f"materialized view {definition.name} has no plan")
    return make_view_spec(definition, logical, session)


def make_view_spec(definition: MaterializedViewDefinition, logical: LogicalPlan, session: Session) -> JobSpec:
    """The job of a view whose query is planned."""
    plan = plan_job(logical, state=definition.options.state)
    spec = JobSpec(
        name=definition.name.text,
        kind="view",
        sql=definition.text,
        plan=plan,
        sources=sources_of(plan, session),
        options=definition.options,
        session=session,
        view=definition.name.text,
    )
    check_realtime(spec)
    return spec


def sink_spec(engine: Engine, definition: SinkDefinition) -> JobSpec:
    """The job of CREATE SINK … AS SELECT."""
    session = engine.session_of(definition)
    logical = analyze(parse_statement(definition.text), session).plan
    if logical is None:
        raise InternalError(f"sink {definition.name} has no query")
    return make_sink_spec(definition, logical, session)


def make_sink_spec(definition: SinkDefinition, logical: LogicalPlan, session: Session) -> JobSpec:
    """The job of a sink whose query is planned. Of a query whose rows change, a view that nobody sees is kept."""
    options = sink_job_options(definition.options, definition.name, session.settings)
    check_insert_options(options)
    plan = plan_job(logical, state=options.state)
    spec = JobSpec(
        name=definition.name.text,
        kind="sink",
        sql=definition.text,
        plan=plan,
        sources=sources_of(plan, session),
        options=options,
        session=session,
        view=None if plan.kind == "append" else changes_view(definition.name.text),
        sink=definition,
    )
    check_realtime(spec)
    return spec


def insert_spec(engine: Engine, text: str) -> JobSpec:
    """The job of a stored INSERT."""
    statement = parse_statement(text)
    if isinstance(statement, StatementSet):
        return make_set_spec(statement.inserts, analyze(statement, engine.session).plans, engine.session)
    if not isinstance(statement, Insert):
        raise InternalError("the statement of a job is no INSERT")
    logical = analyze(statement, engine.session).plan
    if logical is None:
        raise InternalError("an INSERT has no plan")
    return make_insert_spec(statement, logical, engine.session)


def make_insert_spec(statement: Insert, logical: LogicalPlan, session: Session) -> JobSpec:
    """The job of an INSERT whose query is planned."""
    options = insert_options(statement, session)
    check_insert_options(options)
    found = session.catalog.get(statement.target)
    sink = as_sink(found, statement.target)
    plan = plan_job(logical, state=options.state)
    name = options.job_name or f"insert_{found.name.text}"
    spec = JobSpec(
        name=name,
        kind="insert",
        sql=canonical_text(statement),
        plan=plan,
        sources=sources_of(plan, session),
        options=options,
        session=session,
        view=None if plan.kind == "append" else changes_view(name),
        sink=sink,
        columns=tuple(name.text for name in statement.columns),
    )
    check_realtime(spec)
    return spec


def make_set_spec(inserts: Sequence[Insert], plans: Sequence[LogicalPlan], session: Session) -> JobSpec:
    """The job of several INSERTs that share one reading; see `plan.shared_reads`."""
    (job,) = insert_jobs(inserts, plans, session)
    each = [make_insert_spec(insert, plan, session) for insert, plan in zip(inserts, plans, strict=True)]
    (source,) = each[0].sources
    plan = one_reading([one.plan for one in each], [entry.name for entry in source.columns])
    branches = []
    for one in each:
        assert one.sink is not None, "an INSERT has a target"
        branches.append(Branch(one.plan.core, one.sink, one.columns))
    return replace(
        each[0],
        name=job.name,
        sql=canonical_text(StatementSet(inserts=tuple(inserts))),
        plan=plan,
        sink=None,
        columns=(),
        branches=tuple(branches),
    )
