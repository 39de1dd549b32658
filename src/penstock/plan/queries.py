"""From the query of a statement to a logical plan with an output on top."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from sqlglot import exp

from penstock.catalog.model import SourceDefinition, ViewDefinition
from penstock.errors import ResolutionError, UnsupportedError
from penstock.plan.context import PlanContext, Relation
from penstock.plan.grouping import unmerged_session
from penstock.plan.infer import assignable
from penstock.plan.logical import LogicalPlan
from penstock.plan.nodes import Output
from penstock.plan.query import bind_query, plan_query
from penstock.plan.relation import Field, Mode
from penstock.plan.scans import renamed
from penstock.plan.scope import nearest, same_name
from penstock.plan.trees import column, select, subquery
from penstock.sql.spans import span_of
from penstock.sql.statements import Name, Query

if TYPE_CHECKING:
    from penstock.catalog.model import SinkDefinition
    from penstock.errors import Span
    from penstock.plan.session import Session
    from penstock.types import SqlType

OutputKind = Literal["view", "materialized view", "sink", "topic", "result"]


def plan_output(
    session: Session,
    query: Query,
    kind: OutputKind,
    *,
    target: str | None = None,
    connector: str | None = None,
    names: tuple[Name, ...] = (),
) -> LogicalPlan:
    """The plan of a query that goes to a view, a sink or the user."""
    # A bare query over views and tables is answered at once, from what they hold now; only if it reads a stream is it
    # a job. A view keeps both readings open: it is inlined where it is used.
    continuous = kind not in ("result", "view") or _reads_stream(session, query.tree)
    relation, context = _plan(session, query, continuous=continuous, stored=kind != "result")
    if relation.unmerged:
        raise unmerged_session(span_of(query.tree))
    if names:
        relation = _renamed(relation, names)
    relation = _visible(relation)
    node = relation.node
    root = Output(
        fields=node.fields,
        inputs=(node,),
        mode=node.mode,
        key=node.key,
        event_time=node.event_time,
        bounded=node.bounded,
        target=target,
        kind=kind,
        connector=connector,
    )
    warnings = list(context.warnings)
    warnings += [
        f"state grows for ever: {inner.state.keeps}; bound it with state_ttl or a window"
        for inner in LogicalPlan(root, relation.tree, None).nodes()
        if inner.state is not None and inner.state.bound is None and "group" in inner.state.keeps
    ]
    return LogicalPlan(
        root,
        relation.tree,
        query.emit,
        (*context.notices, *warnings),
        tuple(context.depends_on),
        tuple(context.functions),
        _reads(root, context),
    )


def _reads_stream(session: Session, tree: exp.Expr) -> bool:
    """Whether a query reads a stream, itself or through a view."""
    for table in tree.find_all(exp.Table):
        if table.args.get("db") is not None or not isinstance(table.this, exp.Identifier):
            continue
        found = session.catalog.find(Name(table.name, quoted=bool(table.this.quoted)))
        if isinstance(found, SourceDefinition | ViewDefinition) and not found.bounded:
            return True
        if found is None and session.lenient:
            return True
    return False


def _reads(root: Output, context: PlanContext) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The columns of each source that the query needs, in the order of the source."""
    found: dict[str, tuple[str, ...]] = {}
    for scan in LogicalPlan(root, exp.Select(), None).scans():
        needed = context.reads.get(scan.relation, set())
        found[scan.relation] = tuple(entry.name for entry in scan.fields if entry.name in needed)
    return tuple(found.items())


def _plan(session: Session, query: Query, *, continuous: bool, stored: bool) -> tuple[Relation, PlanContext]:
    settings = session.plan_settings()

    def make() -> PlanContext:
        return PlanContext(
            session.catalog,
            settings,
            bind_query,
            lenient=session.lenient,
            continuous=continuous,
            emit=query.emit,
            emit_span=query.emit_span if query.emit is not None else None,
            unique_names=stored,
        )

    relation, context = plan_query(make, query.tree)
    _note_emission(context, relation, query)
    return relation, context


def _note_emission(context: PlanContext, relation: Relation, query: Query) -> None:
    if query.emit is None and relation.window is not None and relation.node.mode is Mode.APPEND:
        context.notice("windows are emitted once, when they close (EMIT FINAL)")
    elif query.emit is None and relation.node.mode is not Mode.APPEND:
        context.notice("every change is emitted (EMIT CHANGES)")


