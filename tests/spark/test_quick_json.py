"""JSON records that our own class in the JVM reads: whatever it is sure of, `from_json` reads in the same way."""

from __future__ import annotations

import json
import os
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock.formats import decode, json_records
from penstock.formats.quick_records import QUICK, can_read, with_quick
from penstock.types import STRING
from tests.unit.catalog.defining import source_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

DDL = """
    CREATE STREAM r (
      l BIGINT, i INT, h SMALLINT, y TINYINT, b BOOLEAN, d DOUBLE, s STRING, t TIMESTAMP, e DATE, c DECIMAL(6, 2),
      w DECIMAL(24, 3), o STRUCT<l BIGINT, s STRING, t TIMESTAMP>, a ARRAY<INT>, m MAP<STRING, DOUBLE>
    )
    WITH (connector = 'topic', format = 'json')
"""
NAMES = ("l", "i", "h", "y", "b", "d", "s", "t", "e", "c", "w", "o", "a", "m")
COUNT = 20_000

NUMBERS = (
    *(
        "0",
        "1",
        "-1",
        "12",
        "-0",
        "-0.0",
        "0.0",
        "-0.5",
        "1.5",
        "1.0",
        "12.50",
        "1e3",
        "1E-3",
        "1e+2",
        "1e400",
        "-1e400",
    ),
    *("01", "+1", ".5", "5.", "1.e3", "0x1F", "1_000", "1,5", "127", "128", "32767", "32768", "-32768", "-32769"),
    *("2147483647", "2147483648", "-2147483648", "9223372036854775807", "9223372036854775808", "-9223372036854775809"),
    *("123456789012345678901234567890", "0.1234567890123456789", "5e-324", "1e-400", "1.7976931348623157e308"),
    *("253402300799999", "253402300800000", "-62135596800000", "1700000000000", "170000000000000000"),
    *("NaN", "nan", "NAN", "-NaN", "Infinity", "-Infinity", "+Infinity", "inf", "-inf", "INF", "Inf", "infinity"),
)
WORDS = ("true", "false", "True", "TRUE", "null", "Null", "NULL", "nul", "undefined", "None", "", "// x", "/* x */ 1")
TEXTS = (
    *('""', '"a"', '"grüße 😀"', '"null"', '"1"', '" 1"', '"true"', '"1.5"', '"a,}b"', '"a, ]b"', '"a: nan"', '"x{[y"'),
    *(r'"a\nb"', r'"a\\b"', r'"a\"b"', r'"\u00e9"', r'"\ud83d\ude00"', r'"\ud800"', r'"\x"', '"a\tb"', '"a\nb"'),
    *('"\x7f"', '"\x00"', '"\u2028"', '"\ufffd"', '"\ufeff"', "'a'", '"a', 'a"', '"a" "b"', '"it\'s"', '"%s {0} ${x}"'),
)
TIMES = (
    *('"2021-01-01T00:00:00Z"', '"2021-01-01T00:00:00"', '"2021-01-01 00:00:00"', '"2021-02-29T00:00:00Z"'),
    *('"2020-02-29T23:59:59.999999Z"', '"2020-02-29T23:59:59.1234567Z"', '"2020-02-29T24:00:00Z"', '"2021-01-01"'),
    *('"2021-01-01T00:00:60Z"', '"2021-13-01T00:00:00Z"', '"2021-01-01T02:00:00+02:00"', '"1969-12-31T23:59:59Z"'),
    *('"1970-01-01T00:00:00.5"', '"9999-12-31T23:59:59.999999Z"', '"0001-01-01T00:00:00Z"', '"2021-1-1T0:0:0Z"'),
    *('"2021-01-01x"', '"2021-02-29"', '"2021-06-31"', '"1900-01-01"', '"0000-01-01"', '"2021-01-01 "', '"2000-02-29"'),
    *('"2021-01-01T00:00:00ZZ"', '"2021-01-01T00:00:00.Z"', '" 2021-01-01T00:00:00Z"', '"2021-01-01T00:00:00 Z"'),
)
NESTED = (
    "{}",
    "[]",
    '{"l":1}',
    '{"l":1,"l":2}',
    "[1,2]",
    "[1,]",
    '{"a":1,}',
    "[nan]",
    "[[[]]]",
    '{"s":"l"}',
    "[-0]",
    "[,]",
    '{"s":"a","t":1700000000000}',
    '{"l":null,"t":"2021-01-01T00:00:00Z","x":[{"y":"]"}]}',
    '{"l":"1"}',
    '{"t":"noon"}',
    "[1,null,3]",
    "[2147483648]",
    "[1.5]",
    '{"a":1.5,"b":null}',
    '{"a":1,"a":2}',
    '{"a":"x"}',
    r'{"\u0061":1}',
    r'{"\ud800":1}',
)
FITTING = {
    "l": ("0", "-7", "12", "9223372036854775807", "null"),
    "i": ("0", "-7", "2147483647", "null"),
    "h": ("0", "-7", "32767", "null"),
    "b": ("true", "false", "null"),
    "d": ("0", "-7.25", "1e3", "12.50", "null"),
    "y": ("0", "-128", "127", "null"),
    "s": ('""', '"a"', '"grüße 😀"', '"1"', '"a: b, c"', r'"say \"hi\"\n\tä\u00e9\u20ac\/"', "null"),
    "e": ('"2021-01-01"', '"1970-01-01"', '"9999-12-31"', "null"),
    "c": ("0", "-7", "12.5", "1234.56", "0.05", "null"),
    "w": ("0", "-7", "123456789012345", "0.125", "null"),
    "o": ("{}", '{"l":1,"s":"x","t":1700000000000}', '{"t":"2021-01-01T00:00:00Z","more":[1]}', "null"),
    "a": ("[]", "[1]", "[1, null,-3]", "null"),
    "m": ("{}", '{"x":1}', '{"x":1.5, "y":null}', "null"),
    "t": ("0", "1700000000000", '"2021-01-01T00:00:00Z"', '"2021-01-01 01:02:03.25"', "null"),
}
TROUBLE = (*NUMBERS, *WORDS, *TEXTS, *TIMES, *NESTED)


