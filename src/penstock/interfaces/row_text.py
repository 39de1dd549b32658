"""Rows as JSON lines and as CSV, for programs to read.

Nothing is lost: numbers keep every digit, instants are ISO 8601 in UTC with `Z`, bytes are base64. What JSON has no
word for is a string.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from penstock.stores.arrow_values import python_rows

if TYPE_CHECKING:
    import pyarrow as pa

# What JSON may leave as it is and a terminal acts on: DEL and the controls after it, marks of direction, the line ends
# that are none in JSON, and halves of characters, which no encoding can write.
_ACTIVE: Final = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def fraction_text(microseconds: int) -> str:
    """The part of a second behind the point: nothing, milliseconds, or microseconds."""
    if microseconds == 0:
        return ""
    return f".{microseconds // 1_000:03d}" if microseconds % 1_000 == 0 else f".{microseconds:06d}"


def json_lines(table: pa.Table) -> Iterator[str]:
    """One object a row, with every character escaped that a terminal would act on."""
    names = [_json_string(name) for name in table.column_names]
    for row in python_rows(table):
        yield "{" + ", ".join(f"{name}: {json_text(value)}" for name, value in zip(names, row, strict=True)) + "}"


def json_text(value: object) -> str:
    """A value as JSON. What JSON has no word for is a string: instants, bytes, NaN.

    >>> json_text({"price": Decimal("10.50"), "raw": b"hi", "at": datetime(2026, 1, 1, 10, tzinfo=UTC)})
    '{"price": 10.50, "raw": "aGk=", "at": "2026-01-01T10:00:00Z"}'
    """
    if value is None or isinstance(value, bool | int):
        return json.dumps(value)
    if isinstance(value, float):
        return json.dumps(value) if math.isfinite(value) else _json_string(_not_finite(value))
    if isinstance(value, Decimal):
        return format(value, "f") if value.is_finite() else _json_string(str(value))
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_json_string(_key(key))}: {json_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(json_text(item) for item in value) + "]"
    return _json_string(_scalar(value))


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _key(key: object) -> str:
    return key if isinstance(key, str) else _scalar(key)


def _scalar(value: object) -> str:
    """A value that is no number and no container, as text."""
    if isinstance(value, datetime):
        return _iso(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return iso_duration(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    return str(value)


def _iso(value: datetime) -> str:
    moment = value.astimezone(UTC) if value.tzinfo is not None else value
    return f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}{fraction_text(moment.microsecond)}Z"


def iso_duration(length: timedelta) -> str:
    """An interval in ISO 8601, in seconds and no larger unit.

    >>> iso_duration(timedelta(minutes=1, milliseconds=500)), iso_duration(timedelta(seconds=-1))
    ('PT60.500S', '-PT1S')
    """
    microseconds = length // timedelta(microseconds=1)
    seconds, fraction = divmod(abs(microseconds), 1_000_000)
    return f"{'-' if microseconds < 0 else ''}PT{seconds}{fraction_text(fraction)}S"


def _json_string(text: str) -> str:
    return escape_active(json.dumps(text, ensure_ascii=False))


def escape_active(text: str) -> str:
    """JSON that says the same with every character escaped that a terminal would act on."""
    return _ACTIVE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


# CSV


def csv_head(table: pa.Table) -> str:
    """The line of names."""
    return ",".join(_csv_field(name) for name in table.column_names)


def csv_lines(table: pa.Table) -> Iterator[str]:
    """One record a row as in RFC 4180, without line ends. NULL is an empty field, an empty text is `""`."""
    for row in python_rows(table):
        yield ",".join(_csv_field(_csv_text(value)) for value in row)


def _csv_text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | int | float | Decimal | Mapping | list | tuple):
        text = json_text(value)
        return text[1:-1] if isinstance(value, float | Decimal) and text.startswith('"') else text
    return _scalar(value)


def _csv_field(text: str | None) -> str:
    if text is None:
        return ""
    if text == "" or any(char in text for char in ',"\r\n') or text != text.strip():
        return '"' + text.replace('"', '""') + '"'
    return text