def _renamed(relation: Relation, names: tuple[Name, ...]) -> Relation:
    visible = relation.node.visible
    if len(names) != len(visible) and not relation.open:
        raise ResolutionError(
            "COLUMN_COUNT_MISMATCH",
            f"{len(names)} column names are given for {len(visible)} columns",
            span=names[0].span,
        )
    return renamed(relation, [name.text for name in names])


def _visible(relation: Relation) -> Relation:
    """The relation without hidden columns: nobody above needs them."""
    visible = relation.node.visible
    if len(visible) == len(relation.fields) or relation.open:
        return relation
    tree = _without_hidden(relation, visible)
    shown = {field.name for field in visible}
    event_time = relation.node.event_time
    if event_time is not None and event_time.column not in shown:
        carried = [field.name for field in visible if field.event_time]
        event_time = replace(event_time, column=carried[0], of_window=False) if carried else None
    node = replace(relation.node, fields=visible, event_time=event_time)
    return Relation(node, tree, relation.window, relation.open)


def _without_hidden(relation: Relation, visible: tuple[Field, ...]) -> exp.Query:
    tree = relation.tree
    if isinstance(tree, exp.Select) and tree.args.get("distinct") is None and relation.node.label != "WindowTopN":
        names = {field.name for field in visible}
        shown = [item for item in tree.expressions if item.alias_or_name in names]
        if len(shown) == len(visible):
            tree.set("expressions", shown)
            return tree
    inner = "__result"
    return select([column(field.name, inner) for field in visible], subquery(tree, inner))


def check_sink(plan: LogicalPlan, sink: SinkDefinition, columns: tuple[Name, ...], query: Query) -> None:
    """Whether a query fits the sink it goes to: its columns, their types, and whether the sink can take changes."""
    span = span_of(query.tree)
    if plan.mode is not Mode.APPEND and sink.options.changes == "append":
        raise cannot_update(sink, plan.mode.value, span)
    if not sink.columns or any(field.name == "*" for field in plan.columns):
        return
    targets = _targets(sink, columns)
    if len(plan.columns) != len(targets):
        raise ResolutionError(
            "COLUMN_COUNT_MISMATCH",
            f'"{sink.name}" takes {len(targets)} columns and the query has {len(plan.columns)}',
            hint="the columns are: " + ", ".join(f"{name} {sql_type}" for name, sql_type in targets),
            span=span,
        )
    spans = _item_spans(query, len(targets))
    for place, field, (name, sql_type) in zip(spans, plan.columns, targets, strict=True):
        if not assignable(field.type, sql_type):
            raise ResolutionError(
                "TYPE_MISMATCH",
                f'column "{name}" of "{sink.name}" is {sql_type}, and the query gives {field.type}',
                hint=f"write CAST({field.name} AS {sql_type})",
                span=place or span,
            )


def cannot_update(sink: SinkDefinition, mode: str, span: Span | None) -> UnsupportedError:
    """The error for changes that go to a sink of appended rows."""
    return UnsupportedError(
        "SINK_CANNOT_UPDATE",
        f'sink "{sink.name}" takes appended rows, and the query changes rows it has sent ({mode})',
        hint="group by a window that closes (EMIT FINAL), or send to a sink that takes updates, such as upsert-kafka",
        span=span,
    )


def _item_spans(query: Query, count: int) -> list[Span | None]:
    """Where each column of the SELECT list stands, if they can be told apart."""
    items = query.tree.expressions if isinstance(query.tree, exp.Select) else []
    return [span_of(item) for item in items] if len(items) == count else [None] * count


def _targets(sink: SinkDefinition, columns: tuple[Name, ...]) -> list[tuple[str, SqlType | None]]:
    if not columns:
        return [(entry.name, entry.type) for entry in sink.columns]
    found: list[tuple[str, SqlType | None]] = []
    for name in columns:
        match = [entry for entry in sink.columns if same_name(entry.name, name.text, quoted=name.quoted)]
        if not match:
            near = nearest(name.text, [entry.name for entry in sink.columns])
            raise ResolutionError(
                "UNKNOWN_COLUMN",
                f'"{sink.name}" has no column "{name}"',
                hint=f'did you mean "{near}"?' if near else None,
                span=name.span,
            )
        found.append((match[0].name, match[0].type))
    return found