def records(seed: int) -> list[bytes]:
    """Records of all kinds: most of them nearly good, so that little decides what becomes of them."""
    chance = random.Random(seed)  # noqa: S311
    made = [chance.choice((_record, _record, _record, _damaged))(chance) for _ in range(COUNT)]
    deep = '{"s":"x","o":' + "[" * 1_001 + "]" * 1_001 + "}"
    made += [
        deep.encode(),
        deep.replace("[", "", 2).replace("]", "", 2).encode(),
        ('{"n":' + "7" * 1_001 + "}").encode(),
    ]
    made += [b'{"d":0.%s}' % (b"1" * 990), b'{"d":0.%s}' % (b"1" * 1_100), b'{"s":"%s"}' % (b"x" * 5_000)]
    chance.shuffle(made)
    return made


def _record(chance: random.Random) -> bytes:
    names = [name for name in NAMES if chance.random() < 0.8]
    odd = chance.random()
    if odd < 0.1 and names:
        names.append(chance.choice(names))
    elif odd < 0.2:
        names += ["more", chance.choice(("other", "more", "L", "", "it's"))]
    chance.shuffle(names)
    wrong = chance.choice(names) if names and chance.random() < 0.5 else None
    blank, before = chance.choice((("", ""), (" ", ""), (" ", " "), ("\n  ", ""), ("\t", "\r\n")))
    members = [
        f'"{name}"{before}:{blank}{chance.choice(TROUBLE if name == wrong else FITTING.get(name, TROUBLE))}'
        for name in names
    ]
    end = chance.choice(("", "", "", "", "", "", "", ",", " ,", blank))
    return ("{" + f",{blank}".join(members) + end + "}").encode("utf-8", "surrogatepass")


def _damaged(chance: random.Random) -> bytes:
    record = _record(chance)
    at = chance.randrange(len(record))
    return chance.choice(
        (
            record[:at],
            record[:at] + record[at + 1 :],
            record[:at] + bytes([chance.randrange(256)]) + record[at:],
            record[:at] + bytes([chance.randrange(256)]) + record[at + 1 :],
            record + record,
            record + b" \n",
            b" " + record,
            b"\xef\xbb\xbf" + record,
            record + b"x",
            record + b"\x00",
            b"[" + record + b"]",
            b'"' + record + b'"',
            record.replace(b":", b"=", 1),
            b"",
        )
    )


