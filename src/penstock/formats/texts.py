"""From a text to a value of a column's type, as expressions of Spark: the value, or NULL where the text is none.

Integers are decimal digits; a number may not lose digits before the point, and a DECIMAL rounds those behind its scale.
A TIMESTAMP is milliseconds since 1970 where it is digits only, else ISO 8601: a date, then `T` or a blank and a time of
day with seconds, fractions of a second, and a zone or an offset; UTC without one. A DATE is its first ten characters.
DOUBLE and FLOAT take `NaN`, `Infinity`, `-Infinity` by name; a number too large for them is no value. BINARY is base64.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import Column

    from penstock.types import SqlType

_SHOWN: Final = 60

# Where a type has a narrower range than the Spark type that holds it: the type to read it in, and the bounds.
RANGES: Final[dict[str, tuple[str, int, int]]] = {
    "TINYINT": ("SMALLINT", -(2**7), 2**7 - 1),
    "UTINYINT": ("SMALLINT", 0, 2**8 - 1),
    "USMALLINT": ("INT", 0, 2**16 - 1),
    "UINT": ("BIGINT", 0, 2**32 - 1),
    "UBIGINT": ("DECIMAL(38, 18)", 0, 2**64 - 1),
}
NESTED: Final = frozenset({"STRUCT", "ARRAY", "MAP"})


def value_of(text: Column, type_: SqlType) -> Column:
    """The value that a text stands for; NULL where it stands for none."""
    from pyspark.sql import functions as f

    name = type_.name
    if name == "STRING":
        return text
    if name == "TIMESTAMP":
        return timestamp_of(text)
    if name == "DATE":
        return date_of(text)
    if name == "BOOLEAN":
        lowered = f.lower(text)
        return f.when(lowered == "true", f.lit(True)).when(lowered == "false", f.lit(False))
    if name == "BINARY":
        return f.try_to_binary(text, f.lit("base64"))
    if name in {"DOUBLE", "FLOAT"}:
        return _float_of(text, type_)
    if name in RANGES:
        return in_range(text.try_cast("DECIMAL(38, 18)"), type_)
    if name == "VARIANT":
        return f.try_parse_json(text)
    return text.try_cast(type_.spark())


def in_range(value: Column, type_: SqlType) -> Column:
    """A value that was read in a wider type, in its own; NULL where it does not fit."""
    from pyspark.sql import functions as f

    _, low, high = RANGES[type_.name]
    return f.when(value.between(f.lit(Decimal(low)), f.lit(Decimal(high))) & (value == f.floor(value)), value).cast(
        type_.spark()
    )


def timestamp_of(text: Column) -> Column:
    """An instant: milliseconds since 1970 where the text is a whole number, else ISO 8601."""
    from pyspark.sql import functions as f

    # A cast that fails costs as much as reading ten records, so the text is looked at first.
    number = timestamp_of_number(text.try_cast("BIGINT"))
    return f.when(_begins_with_date(text), text.try_cast("TIMESTAMP")).otherwise(number)


def timestamp_of_number(millis: Column) -> Column:
    """The instant so many milliseconds after 1970; NULL where that is further than a TIMESTAMP goes."""
    from pyspark.sql import functions as f

    return f.timestamp_micros(f.try_multiply(millis, f.lit(1000).cast("BIGINT")))


def date_of(text: Column) -> Column:
    """A date; what stands behind it is left out."""
    from pyspark.sql import functions as f

    return f.when(_begins_with_date(text), text.try_cast("DATE"))


def _begins_with_date(text: Column) -> Column:
    from pyspark.sql import functions as f

    # Spark would take a time of day alone for one of today, and digits alone for a year. A number is known by its
    # digits before anything is cut out of it.
    return text.contains("-") & (f.substring(text, 5, 1) == "-")


def _float_of(text: Column, type_: SqlType) -> Column:
    from pyspark.sql import functions as f

    # Java takes a number that ends in d or f; and it makes one that is too large infinite.
    value = f.when(~text.rlike("[dDfF]$"), text.try_cast(type_.spark()))
    return f.when((f.abs(value) != f.lit(float("inf"))) | text.rlike("^[+-]?Infinity$"), value)


def misfit(column: str, text: Column, type_: SqlType) -> Column:
    """Why a text is no value of a column, in words."""
    from pyspark.sql import functions as f

    shown = f.coalesce(f.nullif(f.left(text, f.lit(_SHOWN)), f.lit("")), f.lit("an empty text"))
    return f.concat(f.lit(f'column "{column}": '), shown, f.lit(f" does not fit {type_}"))


def first_error(errors: list[Column]) -> Column:
    """The first of the errors that is one."""
    from pyspark.sql import functions as f

    return f.coalesce(*errors) if errors else f.lit(None).cast("string")
