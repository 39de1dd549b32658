"""Records to columns on Spark: each test decodes one frame of many records."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.formats import decode, encode_rows, json_records
from tests.unit.catalog.defining import source_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ERROR = "__error"


def read(
    spark: SparkSession,
    ddl: str,
    records: Sequence[str | bytes | None],
    *columns: str,
) -> list[dict[str, Any]]:
    """What becomes of records, in their order."""
    definition = source_of(ddl)
    rows = [
        (
            place,
            bytearray(record.encode() if isinstance(record, str) else record) if record is not None else None,
            bytearray(b"key"),
            3,
            datetime(2021, 1, 1, 0, 0, 0, 1000, UTC),
        )
        for place, record in enumerate(records)
    ]
    schema = "__offset BIGINT, __value BINARY, __key BINARY, __partition INT, __timestamp TIMESTAMP"
    frame = spark.createDataFrame(rows, schema)
    wanted = columns or tuple(column.name for column in definition.columns if column.physical)
    decoded = decode(frame, definition, wanted)
    assert decoded.columns == [*frame.columns, *wanted, ERROR]
    found = decoded.orderBy("__offset").toArrow().to_pylist()
    return [{name: row[name] for name in (*wanted, ERROR)} for row in found]


def at(*when: int) -> datetime:
    return datetime(*when, tzinfo=UTC)  # type: ignore[misc, arg-type]


TYPES = {
    "s": "STRING",
    "b": "BOOLEAN",
    "ti": "TINYINT",
    "i": "INT",
    "l": "BIGINT",
    "ut": "TINYINT UNSIGNED",
    "ui": "INT UNSIGNED",
    "ul": "BIGINT UNSIGNED",
    "f": "FLOAT",
    "d": "DOUBLE",
    "dec": "DECIMAL",
    "money": "DECIMAL(5, 2)",
    "bin": "BINARY",
    "day": "DATE",
    "ts": "TIMESTAMP",
    "o": "STRUCT<a INT, t TIMESTAMP>",
    "ar": "ARRAY<INT>",
    "ats": "ARRAY<TIMESTAMP>",
    "m": "MAP<STRING, BIGINT>",
    "maps": "MAP<STRING, MAP<STRING, INT>>",
    "deep": "ARRAY<STRUCT<m MAP<STRING, TIMESTAMP>>>",
}
COLUMNS = ", ".join(f"{name} {type_}" for name, type_ in TYPES.items())
JSON = f"CREATE STREAM r ({COLUMNS}) WITH (connector = 'topic', format = 'json')"

GOOD: list[tuple[str, str, object]] = [
    ("s", '"grüße 😀"', "grüße 😀"),
    ("s", '""', ""),
    ("s", '"null"', "null"),
    ("s", "5", "5"),
    ("s", '{"x":1}', '{"x":1}'),
    ("s", '"a}{b"', "a}{b"),
    ("b", "true", True),
    ("ti", "-128", -128),
    ("ti", "127", 127),
    ("i", "2147483647", 2147483647),
    ("l", "-9223372036854775808", -9223372036854775808),
    ("ut", "255", 255),
    ("ui", "4294967295", 4294967295),
    ("ul", "18446744073709551615", Decimal(2**64 - 1)),
    ("ul", '"18446744073709551615"', Decimal(2**64 - 1)),
    ("f", "1.5", 1.5),
    ("d", "1e3", 1000.0),
    ("d", "7", 7.0),
    ("d", '"NaN"', math.nan),
    ("d", '"Infinity"', math.inf),
    ("d", '"-Infinity"', -math.inf),
    ("d", "-0.0", -0.0),
    ("dec", "12.34", Decimal("12.34")),
    ("dec", "0.1", Decimal("0.1")),
    ("dec", "12345678901234567890.123456789012345678", Decimal("12345678901234567890.123456789012345678")),
    ("dec", '"12.34"', Decimal("12.34")),
    ("money", "999.99", Decimal("999.99")),
    ("money", "1.005", Decimal("1.01")),
    ("bin", '"AAH/"', b"\x00\x01\xff"),
    ("day", '"2024-02-29"', date(2024, 2, 29)),
    ("day", '"2024-02-29T23:00:00-05:00"', date(2024, 2, 29)),
    ("ts", "1609459200000", at(2021, 1, 1)),
    ("ts", "-1", datetime(1969, 12, 31, 23, 59, 59, 999000, UTC)),
    ("ts", "0", at(1970, 1, 1)),
    ("ts", '"2021-01-01T00:00:00Z"', at(2021, 1, 1)),
    ("ts", '"2021-01-01T00:00:00"', at(2021, 1, 1)),
    ("ts", '"2021-01-01 00:00:00"', at(2021, 1, 1)),
    ("ts", '"2021-01-01 01:02:03.4"', at(2021, 1, 1, 1, 2, 3, 400000)),
    ("ts", '"2021-01-01T01:02:03.456789Z"', at(2021, 1, 1, 1, 2, 3, 456789)),
    ("ts", '"2021-01-01T01:02:03.456789123Z"', at(2021, 1, 1, 1, 2, 3, 456789)),
    ("ts", '"2021-01-01T02:00:00+02:00"', at(2021, 1, 1)),
    ("ts", '"2020-12-31T19:30:00-04:30"', at(2021, 1, 1)),
    ("ts", '"2021-01-01T02:00:00+0200"', at(2021, 1, 1)),
    ("ts", '"2021-01-01T02:00:00+02"', at(2021, 1, 1)),
    ("ts", '"2021-01-01"', at(2021, 1, 1)),
    ("ts", '"1609459200000"', at(2021, 1, 1)),
    ("o", '{"a": 1, "t": 1000, "z": 9}', {"a": 1, "t": at(1970, 1, 1, 0, 0, 1)}),
    ("o", '{"t": "1970-01-01T00:00:01Z"}', {"a": None, "t": at(1970, 1, 1, 0, 0, 1)}),
    ("ar", "[1, null, 3]", [1, None, 3]),
    ("ats", '[1000, "1970-01-01"]', [at(1970, 1, 1, 0, 0, 1), at(1970, 1, 1)]),
    ("m", '{"x": 1, "y": null}', [("x", 1), ("y", None)]),
    ("m", '{"x": 1, "y": 2, "x": null}', [("x", None), ("y", 2)]),
    ("maps", '{"k": {"a": 1}, "l": {"a": 1, "a": 2}, "k": {"b": 3, "b": 4}}', [("k", [("b", 4)]), ("l", [("a", 2)])]),
    ("deep", '[{"m": {"x": 1000, "x": 0}}, {"m": {}}]', [{"m": [("x", at(1970, 1, 1))]}, {"m": []}]),
    *[(name, "null", None) for name in TYPES],
]

BAD: list[tuple[str, str, str]] = [
    ("i", "3000000000", 'column "i": 3000000000 does not fit INT'),
    ("i", '"abc"', 'column "i": abc does not fit INT'),
    ("i", '"12"', 'column "i": "12" is a text, not INT'),
    ("b", '"false"', 'column "b": "false" is a text, not BOOLEAN'),
    ("i", "1.5", 'column "i": 1.5 does not fit INT'),
    ("i", '""', 'column "i": an empty text does not fit INT'),
    ("i", "true", 'column "i": true does not fit INT'),
    ("i", "[1]", 'column "i": [1] does not fit INT'),
    ("ti", "200", 'column "ti": 200 does not fit TINYINT'),
    ("l", "9223372036854775808", 'column "l": 9223372036854775808 does not fit BIGINT'),
    ("ut", "256", 'column "ut": 256 does not fit TINYINT UNSIGNED'),
    ("ut", "-1", 'column "ut": -1 does not fit TINYINT UNSIGNED'),
    ("ul", "18446744073709551616", 'column "ul": 18446744073709551616 does not fit BIGINT UNSIGNED'),
    ("ul", "-1", 'column "ul": -1 does not fit BIGINT UNSIGNED'),
    ("ul", "1.5", 'column "ul": 1.5 does not fit BIGINT UNSIGNED'),
    ("d", "1e400", 'column "d": "Infinity" does not fit DOUBLE'),
    ("d", '"1d"', 'column "d": 1d does not fit DOUBLE'),
    ("f", "1e300", 'column "f": 1.0E300 does not fit FLOAT'),
    ("money", "1000", 'column "money": 1000 does not fit DECIMAL(5, 2)'),
    ("dec", '"x"', 'column "dec": x does not fit DECIMAL(38, 18)'),
    ("b", "1", 'column "b": 1 does not fit BOOLEAN'),
    ("b", '"yes"', 'column "b": yes does not fit BOOLEAN'),
    ("bin", '"%%%"', 'column "bin": %%% does not fit BINARY'),
    ("day", '"2024-02-30"', 'column "day": 2024-02-30 does not fit DATE'),
    ("day", "19782", 'column "day": 19782 does not fit DATE'),
    ("ts", '"yesterday"', 'column "ts": yesterday does not fit TIMESTAMP'),
    ("ts", '"10:30:00"', 'column "ts": 10:30:00 does not fit TIMESTAMP'),
    ("ts", '"10:30:00-08:00"', 'column "ts": 10:30:00-08:00 does not fit TIMESTAMP'),
    ("ts", '"2021-13-01T00:00:00Z"', 'column "ts": 2021-13-01T00:00:00Z does not fit TIMESTAMP'),
    ("ts", "9223372036854775807", 'column "ts": 9223372036854775807 does not fit TIMESTAMP'),
    ("ts", "1.5", 'column "ts": 1.5 does not fit TIMESTAMP'),
    ("o", '{"a": "x"}', 'column "o": {"a":"x"} does not fit STRUCT<a INT, t TIMESTAMP>'),
    ("o", '{"t": "x"}', 'column "o": {"t":"x"} does not fit STRUCT<a INT, t TIMESTAMP>'),
    ("o", "5", 'column "o": 5 does not fit STRUCT<a INT, t TIMESTAMP>'),
    ("ar", '["x"]', 'column "ar": ["x"] does not fit ARRAY<INT>'),
    ("ats", '["x"]', 'column "ats": ["x"] does not fit ARRAY<TIMESTAMP>'),
    ("m", "[1]", 'column "m": [1] does not fit MAP<STRING, BIGINT>'),
    ("s", '"' + "x" * 10 + '"} trailing', "malformed json"),
]

WHOLE: list[tuple[str | bytes | None, str | None]] = [
    (None, "empty record"),
    ("", "empty record"),
    ("  \n", "empty record"),
    ("{", "malformed json"),
    ('{"i": 1', "malformed json"),
    ('{"i": 12', "malformed json"),  # cut off: not the record of 1
    ('{"i": 1x', "malformed json"),
    ("{x", "malformed json"),
    ("{ ", "malformed json"),
    ('{"i": 1} x', "malformed json"),
    ('{"i": 1}}', "malformed json"),
    ('{"i": 1}{"i": 2}', "malformed json"),
    ('{"i": 1}\n{"i": 2}', "malformed json"),
    ('{"i": 1},{"i": 2}', "malformed json"),
    ("{'i': 1,}", "malformed json"),
    ("{'i': 1}", "malformed json"),
    ("{\"s\": 'a'}", "malformed json"),
    ("[1]", "not a json object"),
    ('[{"i": 1}]', "not a json object"),
    ("5", "not a json object"),
    ('"text"', "not a json object"),
    ("null", "not a json object"),
    ("volume,12", "not a json object"),
    (b'{"s": "\xff"}', "not valid UTF-8"),
    ("{}", None),
    (" \t{\n} \r\n", None),
    (' {"i": 1}\r\n', None),
    ('{"extra": {"i": 5}, "I": 7}', None),
]


def equal(found: object, expected: object) -> bool:
    if isinstance(expected, float) and isinstance(found, float):
        same = math.isnan(expected) and math.isnan(found)
        return same or (found == expected and math.copysign(1, found) == math.copysign(1, expected))
    return found == expected and (found is None) == (expected is None)


def test_json_values(spark: SparkSession) -> None:
    """B1 to B7, B14, C3: what each type takes."""
    rows = read(spark, JSON, [f'{{"{name}": {text}, "extra": [1]}}' for name, text, _ in GOOD])
    wrong = [
        (name, text, row[name], row[ERROR])
        for (name, text, expected), row in zip(GOOD, rows, strict=True)
        if not equal(row[name], expected) or row[ERROR] is not None
    ]
    assert wrong == []
    # Every other column is missing in the record, and so NULL.
    assert all(
        row[other] is None for (name, _, _), row in zip(GOOD, rows, strict=True) for other in TYPES if other != name
    )


def test_json_that_does_not_fit(spark: SparkSession) -> None:
    """B4, I11: a value that does not fit is told by its column, never wrapped or cut, and the others are still read."""
    rows = read(spark, JSON, [f'{{"s2": 1, "{name}": {text}}}' for name, text, _ in BAD])
    assert [row[ERROR] for row in rows] == [error for _, _, error in BAD]
    parts = {"STRUCT", "ARRAY", "MAP"}  # of these there may be what fits
    whole = [name for name, type_ in TYPES.items() if type_.partition("<")[0] not in parts]
    unfit = [(name, row) for (name, _, error), row in zip(BAD, rows, strict=True) if error != "malformed json"]
    assert all(row[name] is None for name, row in unfit if name in whole)
    row = read(spark, JSON, ['{"s": "kept", "i": "abc", "ts": 1000, "dec": 12345678901234567890.123456789012345678}'])[
        0
    ]
    assert (row["s"], row["i"], row["ts"]) == ("kept", None, at(1970, 1, 1, 0, 0, 1))
    assert row["dec"] == Decimal("12345678901234567890.123456789012345678")
    row = read(spark, JSON, ['{"o": {"a": 1, "t": "x"}, "ar": [1, 2], "m": {"k": "y"}, "i": 7}'])[0]
    assert (row["o"], row["ar"], row["i"]) == (None, [1, 2], 7)


def test_json_records_as_a_whole(spark: SparkSession) -> None:
    """I11: what is no JSON object is an error, not a row of NULLs."""
    rows = read(spark, JSON, [record for record, _ in WHOLE])
    assert [(record, row[ERROR]) for (record, _), row in zip(WHOLE, rows, strict=True)] == WHOLE
    assert [row["i"] for row in rows[-3:]] == [None, 1, None]
    nulls = read(spark, JSON.replace("'json'", "'json', bad_data = 'null'"), [record for record, _ in WHOLE], "s", "i")
    assert [(row["s"], row["i"]) for row in nulls] == [(None, None)] * (len(WHOLE) - 2) + [(None, 1), (None, None)]


def test_records_are_read_alike_by_our_reader_and_by_spark(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B6, DEC3: whoever reads them, and however times are written."""
    times = ["1700000000123", "-5", "0", '"2024-05-06T07:08:09Z"', '"17"', "1.5", "9223372036854775807", "1e3", "null"]
    records = [f'{{"i": {place}, "s": "a", "ts": {time}}}' for place, time in enumerate(times)]
    records += ['{"i": 1, "ts": 2} x', '{"i": 1x, "ts": 2', '{"i": "1", "ts": 2}', '{"ts": 12', "{}", "{ }\n", "", "[]"]
    records += [f'{{"{name}": {text}, "ts": 7}}' for name, text, _ in (*GOOD, *BAD)]
    for columns in (("i", "ts"), ("i", "s", "ts", "o"), tuple(TYPES)):
        ours = read(spark, JSON, records, *columns)
        with monkeypatch.context() as patch:
            patch.setattr(json_records, "with_quick", lambda frame, *_: frame)
            sparks = read(spark, JSON, records, *columns)
        wrong = [
            (record, one, other)
            for record, one, other in zip(records, sparks, ours, strict=True)
            if not all(equal(other[name], value) for name, value in one.items())
        ]
        assert wrong == []
    assert [row["ts"] for row in ours[:3]] == [
        at(2023, 11, 14, 22, 13, 20, 123000),
        at(1969, 12, 31, 23, 59, 59, 995000),
        at(1970, 1, 1),
    ]


