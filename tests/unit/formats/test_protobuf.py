"""Protocol Buffers messages to Arrow and back."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import PenstockError
from penstock.formats import Outside, encode_rows
from penstock.formats.avro_schemas import END, END_MARK
from penstock.formats.protobuf_confluent import Unwrap, front, message_path
from penstock.formats.protobuf_messages import ReadMessages, check_columns, field_names, message_type, spark_type
from penstock.formats.protobuf_records import writer_of
from penstock.formats.registry import Reference
from tests.protobuf_files import chain_descriptors, order_descriptors, trade_descriptors
from tests.schema_registry import running_registry

TRADES = trade_descriptors()
AT = datetime(2026, 1, 1, 10, 0, 0, 123456, UTC)
ROW: dict[str, Any] = {
    "symbol": "ü", "price": 1.5, "count": -(2**63), "small": -5, "huge": Decimal(2**64 - 1), "flag": True,
    "body": b"\xff\x00", "side": "SELL", "ts": AT, "place": {"city": "Bern", "at": AT}, "tags": ["a", "b"], "note": "",
    "maybe": 0, "levels": [("x", 1), ("y", 2)],
}  # fmt: skip
DEFAULTS: dict[str, Any] = {
    "symbol": "", "price": 0.0, "count": 0, "small": 0, "huge": Decimal(0), "flag": False, "body": b"",
    "side": "UNKNOWN", "ts": None, "place": None, "tags": [], "note": None, "maybe": None, "levels": [],
}  # fmt: skip


def written(rows: list[dict[str, Any]], tmp_path: Path, **options: object) -> list[bytes]:
    import pyarrow as pa

    file = tmp_path / "trade.desc"
    file.write_bytes(TRADES)
    types = {"levels": pa.map_(pa.string(), pa.int64()), "huge": pa.decimal128(20, 0)}
    table = pa.table({name: pa.array([row.get(name) for row in rows], types.get(name)) for name in rows[0]})
    given = {"protobuf.descriptor": str(file), "message": "Trade", **options}
    found: list[bytes] = encode_rows(table, "protobuf", given).to_pylist()
    return found


def read(records: list[bytes | None], **options: Any) -> list[dict[str, Any]]:
    import pyarrow as pa

    call = ReadMessages(TRADES, "shop.Trade", tuple(field_names(TRADES, "Trade")), **options)
    # As Spark sends it to its workers.
    found: list[dict[str, Any]] = pickle.loads(pickle.dumps(call))(pa.array(records, pa.binary())).to_pylist()  # noqa: S301
    return found


def test_every_kind_of_field_there_and_back(tmp_path: Path) -> None:
    full, empty = written([ROW, dict.fromkeys(ROW)], tmp_path)
    assert empty == b""
    theirs = message_type(TRADES, "Trade").FromString(full)
    assert (theirs.symbol, theirs.huge, theirs.side, theirs.place.city, dict(theirs.levels)) == (
        "ü", 2**64 - 1, 2, "Bern", {"x": 1, "y": 2}
    )  # fmt: skip
    assert theirs.ts.ToDatetime(UTC) == AT
    assert (theirs.HasField("note"), theirs.HasField("maybe")) == (True, True)
    found = read([full, empty, b"\xff\xff", None])
    assert found[0] == {**ROW, END: END_MARK}
    assert found[1] == {**DEFAULTS, END: END_MARK}
    assert found[2] == found[3] == dict.fromkeys([*ROW, END])


def test_what_was_not_set_may_be_read_as_the_default() -> None:
    assert read([b""], defaults=True)[0]["maybe"] == 0


def test_an_enum_value_that_nobody_knows_is_its_number() -> None:
    assert read([b"\x40\x09"])[0]["side"] == "9"


@pytest.mark.parametrize(
    ("column", "value"),
    [("small", 2**40), ("small", 1.5), ("side", "NONE"), ("flag", "x"), ("tags", [None]), ("place", {"city": 5})],
)
def test_a_value_that_does_not_fit_is_refused_with_its_column(column: str, value: object, tmp_path: Path) -> None:
    with pytest.raises(PenstockError, match=f'column "{column}"') as raised:
        written([{column: value}], tmp_path)
    assert raised.value.condition == "INVALID_ROWS"


def test_null_in_a_list_of_texts_may_have_a_text(tmp_path: Path) -> None:
    (record,) = written([{"tags": ["a", None]}], tmp_path, **{"protobuf.write_null_string_literal": "nil"})
    assert read([record])[0]["tags"] == ["a", "nil"]


def test_types_in_spark() -> None:
    assert spark_type(TRADES, "Trade", ["symbol", "place", "levels", "tags", "huge"]) == (
        "STRUCT<`symbol`: STRING, `place`: STRUCT<`city`: STRING, `at`: TIMESTAMP>, `levels`: MAP<STRING, BIGINT>, "
        "`tags`: ARRAY<STRING>, `huge`: DECIMAL(20, 0), __end: BINARY>"
    )
    assert check_columns(TRADES, "Trade", ["SYMBOL"], "t") == {"SYMBOL": "symbol"}
    with pytest.raises(PenstockError, match="made of itself"):
        spark_type(chain_descriptors(), None, ["next"])


@pytest.mark.parametrize(
    ("descriptors", "name", "words"),
    [
        (b"\xff", None, "cannot be read"),
        (TRADES, "Nothing", "names no message"),
        (TRADES, None, "leaves open which message"),
    ],
)
def test_descriptor_files_that_are_none(descriptors: bytes, name: str | None, words: str) -> None:
    with pytest.raises(PenstockError, match=words) as raised:
        message_type(descriptors, name)
    assert raised.value.condition == "INVALID_OPTION"


def test_options_that_cannot_be(tmp_path: Path) -> None:
    import pyarrow as pa

    file = tmp_path / "d"
    file.write_bytes(TRADES)
    table = pa.table({"nowhere": [1]})
    for options, condition in (
        ({}, "MISSING_OPTION"),
        ({"protobuf.descriptor": str(file), "message": "Trade"}, "INVALID_OPTION"),
        ({"protobuf.descriptor": str(file), "schema_registry.url": "http://x"}, "INVALID_OPTION"),
    ):
        with pytest.raises(PenstockError) as raised:
            encode_rows(table, "protobuf", options, Outside())
        assert raised.value.condition == condition


def test_messages_with_the_number_of_their_schema(tmp_path: Path) -> None:
    """What Confluent's own serializer writes: the number, the places of the message, and the message."""
    from google.protobuf import descriptor_pb2

    taken: list[tuple[str, str, str]] = []

    class Registry:
        def register(self, subject: str, text: str, kind: str, references: Sequence[Reference]) -> int:
            assert not references
            taken.append((subject, text, kind))
            return 41

    file = tmp_path / "trade.desc"
    file.write_bytes(TRADES)
    options: dict[str, object] = {
        "protobuf.descriptor": str(file), "message": "Trade", "topic": "t", "schema_registry.url": "http://127.0.0.1:1",
    }  # fmt: skip
    call = writer_of(options, ["symbol"], Outside(registry=lambda _: Registry()))  # type: ignore[arg-type, return-value]
    import pyarrow as pa

    (record,) = call.records(pa.array([{"symbol": "a"}]))
    place = message_path(TRADES, "Trade")
    assert record == front(41, place) + message_type(TRADES, "Trade")(symbol="a").SerializeToString()
    ((subject, text, kind),) = taken
    assert (subject, kind) == ("t-value", "PROTOBUF")
    kept = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text))
    assert kept.message_type[place[0]].name == "Trade"

    body = record[len(front(41, place)) :]
    poison = [
        b"",
        b"\x00",
        body,
        record[:4],
        front(41, (7,)) + body,
        b"\x01" + record[1:],
        b"\x00\x00\x00\x00\x01\xff\xff",
    ]
    reading = ReadMessages(TRADES, "Trade", ("symbol",), unwrap=Unwrap(place))
    found = reading(pa.array([record, front(1, place) + body, None, *poison], pa.binary())).to_pylist()
    assert [row["symbol"] for row in found if row[END] == END_MARK] == ["a", "a"]
    assert [row[END] for row in found[2:]] == [None] * (len(poison) + 1)


def test_files_that_a_schema_imports_are_registered_before_it(tmp_path: Path) -> None:
    """Each under its own name, as Confluent's clients do; what Google ships with Protocol Buffers is left out."""
    import pyarrow as pa

    from penstock.connectors.schema_registry import SchemaRegistry, registry_access

    file = tmp_path / "order.desc"
    file.write_bytes(order_descriptors())
    with running_registry() as server:
        registry = SchemaRegistry(registry_access({"schema_registry.url": server.url}, str))
        options: dict[str, object] = {
            "protobuf.descriptor": str(file), "message": "Order", "topic": "t", "schema_registry.url": server.url,
        }  # fmt: skip
        call = writer_of(options, ["id"], Outside(registry=lambda _: registry))
        (record,) = call.records(pa.array([{"id": 7}]))
        (written,) = server.subject("t-value")
        (place,), (time,) = server.subject("shop/place.proto"), server.subject("shop/time.proto")
    assert record.endswith(message_type(order_descriptors(), "Order")(id=7).SerializeToString())
    assert server.references == {
        written: [{"name": "shop/place.proto", "subject": "shop/place.proto", "version": 1}],
        place: [{"name": "shop/time.proto", "subject": "shop/time.proto", "version": 1}],
    }
    assert time not in server.references
