"""The WITH clause of ksqlDB's relations and queries, in our keys and values.

KAFKA_TOPIC = 't', VALUE_FORMAT = 'DELIMITED', PARTITIONS = 2
-> connector = 'kafka', topic = 't', format = 'csv', partitions = 2

Keys that ksqlDB does not have are taken as ours, so that an address or a login may stand among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from penstock.errors import OptionError, Span
from penstock.frozen import frozen
from penstock.secrets import Secret
from penstock.sql.dialects.ksqldb import TOPIC, refuse_at
from penstock.sql.statements import Option, OptionValue

_RENAMED: Final = {
    TOPIC: "topic",
    "PARTITIONS": "partitions",
    "REPLICAS": "replication_factor",
    "VALUE_DELIMITER": "csv.delimiter",
    "KEY_DELIMITER": "key.csv.delimiter",
}
_SEPARATORS: Final = {"SPACE": " ", "TAB": "\t"}
# What a format is called here, and the option that says the rest of it.
_FORMATS: Final[dict[str, tuple[str, str | None]]] = {
    "JSON": ("json", None),
    "JSON_SR": ("json", "json.confluent_schema_registry"),
    "AVRO": ("avro-confluent", None),
    "PROTOBUF": ("protobuf", "protobuf.confluent_schema_registry"),
    "PROTOBUF_NOSR": ("protobuf", None),
    "DELIMITED": ("csv", None),
    "KAFKA": ("raw", None),
}
_REFUSED: Final = {
    "WINDOW_TYPE": "leave it out; a key with a window in it can be had as k BINARY METADATA FROM 'key'",
    "WINDOW_SIZE": "leave it out; a key with a window in it can be had as k BINARY METADATA FROM 'key'",
    "RETENTION_MS": "leave it out, and set retention.ms on the topic",
    "CLEANUP_POLICY": "leave it out, and set cleanup.policy on the topic",
    "VALUE_SCHEMA_ID": "leave it out, and list the columns",
    "KEY_SCHEMA_ID": "leave it out, and list the columns",
    "VALUE_SCHEMA_FULL_NAME": "leave it out; schema_registry.naming says how a subject is named",
    "VALUE_AVRO_SCHEMA_FULL_NAME": "leave it out; schema_registry.naming says how a subject is named",
    "KEY_SCHEMA_FULL_NAME": "leave it out; schema_registry.naming says how a subject is named",
    "SOURCED_BY_CONNECTOR": "leave it out; nothing depends on it",
}


def given(options: Sequence[Option]) -> bool:
    """Whether a WITH clause is one of ksqlDB's: they all name a topic by its own key."""
    return any(option.key.upper() == TOPIC for option in options)


def text(written: str) -> OptionValue:
    """A value of ours."""
    return OptionValue("text", Secret(written))


@frozen
class KeyColumns:
    """The columns of a record's key: how many, and whether the text of the one there is, is all of it in JSON."""

    names: tuple[str, ...]
    bare_number: bool = False


@dataclass(slots=True)
class Clause:
    """What a WITH clause of ksqlDB says: its options in our words, and what is no option here."""

    options: list[Option] = field(default_factory=list)
    timestamp: Option | None = None
    timestamp_format: Option | None = None
    key_format: Option | None = None
    topic: Option | None = None


def read(options: Sequence[Option], connector: str) -> Clause:
    """The clause, with the formats of values; that of keys waits for the columns."""
    found = Clause()
    for option in options:
        _read_option(option, connector, found)
    return found


