"""JSON records that DuckDB reads: whatever it is sure of, Spark reads in the same way."""

from __future__ import annotations

import json
import os
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock.formats import decode, quick_json_columns
from penstock.quick_json import FEWEST, QUICK, SURE, QuickJson
from tests.unit.catalog.defining import source_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

DDL = """
    CREATE STREAM r (l BIGINT, i INT, h SMALLINT, b BOOLEAN, d DOUBLE, s STRING, t TIMESTAMP)
    WITH (connector = 'topic', format = 'json')
"""
NAMES = ("l", "i", "h", "b", "d", "s", "t")
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
)
FITTING = {
    "l": ("0", "-7", "12", "9223372036854775807", "null"),
    "i": ("0", "-7", "2147483647", "null"),
    "h": ("0", "-7", "32767", "null"),
    "b": ("true", "false", "null"),
    "d": ("0", "-7.25", "1e3", "12.50", "null"),
    "s": ('""', '"a"', '"grüße 😀"', '"1"', '"a: b, c"', "null"),
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


def compared(spark: SparkSession, made: list[bytes]) -> tuple[int, list[tuple[Any, ...]]]:
    """How many records DuckDB was sure of, and those among them that Spark reads in another way."""
    definition = source_of(DDL)
    columns = quick_json_columns(definition, NAMES)
    assert columns is not None
    quick = QuickJson(columns)(pa.array(made, pa.binary()))
    # With `__quick` behind them, what is sure is what DuckDB says; without it, everything is what Spark says.
    given = pa.table({"__offset": pa.array(range(len(made))), "__value": pa.array(made, pa.binary())})
    frame = spark.createDataFrame(given)
    from_spark = _rows(decode(frame, definition, NAMES))
    with_quick = spark.createDataFrame(given.append_column(QUICK, quick))
    from_both = _rows(decode(with_quick, definition, NAMES))
    differing = [
        (record, one, other)
        for record, one, other in zip(made, from_spark, from_both, strict=True)
        if repr(one) != repr(other)  # 0.0 is not -0.0, and NaN is itself
    ]
    return quick.field(SURE).true_count, differing


def _rows(decoded: DataFrame) -> list[dict[str, Any]]:
    found = decoded.orderBy("__offset").select(*NAMES, "__error").toArrow()
    # Times as numbers: Python's do not reach as far.
    times = found.column("t").cast(pa.int64())
    rows: list[dict[str, Any]] = found.set_column(NAMES.index("t"), "t", times).to_pylist()
    return rows


def test_what_duckdb_is_sure_of_spark_reads_in_the_same_way(spark: SparkSession) -> None:
    made = records(int(os.environ.get("PENSTOCK_JSON_SEED", "1")))
    sure, differing = compared(spark, made)
    assert not differing, differing[:3]
    assert sure > COUNT / 4, "hardly any record was read"


def test_plain_records_are_all_read(spark: SparkSession) -> None:
    row = {
        "l": 1,
        "i": -2,
        "h": 3,
        "b": True,
        "d": 1.25,
        "s": "grüße, information [info] {x}: nannte, null",
        "t": 1_700_000_000_000,
    }
    many = [
        json.dumps(row),
        json.dumps(row, separators=(",", ":"), ensure_ascii=False),
        json.dumps(row, indent=2, ensure_ascii=False),
        json.dumps({**row, "t": "2024-02-29T12:00:00.5Z", "more": {"a": [1, {"b": None}]}}, ensure_ascii=False),
        json.dumps({**row, "pad": "x" * 3_000, "l": None}, ensure_ascii=False),
        "{}",
    ]
    made = [text.encode() for text in many[1:] * FEWEST]
    sure, differing = compared(spark, made)
    assert differing == []
    assert sure == len(made)
    # Escapes are Spark's to read, and so are few records.
    assert compared(spark, [many[0].encode()] * FEWEST)[0] == 0
    assert compared(spark, made[: FEWEST - 1])[0] == 0


def test_columns_that_are_left_to_spark() -> None:
    assert quick_json_columns(source_of(DDL), NAMES) is not None
    assert quick_json_columns(source_of(DDL.replace("'json'", "'csv'")), NAMES) is None
    assert quick_json_columns(source_of(DDL.replace("d DOUBLE", "d DECIMAL(9, 2)")), NAMES) is None
    assert quick_json_columns(source_of(DDL.replace("d DOUBLE", "d DECIMAL(9, 2)")), ("l", "t")) is not None
    strict = DDL.replace("'json')", "'json', 'json.fail-on-missing-field' = true)")
    assert quick_json_columns(source_of(strict), NAMES) is None
