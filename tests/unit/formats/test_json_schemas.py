"""JSON records with the number of their schema before them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from penstock.errors import NotYetError, PenstockError
from penstock.formats import encode_rows
from penstock.formats.json_schemas import schema_of
from penstock.formats.outside import Outside
from penstock.formats.registry import Reference
from penstock.types import BIGINT, BINARY, BOOLEAN, DATE, DECIMAL, DOUBLE, STRING, TIMESTAMP, Field, SqlType

FRAMED = {"topic": "t", "json.confluent_schema_registry": True}


class Subjects:
    """A registry that remembers what it was told, and knows the schema 7."""

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, Any], str]] = []

    def by_id(self, number: int) -> str | None:
        return "{}" if number == 7 else None

    def versions(self, subject: str) -> Sequence[tuple[int, str]]:
        raise NotImplementedError

    def register(self, subject: str, text: str, kind: str = "AVRO", references: Sequence[Reference] = ()) -> int:
        self.told.append((subject, json.loads(text), kind))
        return 300

    def version_of(self, subject: str, text: str, kind: str, references: Sequence[Reference] = ()) -> int:
        raise NotImplementedError

    def learned(self, scope: str) -> Sequence[int]:
        raise NotImplementedError

    def learn(self, scope: str, number: int) -> None:
        raise NotImplementedError


def written(options: dict[str, object], subjects: Subjects) -> list[bytes | None]:
    import pyarrow as pa

    rows = pa.table({"n": pa.array([1, None], pa.int32()), "s": ["a", "b"]})
    found: list[bytes | None] = encode_rows(rows, "json", options, Outside(registry=lambda _: subjects)).to_pylist()
    return found


def test_a_sink_registers_the_schema_of_its_columns() -> None:
    subjects = Subjects()
    opening = b"\x00\x00\x00\x01\x2c"
    assert written(FRAMED, subjects) == [opening + b'{"n":1,"s":"a"}', opening + b'{"n":null,"s":"b"}']
    ((subject, schema, kind),) = subjects.told
    assert (subject, kind, schema["type"]) == ("t-value", "JSON", "object")
    assert schema["properties"] == {
        "n": {"connect.index": 0, "oneOf": [{"type": "null"}, {"type": "integer", "connect.type": "int32"}]},
        "s": {"connect.index": 1, "oneOf": [{"type": "null"}, {"type": "string"}]},
    }


def test_the_subject_is_named_as_that_of_avro() -> None:
    subjects = Subjects()
    written({**FRAMED, "schema_registry.subject": "own"}, subjects)
    written({**FRAMED, "schema_registry.naming": "topic_record"}, subjects)
    assert [subject for subject, _, _ in subjects.told] == ["own", "t-topLevelRecord"]


def test_a_number_that_is_given_is_written_and_nothing_registered() -> None:
    subjects = Subjects()
    first, _ = written({**FRAMED, "json.schema_id": 7}, subjects)
    assert first == b'\x00\x00\x00\x00\x07{"n":1,"s":"a"}'
    assert subjects.told == []
    with pytest.raises(PenstockError, match="no schema 8"):
        written({**FRAMED, "json.schema_id": 8}, subjects)


def test_plain_records_ask_no_registry() -> None:
    assert written({"topic": "t"}, Subjects()) == [b'{"n":1,"s":"a"}', b'{"n":null,"s":"b"}']


def test_records_with_their_schema_beside_them_are_not_written_yet() -> None:
    with pytest.raises(NotYetError, match=r"json\.include_schema"):
        written({"json.include_schema": True}, Subjects())


def test_every_type_of_a_column() -> None:
    inner = SqlType("STRUCT", fields=(Field("a", BIGINT),))
    columns = {
        "n": (BIGINT, {"type": "integer", "connect.type": "int64"}),
        "d": (DOUBLE, {"type": "number", "connect.type": "float64"}),
        "m": (DECIMAL, {"type": "number"}),
        "b": (BOOLEAN, {"type": "boolean"}),
        "t": (TIMESTAMP, {"type": "string"}),
        "day": (DATE, {"type": "string"}),
        "raw": (BINARY, {"type": "string"}),
        "list": (
            SqlType("ARRAY", elements=(STRING,)),
            {"type": "array", "items": {"oneOf": [{"type": "null"}, {"type": "string"}]}},
        ),
        "map": (
            SqlType("MAP", elements=(STRING, BOOLEAN)),
            {
                "type": "object",
                "connect.type": "map",
                "additionalProperties": {"oneOf": [{"type": "null"}, {"type": "boolean"}]},
            },
        ),
        "part": (
            inner,
            {
                "type": "object",
                "properties": {
                    "a": {
                        "connect.index": 0,
                        "oneOf": [{"type": "null"}, {"type": "integer", "connect.type": "int64"}],
                    }
                },
            },
        ),
    }
    made = schema_of([(name, type_) for name, (type_, _) in columns.items()], {})["properties"]
    assert {name: one["oneOf"][1] for name, one in made.items()} == {name: had for name, (_, had) in columns.items()}
    (numbered,) = schema_of([("t", TIMESTAMP)], {"json.timestamp_format": "epoch_ms"})["properties"].values()
    assert numbered["oneOf"][1] == {"type": "integer", "connect.type": "int64"}
    with pytest.raises(PenstockError, match="VARIANT has no type"):
        schema_of([("v", SqlType("VARIANT"))], {})