def _read_option(option: Option, connector: str, found: Clause) -> None:
    key = option.key.upper()
    if key in _REFUSED:
        refuse_at(f"the option {key}", _REFUSED[key], option.key_span)
    if key == TOPIC:
        found.topic = option
        found.options.append(replace(option, key="connector", value=text(connector), value_span=option.key_span))
    if key in _RENAMED:
        found.options.append(_renamed(option, _RENAMED[key]))
    elif key == "VALUE_FORMAT":
        found.options += _format(option, "")
    elif key == "KEY_FORMAT":
        found.key_format = option
    elif key == "FORMAT":
        found.options += _format(option, "")
        found.key_format = option
    elif key == "TIMESTAMP":
        found.timestamp = option
    elif key == "TIMESTAMP_FORMAT":
        found.timestamp_format = option
    elif key == "WRAP_SINGLE_VALUE":
        _check_wrapping(option)
    else:
        found.options.append(option)


def _renamed(option: Option, key: str) -> Option:
    separator = _SEPARATORS.get(option.value.reveal().upper()) if key.endswith("delimiter") else None
    return replace(option, key=key, value=text(separator) if separator is not None else option.value)


def _check_wrapping(option: Option) -> None:
    if option.value.reveal().lower() != "true":
        hint = "leave it out where records are objects; a bare value is a column of VALUE_FORMAT = 'KAFKA'"
        refuse_at("WRAP_SINGLE_VALUE = false", hint, option.key_span)


def key_options(clause: Clause, keys: KeyColumns, span: Span) -> list[Option]:
    """The key of records: its columns, which ksqlDB does not keep in the value, and its format, KAFKA if not said."""
    option = clause.key_format
    if not keys.names:
        return []  # of a key without columns ksqlDB reads nothing, whatever its format
    made = [
        Option("key.fields", text(",".join(keys.names)), span, span),
        Option("value.fields_include", text("EXCEPT_KEY"), span, span),
    ]
    if option is None:
        return [*made, Option("key.format", text("raw"), span, span)]
    return [*made, *_key_format(option, keys)]


def _key_format(option: Option, keys: KeyColumns) -> list[Option]:
    name = option.value.reveal().upper()
    if name == "NONE":
        raise OptionError(
            "CONFLICTING_OPTIONS",
            "KEY_FORMAT = 'NONE' says that there is no key, and a column is one",
            hint="leave KEY out behind the column, or give the format of the key",
            span=option.value_span,
        )
    if len(keys.names) == 1 and name in {"JSON", "JSON_SR", "AVRO"}:
        # ksqlDB writes a key of one column bare, and not as an object with one member.
        if name == "JSON" and keys.bare_number:
            return [replace(option, key="key.format", value=text("raw"))]
        hint = "with KEY_FORMAT = 'KAFKA' the key is read as the text that it is"
        refuse_at(f"a key of one column in {name}", hint, option.value_span)
    return _format(option, "key.")


def _format(option: Option, prefix: str) -> list[Option]:
    if option.value.kind != "text":
        return [replace(option, key=f"{prefix}format")]  # a secret, a number: whoever reads the options refuses it
    written = option.value.reveal()
    name, also = _FORMATS.get(written.upper(), (written.lower(), None))
    made = [replace(option, key=f"{prefix}format", value=text(name))]
    if also is not None:
        made.append(replace(option, key=f"{prefix}{also}", value=OptionValue("boolean", Secret("true"))))
    return made


def written_key_format(clause: Clause) -> list[Option]:
    """The format of the keys that a query writes: which columns they are, only the planner knows."""
    option = clause.key_format
    if option is None or option.value.reveal().upper() == "NONE":
        return []
    # FORMAT is about both; a stream of a query that says nothing of a key has none.
    return _format(option, "key.") if option.key.upper() == "KEY_FORMAT" else []


def written_time(clause: Clause) -> list[Option]:
    """The column that becomes the time of a record."""
    if clause.timestamp_format is not None:
        hint = "make the column a TIMESTAMP in the query, with TO_TIMESTAMP(column, '…')"
        refuse_at("TIMESTAMP_FORMAT of a query", hint, clause.timestamp_format.key_span)
    return [] if clause.timestamp is None else [replace(clause.timestamp, key="record_timestamp_field")]