def test_bytes_that_are_no_characters_are_told_where_they_are_read(spark: SparkSession) -> None:
    """I11: in a column that is read; what stands in others is not looked at."""
    records: list[str | bytes | None] = [
        b'{"i": 1, "s": "\xff"}',
        '{"i": 2, "s": "\ufffd"}',
        b'{"i": 3, "s": "a", "v": "\xff"}',
        b'{"i": 4, "\xff"',
    ]
    told = ["not valid UTF-8", None, None, "not valid UTF-8"]
    assert [row[ERROR] for row in read(spark, JSON, records, "i", "s")] == told
    assert [(row["i"], row[ERROR]) for row in read(spark, JSON, records[:3], "i")] == [(1, None), (2, None), (3, None)]


def test_only_wanted_columns_are_looked_at(spark: SparkSession) -> None:
    rows = read(spark, JSON, ['{"s": "a", "i": "abc"}', "{", '{"s": "a"} x'], "s")
    assert rows == [
        {"s": "a", ERROR: None},
        {"s": None, ERROR: "malformed json"},
        {"s": "a", ERROR: "malformed json"},
    ]
    ddl = JSON.replace("'json'", "'json', 'json.timestamp_format' = 'epoch_ms'")
    rows = read(spark, ddl, ['{"ts": 1000}', '{"ts": "1970-01-01T00:00:01Z"}', '{"ts": "x"}'], "ts")
    second = at(1970, 1, 1, 0, 0, 1)
    assert [row["ts"] for row in rows] == [second, second, None]
    assert [row[ERROR] for row in rows] == [None, None, 'column "ts": x does not fit TIMESTAMP']


