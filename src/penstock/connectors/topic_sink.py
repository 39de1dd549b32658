"""The embedded topic as a sink: a batch is appended once, however often it is written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.connectors.deletions import deletion_headers
from penstock.connectors.metadata_columns import marks_deletions, topic_name
from penstock.connectors.sink import OPERATION, RECORD, record_values
from penstock.connectors.topic import topic_layout
from penstock.stores.topics.partition_choice import choose_partitions, whole_row_key

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.catalog.model import SinkDefinition
    from penstock.connectors.sink import SinkContext
    from penstock.stores.topics.store import TopicStore
    from penstock.stores.topics.topic import Topic

# The metadata that a writer can set, and where a record keeps it.
_WRITABLE: Final = {"timestamp": "__timestamp", "key": "__key", "headers": "__headers"}


class TopicSink:
    """Appends to embedded topics.

    With `key.fields`, or rows that replace each other by a primary key, a row goes to the partition of its key, so that
    the rows of a key stay in order; rows that come and go without a key go by all of their columns. Other batches go to
    one partition as a whole, in turn. Both are the same when
    a batch is written again, and each partition knows the batches it has: what a crash left half done is completed, and
    nothing is there twice.
    """

    takes_frame = False
    exactly_once = True

    def prepare(self, definition: SinkDefinition, state_path: Path, topics: TopicStore) -> None:
        topics.create(topic_name(definition), topic_layout(definition))

    def forget(self, definition: SinkDefinition, state_path: Path, topics: TopicStore) -> None:
        topics.drop(topic_name(definition))

    def write(self, rows: pa.Table, context: SinkContext, batch_id: int | None) -> None:
        if rows.num_rows == 0:
            return
        definition = context.definition
        topic = context.topics.open(topic_name(definition))
        records = _records(rows, context, topic)
        producer = None if batch_id is None else (context.producer, batch_id)
        count = len(topic.ends())
        keys = [_column_named(rows, key) for key in _keys(definition)]
        if not keys and definition.options.changes != "append":
            keys = whole_row_key(rows, [name for name in rows.column_names if name not in (OPERATION, RECORD)])
        if keys:
            chosen = choose_partitions(rows, count, keys)
            for partition, numbers in sorted(chosen.items()):
                topic.append(partition, records.take(numbers), producer)
        else:
            topic.append((batch_id or 0) % count, records, producer)


def _records(rows: pa.Table, context: SinkContext, topic: Topic) -> pa.Table:
    """The rows as the topic keeps them: typed columns or encoded, with the metadata that they set."""
    import pyarrow as pa

    metadata = {
        _WRITABLE[column.metadata]: rows.column(column.name)
        for column in context.definition.columns
        if column.metadata in _WRITABLE and not column.virtual and column.name in rows.column_names
    }
    hidden = {column.name for column in context.definition.columns if not column.physical}
    plain = rows.select([name for name in rows.column_names if name not in hidden])
    if OPERATION in plain.column_names:
        if marks_deletions(context.definition):
            metadata["__headers"] = deletion_headers(rows.column(OPERATION).to_pylist())
        plain = plain.drop_columns([OPERATION])
    if context.encode is not None:
        plain = pa.table({"__value": record_values(plain, context)})
    for name, values in metadata.items():
        plain = plain.append_column(name, values.cast(topic.schema.field(name).type))
    wanted = [field for field in topic.schema if field.name in plain.column_names]
    return plain.select([field.name for field in wanted]).cast(pa.schema(wanted))


def _keys(definition: SinkDefinition) -> tuple[str, ...]:
    """By which columns a partition is chosen: rows that replace each other stay in one."""
    keys = definition.options.values.get("key.fields")
    if isinstance(keys, tuple) and keys:
        return tuple(map(str, keys))
    return () if definition.options.changes == "append" else definition.primary_key


def _column_named(rows: pa.Table, key: str) -> str:
    return next((name for name in rows.column_names if name.casefold() == key.casefold()), key)
