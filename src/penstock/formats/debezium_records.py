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
_TAKES_BACK: Final = ("u", "d")
_CHANGE: Final = "__change"
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

    Of a row that is deleted only the key and the version are read: from the row before. Without a primary key all of
    that row is, and an update is two rows: the one before, which is deleted, and the one after.
    """
    from pyspark.sql import functions as f

    keyed = bool(definition.primary_key)
    kept = {*definition.primary_key, definition.options.values.get("version_column")}
    known = [column for column in wanted if column.name in kept or not keyed] or list(wanted[:1])
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
    if not keyed:
        rowless = operation.isin(*_TAKES_BACK) & f.col(_BEFORE).isNull()
        whole = ": without a primary key the whole row has to be there (REPLICA IDENTITY FULL)"
        error = error.when(rowless, f.concat(f.lit("no row before operation "), operation, f.lit(whole)))
    decoded = decoded.filter(f.coalesce(operation != _MESSAGE, f.lit(True)))
    if not keyed:
        decoded = decoded.withColumn("__error", f.coalesce(f.col("__error"), error))
        shown = {column.name for column in wanted}
        return _whole_rows(decoded, wanted).drop(*[column.name for column in members if column.name not in shown])
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


def _whole_rows(decoded: DataFrame, wanted: Sequence[ColumnDefinition]) -> DataFrame:
    """Each row that a record takes away or brings as a row of its own; of a bad record one, so that it can be told."""
    from pyspark.sql import functions as f

    operation, change = f.col(OPERATION), f.col(_CHANGE)
    before = f.struct(f.lit(True).alias("gone"), f.col(_BEFORE).alias("row"))
    after = f.struct(f.lit(False).alias("gone"), f.col(_ROW).alias("row"))
    good = f.col("__error").isNull()
    both = (
        f.when(good & (operation == "u"), f.array(before, after))
        .when(good & (operation == _DELETE), f.array(before))
        .otherwise(f.array(after))
    )
    made = decoded.withColumn(_CHANGE, f.explode(both))
    rows = {column.name: change["row"][column.name] for column in wanted}
    return made.withColumns({**rows, DELETED: change["gone"]}).drop(_CHANGE)


def _struct(columns: Sequence[ColumnDefinition]) -> SqlType:
    return SqlType("STRUCT", fields=tuple(Field(column.name, column.type or STRING) for column in columns))