def compared(
    spark: SparkSession, made: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> tuple[int, list[tuple[Any, ...]]]:
    """How many records were surely read, and those among them that Spark reads in another way."""
    from pyspark.sql import functions as f

    definition = source_of(DDL)
    given = pa.table({"__offset": pa.array(range(len(made))), "__value": pa.array(made, pa.binary())})
    frame = spark.createDataFrame(given)
    types = {column.name: column.type or STRING for column in definition.columns}
    sure = with_quick(frame, f.col("__value"), types, None).filter(f.col(QUICK).isNotNull()).count()
    from_both = _rows(decode(frame, definition, NAMES))
    with monkeypatch.context() as patch:
        patch.setattr(json_records, "with_quick", lambda frame, *_: frame)
        from_spark = _rows(decode(frame, definition, NAMES))
    differing = [
        (record, one, other)
        for record, one, other in zip(made, from_spark, from_both, strict=True)
        if repr(one) != repr(other)  # 0.0 is not -0.0, and NaN is itself
    ]
    return sure, differing


def _rows(decoded: DataFrame) -> list[dict[str, Any]]:
    from pyspark.sql import functions as f

    # Times as numbers: Python's do not reach as far.
    inner = f.col("o").withField("t", f.unix_micros("o.t"))
    found = decoded.orderBy("__offset").withColumns({"t": f.unix_micros("t"), "e": f.unix_date("e"), "o": inner})
    rows: list[dict[str, Any]] = found.select(*NAMES, "__error").toArrow().to_pylist()
    return rows


def test_what_is_surely_read_spark_reads_in_the_same_way(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    made = records(int(os.environ.get("PENSTOCK_JSON_SEED", "1")))
    sure, differing = compared(spark, made, monkeypatch)
    assert not differing, differing[:3]
    assert sure > COUNT / 6, "hardly any record was read"


def test_plain_records_are_all_read(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    row: dict[str, Any] = {
        "l": 1,
        "i": -2,
        "h": 3,
        "y": 4,
        "b": True,
        "d": 1.25,
        "s": "grüße, information [info] {x}: nannte, null",
        "t": 1_700_000_000_000,
        "e": "2024-02-29",
        "c": 12.5,
        "w": 7,
        "o": {"l": 1, "s": 'a "quoted" word', "t": "2024-02-29T12:00:00"},
        "a": [1, 2],
        "m": {"x": 0.5},
    }
    texts = [
        json.dumps(row),
        json.dumps(row, separators=(",", ":"), ensure_ascii=False),
        json.dumps(row, indent=2, ensure_ascii=False),
        json.dumps({**row, "t": "2024-02-29T12:00:00.5Z", "more": {"a": [1, {"b": None}]}}, ensure_ascii=False),
        json.dumps({**row, "pad": "x" * 3_000, "l": None}, ensure_ascii=False),
        "{}",
    ]
    assert compared(spark, [text.encode() for text in texts], monkeypatch) == (len(texts), [])
    halves = json.dumps({"s": "\N{GRINNING FACE}"})
    assert compared(spark, [halves.encode(), b"", b"7"], monkeypatch) == (0, []), "left to Spark"


def test_a_stream_reads_by_it(spark: SparkSession) -> None:
    frame = spark.readStream.format("rate").load().selectExpr("BINARY(STRING(value)) AS __value")
    plan = decode(frame, source_of(DDL), ("l", "t"))._jdf.queryExecution().toString()
    assert "QuickJson" in plan


@pytest.mark.parametrize(
    ("column", "readable"),
    [
        ("d DECIMAL(38, 10)", True),
        ("d ARRAY<STRUCT<a INT, b MAP<STRING, DATE>>>", True),
        ("d FLOAT", False),
        ("d BINARY", False),
        ("d ARRAY<FLOAT>", False),
        ("d MAP<INT, INT>", False),
        ("d BIGINT UNSIGNED", False),
    ],
)
def test_columns_that_can_be_read(column: str, readable: bool) -> None:
    definition = source_of(f"CREATE STREAM r (l BIGINT, {column}) WITH (connector = 'topic', format = 'json')")
    assert can_read({entry.name: entry.type or STRING for entry in definition.columns}) is readable
