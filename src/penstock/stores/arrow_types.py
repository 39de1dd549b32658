"""Which Arrow type a column has: the one that Spark expects for the Spark type of the same column."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from penstock.errors import NotYetError
from penstock.types import Field, SqlType

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


def sql_type_of_arrow(found: pa.DataType) -> SqlType | None:
    """The SQL type of an Arrow column; None where there is none.

    >>> import pyarrow as pa
    >>> str(sql_type_of_arrow(pa.large_string())), str(sql_type_of_arrow(pa.list_(pa.uint32())))
    ('STRING', 'ARRAY<INT UNSIGNED>')
    """
    import pyarrow as pa

    kinds = pa.types
    if kinds.is_dictionary(found):
        return sql_type_of_arrow(found.value_type)
    if kinds.is_decimal128(found) and found.scale >= 0:
        return SqlType("DECIMAL", (found.precision, found.scale))
    if kinds.is_timestamp(found):
        return SqlType("TIMESTAMP")
    if kinds.is_map(found):
        return _nested("MAP", found.key_type, found.item_type)
    if kinds.is_list(found) or kinds.is_large_list(found) or kinds.is_fixed_size_list(found):
        return _nested("ARRAY", found.value_type)
    if kinds.is_struct(found):
        parts = [(field.name, sql_type_of_arrow(field.type)) for field in found]
        if any(sql_type is None for _, sql_type in parts):
            return None
        return SqlType("STRUCT", fields=tuple(Field(name, sql_type) for name, sql_type in parts if sql_type))
    if kinds.is_fixed_size_binary(found):
        return SqlType("BINARY")
    name = _names().get(found)
    return None if name is None else SqlType(name)


def _nested(name: str, *inner: pa.DataType) -> SqlType | None:
    elements = tuple(sql_type_of_arrow(each) for each in inner)
    return SqlType(name, elements=tuple(element for element in elements if element)) if all(elements) else None


def _names() -> dict[pa.DataType, str]:
    import pyarrow as pa

    return {
        pa.string(): "STRING",
        pa.large_string(): "STRING",
        pa.string_view(): "STRING",
        pa.null(): "STRING",
        pa.binary_view(): "BINARY",
        pa.bool_(): "BOOLEAN",
        pa.int8(): "TINYINT",
        pa.int16(): "SMALLINT",
        pa.int32(): "INT",
        pa.int64(): "BIGINT",
        pa.uint8(): "UTINYINT",
        pa.uint16(): "USMALLINT",
        pa.uint32(): "UINT",
        pa.uint64(): "UBIGINT",
        pa.float16(): "FLOAT",
        pa.float32(): "FLOAT",
        pa.float64(): "DOUBLE",
        pa.binary(): "BINARY",
        pa.large_binary(): "BINARY",
        pa.date32(): "DATE",
        pa.date64(): "DATE",
    }
