"""Which Arrow type a column has: the one that Spark expects for the Spark type of the same column."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from penstock.errors import NotYetError
from penstock.types import SqlType

if TYPE_CHECKING:
    import pyarrow as pa


@cache
def arrow_type(sql_type: SqlType) -> pa.DataType:
    """The Arrow type of a column, as Spark reads and writes it.

    >>> arrow_type(SqlType("UBIGINT"))
    Decimal128Type(decimal128(20, 0))
    >>> arrow_type(SqlType("TIMESTAMP"))
    TimestampType(timestamp[us, tz=UTC])
    """
    import pyarrow as pa

    match sql_type.name:
        case "ARRAY":
            return pa.list_(pa.field("element", arrow_type(sql_type.elements[0])))
        case "MAP":
            key, value = sql_type.elements
            return pa.map_(pa.field("key", arrow_type(key), nullable=False), pa.field("value", arrow_type(value)))
        case "STRUCT":
            return pa.struct([pa.field(field.name, arrow_type(field.type)) for field in sql_type.fields])
        case "DECIMAL":
            return pa.decimal128(sql_type.parameters[0], sql_type.parameters[1])
        case "VARIANT":
            # Spark knows a VARIANT by the tag on its second field.
            tag = {b"variant": b"true"}
            return pa.struct(
                [
                    pa.field("value", pa.binary(), nullable=False),
                    pa.field("metadata", pa.binary(), nullable=False, metadata=tag),
                ]
            )
        case "INTERVAL":
            raise NotYetError(
                "CLAUSE_NOT_YET",
                "a column of type INTERVAL cannot be kept or sent",
                hint="keep the length as a number, such as BIGINT milliseconds",
            )
        case name:
            return _plain()[name]


def _plain() -> dict[str, pa.DataType]:
    import pyarrow as pa

    return {
        "STRING": pa.string(),
        "BOOLEAN": pa.bool_(),
        "TINYINT": pa.int8(),
        "SMALLINT": pa.int16(),
        "INT": pa.int32(),
        "BIGINT": pa.int64(),
        "UTINYINT": pa.int16(),
        "USMALLINT": pa.int32(),
        "UINT": pa.int64(),
        "UBIGINT": pa.decimal128(20, 0),
        "FLOAT": pa.float32(),
        "DOUBLE": pa.float64(),
        "BINARY": pa.binary(),
        "DATE": pa.date32(),
        "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    }
