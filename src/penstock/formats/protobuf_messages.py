"""Protocol Buffers messages to Arrow and back, with Google's own package. Spark's workers load this module, too.

A message type comes from a descriptor file, as `protoc --include_imports --descriptor_set_out` writes it. Messages are
parsed and serialized by Google's package in C; values go from and to Arrow a field at a time. A field that can tell
that it was not set is NULL then; one that cannot has the default of its type, as Protocol Buffers define it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import OptionError, RuntimeFailure
from penstock.formats.avro_schemas import END, END_MARK, field_of

if TYPE_CHECKING:
    import pyarrow as pa

_DEEPEST: Final = 16
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROS: Final = 1_000_000
_TIMESTAMP: Final = "google.protobuf.Timestamp"
_WRAPPERS: Final = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
# By the numbers that descriptors use for types.
_SCALARS: Final = {
    1: "DOUBLE", 2: "FLOAT", 3: "BIGINT", 4: "DECIMAL(20, 0)", 5: "INT", 6: "DECIMAL(20, 0)", 7: "BIGINT", 8: "BOOLEAN",
    9: "STRING", 12: "BINARY", 13: "BIGINT", 14: "STRING", 15: "INT", 16: "BIGINT", 17: "INT", 18: "BIGINT",
}  # fmt: skip
_UNSIGNED_64: Final = frozenset({4, 6})
_ENUM: Final = 14
_MESSAGE: Final = frozenset({10, 11})


@lru_cache(maxsize=64)
def message_type(descriptors: bytes, name: str | None) -> Any:
    """The class of a message; INVALID_OPTION where the descriptor file has none of this name."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(descriptors).file
        pool = descriptor_pool.DescriptorPool()
        for file in files:
            pool.Add(file)
        found = [_descriptor(pool, full) for file in files[-1:] for full in _names(file)]
        if name is not None:
            found = [_descriptor(pool, full) for file in files for full in _names(file) if _is_named(full, name)]
    except (message.DecodeError, TypeError, KeyError, IndexError):
        raise OptionError(
            "INVALID_OPTION",
            "the descriptor file of a protobuf message cannot be read",
            hint="write it with: protoc --include_imports --descriptor_set_out=FILE",
        ) from None
    if len(found) != 1:
        names = [full for file in files for full in _names(file)]
        what = "names no message" if not found else "leaves open which message is meant"
        raise OptionError(
            "INVALID_OPTION",
            f"the option message {what} of the descriptor file",
            hint=f"its messages: {', '.join(names[:10])}",
        )
    return message_factory.GetMessageClass(found[0])


def field_names(descriptors: bytes, name: str | None) -> list[str]:
    """The fields of a message."""
    return [field.name for field in message_type(descriptors, name).DESCRIPTOR.fields]


def spark_type(descriptors: bytes, name: str | None, fields: Sequence[str]) -> str:
    """The type in Spark of what is read of a message: the wanted fields, and a mark that it was a message."""
    known = message_type(descriptors, name).DESCRIPTOR.fields_by_name
    parts = [f"`{field}`: {_ddl(known[field], 0)}" for field in fields]
    return f"STRUCT<{', '.join([*parts, f'{END}: BINARY'])}>"


@dataclass(frozen=True)
class ReadMessages:
    """Messages to a struct of the wanted fields; the mark in it is NULL where the bytes were no message."""

    descriptors: bytes
    name: str | None
    fields: tuple[str, ...]
    defaults: bool = False  # read what was not set as the default of its type
    unwrap: Callable[[bytes], bytes | None] | None = None  # takes away what stands before a message; None: it is none

    def __call__(self, records: pa.Array) -> pa.Array:
        """One batch."""
        import pyarrow as pa
        from google.protobuf import message

        made = message_type(self.descriptors, self.name)
        messages: list[Any] = []
        given = records.to_pylist()
        if self.unwrap is not None:
            given = [None if record is None else self.unwrap(record) for record in given]
        for record in given:
            try:
                messages.append(None if record is None else made.FromString(record))
            except message.DecodeError:
                messages.append(None)
        known = made.DESCRIPTOR.fields_by_name
        columns = [_read_column(known[name], messages, self.defaults) for name in self.fields]
        marks = pa.array([None if one is None else END_MARK for one in messages], pa.binary())
        return pa.StructArray.from_arrays([*columns, marks], names=[*self.fields, END])


