"""Rows that are written once: INSERT … VALUES, INSERT … SELECT over what is there, and `append`."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final

from penstock.catalog.define import as_sink
from penstock.catalog.model import ColumnDefinition, SinkDefinition, SourceDefinition
from penstock.connectors.deletions import checked_operations, deletion_headers
from penstock.connectors.memory import memory_topics
from penstock.connectors.metadata_columns import OPERATION, marks_deletions, topic_name
from penstock.errors import InternalError, ResolutionError, RuntimeFailure
from penstock.formats import encode_envelopes, encode_rows
from penstock.runtime.queries import answer
from penstock.runtime.sinks import fitted, outside_of, record_format, write_once
from penstock.sql.statements import Name
from penstock.stores.topics.partition_choice import choose_partitions
from penstock.stores.topics.rows import rows_to_table
from penstock.types import STRING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from penstock.plan.logical import LogicalPlan
    from penstock.runtime.engine import Engine
    from penstock.sql.statements import Insert
    from penstock.stores.topics import Appended, Topic

_turn: Final = itertools.count()
_APPENDED: Final = frozenset({"topic", "memory"})


def insert_rows(engine: Engine, statement: Insert, plan: LogicalPlan) -> None:
    """Evaluate the rows of an INSERT and write them."""
    rows = answer(engine, plan, statement.span).table
    found = engine.session.catalog.get(statement.target)
    sink = as_sink(found, statement.target)
    rows = fitted(rows, sink, [name.text for name in statement.columns])
    if sink.options.connector == "topic":
        _append(engine, found if isinstance(found, SourceDefinition) else sink, rows, partition=None, key=None)
    else:
        write_once(engine.home, sink, rows)


def append_rows(engine: Engine, stream: str, data: object, *, partition: int | None, key: str | None) -> list[Appended]:
    """What `append` does: rows of a program to an embedded topic or a memory stream."""
    if partition is not None and key is not None:
        raise ResolutionError(
            "INVALID_ARGUMENT",
            "append takes a partition or a key, and both are given",
            hint="rows go to the partition, or each to that of a hash of its key: leave one out",
        )
    found = engine.session.catalog.get(Name(stream))
    if not isinstance(found, SourceDefinition | SinkDefinition) or found.options.connector not in _APPENDED:
        connector = getattr(getattr(found, "options", None), "connector", None)
        what = f"over connector '{connector}'" if connector else f"a {found.kind}"
        raise ResolutionError(
            "WRONG_OBJECT_KIND",
            f'"{found.name}" is {what}, and rows are appended to embedded topics',
            hint="CREATE STREAM … WITH (connector = 'topic')",
        )
    if found.options.format is not None:
        return _append_bytes(engine, found, data, partition=partition, key=key)
    return _append(engine, found, data, partition=partition, key=key)


def _append(
    engine: Engine, relation: SourceDefinition | SinkDefinition, data: object, *, partition: int | None, key: str | None
) -> list[Appended]:
    physical = [entry for entry in relation.columns if entry.physical]
    keys = _key_columns(relation, key)
    if relation.options.changes == "append":
        rows = rows_to_table(data, physical)
        operations = None
    else:
        rows = rows_to_table(data, [*physical, ColumnDefinition(OPERATION, STRING)])
        operations = checked_operations(rows.column(OPERATION), relation)
        rows = rows.drop_columns([OPERATION])
    if relation.options.format is not None:
        rows = _encoded(engine, relation, rows, keys, operations)
    if operations is not None and marks_deletions(relation):
        rows = rows.append_column("__headers", deletion_headers(operations))
    return _write(engine, relation, rows, partition=partition, keys=keys)


def _append_bytes(
    engine: Engine, relation: SourceDefinition | SinkDefinition, data: Any, *, partition: int | None, key: str | None
) -> list[Appended]:
    """Rows for a topic of bytes: encoded in its format, unless they are bytes or texts already."""
    import pyarrow as pa

    if isinstance(data, list | tuple) and isinstance(next((x for x in data if x is not None), None), bytes | str):
        _check_texts(relation, data)
        values = [item.encode() if isinstance(item, str) else item for item in data]
        rows = pa.table({"__value": pa.array(values, pa.binary())})
        return _write(engine, relation, rows, partition=partition, keys=())
    return _append(engine, relation, data, partition=partition, key=key)


def _check_texts(relation: SourceDefinition | SinkDefinition, data: Sequence[object]) -> None:
    for place, item in enumerate(data, start=1):
        if not isinstance(item, bytes | str):
            raise RuntimeFailure(
                "INVALID_ROWS",
                f'row {place} for "{relation.name}" is {"None" if item is None else f"of type {type(item).__name__}"}, '
                "and others are texts or bytes",
                hint=f"give each row as text or bytes in the format '{relation.options.format}', "
                "or all of them as dicts of columns",
            )


def _encoded(
    engine: Engine,
    relation: SourceDefinition | SinkDefinition,
    rows: pa.Table,
    keys: tuple[str, ...],
    operations: list[str] | None,
) -> pa.Table:
    """The rows as records of bytes; key columns stay beside them, to choose partitions by."""
    import pyarrow as pa

    format_, options = relation.options.format, relation.options.values
    if format_ is None:
        raise InternalError("a topic of typed columns needs no format")
    if format_ == "debezium-json" and operations is not None:
        values = pa.array(encode_envelopes(operations, rows, rows, options), pa.binary())
    else:
        values = encode_rows(rows, record_format(relation.options) or format_, options, outside_of(engine.home))
    return pa.table({"__value": values, **{name: rows.column(name) for name in keys}})


def _key_columns(relation: SourceDefinition | SinkDefinition, key: str | None) -> tuple[str, ...]:
    """By which columns the partition of a row is chosen; rows that replace each other stay in one."""
    if key is None:
        found = relation.options.values.get("key.fields")
        if isinstance(found, tuple):
            return tuple(str(name) for name in found)
        return () if relation.options.changes == "append" else relation.primary_key
    for entry in relation.columns:
        if entry.physical and entry.name.casefold() == key.casefold():
            return (entry.name,)
    raise RuntimeFailure(
        "INVALID_ROWS",
        f'"{relation.name}" has no column "{key}" to take as the key',
        hint="the columns are: " + ", ".join(entry.name for entry in relation.columns if entry.physical),
    )


def _write(
    engine: Engine,
    relation: SourceDefinition | SinkDefinition,
    rows: pa.Table,
    *,
    partition: int | None,
    keys: tuple[str, ...],
) -> list[Appended]:
    memory = relation.options.connector == "memory"
    topics = memory_topics(engine.home.path) if memory else engine.home.topics
    topic = topics.open(topic_name(relation))
    count = topic.layout.partitions
    if partition is not None and not 0 <= partition < count:
        raise RuntimeFailure(
            "INVALID_ROWS",
            f'"{relation.name}" has no partition {partition}',
            hint=f"its partitions are 0 to {count - 1}",
        )
    if rows.num_rows == 0:
        return []
    if partition is not None:
        return [topic.append(partition, _shown(topic, rows))]
    if keys:
        return [
            topic.append(place, _shown(topic, rows.take(indices)))
            for place, indices in sorted(choose_partitions(rows, count, keys).items())
        ]
    return [topic.append(next(_turn) % count, _shown(topic, rows))]


def _shown(topic: Topic, rows: pa.Table) -> pa.Table:
    """The columns that the topic keeps."""
    kept = set(topic.schema.names)
    return rows.select([name for name in rows.column_names if name in kept])
