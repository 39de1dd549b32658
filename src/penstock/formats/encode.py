"""From rows to the bytes of records, in our own process: for sinks, and for rows appended to a topic of bytes.

JSON has times in ISO 8601 with microseconds and `Z` (or as the option `json.timestamp_format` says), decimals as
numbers with all their digits, bytes in base64, and the names `NaN`, `Infinity` and `-Infinity` as texts. Each column is
turned into pieces of text by itself, which is several times faster than going row by row.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import NotYetError, RuntimeFailure
from penstock.formats.avro_bytes import avro_rows
from penstock.formats.avro_confluent import sink_writing
from penstock.formats.json_schemas import sink_front as json_front
from penstock.formats.outside import Outside
from penstock.formats.protobuf_records import protobuf_rows

if TYPE_CHECKING:
    import pyarrow as pa

_Piece = Callable[[Any], str]
_ENVELOPES: Final = "debezium-json"
_LETTERS: Final = {"insert": b"c", "update": b"u", "delete": b"d"}


def encode_rows(
    table: pa.Table, format_name: str, options: Mapping[str, object], outside: Outside | None = None
) -> pa.Array:
    """Each row of a table as the bytes of one record."""
    import pyarrow as pa

    if format_name == "json":
        opening = json_front(lambda: table.schema, options, outside or Outside())
        records: Iterable[bytes | None] = [opening + record for record in _json(table, options)]
    elif format_name == "csv":
        records = _csv(table, options)
    elif format_name == "raw":
        records = _raw(table, options)
    elif format_name == "protobuf":
        records = protobuf_rows(table, options, outside or Outside())
    elif format_name in ("avro", "avro-confluent"):
        schema, front = sink_writing(table.schema, format_name, options, outside or Outside())
        records = [front + record for record in avro_rows(table, schema, "the sink")]
    elif format_name == _ENVELOPES:
        records = encode_envelopes(["insert"] * table.num_rows, table, table, options)
    else:
        raise NotYetError(
            "QUERY_NOT_YET",
            f"records in format {format_name} are not written yet",
            hint="use json, csv, avro, protobuf, debezium-json or raw",
        )
    return pa.array(list(records), pa.binary())


def encode_envelopes(
    operations: Sequence[str], before: pa.Table, after: pa.Table, options: Mapping[str, object]
) -> list[bytes]:
    """Changes as Debezium writes them: of an insert there is no row before, of a delete none after."""
    own = {f"json{key.removeprefix(_ENVELOPES)}": value for key, value in options.items() if key.startswith(_ENVELOPES)}
    made = [
        b'{"before":%b,"after":%b,"op":"%b"}'
        % (b"null" if operation == "insert" else old, b"null" if operation == "delete" else new, _LETTERS[operation])
        for operation, old, new in zip(operations, _json(before, own), _json(after, own), strict=True)
    ]
    if options.get(f"{_ENVELOPES}.schema_include") is True:
        return [b'{"schema":null,"payload":%b}' % record for record in made]
    return made


def _json(table: pa.Table, options: Mapping[str, object]) -> Iterable[bytes]:
    times = str(options.get("json.timestamp_format") or "iso-8601")
    without_nulls = options.get("json.ignore_null_fields") is True
    names = [json.dumps(name, ensure_ascii=False) + ":" for name in table.column_names]
    columns: list[list[str | None]] = []
    for label, column in zip(names, table.columns, strict=True):
        piece = _piece(column.type, times)
        columns.append(
            [
                (None if without_nulls else label + "null") if value is None else label + piece(value)
                for value in _values(column)
            ]
        )
    if not columns:
        return [b"{}"] * table.num_rows
    return [
        ("{" + ",".join([text for text in row if text is not None]) + "}").encode()
        for row in zip(*columns, strict=True)
    ]


def _values(column: pa.ChunkedArray) -> list[Any]:
    """A column's values; times as microseconds since 1970, which every Arrow time of ours can be cast to."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        return list(column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).to_pylist())
    return list(column.to_pylist())


def _piece(type_: pa.DataType, times: str) -> _Piece:
    """How one value that is not NULL is written."""
    import pyarrow as pa

    if pa.types.is_timestamp(type_):
        return lambda us: _time(us, times)
    if pa.types.is_integer(type_):
        return str
    if pa.types.is_boolean(type_):
        return lambda value: "true" if value else "false"
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return lambda value: json.dumps(value, ensure_ascii=False)
    return lambda value: _any(value, times)