@dataclass(frozen=True)
class WriteMessages:
    """A struct of columns to messages."""

    descriptors: bytes
    name: str | None
    null_text: str | None = None  # what stands for NULL in lists and maps of texts
    front: bytes = b""  # what stands before each message

    def __call__(self, rows: pa.Array) -> pa.Array:
        """One batch."""
        import pyarrow as pa

        return pa.array(self.records(rows), pa.binary())

    def records(self, rows: pa.Array) -> list[bytes]:
        """The bytes of each row."""
        made = message_type(self.descriptors, self.name)
        known = made.DESCRIPTOR.fields_by_name
        messages = [made() for _ in range(len(rows))]
        for place, column in enumerate(rows.type):
            field = known[_field_for(column.name, known)]
            fill = _filler(field, self.null_text)
            for message, value in zip(messages, _plain(rows.field(place)), strict=True):
                if value is None:
                    continue
                try:
                    fill(message, value)
                except (TypeError, ValueError, KeyError, AttributeError, OverflowError):
                    raise RuntimeFailure(
                        "INVALID_ROWS",
                        f'a value of column "{column.name}" does not fit its protobuf field',
                        hint="CAST the column to what the message says; lists and maps hold no NULL",
                    ) from None
        return [self.front + message.SerializePartialToString(deterministic=True) for message in messages]


def check_columns(descriptors: bytes, name: str | None, columns: Iterable[str], what: str) -> dict[str, str]:
    """The field of each column; INVALID_OPTION where the message has none for it."""
    known = field_names(descriptors, name)
    found: dict[str, str] = {}
    for column in columns:
        field = field_of(column, known)
        if field is None:
            raise OptionError(
                "INVALID_OPTION",
                f'column "{column}" of {what} is not in its protobuf message',
                hint=f"the fields of the message: {', '.join(known)}",
            )
        found[column] = field
    return found


# what fields are


def _names(file: Any) -> list[str]:
    space = f"{file.package}." if file.package else ""
    return [f"{space}{one.name}" for one in file.message_type]


def _is_named(full: str, name: str) -> bool:
    return name in (full, full.rpartition(".")[2])


def _descriptor(pool: Any, full: str) -> Any:
    return pool.FindMessageTypeByName(full)


def _field_for(column: str, known: Any) -> str:
    field = field_of(column, [str(name) for name in known])
    if field is None:
        raise OptionError("INVALID_OPTION", f'column "{column}" is not in the protobuf message')
    return field


def _is_map(field: Any) -> bool:
    return bool(field.is_repeated and field.type in _MESSAGE and field.message_type.GetOptions().map_entry)


def _ddl(field: Any, depth: int) -> str:
    """The type of a field in Spark."""
    if depth > _DEEPEST:
        raise OptionError(
            "INVALID_OPTION",
            f"message {field.containing_type.full_name} is made of itself",
            hint="flatten it; a table has no such columns",
        )
    if _is_map(field):
        inner = field.message_type.fields_by_name
        return f"MAP<{_one(inner['key'], depth)}, {_one(inner['value'], depth)}>"
    one = _one(field, depth)
    return f"ARRAY<{one}>" if field.is_repeated else one


def _one(field: Any, depth: int) -> str:
    if field.type not in _MESSAGE:
        return _SCALARS[field.type]
    inner = field.message_type
    if inner.full_name == _TIMESTAMP:
        return "TIMESTAMP"
    if inner.full_name in _WRAPPERS:
        return _one(inner.fields_by_name["value"], depth + 1)
    return f"STRUCT<{', '.join(f'`{part.name}`: {_ddl(part, depth + 1)}' for part in inner.fields)}>"


def _arrow(field: Any) -> pa.DataType:
    import pyarrow as pa

    if _is_map(field):
        inner = field.message_type.fields_by_name
        return pa.map_(_arrow_one(inner["key"]), _arrow_one(inner["value"]))
    one = _arrow_one(field)
    return pa.list_(one) if field.is_repeated else one


def _arrow_one(field: Any) -> pa.DataType:
    import pyarrow as pa

    if field.type in _MESSAGE:
        inner = field.message_type
        if inner.full_name == _TIMESTAMP:
            return pa.timestamp("us", tz="UTC")
        if inner.full_name in _WRAPPERS:
            return _arrow_one(inner.fields_by_name["value"])
        return pa.struct([(part.name, _arrow(part)) for part in inner.fields])
    kinds = {
        "DOUBLE": pa.float64(), "FLOAT": pa.float32(), "BIGINT": pa.int64(), "INT": pa.int32(), "BOOLEAN": pa.bool_(),
        "STRING": pa.string(), "BINARY": pa.binary(), "DECIMAL(20, 0)": pa.decimal128(20, 0),
    }  # fmt: skip
    return kinds[_SCALARS[field.type]]


# from messages


