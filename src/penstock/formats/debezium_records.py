"""Debezium's records in JSON, as the envelopes they are: operation, row before, row after, and where they come from.

With `debezium-json.schema_include` the envelope is in the member `payload`, beside its schema. A tombstone, the record
without a value that follows a deletion for brokers that compact topics, says nothing more and is passed over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.catalog.envelopes import OPERATION
from penstock.catalog.model import ColumnDefinition
from penstock.formats.json_records import decode_json
from penstock.types import STRING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from penstock.catalog.model import SourceDefinition

_OPERATIONS: Final = ("c", "u", "d", "r", "t", "m")  # created, updated, deleted, read, truncated, a message
_WITH_ROW: Final = ("c", "u", "r")
_ROW: Final = "after"


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
