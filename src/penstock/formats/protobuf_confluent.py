"""Protocol Buffers messages with the number of their schema before them, as Confluent's clients write them.

Behind the number stands which message of the schema the record is: a list of places, each within the one before. What
the message looks like is told by the descriptor file of the relation, which can read what was written by older and
newer schemas, as Protocol Buffers promise; so the registry is asked by sinks only, for the number of their schema. What
its file imports is put there first, under the names of those files, as Confluent's own clients do.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from penstock.formats.avro_confluent import registry_for
from penstock.formats.protobuf_messages import message_type
from penstock.formats.registry import HEAD, MAGIC, head, subject_to_write

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.formats.outside import Outside
    from penstock.formats.registry import Reference, Registry

_WELL_KNOWN: Final = "google/protobuf/"
_DEEPEST: Final = 32
_KIND: Final = "PROTOBUF"


def is_framed(options: Mapping[str, object]) -> bool:
    """Whether messages have the number of their schema before them."""
    asked = options.get("protobuf.confluent_schema_registry") is True
    return asked or options.get("schema_registry.url") is not None


def message_path(descriptors: bytes, name: str | None) -> tuple[int, ...]:
    """Where a message stands in its file."""
    found = message_type(descriptors, name).DESCRIPTOR
    return (list(found.file.message_types_by_name).index(found.name),)


def split(record: bytes) -> tuple[tuple[int, ...], bytes] | None:
    """The places of a record's message, and the message; None where no number and no places stand before it.

    >>> split(front(7, (0,)) + b"x"), split(front(7, (1, 130)) + b"x"), split(b"x")
    (((0,), b'x'), ((1, 130), b'x'), None)
    """
    if len(record) <= HEAD or record[:1] != MAGIC:
        return None
    try:
        count, at = _read(record, HEAD)
        if count == 0:
            return (0,), record[at:]
        if not 0 < count <= _DEEPEST:
            return None
        path: list[int] = []
        for _ in range(count):
            place, at = _read(record, at)
            path.append(place)
    except IndexError:
        return None
    return tuple(path), record[at:]


@dataclass(frozen=True)
class Unwrap:
    """From a record to its message; None where it is no record of a schema, or another message than the wanted one."""

    path: tuple[int, ...]

    def __call__(self, record: bytes) -> bytes | None:
        """The message."""
        found = split(record)
        return found[1] if found is not None and found[0] == self.path else None


def front(number: int, path: Sequence[int]) -> bytes:
    """What stands before a message.

    >>> front(1, (0,)).hex(), front(1, (2,)).hex()
    ('000000000100', '00000000010204')
    """
    # The first message of a file, which most are, is written as no places at all.
    places = b"\0" if tuple(path) == (0,) else b"".join(_written(one) for one in (len(path), *path))
    return head(number) + places


def sink_front(options: Mapping[str, object], descriptors: bytes, name: str | None, outside: Outside) -> bytes:
    """What stands before each message of a sink; its schema is put into the registry where it is not there yet."""
    if not is_framed(options):
        return b""
    found = message_type(descriptors, name).DESCRIPTOR
    registry = registry_for(options, outside)
    subject = subject_to_write(options, str(found.full_name))
    number = registry.register(subject, _text(found.file), _KIND, _registered(found.file, registry))
    return front(number, message_path(descriptors, name))


def _registered(file: Any, registry: Registry) -> list[Reference]:
    """The files that a file imports, each put into the registry under its own name, behind those that it imports."""
    found: list[Reference] = []
    for needed in file.dependencies:
        if needed.name.startswith(_WELL_KNOWN):
            continue
        own = _registered(needed, registry)
        registry.register(needed.name, _text(needed), _KIND, own)
        version = registry.version_of(needed.name, _text(needed), _KIND, own)
        found.append((needed.name, needed.name, version))
    return found


def _text(file: Any) -> str:
    return base64.standard_b64encode(file.serialized_pb).decode()


def _read(record: bytes, at: int) -> tuple[int, int]:
    """A number that takes as few bytes as it needs, and what is behind it."""
    number = shift = 0
    while True:
        byte = record[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7
        if shift > _DEEPEST:
            raise IndexError


def _written(number: int) -> bytes:
    rest, found = number << 1, bytearray()
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*found, rest])
