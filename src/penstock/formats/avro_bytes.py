"""Rows to Avro records in our own process, each column by itself: for rows that do not pass through Spark's tasks."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import RuntimeFailure, UnsupportedError
from penstock.formats.avro_schemas import PRIMITIVE, branches, columns_of

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.formats.avro_schemas import Schema

_Piece = Callable[[Any], bytes]
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_DAY: Final = date(1970, 1, 1)
_TIMES: Final = {"timestamp-millis": 1_000, "timestamp-micros": 1, "local-timestamp-millis": 1_000}
_TIMES_US: Final = frozenset({*_TIMES, "local-timestamp-micros"})


def avro_rows(table: pa.Table, schema: Schema, what: str) -> list[bytes]:
    """Each row as one record of the schema."""
    if table.num_rows == 0:
        return []
    sources = columns_of(schema, table.column_names, what)
    columns: list[Iterable[bytes]] = []
    names: dict[str, object] = {}
    for field in schema["fields"]:
        label, source = str(field["name"]), sources[field["name"]]
        piece = _piece(field["type"], names, label)
        if source is None:
            columns.append([piece(field.get("default"))] * table.num_rows)
        else:
            columns.append([_written(piece, value, source) for value in _values(table.column(source))])
    if not columns:
        return [b""] * table.num_rows
    return [b"".join(row) for row in zip(*columns, strict=True)]


def zigzag(number: int) -> bytes:
    """A whole number as Avro writes it: small ones short, whatever their sign.

    >>> [zigzag(number).hex() for number in (0, -1, 1, 64, -(2**63))]
    ['00', '01', '02', '8001', 'ffffffffffffffffff01']
    """
    rest = (number << 1) ^ (number >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append((rest & 0x7F) | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _written(piece: _Piece, value: Any, column: str) -> bytes:
    try:
        return piece(value)
    except (TypeError, ValueError, KeyError, OverflowError, struct.error, AttributeError):
        raise RuntimeFailure(
            "INVALID_ROWS",
            f'a value of column "{column}" does not fit its Avro type',
            hint="CAST the column to what the schema says",
        ) from None


def _values(column: pa.ChunkedArray) -> list[Any]:
    """A column's values; times as microseconds since 1970, which is faster than one by one."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        return list(column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).to_pylist())
    return list(column.to_pylist())


def _piece(type_: Any, names: dict[str, object], path: str) -> _Piece:
    """How one value of a type is written."""
    if isinstance(type_, list):
        return _union(type_, names, path)
    if isinstance(type_, str) and type_ not in PRIMITIVE:
        return _piece(names[type_.rpartition(".")[2]], names, path)
    described: Mapping[str, Any] = type_ if isinstance(type_, dict) else {"type": type_}
    kind, logical = described["type"], described.get("logicalType")
    if "name" in described:
        names[str(described["name"]).rpartition(".")[2]] = type_
    if kind in ("record", "array", "map"):
        return _nested(described, names, path)
    if kind == "enum":
        places = {symbol: zigzag(place) for place, symbol in enumerate(described["symbols"])}
        return lambda value: places[value]
    if logical == "decimal" and kind in ("bytes", "fixed"):
        return _decimal(described.get("scale", 0), described.get("size") if kind == "fixed" else None)
    if kind == "fixed":
        return _fixed(described["size"])
    if kind in ("int", "long"):
        return _number(kind, logical, path)
    if not isinstance(kind, str):
        return _piece(kind, names, path)
    return _PLAIN[kind]


def _union(types: list[Any], names: dict[str, object], path: str) -> _Piece:
    others = branches(types)
    if len(others) != 1:
        raise UnsupportedError(
            "UNSUPPORTED_CLAUSE",
            f'field "{path}" is a union of several types, which cannot be written',
            hint="let the schema have one type beside null",
        )
    inner = _piece(others[0], names, path)
    mark = zigzag(types.index(others[0]))
    if "null" not in types:
        return lambda value: mark + inner(value)
    null = zigzag(types.index("null"))
    return lambda value: null if value is None else mark + inner(value)


def _nested(described: Mapping[str, Any], names: dict[str, object], path: str) -> _Piece:
    kind = described["type"]
    if kind == "record":
        parts = [(field, _piece(field["type"], names, f"{path}.{field['name']}")) for field in described["fields"]]
        return lambda value: b"".join(piece(value.get(field["name"], field.get("default"))) for field, piece in parts)
    item = _piece(described["items" if kind == "array" else "values"], names, path)
    if kind == "array":
        return lambda value: _block([item(one) for one in value])
    text = _PLAIN["string"]
    return lambda value: _block([text(key) + item(one) for key, one in dict(value).items()])


def _block(items: list[bytes]) -> bytes:
    return zigzag(len(items)) + b"".join(items) + b"\x00" if items else b"\x00"


def _number(kind: str, logical: str | None, path: str) -> _Piece:
    if logical == "date":
        return lambda value: zigzag(value if isinstance(value, int) else (value - _FIRST_DAY).days)
    if logical in _TIMES_US:
        unit = _TIMES.get(str(logical), 1)
        return lambda value: zigzag(_microseconds(value) // unit)
    bits = 31 if kind == "int" else 63

    def written(value: Any) -> bytes:
        whole = int(value)
        if whole != value or not -(1 << bits) <= whole < 1 << bits:
            raise ValueError
        return zigzag(whole)

    return written


def _microseconds(value: Any) -> int:
    if not isinstance(value, datetime):
        return int(value)
    aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    passed = aware - _EPOCH
    return (passed.days * 86_400 + passed.seconds) * 1_000_000 + passed.microseconds


def _decimal(scale: int, size: int | None) -> _Piece:
    def written(value: Any) -> bytes:
        unscaled = _unscaled(Decimal(value), scale)
        length = size or unscaled.bit_length() // 8 + 1
        body = unscaled.to_bytes(length, "big", signed=True)
        return body if size is not None else zigzag(length) + body

    return written


def _unscaled(value: Decimal, scale: int) -> int:
    """A number in units of its last place. By its digits: arithmetic with decimals would round long ones.

    >>> _unscaled(Decimal("-1.50"), 3), _unscaled(Decimal("1E+2"), 0)
    (-1500, 100)
    """
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise TypeError  # not a number
    whole = int("".join(map(str, digits)) or "0") * (-1 if sign else 1)
    shift = exponent + scale
    if shift >= 0:
        return int(whole * 10**shift)
    if whole % 10**-shift:
        raise ValueError
    return int(whole // 10**-shift)


def _fixed(size: int) -> _Piece:
    def written(value: Any) -> bytes:
        if len(value) != size:
            raise ValueError
        return bytes(value)

    return written


def _bytes(value: Any) -> bytes:
    body = value.encode() if isinstance(value, str) else bytes(memoryview(value))
    return zigzag(len(body)) + body


def _null(value: Any) -> bytes:
    if value is not None:
        raise ValueError
    return b""


def _boolean(value: Any) -> bytes:
    if not isinstance(value, bool):
        raise TypeError
    return b"\x01" if value else b"\x00"


def _text(value: Any) -> bytes:
    if not isinstance(value, str):
        raise TypeError
    return _bytes(value)


_PLAIN: Final[dict[str, _Piece]] = {
    "null": _null,
    "boolean": _boolean,
    "float": struct.Struct("<f").pack,
    "double": struct.Struct("<d").pack,
    "bytes": _bytes,
    "string": _text,
}
