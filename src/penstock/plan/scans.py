"""Reading a named relation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.catalog.model import (
    MaterializedViewDefinition,
    SinkDefinition,
    SourceDefinition,
    ViewDefinition,
)
from penstock.catalog.pseudo_columns import pseudo_columns
from penstock.catalog.system import SYSTEM_TABLES, nearest_system
from penstock.errors import NotYetError, ResolutionError, ScriptError
from penstock.plan.context import PlanContext, Relation
from penstock.plan.event_times import default_event_time
from penstock.plan.hinted import options_of_reading
from penstock.plan.names import is_proctime
from penstock.plan.nodes import Project, Scan
from penstock.plan.relation import EventTime, Field, Mode
from penstock.plan.rules.order import apply_rules
from penstock.plan.scope import field_tree
from penstock.plan.trees import aliased, column, identifier, select, subquery
from penstock.plan.versioned_views import all_versions
from penstock.sql.nodes import SystemTime
from penstock.sql.reading import SYSTEM_SCHEMA
from penstock.sql.relations import FILE_HINT
from penstock.sql.spans import span_of
from penstock.sql.statements import Name

if TYPE_CHECKING:
    from penstock.catalog.model import ColumnDefinition, SystemTable
    from penstock.errors import Span
    from penstock.sql.statements import Option

MAX_VIEWS: Final = 500


def read_table(context: PlanContext, table: exp.Table, alias: str) -> Relation:
    """The relation that a table name of a FROM clause means."""
    if not isinstance(table.this, exp.Identifier):
        raise ResolutionError(
            "UNKNOWN_FUNCTION",
            f"{table.this.name or 'this'} is not a function that makes a table",
            hint="TUMBLE, HOP, SESSION, CUMULATE and UNNEST can stand in a FROM clause",
            span=span_of(table),
        )
    span = span_of(table.this)
    versions, context.all_versions = context.all_versions, False
    if table.args.get("db") is not None:
        return _dotted(context, table, alias)
    name = Name(table.name, quoted=bool(table.this.quoted), span=span or Name("").span)
    definition = context.catalog.find(name)
    if definition is None:
        if context.lenient:
            return _unknown(context, name.text, alias)
        raise unknown_relation(context, name, span)
    context.depends_on[definition.name.text] = None
    if isinstance(definition, SinkDefinition):
        raise ResolutionError(
            "WRONG_OBJECT_KIND",
            f'"{name}" is a sink and cannot be read',
            hint="read the stream or view that feeds it, or create a source over the same topic",
            span=span,
        )
    reading = options_of_reading(context, table, definition)
    if isinstance(definition, SourceDefinition):
        return _source(context, definition, alias, reading)
    if isinstance(definition, ViewDefinition):
        return _view(context, definition, span, versions=versions)
    if isinstance(definition, MaterializedViewDefinition):
        return _materialized(context, definition, alias, table, versions=versions)
    return _bounded(context, definition.name.text, "dimension", definition.columns, alias)


def unknown_relation(context: PlanContext, name: Name, span: Span | None) -> ResolutionError:
    """The error for a name that nothing has."""
    near = nearest_system(name.text) or context.catalog.nearest(name.text)
    hint = f'did you mean "{near}"?' if near else "create it first: CREATE STREAM, CREATE TABLE or CREATE VIEW"
    if "/" in name.text:
        hint = FILE_HINT
    return ResolutionError("UNKNOWN_RELATION", f'there is no stream, table or view "{name}"', hint=hint, span=span)


def _dotted(context: PlanContext, table: exp.Table, alias: str) -> Relation:
    full = ".".join(part.name for part in table.parts)
    system: SystemTable | None = context.catalog.find_system(full)
    if system is not None:
        return _bounded(context, full, "system table", system.columns, alias)
    if near := nearest_system(full):
        hint = f"did you mean {near}?"
    elif table.parts[0].name.casefold() == SYSTEM_SCHEMA:
        hint = f"the system tables are: {', '.join(table.name for table in SYSTEM_TABLES)}"
    else:
        hint = "there is one catalog: leave the part in front of the dot away"
    raise ResolutionError("UNKNOWN_RELATION", f'there is no relation "{full}"', hint=hint, span=span_of(table))


def _source(context: PlanContext, definition: SourceDefinition, alias: str, reading: tuple[Option, ...]) -> Relation:
    name = definition.name.text
    declared = definition.event_time
    event_time = (
        EventTime(
            declared.column,
            declared.delay_us if context.grace_us is None else context.grace_us,
            declared=declared.declared,
        )
        if declared is not None
        else default_event_time(context, name)
    )
    if definition.bounded and declared is None:
        event_time = None
    pseudo = pseudo_columns(definition.columns)
    fields = tuple(
        Field(
            entry.name,
            entry.type,
            nullable=entry.nullable,
            qualifier=alias,
            event_time=event_time is not None and entry.name == event_time.column,
            processing_time=is_proctime(entry.computed),
            source=(name, entry.name),
            pseudo=entry.name in pseudo,
        )
        for entry in definition.columns
    )
    version = definition.options.values.get("version_column")
    node = Scan(
        fields=fields,
        # What is kept of a source whose rows change is a table, to which all rows so far belong.
        mode=Mode.APPEND if context.kept else Mode(definition.mode),
        changes=Mode(definition.mode),
        version=None if version is None else str(version),
        key=definition.primary_key or None,
        event_time=event_time,
        bounded=definition.bounded or context.kept,
        relation=name,
        kind="table" if definition.bounded else "stream",
        alias=alias,
        connector=definition.options.connector,
        looked_up=definition.bounded and definition.options.values.get("refresh") is not None,
        reading=reading,
    )
    if event_time is not None:
        context.reads.setdefault(name, set()).add(event_time.column)
    return Relation(node, _from_view(name, fields), direct=True)


def _view(
    context: PlanContext,
    definition: ViewDefinition | MaterializedViewDefinition,
    span: Span | None,
    *,
    versions: bool = False,
) -> Relation:
    """The query of a view in its place; `versions`: all that its rows have been, where it shows the latest of them."""
    context.views += 1
    if context.views > MAX_VIEWS:
        # a view used twice in a view used twice … doubles with every step
        raise ScriptError(
            "STATEMENT_TOO_DEEP",
            f"the query stands on more than {MAX_VIEWS} views, each counted as often as it is used",
            hint=f'make "{definition.name}" or one below it a materialized view',
            span=span,
        )
    around = (context.emit, context.emit_depth)
    context.depth += 1
    context.emit, context.emit_depth = definition.query.emit, context.depth
    context.view = definition.name.text
    tree = definition.query.tree
    found = all_versions(tree) if versions else None
    relation = context.bind_query(context, apply_rules(tree if found is None else found[0]), None, None)
    if found is not None:
        relation = replace(relation, versions=found[1])
    context.view = ""
    context.depth -= 1
    context.emit, context.emit_depth = around
    names = [entry.name for entry in definition.columns]
    return renamed(relation, names) if names else relation


def renamed(relation: Relation, names: list[str]) -> Relation:
    """The relation with other names for its first visible columns."""
    visible = [entry for entry in relation.fields if not entry.hidden]
    if [entry.name for entry in visible[: len(names)]] == names:
        return relation
    inner = "__renamed"
    fields: list[Field] = []
    items: list[exp.Expr] = []
    remaining = iter(names)
    for entry in relation.fields:
        name = entry.name if entry.hidden else next(remaining, entry.name)
        items.append(aliased(field_tree(entry, inner, relation.window), name))
        fields.append(entry.renamed(name))
    tree = select(items, subquery(relation.tree, inner))
    below = relation.node
    event_time = below.event_time
    if event_time is not None and not event_time.of_window:
        shown = {old.name: new.name for old, new in zip(relation.fields, fields, strict=True)}
        event_time = replace(event_time, column=shown.get(event_time.column, event_time.column))
    key = tuple(new.name for old, new in zip(relation.fields, fields, strict=True) if old.name in (below.key or ()))
    node = Project(
        fields=tuple(fields),
        inputs=(below,),
        mode=below.mode,
        key=key if below.key is not None else None,
        event_time=event_time,
        bounded=below.bounded,
        columns=tuple(f"{old.name} AS {new.name}" for old, new in zip(visible, fields, strict=False)),
    )
    versions = relation.versions
    if versions is not None:
        versions = versions.renamed([old.name for old in relation.fields], [new.name for new in fields])
    return replace(relation, node=node, tree=tree, direct=False, versions=versions)


def _materialized(
    context: PlanContext, definition: MaterializedViewDefinition, alias: str, table: exp.Table, *, versions: bool
) -> Relation:
    name = definition.name.text
    if not context.continuous or context.kept:
        found = _bounded(context, name, "materialized view", definition.columns, alias)
        if context.kept and versions:
            found = _with_event_time(found, definition)
        return _with_changes(found, definition) if context.kept else found
    if context.inlined and definition.mode == "append":
        return _view(context, definition, span_of(table.this))
    if isinstance(table.args.get("system_time"), SystemTime):
        raise _versioned(name, table)
    carried = definition.event_time
    event_time = EventTime(carried.column, carried.delay_us) if carried is not None else None
    fields = tuple(
        Field(
            entry.name,
            entry.type,
            nullable=entry.nullable,
            qualifier=alias,
            event_time=event_time is not None and entry.name == event_time.column,
            source=(name, entry.name),
        )
        for entry in definition.columns
    )
    node = Scan(
        fields=fields,
        mode=Mode(definition.mode),
        key=definition.key or None,
        event_time=event_time,
        relation=name,
        kind="materialized view",
        alias=alias,
    )
    return Relation(node, _from_view(name, fields), direct=True)


def _with_event_time(relation: Relation, definition: MaterializedViewDefinition) -> Relation:
    """The relation with the time from which on each row holds, where every one that ever came is there."""
    carried = definition.event_time
    if definition.mode != "append" or carried is None:
        return relation
    return replace(relation, node=replace(relation.node, event_time=EventTime(carried.column, carried.delay_us)))


def _with_changes(relation: Relation, definition: MaterializedViewDefinition) -> Relation:
    """The relation, with how its rows change and, where they replace each other, by which columns."""
    key = definition.key if definition.mode == "upsert" else None
    assert isinstance(relation.node, Scan)
    return replace(relation, node=replace(relation.node, changes=Mode(definition.mode), key=key))


def _versioned(name: str, table: exp.Table) -> NotYetError:
    return NotYetError(
        "VERSIONED_JOIN",
        f'a join with materialized view "{name}" as of a time is not there yet in this query',
        hint="keep a stream with the view as of PROCTIME() as a materialized view; or join without FOR SYSTEM_TIME",
        span=span_of(table),
    )


def _bounded(context: PlanContext, name: str, kind: str, columns: tuple[ColumnDefinition, ...], alias: str) -> Relation:
    fields = tuple(
        Field(entry.name, entry.type, nullable=entry.nullable, qualifier=alias, source=(name, entry.name))
        for entry in columns
    )
    node = Scan(
        fields=fields,
        bounded=True,
        relation=name,
        kind=kind,  # type: ignore[arg-type]
        alias=alias,
        looked_up=kind == "dimension",
    )
    return Relation(node, _from_view(name, fields), direct=True)


def _unknown(context: PlanContext, name: str, alias: str) -> Relation:
    context.notice(f'"{name}" is not defined in this script; its columns are taken as they are written')
    node = Scan(fields=(), relation=name, kind="unknown", alias=alias)
    return Relation(node, select([exp.Star()], exp.Table(this=identifier(name))), open=True)


def _from_view(name: str, fields: tuple[Field, ...]) -> exp.Select:
    """SELECT of the columns FROM the relation's own name, which Spark knows as a temporary view."""
    return select([column(entry.name) for entry in fields], exp.Table(this=identifier(name)))