def _any(value: Any, times: str) -> str:
    """A value of any type, nested ones included."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else json.dumps(_infinite(value))
    if isinstance(value, bytes):
        return json.dumps(base64.b64encode(value).decode())
    if isinstance(value, datetime):
        return _time(_microseconds(value), times)
    if isinstance(value, date):
        return json.dumps(value.isoformat())
    if isinstance(value, Mapping):
        inner = [f"{json.dumps(str(key), ensure_ascii=False)}:{_any(item, times)}" for key, item in value.items()]
        return "{" + ",".join(inner) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        if value and all(isinstance(item, tuple) and len(item) == 2 for item in value):
            return _any(dict(value), times)  # Arrow gives a map as pairs
        return "[" + ",".join([_any(item, times) for item in value]) + "]"
    return json.dumps(value, ensure_ascii=False)


def _infinite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _decimal(value: Decimal) -> str:
    """All the digits that count, without an exponent.

    >>> _decimal(Decimal("12.340")), _decimal(Decimal("1E+3")), _decimal(Decimal("0.00"))
    ('12.34', '1000', '0')
    """
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _microseconds(moment: datetime) -> int:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    whole = int(aware.replace(microsecond=0).timestamp())
    return whole * 1_000_000 + aware.microsecond


def _time(us: int, times: str) -> str:
    """A time as JSON.

    >>> _time(1_609_459_200_000_001, "iso-8601"), _time(1_609_459_200_123_456, "epoch_ms")
    ('"2021-01-01T00:00:00.000001Z"', '1609459200123')
    """
    return str(us // 1000) if times == "epoch_ms" else f'"{_written(us, times)}"'


def _written(us: int, times: str) -> str:
    seconds, rest = divmod(us, 1_000_000)
    moment = datetime.fromtimestamp(seconds, UTC)
    if times == "sql":
        return f"{moment:%Y-%m-%d %H:%M:%S}.{rest:06d}"
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{rest:06d}Z"


def _csv(table: pa.Table, options: Mapping[str, object]) -> Iterable[bytes]:
    import pyarrow as pa

    delimiter = str(options.get("csv.delimiter") or ",")
    null = options.get("csv.null_literal")
    arrays = str(options.get("csv.array_delimiter") or ";")
    columns: list[list[str | None]] = []
    for column in table.columns:
        timestamp = pa.types.is_timestamp(column.type)
        columns.append(
            [
                None if value is None else _written(value, "iso-8601") if timestamp else _csv_text(value, arrays)
                for value in _values(column)
            ]
        )
    delimiter = "\t" if delimiter == "\\t" else delimiter
    write = _quoting(delimiter, options)
    missing = "" if null is None else str(null)
    return [
        delimiter.join([missing if text is None else write(text) for text in row]).encode()
        for row in zip(*columns, strict=True)
    ]


def _quoting(delimiter: str, options: Mapping[str, object]) -> _Piece:
    """How a text is put into quotes where it needs them: also an empty one, which without them would be NULL."""
    quote = str(options.get("csv.quote") or '"')
    escape = str(options.get("csv.escape") or quote)
    null = options.get("csv.null_literal")
    special = (delimiter, quote, escape, "\n", "\r")
    if options.get("csv.no_quote") is True:
        return lambda text: _unquoted(text, (delimiter, "\n", "\r"))

    def written(text: str) -> str:
        if text and text != null and not any(mark in text for mark in special):
            return text
        inside = text if escape == quote else text.replace(escape, escape * 2)
        return quote + inside.replace(quote, escape + quote) + quote

    return written


def _unquoted(text: str, special: tuple[str, ...]) -> str:
    if any(mark in text for mark in special):
        raise RuntimeFailure(
            "INVALID_ROWS", "a value with a separator in it cannot be written as csv", hint="leave csv.no_quote out"
        )
    return text


def _csv_text(value: Any, arrays: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and not any(isinstance(item, tuple | list | dict) for item in value):
        return arrays.join(_csv_text(item, arrays) for item in value)
    text = _any(value, "iso-8601")
    return str(json.loads(text)) if text.startswith('"') else text


def _raw(table: pa.Table, options: Mapping[str, object]) -> Iterable[bytes | None]:
    if table.num_columns == 1:
        column = table.column(0)
    elif "value" in table.column_names:
        column = table.column("value")
    else:
        raise RuntimeFailure(
            "INVALID_ROWS", "the raw format writes one column, or the one named value", hint="select a single column"
        )
    charset = str(options.get("raw.charset") or "UTF-8")
    return [value.encode(charset) if isinstance(value, str) else value for value in column.to_pylist()]
