"""Avro without Spark: schemas from options and columns, and rows to bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import NotYetError, PenstockError
from penstock.formats import KeptReadings, Outside, encode_rows
from penstock.formats.avro_confluent import known_schemas, reader_for
from penstock.formats.avro_schemas import END, columns_of, given_schema, marked, narrowed, read_schema, schema_of
from penstock.formats.registry import Reference, subject_to_write, subjects_of, uses_registry
from penstock.options.values import Deferred
from penstock.secrets import Reference as Written
from penstock.secrets import Secret
from penstock.types import INT, STRING, SqlType
from tests.unit.catalog.defining import source_of


def record(*fields: dict[str, Any], name: str = "r") -> str:
    return json.dumps({"type": "record", "name": name, "fields": list(fields)})


def field(name: str, type_: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, **more}


def written(columns: dict[str, Any], schema: str | None = None) -> list[bytes]:
    import pyarrow as pa

    options = {} if schema is None else {"avro.schema": schema}
    found: list[bytes] = encode_rows(pa.table(columns), "avro", options).to_pylist()
    return found


def test_rows_with_a_schema_of_their_columns_are_what_spark_writes() -> None:
    import pyarrow as pa

    # Written by Spark's to_avro, of the same values.
    spark = "02020202780282a0a5fe94d4a30602027d0204020200000202026b02040002cebf020202000000000000f83f"
    columns = {
        "a": pa.array([1, None], pa.int32()),
        "s": ["x", None],
        "t": pa.array([datetime(2026, 1, 1, 10, 0, 0, 1, UTC), None], pa.timestamp("us", "UTC")),
        "d": pa.array([Decimal("1.25"), None], pa.decimal128(10, 2)),
        "arr": pa.array([[1, None], None], pa.list_(pa.int32())),
        "m": pa.array([[("k", 2)], None], pa.map_(pa.string(), pa.int64())),
        "dt": pa.array([date(2026, 1, 2), None]),
        "r": pa.array([{"x": 1.5}, None], pa.struct([("x", pa.float64())])),
    }
    assert [row.hex() for row in written(columns)] == [spark, "00" * 8]


def test_rows_with_a_schema_of_the_options() -> None:
    schema = record(
        field("Kind", {"type": "enum", "name": "k", "symbols": ["A", "B"]}),
        field("ms", {"type": "long", "logicalType": "timestamp-millis"}),
        field("id", {"type": "fixed", "name": "f", "size": 2}),
        field("price", {"type": "fixed", "name": "p", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 2}),
        field("note", ["string", "null"], default="none"),
        field("other", ["null", "k"]),
        field("flag", "boolean"),
    )
    rows = {
        "kind": ["B"],
        "ms": [datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)],
        "id": [b"ab"],
        "price": [Decimal("-0.01")],
        "flag": [True],
    }
    assert written(rows, schema) == [
        b"\x02" + b"\xd0\x0f" + b"ab" + b"\xff\xff\xff\xff" + b"\x00\x08none" + b"\x00" + b"\x01"
    ]


def test_a_long_decimal_keeps_its_digits() -> None:
    import pyarrow as pa

    number = Decimal("-12345678901234567890.123456789012345678")
    (found,) = written({"d": pa.array([number], pa.decimal128(38, 18))})
    assert found[:2] == bytes([2, 2 * len(found[2:])])
    assert int.from_bytes(found[2:], "big", signed=True) == -12345678901234567890123456789012345678


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("int", 2**31),
        ("string", None),
        ("string", 5),
        ("boolean", 1),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, "B"),
        ({"type": "fixed", "name": "x", "size": 2}, b"abc"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 1}, Decimal("1.25")),
        ("null", 1),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_column(type_: Any, value: object) -> None:
    with pytest.raises(PenstockError, match='column "v"') as raised:
        written({"v": [value]}, record(field("v", type_)))
    assert raised.value.condition == "INVALID_ROWS"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is no JSON"),
        ('"int"', "is not of a record"),
        (record(field("a", "nothing")), "uses nothing"),
        (record(field("a", ["null", "r"])), "is made of itself"),
        (record(field("a b", "int")), "without a name"),
        (record(field(END, "int")), "a name of ours"),
        (json.dumps({"type": "record", "name": "r"}), "no fields"),
        ('{"type": "record", "name": "r", "fields": [' + " " * (1 << 20) + "]}", "longer"),
        (record(field("a", {"type": "array", "items": 5})), "no type"),
    ],
)
def test_schemas_that_are_none(text: str, words: str) -> None:
    with pytest.raises(PenstockError, match=words) as raised:
        read_schema(text, "the schema of t")
    assert raised.value.condition == "INVALID_OPTION"


def test_a_schema_that_is_nested_without_end() -> None:
    deep: Any = "int"
    for _ in range(40):
        deep = {"type": "array", "items": deep}
    with pytest.raises(PenstockError, match="deeper"):
        read_schema(record(field("a", deep)), "it")


def test_only_wanted_fields_are_read_unless_a_type_is_used_by_its_name() -> None:
    plain = read_schema(record(field("a", "int"), field("b", "string"), field("c", "long")), "it")
    assert [one["name"] for one in narrowed(plain, ["c", "a"])["fields"]] == ["a", "c"]
    assert [one["name"] for one in marked(plain)["fields"]] == ["a", "b", "c", END]
    named = read_schema(record(field("a", {"type": "fixed", "name": "two", "size": 2}), field("b", "two")), "it")
    assert narrowed(named, ["b"]) == named


def test_columns_that_avro_has_no_place_for() -> None:
    for name, type_, words in (
        ("a b", INT, "a name that Avro does not take"),
        ("a", SqlType("INTERVAL"), "a type that Avro does not have"),
        ("a", SqlType("MAP", elements=(INT, STRING)), "keys are no texts"),
    ):
        with pytest.raises(PenstockError, match=words):
            schema_of([(name, type_)], "t")
    schema = read_schema(record(field("a", "int"), field("b", "int", default=3), field("c", ["null", "int"])), "it")
    assert columns_of(schema, ["A"], "t") == {"a": "A", "b": None, "c": None}
    for columns, words in ((["b"], 'no column for the field "a"'), (["a", "x"], 'column "x" of t is not in')):
        with pytest.raises(PenstockError, match=words):
            columns_of(schema, columns, "t")


def test_where_a_schema_comes_from(tmp_path: Path) -> None:
    file = tmp_path / "s.avsc"
    file.write_text(record(field("a", "int"), name="Trade"))
    located = {"schema_location": str(file)}
    found = given_schema("t", located, Outside())
    assert found is not None
    assert found["name"] == "Trade"
    assert given_schema("t", {"schema_location": file.as_uri(), "message": "Trade"}, Outside((str(tmp_path),))) == found
    assert given_schema("t", {}, Outside()) is None
    for options, outside, condition in (
        ({**located, "avro.schema": "{}"}, Outside(), "CONFLICTING_OPTIONS"),
        (located, Outside(("/nowhere",)), "PATH_NOT_ALLOWED"),
        ({"schema_location": "https://host/s"}, Outside(), "INVALID_OPTION"),
        ({"schema_location": str(tmp_path / "none")}, Outside(), "INVALID_OPTION"),
        ({**located, "message": "Other"}, Outside(), "INVALID_OPTION"),
    ):
        with pytest.raises(PenstockError) as raised:
            given_schema("t", options, outside)
        assert raised.value.condition == condition


def test_a_run_reads_by_the_files_it_began_with(tmp_path: Path) -> None:
    file = tmp_path / "s.avsc"
    file.write_text(record(field("a", "int")))
    kept = KeptReadings()
    options = {"schema_location": str(file)}

    def types(outside: Outside) -> list[str]:
        found = given_schema("t", options, outside)
        return [] if found is None else [each["type"] for each in found["fields"]]

    assert types(Outside(kept=kept)) == ["int"]
    assert not kept.differ()
    file.write_text(record(field("a", "long")))
    assert types(Outside(kept=kept)) == ["int"]
    assert types(Outside()) == types(Outside(kept=KeptReadings())) == ["long"]
    assert kept.differ()
    file.write_text(record(field("a", "int")))
    assert not kept.differ()
    file.unlink()
    assert types(Outside(kept=kept)) == ["int"]
    with pytest.raises(PenstockError, match="cannot be read"):
        kept.differ()


def test_a_run_reads_the_values_behind_references_once() -> None:
    written = Deferred(Secret("${env:IT}"), (Written("env", "IT"),))
    values = [record(field("a", "int")), record(field("a", "long"))]
    kept = KeptReadings()
    outside = Outside(reveal=lambda _: values[0], kept=kept)
    first = given_schema("t", {"avro.schema": written}, outside)
    values.pop(0)
    assert given_schema("t", {"avro.schema": written}, outside) == first
    assert kept.differ()


def test_topics_and_kafka_take_avro() -> None:
    schema = record(field("a", "int")).replace("'", "''")
    for connector in ("connector = 'topic'", "connector = 'kafka', topic = 't'"):
        made = source_of(f"CREATE STREAM s (a INT) WITH ({connector}, format = 'avro', 'avro.schema' = '{schema}')")
        assert (made.options.format, made.options.available) == ("avro", True)


class Memory:
    """A registry in memory, of the interface that formats know."""

    def __init__(self, subjects: dict[str, list[tuple[int, str]]]) -> None:
        self.subjects = subjects
        self.known: list[int] = []

    def by_id(self, number: int) -> str | None:
        return next((text for versions in self.subjects.values() for one, text in versions if one == number), None)

    def versions(self, subject: str) -> list[tuple[int, str]]:
        return self.subjects.get(subject, [])

    def register(self, subject: str, text: str, kind: str = "AVRO", references: Sequence[Reference] = ()) -> int:
        self.subjects.setdefault(subject, []).append((77, text))
        return 77

    def version_of(self, subject: str, text: str, kind: str, references: Sequence[Reference] = ()) -> int:
        raise NotImplementedError

    def learned(self, scope: str) -> list[int]:
        return self.known

    def learn(self, scope: str, number: int) -> None:
        self.known.append(number)


CONFLUENT = "connector = 'kafka', topic = 't', format = 'avro-confluent', 'schema_registry.url' = 'http://127.0.0.1'"


def test_rows_get_the_number_of_their_schema() -> None:
    """SC20: magic 0, the number in four bytes, then the record."""
    import pyarrow as pa

    schema = record(field("l", "long"), field("d", "double"), field("s", "string"))
    registry = Memory({"t-value": [(12345, schema)]})
    outside = Outside(registry=lambda _: registry)
    options: dict[str, object] = {"topic": ("t",), "avro.schema_id": 12345}
    rows = pa.table({"l": [-1], "d": [1.0], "s": ["x"]})
    (found,) = encode_rows(rows, "avro-confluent", options, outside).to_pylist()
    assert found == bytes.fromhex("0000003039") + b"\x01" + bytes.fromhex("000000000000f03f") + b"\x02x"
    (found,) = encode_rows(rows, "avro-confluent", {"topic": "t", "avro.schema": schema}, outside).to_pylist()
    assert found[:5] == bytes.fromhex("000000004d")
    assert json.loads(registry.subjects["t-value"][1][1]) == json.loads(schema)
    with pytest.raises(PenstockError, match="no schema 5"):
        encode_rows(rows, "avro-confluent", {"avro.schema_id": 5}, outside)


@pytest.mark.parametrize("own", [{"avro.codec": "deflate"}, {"avro.raw_datums": False}])
def test_what_is_for_files_of_avro_is_refused(own: dict[str, object]) -> None:
    import pyarrow as pa

    rows = pa.table({"x": [1.0]})
    (key,) = own
    with pytest.raises(NotYetError, match=key):
        encode_rows(rows, "avro", own)
    assert encode_rows(rows, "avro", {"avro.codec": "null"}).to_pylist() == encode_rows(rows, "avro", {}).to_pylist()


def test_what_is_known_of_the_schemas_of_a_topic() -> None:
    old = record(field("a", "int"), field("gone", "string"))
    new = record(field("a", "int"), field("more", "int", default=7), field("bare", "string"))
    registry = Memory({"t-value": [(1, old), (2, '"int"'), (3, new)], "other": [(9, old)]})
    registry.known = [9, 10]
    known = known_schemas(source_of(f"CREATE STREAM s (a INT) WITH ({CONFLUENT})"), registry, Outside())
    assert sorted(known.schemas) == [1, 3, 9]
    assert known.unusable == {2: "schema 2 is not of a record"}
    assert known.newest == json.loads(new)
    reader, fields = reader_for(json.loads(old), known.newest, ["A", "more", "bare", "gone"])
    assert fields == {"A": "a", "more": "more", "gone": "gone"}  # what has no default stays NULL
    assert [one["name"] for one in reader["fields"]] == ["a", "gone", "more"]


def test_who_uses_a_registry_and_which_subjects() -> None:
    assert uses_registry("avro-confluent", {})
    assert uses_registry("avro", {"schema_registry.url": "x"})
    assert uses_registry("avro", {"avro.confluent_schema_registry": True})
    assert not uses_registry("avro", {})
    assert not uses_registry("json", {"schema_registry.url": "x"})
    assert subjects_of({"topic": "t", "schema_registry.naming": "record"}) == ()
    assert subject_to_write({"topic": "t", "schema_registry.naming": "record"}, "a.B") == "a.B"
    assert subject_to_write({"topic": "t", "value.subject": "s"}, "a.B") == "s"
    with pytest.raises(PenstockError):
        subject_to_write({}, "a.B")
