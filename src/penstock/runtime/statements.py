"""What a statement does when it is run: one function for each kind. Statements that only look are answered above."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import singledispatch
from typing import TYPE_CHECKING

from penstock.catalog.function_body import read_body
from penstock.catalog.model import (
    FunctionDefinition,
    MaterializedViewDefinition,
    ObjectKey,
    SinkDefinition,
)
from penstock.errors import CatalogError, InternalError, PenstockError, UnsupportedError
from penstock.plan.made_jobs import reads_once
from penstock.plan.shared_reads import insert_jobs
from penstock.runtime import job_control
from penstock.runtime.error_places import place
from penstock.runtime.inserts import insert_rows
from penstock.runtime.job_spec import JobSpec
from penstock.runtime.job_statements import make_insert_spec, make_set_spec, make_sink_spec, make_view_spec
from penstock.runtime.queries import answer
from penstock.runtime.retries import retry_dead_letters
from penstock.runtime.runs import check_fingerprint
from penstock.runtime.topic_partitions import refuse_fewer
from penstock.sql import statements as s
from penstock.stores.views import Answer

if TYPE_CHECKING:
    from penstock.catalog.model import Definition
    from penstock.plan.analysis import Analysis
    from penstock.plan.logical import LogicalPlan
    from penstock.plan.script import StatementReport
    from penstock.runtime.engine import Engine


def run_statement(engine: Engine, report: StatementReport) -> Answer | None:
    """Do what an analysed statement says; the answer of a query, None for the others."""
    engine.check_open()
    if report.error is not None:
        raise report.error
    if report.statement is None or report.analysis is None:
        raise InternalError("a statement without analysis")
    try:
        if isinstance(report.statement, s.Select):
            return answer(engine, _only_plan(report.analysis), report.span)
        with engine.turn:
            _run(report.statement, engine, report.analysis)
    except PenstockError as error:
        place(error, report)
        raise
    return None


def _only_plan(analysis: Analysis) -> LogicalPlan:
    if analysis.plan is None:
        raise InternalError("a query without a plan")
    return analysis.plan


@singledispatch
def _run(statement: s.Statement, engine: Engine, analysis: Analysis) -> None:
    raise InternalError(f"nobody runs {type(statement).__name__}")


@_run.register(s.CreateFunction)
def _define_function(statement: s.CreateFunction, engine: Engine, analysis: Analysis) -> None:
    """The function is loaded once, so that what is wrong with it is told here and not when a job starts."""
    definition = analysis.definition
    if not isinstance(definition, FunctionDefinition):
        raise InternalError("CREATE FUNCTION defined something else")
    if definition.expression is not None:
        _define_in_sql(statement, engine, analysis, definition)
        return
    engine.functions.check_place(definition)
    if read_body(definition.body, definition.name.text).kind != "registered":
        engine.functions.call(definition)
    engine.put_catalog(analysis.session)


def _define_in_sql(
    statement: s.CreateFunction, engine: Engine, analysis: Analysis, definition: FunctionDefinition
) -> None:
    """The body of a function in SQL is part of the jobs that call it, which go on with it as it was."""
    if not _unchanged(engine, definition.object_key, analysis):
        _refuse_below_jobs(engine, definition.object_key, statement.name)
    engine.put_catalog(analysis.session)


@_run.register(s.CreateRelation)
@_run.register(s.CreateView)
def _define_relation(statement: s.CreateRelation | s.CreateView, engine: Engine, analysis: Analysis) -> None:
    definition = analysis.definition
    if definition is not None and not _unchanged(engine, definition.object_key, analysis):
        _refuse_below_jobs(engine, definition.object_key, statement.name)
    engine.put_catalog(analysis.session)


@_run.register(s.CreateSecret)
@_run.register(s.CreateConnection)
def _define(statement: s.Statement, engine: Engine, analysis: Analysis) -> None:
    engine.put_catalog(analysis.session)


def _refuse_below_jobs(engine: Engine, key: ObjectKey, name: s.Name) -> None:
    """A job goes on with the query it was created with: what that query reads must not change below it."""
    before = engine.session.catalog
    if key not in before:
        return
    built = {item.name.text for item in before.dependents(key)}
    uses = _holds if key.space == "function" else JobSpec.uses
    built |= {job.name for job in engine.jobs.values() if uses(job.spec, before[key].name.text)}
    jobs = sorted(built & engine.jobs.keys())
    if jobs:
        raise CatalogError(
            "DEPENDENT_OBJECTS",
            f'"{name}" cannot be replaced: job {", ".join(jobs)} {"calls" if key.space == "function" else "reads"} it',
            hint="drop what is built on it first, or create the new one under another name",
            span=name.span,
        )


def _holds(spec: JobSpec, function: str) -> bool:
    """Whether a job calls a function, or has its body in it."""
    return function in spec.plan.functions or function in spec.plan.in_place


@_run.register(s.CreateMaterializedView)
def _create_view(statement: s.CreateMaterializedView, engine: Engine, analysis: Analysis) -> None:
    definition = analysis.definition
    if not isinstance(definition, MaterializedViewDefinition):
        raise InternalError("CREATE MATERIALIZED VIEW defined something else")
    if _unchanged(engine, definition.object_key, analysis):
        return
    spec = make_view_spec(definition, _only_plan(analysis), analysis.session)  # refuses before anything is written
    _refuse_below_jobs(engine, definition.object_key, statement.name)
    _make_way(engine, definition.object_key)
    engine.put_catalog(analysis.session)
    _start_or_undo(engine, definition.object_key, lambda: engine.start_job(spec))


@_run.register(s.CreateSink)
def _create_sink(statement: s.CreateSink, engine: Engine, analysis: Analysis) -> None:
    definition = analysis.definition
    if not isinstance(definition, SinkDefinition):
        raise InternalError("CREATE SINK defined something else")
    if _unchanged(engine, definition.object_key, analysis):
        return
    if statement.query is None:
        engine.put_catalog(analysis.session)
        return
    spec = make_sink_spec(definition, _only_plan(analysis), analysis.session)
    _make_way(engine, definition.object_key)
    engine.put_catalog(analysis.session)
    _start_or_undo(engine, definition.object_key, lambda: engine.start_job(spec))


def _unchanged(engine: Engine, key: ObjectKey, analysis: Analysis) -> bool:
    """Whether the object was there before, as the statement defines it."""
    before, after = engine.session.catalog, analysis.session.catalog
    return key in before and key in after and before[key] is after[key]


def _make_way(engine: Engine, key: ObjectKey) -> None:
    """CREATE OR REPLACE: the job that was there, its rows and its state go."""
    if key in engine.session.catalog and key.name in engine.jobs:
        engine.drop_job(key.name)


def _start_or_undo(engine: Engine, key: ObjectKey, start: Callable[[], object]) -> None:
    try:
        start()
    except BaseException:
        session = engine.session
        if key in session.catalog:
            found = session.catalog[key]
            kind: s.ObjectKind = "SINK" if isinstance(found, SinkDefinition) else "MATERIALIZED VIEW"
            catalog, _ = session.catalog.drop(found.name, kind)
            engine.drop(session.with_catalog(catalog))
        raise


@_run.register(s.Drop)
def _drop(statement: s.Drop, engine: Engine, analysis: Analysis) -> None:
    before, after = engine.session.catalog, analysis.session.catalog
    gone = {item.name.text for item in before if isinstance(item, FunctionDefinition) and item.object_key not in after}
    # Objects that call a function are in the catalog; the jobs of INSERTs are not.
    inserts = [job for job in engine.jobs.values() if job.spec.kind == "insert"]
    for job in [job for job in inserts if any(_holds(job.spec, name) for name in gone)]:
        if not statement.cascade:
            raise CatalogError(
                "DEPENDENT_OBJECTS",
                f"function {statement.name} cannot be dropped: job {job.name} calls it",
                hint="say CASCADE to end the job, too",
                span=statement.name.span,
            )
        engine.drop_job(job.name)
    engine.drop(analysis.session)


@_run.register(s.Alter)
def _alter(statement: s.Alter, engine: Engine, analysis: Analysis) -> None:
    if statement.action == "rename" and statement.name.text in engine.jobs:
        raise UnsupportedError(
            "UNSUPPORTED_STATEMENT",
            f'"{statement.name}" has a job and cannot be renamed while it is there',
            hint="create it under the new name and drop the old one",
            span=statement.name.span,
        )
    before, after = engine.session.catalog.find(statement.name), analysis.session.catalog.find(statement.name)
    if before is not None and after is not None:
        refuse_fewer(engine.home, before, after)
        _refuse_other_state(engine, after, analysis)
    engine.put_catalog(analysis.session)


def _refuse_other_state(engine: Engine, after: Definition, analysis: Analysis) -> None:
    """Refuse an ALTER under which the job could not go on from the state it has."""
    job = engine.jobs.get(after.name.text)
    if job is None or analysis.plan is None:
        return
    if isinstance(after, MaterializedViewDefinition):
        check_fingerprint(make_view_spec(after, analysis.plan, analysis.session), job.spec.plan.state)
    elif isinstance(after, SinkDefinition):
        check_fingerprint(make_sink_spec(after, analysis.plan, analysis.session), job.spec.plan.state)


@_run.register(s.Insert)
def _insert(statement: s.Insert, engine: Engine, analysis: Analysis) -> None:
    plan = _only_plan(analysis)
    if reads_once(plan):
        insert_rows(engine, statement, plan)
        return
    _start_insert(engine, make_insert_spec(statement, plan, engine.session), statement)


def _start_insert(engine: Engine, spec: JobSpec, statement: s.Insert) -> None:
    """Start the job of an INSERT, or of several that begin with this one, unless it is there."""
    running = engine.jobs.get(spec.name)
    if running is not None:
        if running.spec.sql == spec.sql:
            engine.notices.append(f"job {spec.name} is there already")
            return
        raise CatalogError(
            "OBJECT_EXISTS",
            f"job {spec.name} runs another INSERT",
            hint="name this one: INSERT INTO … WITH (job_name = '…') SELECT …",
            span=statement.target.span,
        )
    engine.start_job(spec, statement=spec.sql)


@_run.register(s.StatementSet)
def _statement_set(statement: s.StatementSet, engine: Engine, analysis: Analysis) -> None:
    together: dict[int, tuple[int, ...]] = {}  # by place, the INSERTs of the job that begins there
    for job in insert_jobs(statement.inserts, analysis.plans, engine.session):
        together |= dict.fromkeys(job.places, ()) | {job.places[0]: job.places}
    for number, (insert, plan) in enumerate(zip(statement.inserts, analysis.plans, strict=True)):
        places = together.get(number, (number,))
        if len(places) > 1:
            inserts = [statement.inserts[each] for each in places]
            plans = [analysis.plans[each] for each in places]
            _start_insert(engine, make_set_spec(inserts, plans, engine.session), insert)
        elif places:
            _insert(insert, engine, replace(analysis, plans=(plan,)))


@_run.register(s.ControlJob)
def _control(statement: s.ControlJob, engine: Engine, analysis: Analysis) -> None:
    name = statement.name.text
    if statement.action == "PAUSE":
        job_control.pause(engine, name)
    elif statement.action == "RESUME":
        job_control.resume(engine, name)
    elif statement.action == "RESTART":
        job_control.restart(engine, name)
    elif statement.action == "DROP":
        if name.casefold() in map(str.casefold, engine.jobs):
            engine.drop_job(name)
        engine.session = engine.session.without_job(name)
    elif statement.drain:
        job_control.drain(engine, name, timeout=600.0)
    else:
        job_control.stop(engine, name)


@_run.register(s.AdvanceWatermark)
def _advance(statement: s.AdvanceWatermark, engine: Engine, analysis: Analysis) -> None:
    stream = engine.session.catalog.get(statement.stream)
    job_control.advance_watermark(engine, stream.name.text, statement.timestamp_us)


@_run.register(s.RetryDeadLetters)
def _retry(statement: s.RetryDeadLetters, engine: Engine, analysis: Analysis) -> None:
    retry_dead_letters(engine, None if statement.job is None else statement.job.text, analysis.plan)


@_run.register(s.SetSetting)
@_run.register(s.ResetSetting)
def _setting(statement: s.Statement, engine: Engine, analysis: Analysis) -> None:
    engine.session = analysis.session
