"""Values that came with a type of their own, in the type of a column: the value, or NULL where it does not fit.

A number may not lose digits before the point, nor those behind it on the way to a whole number. A whole number in a
TIMESTAMP is milliseconds since 1970, and a text is read as `texts` says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.formats.avro_schemas import field_of
from penstock.formats.texts import RANGES, date_of, in_range, timestamp_of, value_of

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType

    from penstock.types import SqlType

_NUMBERS: Final = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL"})


def fits_always(have: DataType, want: SqlType) -> bool:
    """Whether every value of the one type is one of the other, as it is."""
    if want.name in RANGES:
        return want.name == "TINYINT" and have.simpleString() == "tinyint"
    return _same(have.simpleString(), want.spark())


def fitted_value(value: Column, have: DataType, want: SqlType) -> Column:
    """The value in the column's type; NULL where it does not fit."""
    from pyspark.sql import functions as f
    from pyspark.sql import types as t

    if fits_always(have, want):
        return value
    if isinstance(have, t.StructType) and want.name == "STRUCT":
        return _struct(value, have, want)
    if isinstance(have, t.ArrayType) and want.name == "ARRAY":
        element, item = have.elementType, want.elements[0]
        good = f.forall(value, lambda one: one.isNull() | fitted_value(one, element, item).isNotNull())
        return f.when(good, f.transform(value, lambda one: fitted_value(one, element, item)))
    if isinstance(have, t.MapType) and want.name == "MAP":
        inner, item = have.valueType, want.elements[1]
        good = f.forall(f.map_values(value), lambda one: one.isNull() | fitted_value(one, inner, item).isNotNull())
        made = f.transform_values(value, lambda _, one: fitted_value(one, inner, item))
        return f.when(good, made) if want.elements[0].name == "STRING" else _nothing(want)
    if isinstance(have, t.StructType | t.ArrayType | t.MapType) or want.elements or want.fields:
        return f.to_json(value) if want.name == "STRING" and _is_nested(have) else _nothing(want)
    return _simple(value, have, want)


def _simple(value: Column, have: DataType, want: SqlType) -> Column:
    from pyspark.sql import functions as f
    from pyspark.sql import types as t

    if isinstance(have, t.StringType):
        return value.cast("binary") if want.name == "BINARY" else value_of(value, want)
    if isinstance(have, t.BinaryType):
        text = value.cast("string")
        return f.when(f.is_valid_utf8(text), text) if want.name == "STRING" else _nothing(want)
    if want.name == "STRING":
        return value.cast("string")
    whole = isinstance(have, t.IntegralType)
    if want.name == "TIMESTAMP":
        return timestamp_of(value.cast("string")) if whole else _cast_time(value, have, want)
    if want.name == "DATE":
        return date_of(value.cast("string")) if isinstance(have, t.DateType | t.TimestampType) else _nothing(want)
    if not isinstance(have, t.NumericType):
        return _nothing(want)
    if want.name in RANGES:
        return in_range(value.try_cast("DECIMAL(38, 18)"), want)
    if want.name not in _NUMBERS:
        return _nothing(want)
    made = value.try_cast(want.spark())
    return made if whole or not want.integral else f.when(value == f.floor(value), made)


def _cast_time(value: Column, have: DataType, want: SqlType) -> Column:
    from pyspark.sql import types as t

    # Sessions run in UTC, so a time without a zone is one there.
    return value.cast("timestamp") if isinstance(have, t.TimestampNTZType | t.DateType) else _nothing(want)


def _struct(value: Column, have: StructType, want: SqlType) -> Column:
    from pyspark.sql import functions as f

    made: list[Column] = []
    fits = value.isNotNull()
    for part in want.fields:
        name = field_of(part.name, have.names)
        if name is None:
            made.append(_nothing(part.type).alias(part.name))
            continue
        found = value.getField(name)
        fitted = fitted_value(found, have[name].dataType, part.type)
        fits = fits & (found.isNull() | fitted.isNotNull())
        made.append(fitted.alias(part.name))
    return f.when(fits, f.struct(*made))


def _nothing(want: SqlType) -> Column:
    from pyspark.sql import functions as f

    return f.lit(None).cast(want.spark())


def _is_nested(have: DataType) -> bool:
    from pyspark.sql import types as t

    return isinstance(have, t.StructType | t.ArrayType | t.MapType)


def _same(one: str, other: str) -> bool:
    """Whether two texts name the same type.

    >>> _same("array<decimal(10,2)>", "ARRAY<DECIMAL(10, 2)>")
    True
    """
    return one.replace(" ", "").replace("`", "").casefold() == other.replace(" ", "").replace("`", "").casefold()
