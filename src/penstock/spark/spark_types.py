"""Spark's own types as ours: for columns whose type only Spark's analyzer can tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.errors import UnsupportedError
from penstock.types import Field, SqlType

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

_NAMES: Final = {
    "string": "STRING",
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INT",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "binary": "BINARY",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamp_ntz": "TIMESTAMP",
    "variant": "VARIANT",
    "void": "STRING",
}


def sql_type_of(found: DataType) -> SqlType:
    """Our type for one of Spark's."""
    from pyspark.sql import types as t

    if isinstance(found, t.DecimalType):
        return SqlType("DECIMAL", (found.precision, found.scale))
    if isinstance(found, t.ArrayType):
        return SqlType("ARRAY", elements=(sql_type_of(found.elementType),))
    if isinstance(found, t.MapType):
        return SqlType("MAP", elements=(sql_type_of(found.keyType), sql_type_of(found.valueType)))
    if isinstance(found, t.StructType):
        return SqlType("STRUCT", fields=tuple(Field(part.name, sql_type_of(part.dataType)) for part in found.fields))
    if isinstance(found, t.DayTimeIntervalType):
        return SqlType("INTERVAL")
    if isinstance(found, t.StringType):
        return SqlType("STRING")
    name = _NAMES.get(found.simpleString())
    if name is None:
        raise UnsupportedError(
            "UNSUPPORTED_CLAUSE",
            f"a column of type {found.simpleString()} cannot be kept in a view",
            hint="cast the column to a type of the type reference",
        )
    return SqlType(name)
