"""Debezium's records in JSON: as the envelopes they are (operation, row before, row after, and where they come from),
or as the rows that they are about, each with whether it is deleted.

With `debezium-json.schema_include` the envelope is in the member `payload`, beside its schema. A tombstone, the record
without a value that follows a deletion for brokers that compact topics, says nothing more and is passed over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.catalog.envelopes import OPERATION
from penstock.catalog.model import ColumnDefinition
from penstock.formats.json_records import decode_json
from penstock.plan.changed_rows import DELETED
from penstock.types import STRING, Field, SqlType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from penstock.catalog.model import SourceDefinition

_OPERATIONS: Final = ("c", "u", "d", "r", "t", "m")  # created, updated, deleted, read, truncated, a message
_WITH_ROW: Final = ("c", "u", "r")
_ROW: Final = "after"
_BEFORE: Final = "before"
_DELETE, _TRUNCATE, _MESSAGE = "d", "t", "m"


def decode_debezium(frame: DataFrame, definition: SourceDefinition, wanted: Sequence[ColumnDefinition]) -> DataFrame:
    """The frame with the wanted columns and `__error`; without tombstones."""
    from pyspark.sql import functions as f

    names = [column.name for column in wanted]
    more = [] if OPERATION in names else [ColumnDefinition(OPERATION, STRING)]
    with_schema = definition.options.values.get("debezium-json.schema_include") is True
    decoded = decode_json(
        frame.filter(f.col("__value").isNotNull()),
        definition,
        [*wanted, *more],
        family="debezium-json",
        inside="payload" if with_schema else None,
    )
    operation = f.col(OPERATION).cast("string")
    hint = "" if with_schema else "; where a schema stands around it, set debezium-json.schema_include = true"
    error = f.when(operation.isNull(), f.lit(f"no operation of Debezium{hint}")).when(
        ~operation.isin(*_OPERATIONS), f.concat(f.lit("no operation of Debezium: "), operation)
    )
    if _ROW in names:
        rowless = operation.isin(*_WITH_ROW) & f.col(_ROW).isNull()
        error = error.when(rowless, f.concat(f.lit("no row after operation "), operation))
    decoded = decoded.withColumn("__error", f.coalesce(f.col("__error"), error))
    return decoded.drop(*[column.name for column in more])


def decode_changes(frame: DataFrame, definition: SourceDefinition, wanted: Sequence[ColumnDefinition]) -> DataFrame:
    """The frame with the wanted columns of the rows, `__deleted` and `__error`; without tombstones and messages.

    Of a row that is deleted only the key and the version are read: from the row before.
    """
    from pyspark.sql import functions as f

    kept = {*definition.primary_key, definition.options.values.get("version_column")}
    known = [column for column in wanted if column.name in kept] or list(wanted[:1])
    members = [
        ColumnDefinition(OPERATION, STRING),
        ColumnDefinition(_BEFORE, _struct(known)),
        ColumnDefinition(_ROW, _struct(wanted)),
    ]
    with_schema = definition.options.values.get("debezium-json.schema_include") is True
    decoded = decode_json(
        frame.filter(f.col("__value").isNotNull()),
        definition,
        members,
        family="debezium-json",
        inside="payload" if with_schema else None,
    )
    operation = f.col(OPERATION)
    hint = "" if with_schema else "; where a schema stands around it, set debezium-json.schema_include = true"
    error = (
        f.when(operation.isNull(), f.lit(f"no operation of Debezium{hint}"))
        .when(~operation.isin(*_OPERATIONS), f.concat(f.lit("no operation of Debezium: "), operation))
        .when(operation == _TRUNCATE, f.lit("a truncation of the whole table cannot be followed"))
        .when(operation.isin(*_WITH_ROW) & f.col(_ROW).isNull(), f.concat(f.lit("no row after operation "), operation))
    )
    decoded = decoded.filter(f.coalesce(operation != _MESSAGE, f.lit(True)))
    gone = f.coalesce(operation == _DELETE, f.lit(False))
    names = {column.name for column in known}
    rows = {
        column.name: f.when(gone, f.col(_BEFORE)[column.name] if column.name in names else f.lit(None)).otherwise(
            f.col(_ROW)[column.name]
        )
        for column in wanted
    }
    made = {**rows, DELETED: gone, "__error": f.coalesce(f.col("__error"), error)}
    left = [column.name for column in members if column.name not in rows]
    return decoded.withColumns(made).drop(*left)


def _struct(columns: Sequence[ColumnDefinition]) -> SqlType:
    return SqlType("STRUCT", fields=tuple(Field(column.name, column.type or STRING) for column in columns))
