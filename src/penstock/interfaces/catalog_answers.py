"""SHOW, DESCRIBE and EXPLAIN: what the catalog and the planner know, as small Arrow tables. No Spark is needed.

Values of options come from `shown()`, which masks what is secret; texts of objects hold no secret from the start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from penstock.catalog.model import (
    ColumnDefinition,
    DimensionDefinition,
    EventTime,
    FunctionDefinition,
    MaterializedViewDefinition,
    Relation,
    SecretDefinition,
    SinkDefinition,
    SourceDefinition,
    SystemTable,
    ViewDefinition,
)
from penstock.catalog.snapshot import Catalog, check_kind
from penstock.errors import InternalError
from penstock.options.resolved import Origin, ResolvedOptions, ResolvedViewOptions, show
from penstock.options.settings import OWN_SETTINGS
from penstock.secrets import MASK, Secret
from penstock.sql import statements as s

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.plan.script import StatementReport
    from penstock.plan.session import Session

_Rows = Iterable[tuple[object, ...]]


def catalog_answer(report: StatementReport) -> pa.Table | None:
    """The answer to a statement that only looks: SHOW, SHOW CREATE, DESCRIBE, EXPLAIN, SHOW REWRITE.

    None for SHOW JOBS and EXPLAIN WATERMARK, which only the running engine can answer, and for what changes something.
    """
    statement, session = report.statement, report.session
    if session is None:
        return None
    if isinstance(statement, s.Show) and statement.kind != "JOBS":
        return show_objects(statement.kind, session)
    if isinstance(statement, s.ShowCreate):
        return show_create(statement, session.catalog)
    if isinstance(statement, s.Describe):
        return describe(statement, session)
    if isinstance(statement, s.Explain | s.ShowRewrite):
        return explain(report)
    return None


# SHOW


def show_objects(kind: s.ShowKind, session: Session) -> pa.Table:
    """SHOW kind, in the order the objects were created; settings in that of the reference."""
    found = _SHOWN.get(kind)
    if found is None:
        raise InternalError(f"SHOW {kind} is not answered by the catalog")
    names, rows = found
    return _text_table(names, rows(session))


def _sources(kind: str) -> Callable[[Session], _Rows]:
    def rows(session: Session) -> _Rows:
        for item in session.catalog.relations():
            if isinstance(item, SourceDefinition) and item.kind == kind:
                yield (
                    item.name.text,
                    item.options.connector,
                    item.options.format,
                    _behind(item.event_time),
                    item.mode,
                    "yes" if item.bounded else "no",
                    item.comment,
                )
            elif isinstance(item, DimensionDefinition) and kind == "table":
                yield (item.name.text, "dimension", None, None, "append", "yes", None)

    return rows


def _views(session: Session) -> _Rows:
    for item in session.catalog.relations():
        if isinstance(item, ViewDefinition):
            yield (item.name.text, item.mode, _behind(item.event_time))


def _materialized_views(session: Session) -> _Rows:
    for item in session.catalog.relations():
        if isinstance(item, MaterializedViewDefinition):
            yield (item.name.text, item.mode, ", ".join(item.key) or None, _behind(item.event_time))


def _sinks(session: Session) -> _Rows:
    for item in session.catalog.relations():
        if isinstance(item, SinkDefinition):
            into = item.into.text if item.into is not None else None
            yield (item.name.text, item.options.connector, item.options.format, item.options.changes, into)


def _functions(session: Session) -> _Rows:
    for item in session.catalog:
        if isinstance(item, FunctionDefinition):
            arguments = ", ".join(
                f"{parameter.name} {parameter.type}" if parameter.name else str(parameter.type)
                for parameter in item.parameters
            )
            kind = "aggregate" if item.aggregate else "scalar"
            yield (item.name.text, arguments, str(item.returns) if item.returns else None, item.language, kind)


def _secrets(session: Session) -> _Rows:
    for item in session.catalog:
        if isinstance(item, SecretDefinition):
            reference = item.reference
            kept = "in the state directory" if reference is None else f"{reference.kind} {reference.name}"
            yield (item.name.text, kept)


def _settings(session: Session) -> _Rows:
    for spec in OWN_SETTINGS:
        given = spec.key in session.settings
        value = session.settings.get(spec.key, spec.default)
        yield (
            spec.key,
            _setting_value(value, hidden=spec.secret),
            "set" if given else "default",
            spec.summary,
        )


def _setting_value(value: object, *, hidden: bool) -> str | None:
    if value is None:
        return None
    return MASK if hidden or isinstance(value, Secret) else show(value)


_SOURCE_COLUMNS: Final = ("name", "connector", "format", "event_time", "changes", "bounded", "comment")
_SHOWN: Final[Mapping[s.ShowKind, tuple[tuple[str, ...], Callable[[Session], _Rows]]]] = {
    "STREAMS": (_SOURCE_COLUMNS, _sources("stream")),
    "TABLES": (_SOURCE_COLUMNS, _sources("table")),
    "SOURCES": (_SOURCE_COLUMNS, _sources("source")),
    "VIEWS": (("name", "changes", "event_time"), _views),
    "MATERIALIZED VIEWS": (("name", "changes", "key", "event_time"), _materialized_views),
    "SINKS": (("name", "connector", "format", "changes", "into"), _sinks),
    "FUNCTIONS": (("name", "arguments", "returns", "language", "kind"), _functions),
    "SECRETS": (("name", "kept"), _secrets),
    "SETTINGS": (("name", "value", "source", "meaning"), _settings),
}


def show_create(statement: s.ShowCreate, catalog: Catalog) -> pa.Table:
    """SHOW CREATE: the canonical statement, which makes the object again once its secrets are there."""
    if statement.kind == "SECRET":
        found = catalog.get_secret(statement.name)
        return _text_table(("name", "sql"), [(found.name.text, f"{found.text};")])
    if statement.kind == "CONNECTION":
        connection = catalog.get_connection(statement.name)
        return _text_table(("name", "sql"), [(connection.name.text, f"{connection.text};")])
    if statement.kind == "FUNCTION":
        function = catalog.find_function(statement.name)
        if function is None:
            raise InternalError("SHOW CREATE FUNCTION was accepted for a function that is not there")
        return _text_table(("name", "sql"), [(function.name.text, f"{function.text};")])
    relation = catalog.get(statement.name)
    if statement.kind is not None:
        check_kind(relation, statement.kind, statement.name, verb="show create")
    # A dimension comes through the Python interface: no statement makes it.
    text = None if isinstance(relation, DimensionDefinition) else f"{relation.text};"
    return _text_table(("name", "sql"), [(relation.name.text, text)])


# DESCRIBE


def describe(statement: s.Describe, session: Session) -> pa.Table:
    """DESCRIBE: a row for each column. EXTENDED adds the options and what else is known, in a shape of its own."""
    found = _described(statement.name, session.catalog)
    if statement.extended:
        return _text_table(("section", "name", "value", "note"), _extended(found, session))
    key = _key_of(found)
    rows = [
        (
            column.name,
            _type_text(column),
            "yes" if column.nullable else "no",
            "yes" if column.name in key else None,
            _event_time_text(found, column, session),
            _from(column),
        )
        for column in found.columns
    ]
    return _text_table(("name", "type", "nullable", "key", "event_time", "from"), rows)


def _described(name: s.Name, catalog: Catalog) -> Relation | SystemTable:
    return catalog.find_system(name.text) or catalog.get(name)


def _extended(found: Relation | SystemTable, session: Session) -> _Rows:
    key = _key_of(found)
    for column in found.columns:
        notes = [
            None if column.nullable else "not null",
            "key" if column.name in key else None,
            _event_time_text(found, column, session),
            _from(column),
            column.comment,
        ]
        yield ("column", column.name, _type_text(column), "; ".join(note for note in notes if note) or None)
    for name, value in _properties(found):
        yield ("property", name, value, None)
    for name, value, origin in _options_of(found):
        yield ("option", name, value, origin)


def _properties(found: Relation | SystemTable) -> Iterable[tuple[str, str]]:
    yield ("kind", found.kind)
    mode = getattr(found, "mode", None)
    if mode is not None:
        yield ("changes", str(mode))
    if isinstance(found, SourceDefinition):
        yield ("connector", found.options.connector)
        if found.options.format is not None:
            yield ("format", found.options.format)
        yield ("bounded", "yes" if found.bounded else "no")
    if isinstance(found, SourceDefinition | SinkDefinition) and found.comment:
        yield ("comment", found.comment)
    needs = "" if isinstance(found, SystemTable) else ", ".join(str(need) for need in found.depends_on)
    if needs:
        yield ("built on", needs)


def _key_of(found: Relation | SystemTable) -> tuple[str, ...]:
    if isinstance(found, SourceDefinition | SinkDefinition | DimensionDefinition):
        return found.primary_key
    return found.key if isinstance(found, MaterializedViewDefinition) else ()


def _type_text(column: ColumnDefinition) -> str | None:
    return str(column.type) if column.type is not None else None


def _from(column: ColumnDefinition) -> str | None:
    """Where the value comes from when it does not come with the data."""
    if column.metadata is not None:
        return f"metadata {column.metadata}"
    if column.header is not None:
        return f"header {column.header}"
    return f"computed {column.computed.sql(dialect='spark')}" if column.computed is not None else None


def _event_time_text(found: Relation | SystemTable, column: ColumnDefinition, session: Session) -> str | None:
    declared = getattr(found, "event_time", None)
    if isinstance(declared, EventTime):
        return _delay(declared) if declared.column == column.name else None
    unbounded = isinstance(found, SourceDefinition) and not found.bounded
    if unbounded and column.type is not None and column.type.name == "TIMESTAMP":
        delay = timedelta(microseconds=session.plan_settings().default_watermark_delay_us)
        return f"{show(delay)} behind (default), where a window is over it"
    return None


def _delay(event_time: EventTime) -> str:
    """How far the watermark stays behind, and whether the setting `default_watermark_delay` said so."""
    length = f"{show(timedelta(microseconds=event_time.delay_us))} behind" if event_time.delay_us else "not behind"
    return length if event_time.declared == "watermark" else f"{length} (default)"


def _behind(event_time: EventTime | None) -> str | None:
    return None if event_time is None else f"{event_time.column}, {_delay(event_time)}"


def relations_table(session: Session) -> pa.Table:
    """Every relation, with a word for its kind: what a prompt lists."""
    rows = [
        (
            item.name.text,
            item.kind,
            getattr(getattr(item, "options", None), "connector", None),
            getattr(item, "mode", None),
        )
        for item in session.catalog.relations()
    ]
    return _text_table(("name", "kind", "connector", "changes"), rows)


# EXPLAIN


def explain(report: StatementReport, dimensions: Sequence[str] = (), realtime: str | None = None) -> pa.Table:
    """EXPLAIN and SHOW REWRITE: one column `plan`. JSON is one row, for programs; other texts are one row a line.

    `dimensions` tell how each dimension is joined, and `realtime` whether it can run in real-time mode, where it asks
    for that: which only an open database knows.
    """
    from penstock.plan.answer import plan_answer

    text = plan_answer(report, dimensions, realtime) or f"{report.kind}: nothing to plan"
    whole = isinstance(report.statement, s.Explain) and report.statement.json
    return _text_table(("plan",), [(text,)]) if whole else plan_table(text)


def plan_table(text: str) -> pa.Table:
    """A text of several lines as an answer, one row a line."""
    return _text_table(("plan",), [(line,) for line in text.split("\n")])


def text_answer(statement: s.Statement, table: pa.Table) -> str | None:
    """The answer to EXPLAIN or SHOW CREATE as the text that it is; None for an answer that is a table to be read."""
    if isinstance(statement, s.ExplainWatermark) and "explanation" in table.column_names:
        from penstock.interfaces.table_output import render_table

        sentences = dict.fromkeys(table.column("explanation").to_pylist())
        return "\n".join([render_table(table.drop_columns("explanation")), "", *(str(text) for text in sentences)])
    if isinstance(statement, s.Explain | s.ShowRewrite | s.ExplainWatermark) and table.num_columns == 1:
        return "\n".join(str(line) for line in table.column(0).to_pylist())
    if isinstance(statement, s.ShowCreate):
        sql = table.column("sql")[0].as_py()
        return str(sql) if sql is not None else f"-- {statement.name} is made by no statement"
    return None


# the system tables that the catalog fills


def columns_table(session: Session) -> pa.Table:
    """`penstock.columns`: every column of every relation, counted from 1."""
    import pyarrow as pa

    rows = [
        (item.name.text, position, column.name, _type_text(column), column.nullable, _is_event_time(item, column))
        for item in session.catalog.relations()
        for position, column in enumerate(item.columns, start=1)
    ]
    types = (pa.string(), pa.int32(), pa.string(), pa.string(), pa.bool_(), pa.bool_())
    return _table(("relation", "position", "name", "type", "nullable", "event_time"), types, rows)


def _is_event_time(item: Relation, column: ColumnDefinition) -> bool:
    declared = getattr(item, "event_time", None)
    return isinstance(declared, EventTime) and declared.column == column.name


def options_table(session: Session) -> pa.Table:
    """`penstock.options`: the options of every relation and where each value comes from, secrets masked."""
    rows = [(item.name.text, *option) for item in session.catalog.relations() for option in _options_of(item)]
    return _text_table(("relation", "name", "value", "source"), rows)


def _options_of(found: Relation | SystemTable) -> Iterable[tuple[str, str, Origin]]:
    options = getattr(found, "options", None)
    if isinstance(options, ResolvedOptions):
        for name, value in options.shown().items():
            yield name, value, options.origin(name)
    elif isinstance(options, ResolvedViewOptions):
        for name, value in options.shown().items():
            yield name, value, _view_origin(options, name)


def _view_origin(options: ResolvedViewOptions, name: str) -> Origin:
    if name in options.given:
        return "statement"
    return "setting" if name in options.from_settings else "default"


# tables


def _text_table(names: tuple[str, ...], rows: _Rows) -> pa.Table:
    import pyarrow as pa

    return _table(names, tuple(pa.string() for _ in names), rows)


def _table(names: tuple[str, ...], types: tuple[pa.DataType, ...], rows: _Rows) -> pa.Table:
    import pyarrow as pa

    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
    return pa.table(dict(zip(names, arrays, strict=True)))
