"""Arrow columns as Python values.

Arrow keeps an instant as a number; Python gets a datetime that knows it is UTC, whatever zone the column names, and an
interval as a timedelta. An instant that Python's calendar cannot hold (before year 1, after 9999) comes as its text.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow as pa

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_MONTHS_IN_GREGORIAN_CYCLE: Final = 400 * 12
_MICROSECONDS_IN_GREGORIAN_CYCLE: Final = 146_097 * 86_400 * 1_000_000


def instant(microseconds: int | None) -> datetime | None:
    """The instant so many microseconds after 1970, in UTC.

    >>> instant(1_500_000).isoformat()
    '1970-01-01T00:00:01.500000+00:00'
    """
    return None if microseconds is None else EPOCH + microseconds * _MICROSECOND


def with_utc(table: pa.Table) -> pa.Table:
    """The table with every instant as timestamp[us, tz=UTC], as it leaves our API."""
    import pyarrow as pa

    wanted = pa.timestamp("us", tz="UTC")
    for position, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type != wanted:
            # Nanoseconds are cut: nothing of ours is finer than a microsecond.
            column = table.column(position).cast(pa.timestamp("us", tz=field.type.tz), safe=False).cast(wanted)
            table = table.set_column(position, field.with_type(wanted), column)
    return table


def python_values(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """The values of a column, one a row."""
    import pyarrow as pa

    type_ = column.type
    if pa.types.is_timestamp(type_):
        numbers = column.cast(pa.timestamp("us", tz=type_.tz), safe=False).cast(pa.int64()).to_pylist()
        return [_instant_or_text(number) for number in numbers]
    values: list[Any] = column.to_pylist()
    if pa.types.is_nested(type_) or pa.types.is_interval(type_):
        return [_python(value, type_) for value in values]
    return values


def python_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of a table as tuples."""
    if table.num_columns == 0:
        return [()] * table.num_rows
    return list(zip(*(python_values(column) for column in table.columns), strict=True))


def python_dicts(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table by the names of its columns."""
    names = table.column_names
    return [dict(zip(names, row, strict=True)) for row in python_rows(table)]


def _instant_or_text(microseconds: int | None) -> datetime | str | None:
    try:
        return instant(microseconds)
    except OverflowError:
        assert microseconds is not None
        return far_instant(microseconds)


def far_instant(microseconds: int) -> str:
    """The text of an instant in any year: the calendar repeats every 400 years.

    >>> far_instant(253_402_300_800_000_000)
    '+10000-01-01T00:00:00Z'
    """
    cycles, rest = divmod(microseconds, _MICROSECONDS_IN_GREGORIAN_CYCLE)
    near = EPOCH + rest * _MICROSECOND
    year = near.year + cycles * _MONTHS_IN_GREGORIAN_CYCLE // 12
    sign = "-" if year < 0 else "+"
    return f"{sign}{abs(year):04d}{near.isoformat()[4:].removesuffix('+00:00')}Z"


def _python(value: Any, type_: pa.DataType) -> Any:
    """A nested value or an interval, with the instants in it in UTC; a MAP becomes a dict where its keys allow it."""
    import pyarrow as pa

    if value is None:
        return None
    if pa.types.is_timestamp(type_):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    if pa.types.is_interval(type_):
        months, days, nanoseconds = value
        return value if months else timedelta(days=days, microseconds=nanoseconds // 1_000)
    if pa.types.is_struct(type_):
        return {field.name: _python(value[field.name], field.type) for field in type_}
    if pa.types.is_map(type_):
        pairs = [(_python(key, type_.key_type), _python(item, type_.item_type)) for key, item in value]
        return pairs if pa.types.is_nested(type_.key_type) else dict(pairs)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_):
        return [_python(item, type_.value_type) for item in value]
    return value
