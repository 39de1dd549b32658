"""From a CREATE statement to a definition, with every check that needs no planning.

Views need their query planned and are defined by the planner.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from penstock.catalog.change_keys import with_change_key, with_version
from penstock.catalog.column_options import check_column_options, check_partitions
from penstock.catalog.columns import define_columns, find_column, option_span, unknown_column
from penstock.catalog.connections import connections_of, define_connection, with_connections
from penstock.catalog.define_function import define_function
from penstock.catalog.define_secret import define_secret
from penstock.catalog.envelopes import as_envelopes
from penstock.catalog.event_time import choose_event_time
from penstock.catalog.fixed_schemas import check_fixed, fixed_columns, fixed_event_time
from penstock.catalog.model import (
    ColumnDefinition,
    EventTime,
    InlineSecret,
    ObjectKey,
    Relation,
    SinkDefinition,
    SourceDefinition,
    SourceKind,
)
from penstock.catalog.secrets import check_owner, extract_secrets, used_secrets
from penstock.catalog.text import canonical_text
from penstock.errors import CatalogError, OptionError, ResolutionError, Span
from penstock.frozen import frozen
from penstock.options.registry import connector_named, format_named
from penstock.options.resolve import resolve_options
from penstock.options.resolved import ResolvedOptions
from penstock.options.settings import default_settings
from penstock.secrets import Secret
from penstock.sql.statements import NOWHERE, CreateRelation, CreateSink, Name

if TYPE_CHECKING:
    from penstock.catalog.snapshot import Catalog

_KINDS: Final[Mapping[str, SourceKind]] = {"STREAM": "stream", "TABLE": "table", "SOURCE": "source"}


@frozen
class Surroundings:
    """What a definition takes from outside its statement.

    catalog: where `SECRET name` and INTO are looked up; without one no secret is checked or depended on
    settings: the settings in force, by canonical key; those left out have their defaults
    default_connector: the connector of a statement that names none
    secrets: the values of secrets that were written into stored statements, by name
    """

    catalog: Catalog | None = None
    settings: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    default_connector: str = "topic"
    secrets: Mapping[str, Secret] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def default_delay_us(self) -> int:
        """The delay of a watermark where only its column is named."""
        delay = self.settings.get("default_watermark_delay", default_settings()["default_watermark_delay"])
        assert isinstance(delay, timedelta)
        return delay // timedelta(microseconds=1)


_NONE: Final = Surroundings()
# Which record of a source that takes rows back does so, a header says or the record itself.
_WITH_HEADERS: Final = frozenset({"topic", "memory"})
_WITH_DELETIONS: Final = frozenset({None, "json", "debezium-json"})

__all__ = [
    "Surroundings",
    "as_sink",
    "define_connection",
    "define_function",
    "define_secret",
    "define_sink",
    "define_source",
]


def define_source(statement: CreateRelation, surroundings: Surroundings = _NONE) -> SourceDefinition | SinkDefinition:
    """The definition of CREATE STREAM, TABLE or SOURCE: a sink where the options or the connector say so."""
    _check_with(statement, surroundings)
    options = _resolve(statement, surroundings)
    statement, found = extract_secrets(statement, options)
    if found:
        # Resolved once more, so that a definition is the same whether its secrets were just written or read back.
        options = _resolve(statement, surroundings)
    needs, secrets = _secrets(statement, found, surroundings)
    sink = options.role == "sink"
    columns = _columns(statement, options, sink=sink)
    options = options if sink else as_envelopes(options, columns)
    check_column_options(options, columns)
    check_partitions(statement, options)
    shared = _Shared(
        columns,
        _key(statement.primary_key or _listed(options, "primary_key", statement.with_span), columns),
        _named(
            "PARTITIONED BY", statement.partitioned_by or _listed(options, "partition_by", statement.with_span), columns
        ),
    )
    options = with_change_key(options, shared.primary_key, columns)
    text = canonical_text(statement)
    if sink:
        _refuse_watermark(statement)
        return SinkDefinition(
            name=statement.name,
            columns=shared.columns,
            options=options,
            primary_key=shared.primary_key,
            partitioned_by=shared.partitioned_by,
            created_as=_KINDS[statement.kind],
            temporary=statement.temporary,
            comment=statement.comment,
            secrets=secrets,
            depends_on=needs,
            text=text,
        )
    _check_changes(statement, options)
    options = with_version(options, columns, statement.with_span)
    return SourceDefinition(
        name=statement.name,
        kind=_KINDS[statement.kind],
        columns=shared.columns,
        options=options,
        event_time=_event_time(statement, columns, options, surroundings),
        primary_key=shared.primary_key,
        partitioned_by=shared.partitioned_by,
        temporary=statement.temporary,
        comment=statement.comment,
        secrets=secrets,
        depends_on=needs,
        text=text,
    )


def _check_with(statement: CreateRelation, surroundings: Surroundings) -> None:
    """CREATE STREAM alone means an embedded topic; a TABLE without options is plain in RisingWave only."""
    plain = statement.kind == "STREAM" or surroundings.settings.get("dialect") == "risingwave"
    if not statement.options and statement.format is None and not plain:
        written = statement.with_span != NOWHERE
        what = "an empty WITH clause" if written else "no WITH clause"
        raise OptionError(
            "MISSING_OPTION",
            f"{statement.kind.lower()} {statement.name} has {what}, so nothing says where its rows are",
            hint=f"{'write' if written else 'add'} WITH (connector = 'topic') for an embedded topic, "
            "or name another connector",
            span=statement.with_span if written else statement.name.span,
        )


@frozen
class _Shared:
    columns: tuple[ColumnDefinition, ...]
    primary_key: tuple[str, ...]
    partitioned_by: tuple[str, ...]


def define_sink(
    statement: CreateSink, surroundings: Surroundings = _NONE, *, reads: tuple[ObjectKey, ...] = ()
) -> SinkDefinition:
    """The definition of CREATE SINK. `reads` is what its query is built on.

    Without declared columns it has none here, and the planner adds those of the query.
    """
    target = _target(statement, surroundings)
    found: dict[str, Secret] = {}
    if target is None:
        options = _resolve(statement, surroundings)
        statement, found = extract_secrets(statement, options)
        options = _resolve(statement, surroundings) if found else options
    else:
        options = target.options
    needs, secrets = _secrets(statement, found, surroundings)
    if target is not None:
        needs = (*needs, target.object_key)
    columns = define_columns(statement.columns, options.connector, statement.primary_key, sink=True)
    if target is not None and not columns:
        columns = target.columns
    # Without declared columns the clauses name columns of the query, which the planner knows.
    key = statement.primary_key or _listed(options, "primary_key", statement.with_span)
    parts = _listed(options, "partition_by", statement.with_span)
    primary_key = _key(key, columns) if columns else tuple(name.text for name in key)
    return SinkDefinition(
        name=statement.name,
        columns=columns,
        options=with_change_key(options, primary_key, columns),
        primary_key=primary_key,
        partitioned_by=_named("PARTITIONED BY", parts, columns) if columns else tuple(name.text for name in parts),
        query=statement.query,
        into=statement.into,
        secrets=secrets,
        depends_on=tuple(dict.fromkeys((*needs, *reads))),
        text=canonical_text(statement),
    )


def _target(statement: CreateSink, surroundings: Surroundings) -> SinkDefinition | None:
    if statement.into is None:
        return None
    if surroundings.catalog is None:
        raise ResolutionError("UNKNOWN_RELATION", f"no table is named {statement.into}", span=statement.into.span)
    return as_sink(surroundings.catalog.get(statement.into), statement.into)


def as_sink(definition: Relation, name: Name) -> SinkDefinition:
    """The relation as something to write to: a sink, or the writing side of a table whose connector has one."""
    if isinstance(definition, SinkDefinition):
        return definition
    if not isinstance(definition, SourceDefinition):
        raise CatalogError(
            "WRONG_OBJECT_KIND",
            f"{definition.kind} {definition.name} cannot be written to",
            hint="write to a sink, or to a stream or table",
            span=name.span,
        )
    if "sink" not in definition.options.roles:
        raise CatalogError(
            "WRONG_OBJECT_KIND",
            f"{definition.kind} {definition.name} can only be read",
            hint="write to a sink, or to a table whose connector can be written to",
            span=name.span,
        )
    written = tuple(column for column in definition.columns if column.computed is None and not column.virtual)
    return SinkDefinition(
        name=definition.name,
        columns=written,
        options=with_change_key(_written(definition.options), definition.primary_key, written),
        primary_key=definition.primary_key,
        partitioned_by=definition.partitioned_by,
        created_as=definition.kind,
        temporary=definition.temporary,
        secrets=definition.secrets,
        depends_on=definition.depends_on,
        text=definition.text,
    )


def _written(options: ResolvedOptions) -> ResolvedOptions:
    """The options of a table that is read and written, for the writing side."""
    envelopes = options.format == "debezium-json" and options.changes == "append"
    if "changes" in options.given or envelopes:
        changes = options.changes
    else:
        format_ = format_named(options.format) if options.format else None
        connector = connector_named(options.connector)
        changes = (format_ and format_.changes) or (connector.sink_changes if connector else "append")
    return replace(options, role="sink", roles=frozenset({"sink"}), bounded=False, changes=changes)


def _resolve(statement: CreateRelation | CreateSink, surroundings: Surroundings) -> ResolvedOptions:
    options, shared = with_connections(statement.options, surroundings.catalog)
    found = resolve_options(
        options,
        role="sink" if isinstance(statement, CreateSink) else "source",
        relation=statement.name,
        format=statement.format,
        with_span=statement.with_span,
        default_connector=surroundings.default_connector,
        settings=surroundings.settings,
        strict_role=isinstance(statement, CreateRelation) and statement.kind == "SOURCE",
    )
    # What a connection gives stands in its own statement, and not in that of the relation.
    return replace(found, canonical=tuple(one for one in found.canonical if one.key not in shared)) if shared else found


def _secrets(
    statement: CreateRelation | CreateSink, found: Mapping[str, Secret], surroundings: Surroundings
) -> tuple[tuple[ObjectKey, ...], tuple[InlineSecret, ...]]:
    """The secrets of CREATE SECRET that the statement uses, and those that were written into it."""
    needs = dict.fromkeys(connections_of(statement.options, surroundings.catalog))
    inline: dict[str, InlineSecret] = {}
    values = {**surroundings.secrets, **found}
    for name in used_secrets(statement.options):
        if "." in name.text:
            inline[name.text] = InlineSecret(name.text, check_owner(statement.name.text, name, values))
        elif surroundings.catalog is not None:
            needs[surroundings.catalog.get_secret(name).object_key] = None
    return tuple(needs), tuple(inline.values())


def _columns(statement: CreateRelation, options: ResolvedOptions, *, sink: bool) -> tuple[ColumnDefinition, ...]:
    table_type = str(options.values.get("table_type"))
    fixed = None if sink else fixed_columns(options.connector, options.format, table_type)
    if not statement.columns:
        if fixed is not None:
            return fixed
        raise CatalogError(
            "INVALID_DEFINITION",
            f"{statement.kind.lower()} {statement.name} has no columns",
            hint="list its columns with their types; format = 'raw' gives key, value, timestamp, partition and offset",
            span=statement.name.span,
        )
    columns = define_columns(statement.columns, options.connector, statement.primary_key, sink=sink)
    if not any(column.physical for column in columns) and not (sink or fixed):
        raise CatalogError(
            "INVALID_DEFINITION",
            f"{statement.kind.lower()} {statement.name} has no column that comes with the data",
            hint="add a column that is neither computed nor metadata",
            span=statement.name.span,
        )
    if fixed is not None:
        check_fixed(statement, _of_value(columns, options), fixed, options.format)
    return columns


def _of_value(columns: tuple[ColumnDefinition, ...], options: ResolvedOptions) -> tuple[ColumnDefinition, ...]:
    """The columns without those that are in the key of a record alone, which has a format of its own."""
    keys = options.values.get("key.fields")
    if options.values.get("value.fields_include") != "EXCEPT_KEY" or not isinstance(keys, tuple):
        return columns
    named = {str(key).casefold() for key in keys}
    return tuple(column for column in columns if column.name.casefold() not in named)


def _key(names: tuple[Name, ...], columns: tuple[ColumnDefinition, ...]) -> tuple[str, ...]:
    key = _named("PRIMARY KEY", names, columns)
    by_name = {column.name: column for column in columns}
    for name, written in zip(key, names, strict=True):
        if by_name[name].computed is not None:
            raise CatalogError(
                "INVALID_DEFINITION",
                f"primary key column {name} is computed",
                hint="a key comes with the data; take the columns it is computed from",
                span=written.span,
            )
    return key


def _listed(options: ResolvedOptions, key: str, span: Span) -> tuple[Name, ...]:
    """The column names that an option lists."""
    value = options.values.get(key)
    place = option_span(options, key, span)
    return tuple(Name(str(item), span=place) for item in value) if isinstance(value, tuple) else ()


def check_partition_columns(sink: SinkDefinition, span: Span) -> None:
    """UNKNOWN_COLUMN, at the option, where a sink is to make directories of a column that its query does not give."""
    _named("PARTITIONED BY", _listed(sink.options, "partition_by", span), sink.columns)


def _named(clause: str, names: tuple[Name, ...], columns: tuple[ColumnDefinition, ...]) -> tuple[str, ...]:
    found: list[str] = []
    for name in names:
        column = find_column(columns, name)
        if column is None:
            raise unknown_column(name, [item.name for item in columns], clause)
        if column.name in found:
            raise CatalogError("DUPLICATE_COLUMN", f"{clause} names column {column.name} twice", span=name.span)
        found.append(column.name)
    return tuple(found)


def _check_changes(statement: CreateRelation, options: ResolvedOptions) -> None:
    if options.changes == "upsert" and not statement.primary_key:
        raise CatalogError(
            "INVALID_DEFINITION",
            f"{statement.kind.lower()} {statement.name} is updated by key but has no primary key",
            hint="add PRIMARY KEY (column) NOT ENFORCED",
            span=statement.name.span,
        )
    tells = options.connector in _WITH_HEADERS or options.format in _WITH_DELETIONS
    if options.role == "source" and options.changes == "retract" and not tells:
        raise CatalogError(
            "INVALID_DEFINITION",
            f"{statement.kind.lower()} {statement.name} is of rows that are taken back, and nothing in "
            f"{options.format} says which",
            hint="write the changes as json or debezium-json; or declare a column _op, and read them as rows",
            span=option_span(options, "changes", statement.name.span),
        )


def _refuse_watermark(statement: CreateRelation) -> None:
    if statement.watermark is not None:
        raise CatalogError(
            "INVALID_WATERMARK",
            f"sink {statement.name} cannot have a watermark",
            hint="leave the clause out; event time belongs to what is read",
            span=statement.watermark.span,
        )


def _event_time(
    statement: CreateRelation,
    columns: tuple[ColumnDefinition, ...],
    options: ResolvedOptions,
    surroundings: Surroundings,
) -> EventTime | None:
    declared = choose_event_time(statement, columns, options, surroundings.default_delay_us)
    if declared is not None:
        return declared
    fixed = fixed_event_time(options.connector)
    return fixed if fixed and find_column(columns, Name(fixed.column)) else None
