"""Rows to the bytes of records."""

from __future__ import annotations

import json
import math
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from penstock.errors import NotYetError, RuntimeFailure
from penstock.formats import encode_envelopes, encode_rows


def written(columns: dict[str, Any], format_name: str, **options: object) -> list[bytes | None]:
    import pyarrow as pa

    keys = {key.replace("__", "."): value for key, value in options.items()}
    found: list[bytes | None] = encode_rows(pa.table(columns), format_name, keys).to_pylist()
    return found


def test_json_of_every_type() -> None:
    import pyarrow as pa

    columns = {
        "text": ['a"ü\n'],
        "whole": pa.array([2**63 - 1], pa.int64()),
        "money": pa.array([Decimal("12.34")], pa.decimal128(38, 18)),
        "large": pa.array([Decimal(2**64 - 1)], pa.decimal128(20, 0)),
        "half": [0.5],
        "none": [math.nan],
        "endless": [-math.inf],
        "yes": [True],
        "bytes": [b"\x00\x01\xff"],
        "day": [date(1969, 12, 31)],
        "at": pa.array([-1], pa.timestamp("us", "UTC")),
        "naive": pa.array([1_609_459_200_000], pa.timestamp("ms")),
        "list": [[1, None]],
        "row": [{"a": 1, "t": None}],
        "map": pa.array([[("k", Decimal("1.50"))]], pa.map_(pa.string(), pa.decimal128(5, 2))),
        "times": pa.array([[0]], pa.list_(pa.timestamp("us", "UTC"))),
        "missing": pa.array([None], pa.int32()),
    }
    (record,) = written(columns, "json")
    assert (
        record
        == (
            '{"text":"a\\"ü\\n","whole":9223372036854775807,"money":12.34,"large":18446744073709551615,"half":0.5,'
            '"none":"NaN","endless":"-Infinity","yes":true,"bytes":"AAH/","day":"1969-12-31",'
            '"at":"1969-12-31T23:59:59.999999Z","naive":"2021-01-01T00:00:00.000000Z","list":[1,null],'
            '"row":{"a":1,"t":null},"map":{"k":1.5},"times":["1970-01-01T00:00:00.000000Z"],"missing":null}'
        ).encode()
    )
    assert json.loads(record)["money"] == 12.34


def test_json_options() -> None:
    import pyarrow as pa

    columns = {"a": pa.array([1, None], pa.int32()), "t": pa.array([1_500, 0], pa.timestamp("us", "UTC"))}
    assert written(columns, "json", json__timestamp_format="epoch_ms", json__ignore_null_fields=True) == [
        b'{"a":1,"t":1}',
        b'{"t":0}',
    ]
    assert (
        written({"t": columns["t"]}, "json", json__timestamp_format="sql")[1] == b'{"t":"1970-01-01 00:00:00.000000"}'
    )


def test_csv() -> None:
    columns = {"a": ["x", 'say "hi", you', "", None], "b": [1, None, 3, 4], "c": [[1, 2], None, [], [5]]}
    assert written(columns, "csv") == [b"x,1,1;2", b'"say ""hi"", you",,', b'"",3,""', b",4,5"]
    assert written(columns, "csv", csv__delimiter="\\t", csv__null_literal="-")[3] == b"-\t4\t5"
    assert written({"a": ['b"c'], "d": [1]}, "csv", csv__escape="\\") == [b'"b\\"c",1']
    assert written({"a": ['b"c'], "d": [1]}, "csv", csv__no_quote=True) == [b'b"c,1']
    with pytest.raises(RuntimeFailure) as raised:
        written({"a": ["b,c"]}, "csv", csv__no_quote=True)
    assert raised.value.condition == "INVALID_ROWS"


def test_raw() -> None:
    assert written({"line": ["ü", None]}, "raw") == ["ü".encode(), None]
    assert written({"body": [b"\xff"]}, "raw") == [b"\xff"]
    assert written({"key": ["k"], "value": ["v"]}, "raw") == [b"v"]
    assert written({"line": ["ü"]}, "raw", raw__charset="ISO-8859-1") == [b"\xfc"]
    with pytest.raises(RuntimeFailure):
        written({"a": ["k"], "b": ["v"]}, "raw")


def test_other_formats_are_refused_by_name() -> None:
    with pytest.raises(NotYetError, match="parquet"):
        written({"a": [1]}, "parquet")


def test_rows_and_changes_are_written_as_envelopes() -> None:
    assert written({"a": [1, None]}, "debezium-json") == [
        b'{"before":null,"after":{"a":1},"op":"c"}',
        b'{"before":null,"after":{"a":null},"op":"c"}',
    ]
    import pyarrow as pa

    before, after = pa.table({"a": [None, 1, 2]}), pa.table({"a": [1, 2, None]})
    assert encode_envelopes(
        ["insert", "update", "delete"], before, after, {"debezium-json.ignore_null_fields": True}
    ) == [
        b'{"before":null,"after":{"a":1},"op":"c"}',
        b'{"before":{"a":1},"after":{"a":2},"op":"u"}',
        b'{"before":{"a":2},"after":null,"op":"d"}',
    ]
    assert encode_envelopes(["delete"], before[:1], after[:1], {"debezium-json.schema_include": True}) == [
        b'{"schema":null,"payload":{"before":{"a":null},"after":null,"op":"d"}}'
    ]
