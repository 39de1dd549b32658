"""What a source knows about a row besides the row itself: the keys of METADATA and HEADER columns."""

from __future__ import annotations

import difflib
from typing import Final

from penstock.errors import CatalogError
from penstock.frozen import frozen
from penstock.sql.statements import Column
from penstock.types import BIGINT, BINARY, INT, STRING, TIMESTAMP, Field, SqlType


@frozen
class MetadataKey:
    """One key: the type it has, the names of other types a column may ask for it in, and whether a sink can set it."""

    type: SqlType
    also: frozenset[str] = frozenset()
    writable: bool = False


_HEADERS: Final = SqlType("ARRAY", elements=(SqlType("STRUCT", fields=(Field("key", STRING), Field("value", BINARY))),))

_TOPIC_KEYS: Final = {
    "topic": MetadataKey(STRING),
    "partition": MetadataKey(INT, frozenset({"BIGINT"})),
    "offset": MetadataKey(BIGINT),
    "timestamp": MetadataKey(TIMESTAMP, frozenset({"BIGINT"}), writable=True),
    "timestamp-type": MetadataKey(STRING),
    "key": MetadataKey(STRING, frozenset({"BINARY"}), writable=True),
    "headers": MetadataKey(_HEADERS, frozenset({"MAP"}), writable=True),
    "leader-epoch": MetadataKey(INT, frozenset({"BIGINT"})),
}

_FILE_KEYS: Final = {
    "file.path": MetadataKey(STRING),
    "file.name": MetadataKey(STRING),
    "file.size": MetadataKey(BIGINT),
    "file.modification-time": MetadataKey(TIMESTAMP, frozenset({"BIGINT"})),
}

METADATA_KEYS: Final[dict[str, dict[str, MetadataKey]]] = {
    "kafka": _TOPIC_KEYS,
    "upsert-kafka": _TOPIC_KEYS,
    "topic": _TOPIC_KEYS,
    "file": _FILE_KEYS,
    "filesystem": _FILE_KEYS,
}

_OTHER_NAMES: Final = {"offset-id": "offset"}  # Arroyo's word

_HEADER_CONNECTORS: Final = frozenset({"kafka", "upsert-kafka", "topic"})


def check_metadata(column: Column, connector: str, *, sink: bool) -> tuple[str, SqlType]:
    """The canonical key of a METADATA column and its type, declared or the key's own."""
    known = METADATA_KEYS.get(connector, {})
    written = column.metadata or column.name.text
    key = written.lower().replace("_", "-")
    key = _OTHER_NAMES.get(key, key)
    if key not in known:
        raise _unknown_key(column, written, connector, known)
    entry = known[key]
    if sink and not entry.writable and not column.virtual:
        raise CatalogError(
            "INVALID_DEFINITION",
            f"column {column.name} is metadata {key}, which cannot be written",
            hint="declare it METADATA VIRTUAL, or leave it out",
            span=column.span,
        )
    if column.type is None:
        return key, entry.type
    # An offset may be asked for as text, but never in a type that could not hold it.
    if column.type != entry.type and column.type.name not in {entry.type.name, *entry.also, "STRING"}:
        raise CatalogError(
            "TYPE_MISMATCH",
            f"column {column.name} is {column.type}, but metadata {key} is {entry.type}",
            hint=f"declare it {column.name} {entry.type} METADATA FROM '{key}'",
            span=column.type_span,
        )
    return key, column.type


def _unknown_key(column: Column, written: str, connector: str, known: dict[str, MetadataKey]) -> CatalogError:
    if not known:
        return CatalogError(
            "INVALID_DEFINITION",
            f"column {column.name} asks for metadata, but connector {connector} has none",
            hint="leave METADATA out, or compute the column",
            span=column.span,
        )
    close = difflib.get_close_matches(written.lower(), known, n=1)
    near = f"did you mean {close[0]}? " if close else ""
    return CatalogError(
        "INVALID_DEFINITION",
        f"connector {connector} has no metadata {written}",
        hint=f"{near}known keys: {', '.join(known)}",
        span=column.span,
    )


def check_header(column: Column, connector: str) -> SqlType:
    """The type of a HEADER column: BINARY as it comes, or STRING when it is UTF-8 text."""
    if connector not in _HEADER_CONNECTORS:
        raise CatalogError(
            "INVALID_DEFINITION",
            f"column {column.name} reads a message header, but connector {connector} has none",
            hint="leave the column out, or read from a topic",
            span=column.span,
        )
    if column.type is None:
        return BINARY
    if column.type.name not in {"STRING", "BINARY"}:
        raise CatalogError(
            "TYPE_MISMATCH",
            f"column {column.name} is {column.type}, but a message header is BINARY or STRING",
            hint="declare it STRING and compute another column with CAST",
            span=column.type_span,
        )
    return column.type
