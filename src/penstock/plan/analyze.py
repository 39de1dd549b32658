"""What a statement does to a session, and the plan of the query in it. Pure: nothing runs, nothing is stored."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from sqlglot import exp

from penstock.catalog.define import (
    Surroundings,
    as_sink,
    check_partition_columns,
    define_connection,
    define_function,
    define_secret,
    define_sink,
    define_source,
)
from penstock.catalog.model import (
    ColumnDefinition,
    Definition,
    EventTime,
    MaterializedViewDefinition,
    ObjectKey,
    SinkDefinition,
    SourceDefinition,
    ViewDefinition,
)
from penstock.catalog.text import canonical_text
from penstock.errors import InternalError, NotYetError, PenstockError, ResolutionError, UnsupportedError
from penstock.options import (
    option_slot,
    resolve_subscribe_options,
    resolve_view_options,
    sink_job_options,
)
from penstock.plan import analyze_jobs  # noqa: F401 - says what its statements do
from penstock.plan.analysis import Analysis, by_statement
from penstock.plan.computed import computed_functions, function_binder, with_computed_types
from penstock.plan.insert_options import insert_options
from penstock.plan.kept_groups import with_changes_of_groups
from penstock.plan.logical import LogicalPlan
from penstock.plan.made_jobs import grows_by_batches
from penstock.plan.queries import OutputKind, kept_output, plan_output
from penstock.plan.session import Session
from penstock.plan.shared_reads import insert_jobs
from penstock.plan.sink_fit import cannot_update, check_sink, forced_to_append, with_query_key
from penstock.plan.sql_functions import checked_function
from penstock.plan.subscriptions import changing_query, check_subscription, subscription_key
from penstock.plan.topic_forms import told_of_changes
from penstock.plan.ttl import with_ttl
from penstock.sql import statements as s
from penstock.sql.spans import span_of


def analyze(statement: s.Statement, session: Session) -> Analysis:
    """What a statement does; raises an error of our tree where it cannot be done."""
    return by_statement(statement, session)


def _surroundings(session: Session) -> Surroundings:
    catalog = None if session.lenient else session.catalog
    return Surroundings(catalog=catalog, settings=session.settings, secrets=session.secrets)


def _put(
    session: Session, definition: Definition, *, or_replace: bool, if_not_exists: bool
) -> tuple[Session, tuple[str, ...]]:
    catalog, notices = session.catalog.put(definition, or_replace=or_replace, if_not_exists=if_not_exists)
    return session.with_catalog(catalog), notices


def _notices(plan: LogicalPlan, *more: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*plan.warnings, *(text for group in more for text in group)]))


# definitions


@by_statement.register
def _create_relation(statement: s.CreateRelation, session: Session) -> Analysis:
    definition = define_source(statement, _surroundings(session))
    if isinstance(definition, SourceDefinition):
        definition = with_computed_types(definition, session)
        called = [ObjectKey("function", name) for name in computed_functions(definition, session.catalog)]
        definition = replace(definition, depends_on=tuple(dict.fromkeys((*definition.depends_on, *called))))
    told = told_of_changes(definition, session.catalog)
    session, notices = _put(session, definition, or_replace=statement.or_replace, if_not_exists=statement.if_not_exists)
    return Analysis(session, notices=(*definition.options.notices, *notices, *told), definition=definition)


def _plan_into(
    session: Session,
    query: s.Query,
    sink: SinkDefinition,
    columns: tuple[s.Name, ...],
    kind: OutputKind,
    state: str | None,
) -> LogicalPlan:
    """The plan of a query that is written to a sink, checked against it."""
    try:
        plan = plan_output(
            session,
            query,
            kind,
            target=sink.name.text,
            connector=sink.options.connector,
            by_position=bool(sink.columns),
            state=state,
        )
    except NotYetError as error:
        if error.condition == "UPDATING_INPUT" and sink.options.changes == "append":
            # Not there yet would be half the truth: this sink can never take what the query gives.
            raise cannot_update(sink, error.mode or "upsert", error.span) from None
        raise
    check_sink(plan, sink, columns, query)
    if sink.options.changes == "append" and not session.lenient and grows_by_batches(plan):
        raise cannot_update(sink, "upsert", span_of(query.tree))
    target = sink.into.text if sink.into is not None else sink.name.text
    if target in plan.depends_on:
        plan = replace(
            plan, warnings=(*plan.warnings, f'the query reads "{target}", which it writes to: it feeds itself')
        )
    return plan


@by_statement.register
def _create_sink(statement: s.CreateSink, session: Session) -> Analysis:
    plan: LogicalPlan | None = None
    definition = define_sink(statement, replace(_surroundings(session), catalog=session.catalog))
    if statement.query is not None:
        state = sink_job_options(definition.options, definition.name, session.settings).state
        try:
            plan = _plan_into(session, statement.query, definition, (), "sink", state)
        except UnsupportedError as error:
            clause = () if statement.format is None else statement.format.options
            raise forced_to_append(error, definition, (*statement.options, *clause)) from None
        reads = tuple(dict.fromkeys((*definition.depends_on, *_keys(session, plan))))
        definition = replace(definition, depends_on=reads, columns=definition.columns or _columns(plan))
        definition = with_query_key(definition, plan)
        if not _open(plan):
            check_partition_columns(definition, statement.with_span)
    told = told_of_changes(definition, session.catalog)
    session, notices = _put(session, definition, or_replace=statement.or_replace, if_not_exists=statement.if_not_exists)
    notices = (*notices, *told)
    if plan is None:
        return Analysis(session, notices=(*definition.options.notices, *notices), definition=definition)
    session = session.with_job(statement.name.text)
    return Analysis(session, (plan,), _notices(plan, definition.options.notices, notices), definition)


def _keys(session: Session, plan: LogicalPlan) -> tuple[ObjectKey, ...]:
    keys = [ObjectKey("relation", name) for name in plan.depends_on if ObjectKey("relation", name) in session.catalog]
    called = [ObjectKey("function", name) for name in (*plan.functions, *plan.in_place)]
    return (*keys, *(key for key in called if key in session.catalog))


def _columns(plan: LogicalPlan) -> tuple[ColumnDefinition, ...]:
    return tuple(ColumnDefinition(field.name, field.type, nullable=field.nullable) for field in plan.columns)


def _event_time(plan: LogicalPlan) -> EventTime | None:
    found = plan.root.event_time
    if found is None or not any(field.name == found.column for field in plan.columns):
        return None
    return EventTime(found.column, found.delay_us, found.declared)


@by_statement.register
def _create_view(statement: s.CreateView, session: Session) -> Analysis:
    plan = plan_output(session, statement.query, "view", target=statement.name.text, names=statement.columns)
    definition = ViewDefinition(
        name=statement.name,
        columns=_columns(plan) if not _open(plan) else (),
        query=statement.query,
        event_time=_event_time(plan),
        mode=plan.mode.value,
        bounded=plan.bounded,
        temporary=statement.temporary,
        depends_on=_keys(session, plan),
        text=canonical_text(statement),
    )
    session, notices = _put(session, definition, or_replace=statement.or_replace, if_not_exists=statement.if_not_exists)
    return Analysis(session, (plan,), _notices(plan, notices), definition)


def _open(plan: LogicalPlan) -> bool:
    return any(field.name == "*" for field in plan.columns)


@by_statement.register
def _create_materialized(statement: s.CreateMaterializedView, session: Session) -> Analysis:
    options = resolve_view_options(statement.options, statement.name, session.settings)
    plan = plan_output(
        session,
        statement.query,
        "materialized view",
        target=statement.name.text,
        names=statement.columns,
        state=options.state,
    )
    if options.state_ttl:
        kept = partial(kept_output, session, statement.query, statement.name.text, statement.columns)
        plan = with_ttl(plan, options.state_ttl, kept, asked="state_ttl" not in options.from_settings)
    plan = with_changes_of_groups(plan)
    definition = MaterializedViewDefinition(
        name=statement.name,
        columns=_columns(plan) if not _open(plan) else (),
        query=statement.query,
        options=options,
        mode=plan.mode.value,
        key=plan.root.key or (),
        event_time=_event_time(plan),
        depends_on=_keys(session, plan),
        text=canonical_text(statement),
    )
    session, notices = _put(session, definition, or_replace=statement.or_replace, if_not_exists=statement.if_not_exists)
    return Analysis(
        session.with_job(statement.name.text), (plan,), _notices(plan, options.notices, notices), definition
    )


@by_statement.register
def _create_function(statement: s.CreateFunction, session: Session) -> Analysis:
    definition = define_function(statement)
    told: list[str] = []
    if definition.expression is not None:
        binder = function_binder(session, told.append)
        definition = checked_function(definition, session.catalog, binder)
    session, notices = _put(session, definition, or_replace=statement.or_replace, if_not_exists=statement.if_not_exists)
    return Analysis(session, notices=(*notices, *dict.fromkeys(told)), definition=definition)


@by_statement.register
def _create_secret(statement: s.CreateSecret, session: Session) -> Analysis:
    definition = define_secret(statement, session.secrets.get(statement.name.text))
    session, notices = _put(session, definition, or_replace=statement.or_replace, if_not_exists=statement.if_not_exists)
    return Analysis(session, notices=notices, definition=definition)


@by_statement.register
def _create_connection(statement: s.CreateConnection, session: Session) -> Analysis:
    definition = define_connection(statement, None if session.lenient else session.catalog)
    session, notices = _put(session, definition, or_replace=statement.or_replace, if_not_exists=statement.if_not_exists)
    return Analysis(session, notices=notices, definition=definition)


@by_statement.register
def _drop(statement: s.Drop, session: Session) -> Analysis:
    if session.lenient and statement.kind != "CONNECTION" and session.catalog.find(statement.name) is None:
        return Analysis(session)
    catalog, notices = session.catalog.drop(
        statement.name, statement.kind, cascade=statement.cascade, if_exists=statement.if_exists
    )
    gone = {item.name.text for item in session.catalog if item.object_key not in catalog}
    return Analysis(replace(session, catalog=catalog, jobs=session.jobs - gone), notices=notices)


@by_statement.register
def _alter(statement: s.Alter, session: Session) -> Analysis:
    found = session.catalog.find(statement.name)
    if found is None and (session.lenient or statement.if_exists):
        return Analysis(session)
    if statement.action == "rename":
        if statement.new_name is None:
            raise InternalError("ALTER … RENAME without a name")
        catalog, notices = session.catalog.rename(statement.name, statement.kind, statement.new_name)
        return Analysis(session.with_catalog(catalog), notices=notices)
    from penstock.catalog.snapshot import check_kind

    definition = session.catalog.get(statement.name)
    check_kind(definition, statement.kind, statement.name, verb="alter")
    return _alter_options(statement, session, definition)


def _alter_options(statement: s.Alter, session: Session, definition: Definition) -> Analysis:
    """ALTER … SET and RESET: the statement that made the object, with other options, must still be right."""
    from penstock.sql.script import parse_statement

    made = parse_statement(definition.text)
    if not isinstance(made, s.CreateRelation | s.CreateSink | s.CreateMaterializedView):
        raise ResolutionError(
            "WRONG_OBJECT_KIND", f'{definition.kind} "{definition.name}" has no options', span=statement.name.span
        )
    slot = option_slot(made.options, view=isinstance(made, s.CreateMaterializedView))
    gone = {slot(key) for key in (*statement.keys, *(option.key for option in statement.options))}
    kept = tuple(option for option in made.options if slot(option.key) not in gone)
    changed = replace(made, options=(*kept, *statement.options), or_replace=True)
    try:
        found = analyze(changed, session)
    except PenstockError as error:
        written = [span for option in statement.options for span in (option.key_span, option.value_span)]
        if error.span not in written:
            error.span = statement.name.span  # what is wrong stands in the statement that made the object
        raise
    same = found.session.catalog is session.catalog
    told = f"{definition.kind} {definition.name} {'has these options already' if same else 'was altered'}"
    # The last notice is that of the catalog, which knows of a definition in the place of another.
    return replace(found, definition=None, notices=(*found.notices[:-1], told))


# queries and inserts


@by_statement.register
def _select(statement: s.Select, session: Session) -> Analysis:
    plan = plan_output(session, statement.query, "result")
    return Analysis(session, (plan,), _notices(plan))


@by_statement.register
def _insert(statement: s.Insert, session: Session) -> Analysis:
    options = insert_options(statement, session)
    found = session.catalog.find(statement.target)
    if found is None:
        if not session.lenient:
            session.catalog.get(statement.target)
        plan = plan_output(session, statement.query, "sink", target=statement.target.text)
        return Analysis(session, (plan,), _notices(plan, options.notices))
    sink = as_sink(found, statement.target)
    kind: OutputKind = "topic" if sink.options.connector == "topic" else "sink"
    plan = _plan_into(session, statement.query, sink, statement.columns, kind, options.state)
    if not isinstance(statement.query.tree, exp.Values):
        session = session.with_job(options.job_name or f"insert_{found.name.text}")
    return Analysis(session, (plan,), _notices(plan, options.notices))


@by_statement.register
def _statement_set(statement: s.StatementSet, session: Session) -> Analysis:
    plans: list[LogicalPlan] = []
    notices: list[str] = []
    for insert in statement.inserts:
        result = analyze(insert, session)
        session = result.session
        plans += result.plans
        notices += result.notices
    if not session.lenient:
        for job in insert_jobs(statement.inserts, plans, session):
            session = session.with_job(job.name)
    return Analysis(session, tuple(plans), tuple(dict.fromkeys(notices)))


@by_statement.register
def _subscribe(statement: s.Subscribe, session: Session) -> Analysis:
    found = session.catalog.find(statement.target)
    if found is None:
        if session.lenient:
            return Analysis(session)
        found = session.catalog.get(statement.target)
    check_subscription(statement, found)
    return Analysis(session)


@by_statement.register
def _subscribe_query(statement: s.SubscribeQuery, session: Session) -> Analysis:
    """As a materialized view would be planned that nobody has named: that is what it is while it is read."""
    plan = with_changes_of_groups(plan_output(session, statement.query, "materialized view"))
    asked = resolve_subscribe_options(statement.options, None)
    subscription_key(changing_query(plan), asked.changes, asked.key, statement.query.span)
    return Analysis(session, (plan,), _notices(plan))


# looking at things


@by_statement.register
def _explain(statement: s.Explain, session: Session) -> Analysis:
    inner = analyze(statement.statement, session)
    return replace(inner, session=session, definition=None)


@by_statement.register
def _show_rewrite(statement: s.ShowRewrite, session: Session) -> Analysis:
    inner = analyze(statement.statement, session)
    return replace(inner, session=session, definition=None)
