"""Definitions built by hand, for tests of what the catalog and its store do with them."""

from __future__ import annotations

from types import MappingProxyType

from sqlglot import exp

from penstock.catalog.model import (
    ColumnDefinition,
    EventTime,
    FunctionDefinition,
    InlineSecret,
    ObjectKey,
    SecretDefinition,
    SinkDefinition,
    SourceDefinition,
    ViewDefinition,
)
from penstock.options.resolved import ResolvedOptions
from penstock.secrets import Secret
from penstock.sql.statements import Name, Parameter, Query
from penstock.types import BIGINT, STRING, TIMESTAMP, SqlType

OPTIONS = ResolvedOptions(
    connector="topic", format=None, role="source", roles=frozenset({"source", "sink"}), values=MappingProxyType({})
)


def columns(**types: SqlType) -> tuple[ColumnDefinition, ...]:
    return tuple(ColumnDefinition(name, type_) for name, type_ in types.items())


def relation_key(name: str) -> ObjectKey:
    return ObjectKey("relation", name)


def source(
    name: str,
    *,
    quoted: bool = False,
    temporary: bool = False,
    secrets: tuple[InlineSecret, ...] = (),
    needs: tuple[ObjectKey, ...] = (),
    **types: SqlType,
) -> SourceDefinition:
    shape = columns(**types) if types else columns(id=BIGINT, ts=TIMESTAMP)
    return SourceDefinition(
        name=Name(name, quoted),
        kind="stream",
        columns=shape,
        options=OPTIONS,
        event_time=EventTime("ts", 0, "watermark") if "ts" in {column.name for column in shape} else None,
        temporary=temporary,
        secrets=secrets,
        depends_on=needs,
        text=f"CREATE STREAM {name}",
    )


def view(name: str, *needs: str, temporary: bool = False, **types: SqlType) -> ViewDefinition:
    query = exp.select("*")
    for need in needs:
        query = query.from_(exp.table_(need))
    return ViewDefinition(
        name=Name(name),
        columns=columns(**types) if types else columns(id=BIGINT),
        query=Query(query),
        temporary=temporary,
        depends_on=tuple(map(relation_key, needs)),
        text=f"CREATE VIEW {name} AS SELECT * FROM {', '.join(needs)}",
    )


def sink(name: str) -> SinkDefinition:
    return SinkDefinition(name=Name(name), columns=(), options=OPTIONS, text=f"CREATE SINK {name}")


def secret(name: str, value: str) -> SecretDefinition:
    return SecretDefinition(
        name=Name(name), reference=None, value=Secret(value), text=f"CREATE SECRET {name} AS '********'"
    )


def function(name: str, returns: SqlType = STRING) -> FunctionDefinition:
    return FunctionDefinition(
        name=Name(name),
        parameters=(Parameter(name="x", type=BIGINT),),
        returns=returns,
        language="python",
        body="text.label",
        text=f"CREATE FUNCTION {name}(x BIGINT) RETURNS {returns} LANGUAGE python AS 'text.label'",
    )