@pytest.mark.parametrize(("format_name", "good", "bad"), [("json", '{"i":1}', '{"i":"x"}'), ("csv", "1", "x")])
def test_a_stream_has_the_same_bad_records_without_the_reasons(
    spark: SparkSession, tmp_path: Path, format_name: str, good: str, bad: str
) -> None:
    definition = source_of(f"CREATE STREAM r (i INT) WITH (format = '{format_name}')")
    (tmp_path / "records").write_text(f"{good}\n{bad}\n{good} {good}\n")
    lines = spark.readStream.text(str(tmp_path)).selectExpr("CAST(value AS BINARY) AS __value")
    found: list[tuple[Any, ...]] = []
    query = (
        decode(lines, definition, ("i",))
        .writeStream.foreachBatch(lambda frame, _: found.extend(tuple(row)[1:] for row in frame.collect()))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert [error is None for _, error in found] == [True, False, False]
    assert [value for value, error in found if error is None] == [1]


def test_no_column_wanted(spark: SparkSession) -> None:
    definition = source_of(JSON)
    frame = spark.createDataFrame([(bytearray(b"{}"),), (bytearray(b"{"),)], "__value BINARY")
    assert [row[ERROR] for row in decode(frame, definition, ()).collect()] == [None, "malformed json"]


def test_bad_data_as_null(spark: SparkSession) -> None:
    ddl = JSON.replace("'json'", "'json', bad_data = 'null'")
    rows = read(spark, ddl, ['{"s": "a", "i": "abc"}', "{", None, '{"s": "b", "i": 1}'], "s", "i")
    assert [(row["s"], row["i"], row[ERROR]) for row in rows] == [
        ("a", None, None),
        (None, None, None),
        (None, None, None),
        ("b", 1, None),
    ]
    broken: list[str | bytes | None] = [
        b'{"s": "\xff", "i": 1}',
        b'{"s": "a", "i": 2, "v": "\xff"}',
        '{"s": "\ufffd", "i": 3}',
        '{"i": 4} {"i": 5}',
    ]
    assert [(row["s"], row["i"]) for row in read(spark, ddl, broken, "s", "i")] == [
        (None, 1), ("a", 2), ("\ufffd", 3), (None, None),
    ]  # fmt: skip


def test_odd_names(spark: SparkSession) -> None:
    ddl = "CREATE STREAM r (`unit price` DOUBLE, `a.b` INT, `timestamp` TIMESTAMP) WITH (format = 'json')"
    rows = read(spark, ddl, ['{"unit price": 1.5, "a.b": 7, "timestamp": 0}'])
    assert rows == [{"unit price": 1.5, "a.b": 7, "timestamp": at(1970, 1, 1), ERROR: None}]


def test_json_options(spark: SparkSession) -> None:
    strict = "CREATE STREAM r (a INT, b INT) WITH (format = 'json', 'json.fail_on_missing_field' = 'true')"
    rows = read(spark, strict, ['{"a": 1, "b": 2}', '{"a": 1, "b": null}', '{"a": 1}'])
    assert [(row["a"], row["b"], row[ERROR]) for row in rows] == [
        (1, 2, None),
        (1, None, None),
        (1, None, 'column "b" is missing'),
    ]
    whole = "CREATE STREAM r (v STRING) WITH (format = 'json', 'json.unstructured' = 'true')"
    assert read(spark, whole, ['{"a": 1}'])[0] == {"v": '{"a": 1}', ERROR: None}
    carried = "CREATE STREAM r (a INT) WITH (format = 'json', 'json.include_schema' = 'true')"
    rows = read(spark, carried, ['{"schema": {"type": "struct"}, "payload": {"a": 5}}', '{"a": 5}'])
    assert [(row["a"], row[ERROR]) for row in rows] == [(5, None), (None, "malformed json")]


CSV = "CREATE STREAM r (s STRING, i INT, ts TIMESTAMP, ar ARRAY<INT>, d DECIMAL(6, 2)) WITH (format = 'csv'{})"


def test_csv(spark: SparkSession) -> None:
    cases: list[tuple[str | bytes | None, tuple[Any, ...]]] = [
        ("a,1,1000,1;2,3.25", ("a", 1, at(1970, 1, 1, 0, 0, 1), [1, 2], Decimal("3.25"), None)),
        ('"a,b",-1,2021-01-01T00:00:00Z,1,0\n', ("a,b", -1, at(2021, 1, 1), [1], Decimal("0.00"), None)),
        ('"say ""hi""",1,,,', ('say "hi"', 1, None, None, None, None)),
        ('"two\nlines",1,,,', ("two\nlines", 1, None, None, None, None)),
        ('"",,,,', ("", None, None, None, None, None)),
        (",,,,", (None, None, None, None, None, None)),
        ("a,x,,,", ("a", None, None, None, None, 'column "i": x does not fit INT')),
        ("a,1,,1;y,", ("a", 1, None, None, None, 'column "ar": 1;y does not fit ARRAY<INT>')),
        ("a,1", (None, None, None, None, None, "malformed csv: 5 values expected")),
        ("a,1,,,,6", (None, None, None, None, None, "malformed csv: 5 values expected")),
        ("a,1,,,\nb,2,,,", (None, None, None, None, None, "more than one line")),
        ("", (None, None, None, None, None, "empty record")),
        (None, (None, None, None, None, None, "empty record")),
        (b"\xff,1,,,", (None, None, None, None, None, "not valid UTF-8")),
    ]
    rows = read(spark, CSV.format(""), [record for record, _ in cases])
    assert [tuple(row.values()) for row in rows] == [expected for _, expected in cases]


def test_a_quote_in_csv_that_is_never_closed_is_bad(spark: SparkSession) -> None:
    ddl = "CREATE STREAM r (i INT, s STRING) WITH (format = 'csv'{})"
    bad = (None, None, "malformed csv: 2 values expected, and every quote closed")
    cases: list[tuple[str, tuple[Any, ...]]] = [
        ('4,"un\n5,b\n6,c', bad),
        ('4,"un', bad),
        ('4,"', bad),
        ('4,"say ""hi""', bad),
        ('"4,un', bad),
        ('4,"a",\n5,b', bad),
        ('4,"say ""hi"""', (4, 'say "hi"', None)),
        ('4,"two\nlines"', (4, "two\nlines", None)),
        ('4,5" pipe', (4, '5" pipe', None)),
        ('4,""', (4, "", None)),
        ("4,", (4, None, None)),
        ("4,.", (4, ".", None)),
    ]
    rows = read(spark, ddl.format(""), [record for record, _ in cases])
    assert [tuple(row.values()) for row in rows] == [expected for _, expected in cases]
    escaped = read(spark, ddl.format(", 'csv.escape' = '\\'"), ['4,"a\\"', '4,"a\\"b"', "4,a\\"])
    assert [tuple(row.values()) for row in escaped] == [bad, (4, 'a"b', None), (4, "a\\", None)]


def test_csv_options(spark: SparkSession) -> None:
    ddl = CSV.format(", 'csv.delimiter' = '|', 'csv.null_literal' = 'n/a', 'csv.quote' = '''', 'csv.comments' = 'true'")
    rows = read(spark, ddl, ["n/a|1|||", "#note", "'a|b'|n/a|||", "|||| 1"], "s", "i")
    assert [(row["s"], row["i"], row[ERROR]) for row in rows] == [
        (None, 1, None),
        ("a|b", None, None),
        (None, None, None),
    ]
    plain = CSV.format(", 'csv.no_quote' = 'true', 'csv.delimiter' = '\\t'")
    assert read(spark, plain, ['"a"\t1\t\t\t'], "s", "i")[0] == {"s": '"a"', "i": 1, ERROR: None}


def test_raw(spark: SparkSession) -> None:
    """I10: the five columns of a topic, or one for the value."""
    rows = read(spark, "CREATE STREAM r WITH (format = 'raw')", ["text", None, "", b"\xff"])
    moment = datetime(2021, 1, 1, 0, 0, 0, 1000, UTC)
    first = {"key": "key", "value": "text", "timestamp": moment, "partition": 3, "offset": 0, ERROR: None}
    assert rows[0] == first
    assert [(row["value"], row[ERROR]) for row in rows[1:]] == [
        (None, None),
        ("", None),
        (None, 'column "value": not valid UTF-8'),
    ]
    assert read(spark, "CREATE STREAM r (line STRING) WITH (format = 'raw')", ["a"])[0] == {"line": "a", ERROR: None}
    assert read(spark, "CREATE STREAM r (body BINARY) WITH (format = 'raw')", [b"\xff"])[0]["body"] == b"\xff"
    latin = "CREATE STREAM r (body STRING) WITH (format = 'raw', 'raw.charset' = 'ISO-8859-1')"
    assert read(spark, latin, [b"\xfc"])[0]["body"] == "ü"


@pytest.mark.parametrize("format_name", ["json", "csv"])
def test_what_is_written_is_read_back(spark: SparkSession, format_name: str) -> None:
    import pyarrow as pa

    table = pa.table(
        {
            "s": ['a "quoted", text\nü', "", None],
            "i": pa.array([1, None, -5], pa.int32()),
            "ul": pa.array([Decimal(2**64 - 1), None, Decimal(0)], pa.decimal128(20, 0)),
            "d": [0.1, math.inf, None],
            "dec": pa.array([Decimal("12.34"), None, Decimal("-0.000000000000000001")], pa.decimal128(38, 18)),
            "b": [True, False, None],
            "bin": pa.array([b"\x00\xff", b"", None], pa.binary()),
            "day": pa.array([date(1969, 12, 31), None, date(2024, 2, 29)], pa.date32()),
            "ts": pa.array([1, None, -1], pa.timestamp("us", "UTC")),
            "ar": pa.array([[1, 2], None, [3]], pa.list_(pa.int32())),
        }
    )
    columns = ", ".join(f"{name} {TYPES[name]}" for name in table.column_names)
    ddl = f"CREATE STREAM r ({columns}) WITH (format = '{format_name}')"
    written = encode_rows(table, format_name, source_of(ddl).options.values)
    rows = read(spark, ddl, written.to_pylist())
    assert [row.pop(ERROR) for row in rows] == [None, None, None]
    assert rows == table.to_pylist()
    assert base64.b64encode(b"\x00\xff") in written[0].as_py()


def test_rows_that_say_what_they_do(spark: SparkSession) -> None:
    """SC40: what a sink of changes wrote as JSON is read as what it stands for, where only `_op` says it."""
    records = [
        '{"_op": "insert", "k": 1, "n": 2}',
        '{"_op": "delete", "k": 1, "n": 2}',
        '{"k": 2, "n": 3}',
        '{"_op": "update", "k": 2, "n": 4}',
        '{"_op": 5, "k": "x"}',
    ]
    rows = [(place, bytearray(record.encode())) for place, record in enumerate(records)]
    frame = spark.createDataFrame(rows, "__offset BIGINT, __value BINARY")
    ways = {
        "CREATE STREAM s (k INT, n INT) WITH (connector = 'kafka', topic = 't', format = 'json', changes = 'retract')": 3,
        (
            "CREATE TABLE s (k INT, n INT, PRIMARY KEY (k) NOT ENFORCED) "
            "WITH (connector = 'file', path = '/p', format = 'json', changes = 'upsert')"
        ): 4,
    }
    for ddl, good in ways.items():
        found = decode(frame, source_of(ddl), ("k", "n")).orderBy("__offset").toArrow().to_pylist()
        assert [(row["k"], row["n"], row["__deleted"]) for row in found][:4] == [
            (1, 2, False), (1, 2, True), (2, 3, False), (2, 4, False)
        ]  # fmt: skip
        assert [row[ERROR] is None for row in found] == [True] * good + [False] * (5 - good)
        assert "_op" not in found[0]
