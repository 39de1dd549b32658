"""One value of a row as a column of a type takes it, or a reason why it does not.

The rules hold for every kind of input: an integer in a TIMESTAMP column is milliseconds since 1970 (DEC3), a time
without a zone is UTC, a number goes to a DECIMAL exactly or not at all.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from penstock.types import SqlType

_INT64: Final = range(-(2**63), 2**63)
RANGES: Final = {
    "TINYINT": range(-(2**7), 2**7),
    "SMALLINT": range(-(2**15), 2**15),
    "INT": range(-(2**31), 2**31),
    "BIGINT": _INT64,
    "UTINYINT": range(2**8),
    "USMALLINT": range(2**16),
    "UINT": range(2**32),
    "UBIGINT": range(2**64),
}
_EXACT: Final = decimal.Context(prec=76, traps=[decimal.Inexact, decimal.InvalidOperation])
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND: Final = dt.timedelta(microseconds=1)


def within(least: Any, most: Any, allowed: range) -> bool:
    """Whether numbers of any type are in a range; `in` would try them all where they are no integers."""
    return least is None or bool(allowed.start <= least and most < allowed.stop)


class Unfit(Exception):
    """A value does not go into a column; the text says why, as it follows the value in a message."""


def converter(sql_type: SqlType) -> Callable[[Any], Any]:
    """A function that turns a value into what Arrow takes for the type, or raises Unfit."""
    match sql_type.name:
        case "ARRAY":
            return _array(sql_type)
        case "MAP":
            return _map(sql_type)
        case "STRUCT":
            return _struct(sql_type)
        case "DECIMAL":
            return _decimal(sql_type)
        case name if name in RANGES:
            return _integer(sql_type)
        case name:
            return _PLAIN.get(name, _never)


def plain_value(value: Any) -> Any:
    """A scalar of NumPy or pandas as a value of Python; missing values of pandas as None."""
    module = type(value).__module__
    if module.startswith("pandas"):
        if type(value).__name__ in {"NAType", "NaTType"}:
            return None
        return value.to_pydatetime(warn=False) if hasattr(value, "to_pydatetime") else value
    if module == "numpy":
        if type(value).__name__ == "datetime64":
            return value.astype("datetime64[us]").item()
        return value.tolist()
    return value


def _integer(sql_type: SqlType) -> Callable[[Any], Any]:
    allowed = RANGES[sql_type.name]

    def convert(value: Any) -> int:
        whole = value.is_integer() if isinstance(value, float) else isinstance(value, decimal.Decimal) and _whole(value)
        if whole:
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise Unfit(f"is no {sql_type}")
        if value not in allowed:
            raise Unfit(f"does not fit {sql_type}")
        return value

    return convert


def _whole(value: decimal.Decimal) -> bool:
    # An exponent far out would make a number of that many digits.
    return value.is_finite() and value.adjusted() < 40 and value == value.to_integral_value()


def _decimal(sql_type: SqlType) -> Callable[[Any], Any]:
    precision, scale = sql_type.parameters
    unit = decimal.Decimal((0, (1,), -scale))

    def convert(value: Any) -> decimal.Decimal:
        if isinstance(value, float):
            # The shortest digits that mean this number, so that 12.34 stays 12.34.
            value = repr(value)
        if isinstance(value, bool) or not isinstance(value, int | str | decimal.Decimal):
            raise Unfit(f"is no {sql_type}")
        try:
            number = decimal.Decimal(value)
        except decimal.InvalidOperation:
            raise Unfit("is no number") from None
        if not number.is_finite():
            raise Unfit("is no number")
        try:
            number = number.quantize(unit, context=_EXACT)
        except (decimal.Inexact, decimal.InvalidOperation):
            raise Unfit(f"does not fit {sql_type}") from None
        if number.adjusted() >= precision - scale and number:
            raise Unfit(f"does not fit {sql_type}")
        return number

    return convert


def _float(value: Any) -> float:
    number = _double(value)
    try:
        struct.pack("<f", number)
    except OverflowError:
        raise Unfit("does not fit FLOAT") from None
    return number


def _double(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | decimal.Decimal):
        raise Unfit("is no number")
    try:
        number = float(value)
    except (OverflowError, ValueError):
        raise Unfit("does not fit DOUBLE") from None
    if math.isinf(number) and not isinstance(value, float):
        raise Unfit("does not fit DOUBLE")
    return number


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise Unfit("is no text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Unfit("is no valid Unicode") from None
    return value


def _binary(value: Any) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise Unfit("is no bytes")


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Unfit("is no BOOLEAN")
    return value


def _date(value: Any) -> dt.date:
    if isinstance(value, str):
        try:
            return dt.date.fromisoformat(value.strip())
        except ValueError:
            raise Unfit("is no date such as 2026-01-31") from None
    if isinstance(value, dt.datetime):
        if value.time() != dt.time():
            raise Unfit("is a time, not a DATE")
        return value.date()
    if not isinstance(value, dt.date):
        raise Unfit("is no DATE")
    return value


def _timestamp(value: Any) -> int:
    """Microseconds since 1970 UTC."""
    if isinstance(value, int) and not isinstance(value, bool):
        if value * 1_000 not in _INT64:
            raise Unfit("is no number of milliseconds that fits TIMESTAMP")
        return value * 1_000
    if isinstance(value, str):
        try:
            value = dt.datetime.fromisoformat(value.strip())
        except ValueError:
            raise Unfit("is no time such as 2026-01-31T12:00:00Z") from None
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    if not isinstance(value, dt.datetime):
        raise Unfit("is no TIMESTAMP")
    aware = value if value.utcoffset() is not None else value.replace(tzinfo=dt.UTC)
    return (aware - _EPOCH) // _MICROSECOND


def _never(value: Any) -> Any:
    raise Unfit("cannot be given for a VARIANT; declare the column as STRING and use parse_json")


def _nullable(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def inner(value: Any) -> Any:
        value = plain_value(value)
        return None if value is None else convert(value)

    return inner


def _array(sql_type: SqlType) -> Callable[[Any], Any]:
    element = _nullable(converter(sql_type.elements[0]))

    def convert(value: Any) -> list[Any]:
        if not isinstance(value, list | tuple):
            raise Unfit(f"is no {sql_type}")
        return [element(part) for part in value]

    return convert


def _map(sql_type: SqlType) -> Callable[[Any], Any]:
    key, item = (_nullable(converter(part)) for part in sql_type.elements)

    def convert(value: Any) -> list[tuple[Any, Any]]:
        pairs = list(value.items()) if isinstance(value, Mapping) else value
        if not isinstance(pairs, list) or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
            raise Unfit(f"is no {sql_type}")
        made = [(key(one), item(other)) for one, other in pairs]
        if any(one is None for one, _ in made):
            raise Unfit("has a NULL key")
        return made

    return convert


def _struct(sql_type: SqlType) -> Callable[[Any], Any]:
    fields = {field.name: _nullable(converter(field.type)) for field in sql_type.fields}

    def convert(value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise Unfit(f"is no {sql_type}")
        unknown = [name for name in value if name not in fields]
        if unknown:
            raise Unfit(f"has a field {unknown[0]!s} that {sql_type} has not")
        return {name: field(value.get(name)) for name, field in fields.items()}

    return convert


_PLAIN: Final[dict[str, Callable[[Any], Any]]] = {
    "STRING": _string,
    "BOOLEAN": _boolean,
    "FLOAT": _float,
    "DOUBLE": _double,
    "BINARY": _binary,
    "DATE": _date,
    "TIMESTAMP": _timestamp,
}