def _read_column(field: Any, messages: Sequence[Any], defaults: bool) -> pa.Array:
    """One field of all messages."""
    import pyarrow as pa

    read = _reader(field, defaults)
    return pa.array([None if one is None else read(one) for one in messages], _arrow(field))


def _reader(field: Any, defaults: bool) -> Callable[[Any], Any]:
    """How a field is read from a message."""
    name = field.name
    if _is_map(field):
        change = _value(field.message_type.fields_by_name["value"], defaults)
        # In order: the same message is the same row whenever it is read.
        return lambda one: [(key, change(value)) for key, value in sorted(getattr(one, name).items(), key=_first)]
    change = _value(field, defaults)
    if field.is_repeated:
        return lambda one: [change(value) for value in getattr(one, name)]
    if not field.has_presence or (defaults and field.type not in _MESSAGE):
        return lambda one: change(getattr(one, name))
    return lambda one: change(getattr(one, name)) if one.HasField(name) else None


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _value(field: Any, defaults: bool) -> Callable[[Any], Any]:
    """A value of a message as Arrow takes it."""
    if field.type in _MESSAGE:
        inner = field.message_type
        if inner.full_name == _TIMESTAMP:
            return lambda value: value.seconds * _MICROS + value.nanos // 1000
        if inner.full_name in _WRAPPERS:
            return lambda value: value.value
        parts = [(part.name, _reader(part, defaults)) for part in inner.fields]
        return lambda value: {name: read(value) for name, read in parts}
    if field.type == _ENUM:
        names = {value.number: value.name for value in field.enum_type.values}
        return lambda value: names.get(value, str(value))
    if field.type in _UNSIGNED_64:
        return Decimal
    return lambda value: value


# to messages


def _plain(column: pa.Array) -> list[Any]:
    return list(column.to_pylist())


def _filler(field: Any, null_text: str | None) -> Callable[[Any, Any], None]:
    """How a value that is not NULL is put into a message."""
    name = field.name
    if _is_map(field):
        entry = field.message_type.fields_by_name["value"]
        if entry.type in _MESSAGE:
            put = _message_filler(entry.message_type, null_text)
            return lambda one, value: _each(put, ((getattr(one, name)[key], item) for key, item in _pairs(value)))
        change = _scalar(entry, null_text)
        return lambda one, value: getattr(one, name).update({key: change(item) for key, item in _pairs(value)})
    if field.type in _MESSAGE:
        put = _message_filler(field.message_type, null_text)
        if field.is_repeated:
            return lambda one, value: _each(put, ((getattr(one, name).add(), item) for item in value))
        return lambda one, value: put(getattr(one, name), value)
    change = _scalar(field, null_text)
    if field.is_repeated:
        return lambda one, value: getattr(one, name).extend([change(item) for item in value])
    return lambda one, value: setattr(one, name, change(value))


def _each(put: Callable[[Any, Any], None], items: Iterable[tuple[Any, Any]]) -> None:
    for message, value in items:
        put(message, value)


def _pairs(value: Any) -> Iterable[tuple[Any, Any]]:
    return value.items() if isinstance(value, dict) else value


def _message_filler(inner: Any, null_text: str | None) -> Callable[[Any, Any], None]:
    if inner.full_name == _TIMESTAMP:
        return _put_time
    if inner.full_name in _WRAPPERS:
        change = _scalar(inner.fields_by_name["value"], null_text)
        return lambda one, value: setattr(one, "value", change(value))
    known = inner.fields_by_name
    fillers: dict[str, Callable[[Any, Any], None]] = {}

    def put(one: Any, value: Any) -> None:
        one.SetInParent()  # there, though all of it may be NULL
        for key, item in value.items():
            if item is None:
                continue
            if key not in fillers:
                fillers[key] = _filler(known[_field_for(key, known)], null_text)
            fillers[key](one, item)

    return put


def _put_time(one: Any, value: Any) -> None:
    aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    passed = aware - _EPOCH
    one.seconds = passed.days * 86_400 + passed.seconds
    one.nanos = passed.microseconds * 1000


def _scalar(field: Any, null_text: str | None) -> Callable[[Any], Any]:
    kind = _SCALARS[field.type]
    if field.type == _ENUM:
        numbers = {value.name: value.number for value in field.enum_type.values}
        # A number without a name is read as its text, and goes back as the number.
        return lambda value: numbers[value] if value in numbers else int(value)
    if kind == "STRING":
        return lambda value: null_text if value is None else value
    if kind in ("INT", "BIGINT", "DECIMAL(20, 0)"):
        return _whole
    if kind in ("DOUBLE", "FLOAT"):
        return float
    return lambda value: value


def _whole(value: Any) -> int:
    number = int(value)
    if number != value:
        raise ValueError
    return number
