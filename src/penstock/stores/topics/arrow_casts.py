"""A column of Arrow as a declared column takes it, without a look at single values.

What a cast would change in meaning is not cast: the caller then goes through the values one by one, by the rules of
`row_values`, and finds the one that does not fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.stores.arrow_types import arrow_type
from penstock.stores.topics.row_values import RANGES, within
from penstock.types import SqlType

if TYPE_CHECKING:
    import pyarrow as pa


def cast_column(column: pa.ChunkedArray, sql_type: SqlType) -> pa.ChunkedArray | None:
    """The column in the Arrow type of the declared one; None where its values have to be looked at."""
    import pyarrow as pa

    wanted = arrow_type(sql_type)
    try:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_null(column.type):
            return column.cast(wanted)
        if column.type == wanted and sql_type.name not in RANGES:
            return column
        return _cast(column, sql_type, wanted)
    except (pa.ArrowException, ValueError):
        return None


def _cast(column: pa.ChunkedArray, sql_type: SqlType, wanted: pa.DataType) -> pa.ChunkedArray | None:
    import pyarrow as pa

    given = column.type
    match sql_type.name:
        case "TIMESTAMP":
            return _timestamps(column)
        case "DECIMAL":
            return _decimals(column, wanted)
        case name if name in RANGES:
            return _integers(column, wanted, RANGES[name])
        case "DOUBLE":
            numbers = pa.types.is_floating(given) or pa.types.is_integer(given) or pa.types.is_decimal(given)
            return column.cast(wanted, safe=False) if numbers else None
        case "DATE":
            dates = pa.types.is_date(given) or _texts(given)
            return column.cast(wanted) if dates else None
        case _:
            return column.cast(wanted) if _alike(given, wanted) else None


def _timestamps(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    zoneless, wanted = pa.timestamp("us"), pa.timestamp("us", tz="UTC")
    if pa.types.is_timestamp(column.type):
        # Finer than microseconds is cut off, coarser must not run over.
        fine = column.type.unit == "ns"
        made = pc.floor_temporal(column, unit="microsecond") if fine else column
        return made.cast(pa.timestamp("us", tz=column.type.tz)).cast(wanted)
    if pa.types.is_integer(column.type):
        return pc.multiply_checked(column.cast(pa.int64()), pa.scalar(1_000, pa.int64())).cast(zoneless).cast(wanted)
    if pa.types.is_date(column.type):
        return column.cast(zoneless).cast(wanted)
    if _texts(column.type):
        try:
            return column.cast(zoneless).cast(wanted)
        except pa.ArrowException:
            return column.cast(wanted)
    return None


def _decimals(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray | None:
    import pyarrow as pa

    given = column.type
    if pa.types.is_floating(given):
        # Through the shortest digits that mean the number, so that 12.34 stays 12.34.
        return column.cast(pa.string()).cast(wanted)
    if pa.types.is_decimal(given) or _texts(given):
        return column.cast(wanted)
    if pa.types.is_integer(given):
        return column.cast(pa.decimal256(76, wanted.scale)).cast(wanted)
    return None


def _integers(column: pa.ChunkedArray, wanted: pa.DataType, allowed: range) -> pa.ChunkedArray | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_decimal(column.type)):
        return None
    through = pa.decimal256(76, 0) if pa.types.is_decimal(wanted) and pa.types.is_integer(column.type) else wanted
    made = column.cast(through)
    bounds = pc.min_max(made).as_py()
    if not within(bounds["min"], bounds["max"], allowed):
        return None
    return made.cast(wanted)


def _alike(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether two types hold the same values, kept in another way."""
    import pyarrow as pa

    if given == wanted or (_texts(given) and _texts(wanted)) or (_bytes(given) and _bytes(wanted)):
        return True
    if _lists(given) and _lists(wanted):
        return _alike(given.value_type, wanted.value_type)
    if pa.types.is_map(given) and pa.types.is_map(wanted):
        return _alike(given.key_type, wanted.key_type) and _alike(given.item_type, wanted.item_type)
    if pa.types.is_struct(given) and pa.types.is_struct(wanted):
        names = [field.name for field in given] == [field.name for field in wanted]
        return names and all(_alike(one.type, other.type) for one, other in zip(given, wanted, strict=True))
    return False


def _texts(given: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(given) or pa.types.is_large_string(given) or pa.types.is_string_view(given))


def _bytes(given: pa.DataType) -> bool:
    import pyarrow as pa

    plain = pa.types.is_binary(given) or pa.types.is_large_binary(given) or pa.types.is_binary_view(given)
    return bool(plain or pa.types.is_fixed_size_binary(given))


def _lists(given: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(given) or pa.types.is_large_list(given) or pa.types.is_fixed_size_list(given))
