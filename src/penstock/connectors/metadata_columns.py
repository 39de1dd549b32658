"""METADATA and HEADER columns of a relation, made of the hidden columns that come with every row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import Column, DataFrame

    from penstock.catalog.model import ColumnDefinition, SinkDefinition, SourceDefinition

# What a metadata key is read from; the keys that are not here are the same for all rows.
_HIDDEN: Final = {
    "partition": "__partition",
    "offset": "__offset",
    "timestamp": "__timestamp",
    "key": "__key",
    "headers": "__headers",
    "file.path": "__file_path",
    "file.name": "__file_name",
    "file.size": "__file_size",
    "file.modification-time": "__file_time",
}
# What a broker tells with each row, and what is the same for all rows of a topic of ours.
_BROKER: Final = {"topic": "__topic", "timestamp-type": "__timestamp_type"}
# Where rows come from several topics: the number that a partition has in its own.
_OWN_PARTITION: Final = "__topic_partition"
# The header of a record that says what becomes of its row, and the one word that counts.
OPERATION: Final = "_op"
DELETE: Final = "delete"
_ENVELOPES: Final = "debezium-json"
ALWAYS: Final = ("__partition", "__offset")
# What the raw format shows of a record besides its value.
_RAW: Final = ("__timestamp", "__key")


def hidden_columns(definition: SourceDefinition) -> tuple[str, ...]:
    """The hidden columns that a scan has to bring along, the place of the row first."""
    needed = {_HIDDEN[column.metadata] for column in definition.columns if column.metadata in _HIDDEN}
    if _several_topics(definition) and ("__partition" in needed or definition.options.format == "raw"):
        needed.add(_OWN_PARTITION)
    if any(column.header is not None for column in definition.columns):
        needed.add("__headers")
    if definition.options.format == "raw":
        needed |= set(_RAW)
    if marks_deletions(definition):
        needed.add("__headers")
    if _outside(definition) and definition.options.values.get("key.fields") is not None:
        needed.add("__key")
    if _outside(definition):
        needed |= {_BROKER[column.metadata] for column in definition.columns if column.metadata in _BROKER}
    known = (*_HIDDEN.values(), *_BROKER.values(), _OWN_PARTITION)
    return (*ALWAYS, *(name for name in dict.fromkeys(known) if name in needed and name not in ALWAYS))


def marks_deletions(definition: SourceDefinition | SinkDefinition) -> bool:
    """Whether a record of the relation can say in a header that its row is deleted: topics of ours, which need no key
    beside the value, and keep typed rows that cannot be NULL as a whole."""
    options = definition.options
    return options.connector in ("topic", "memory") and options.changes != "append" and options.format != _ENVELOPES


def deleted(frame: DataFrame, definition: SourceDefinition) -> Column:
    """Whether a row deletes the one with its key: it has no value, or its header says so."""
    from pyspark.sql import functions as f

    found = f.col("__value").isNull() if "__value" in frame.columns else f.lit(False)
    if marks_deletions(definition) and "__headers" in frame.columns:
        word = f.lit(DELETE.encode())
        marked = f.exists(f.col("__headers"), lambda header: (header["key"] == OPERATION) & (header["value"] == word))
        found = found | f.coalesce(marked, f.lit(False))
    return found


def _outside(definition: SourceDefinition) -> bool:
    """Whether rows of one relation come from several topics, dated by a broker."""
    return definition.options.connector in ("kafka", "upsert-kafka")


def _several_topics(definition: SourceDefinition) -> bool:
    """Whether the number that we give a partition is not the one it has in its topic."""
    if not _outside(definition):
        return False
    named = definition.options.values.get("topic")
    return named is None or (isinstance(named, tuple) and len(named) > 1)


def partition_column(definition: SourceDefinition) -> str:
    """The hidden column with the partition that a record has in its topic."""
    return _OWN_PARTITION if _several_topics(definition) else "__partition"


def with_metadata(frame: DataFrame, definition: SourceDefinition, columns: Collection[str]) -> DataFrame:
    """The frame with those of the relation's METADATA and HEADER columns that are named, in their declared types."""
    wanted = [column for column in definition.columns if column.name in columns]
    added = {column.name: _value(column, definition) for column in wanted if column.metadata or column.header}
    return frame.withColumns(added) if added else frame


def _value(column: ColumnDefinition, definition: SourceDefinition) -> Column:
    from pyspark.sql import functions as f

    assert column.type is not None, "a metadata column has the type of its key where none is declared"
    if column.header is not None:
        # The last header of a name counts, as with Kafka's clients.
        named = f.filter(f.col("__headers"), lambda header: header["key"] == f.lit(column.header))
        value = f.try_element_at(named, f.lit(-1))["value"]
        return value.cast(column.type.spark())
    return _metadata(column, definition)


def _metadata(column: ColumnDefinition, definition: SourceDefinition) -> Column:
    from pyspark.sql import functions as f

    assert column.type is not None
    key, wanted = column.metadata, column.type.spark()
    if key in _BROKER and _outside(definition):
        return f.col(_BROKER[key]).cast(wanted)
    if key == "topic":
        return f.lit(topic_name(definition)).cast(wanted)
    if key == "timestamp-type":
        # Rows are dated when they are appended, unless the writer sets the time.
        return f.lit("CreateTime").cast(wanted)
    if key == "leader-epoch":
        return f.lit(None).cast(wanted)
    value = f.col(partition_column(definition) if key == "partition" else _HIDDEN[str(key)])
    if key in ("timestamp", "file.modification-time") and column.type.name == "BIGINT":
        return f.unix_millis(value)
    if key == "headers" and column.type.name == "MAP":
        return f.map_from_entries(_last_of_each(value)).cast(wanted)
    return value.cast(wanted)


def _last_of_each(headers: Column) -> Column:
    """Headers without those that a later one of the same name replaces: a map takes a name once, and no NULL."""
    from pyspark.sql import functions as f

    def counts(header: Column, index: Column) -> Column:
        later = f.slice(headers, index + 2, f.size(headers))
        again = f.exists(later, lambda other: other["key"] == header["key"])
        return header["key"].isNotNull() & ~again

    return f.filter(headers, counts)


def topic_name(definition: SourceDefinition | SinkDefinition) -> str:
    """The topic behind a relation: the one it names, or one of its own name."""
    return str(definition.options.values.get("topic") or definition.name.text)
