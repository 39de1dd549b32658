"""The key of a record, which may have a format of its own: what of a relation is in the key, and what in the value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from penstock.formats.registry import SIDE
from penstock.types import BINARY, STRING

if TYPE_CHECKING:
    from penstock.catalog.model import SourceDefinition

_OWN: Final = frozenset({"key.format", "key.fields", "key.fields_prefix"})
_PREFIX: Final = "key."
_REGISTRY: Final = "schema_registry."
_WHOLE: Final = "value"  # what the raw format calls a record as a whole
_WITH_KEYS: Final = frozenset({"kafka", "upsert-kafka"})


def key_fields(connector: str, options: Mapping[str, object]) -> tuple[str, ...]:
    """The columns that are in the key of a record; none where the connector has no keys with columns."""
    found = options.get("key.fields")
    return tuple(map(str, found)) if connector in _WITH_KEYS and isinstance(found, tuple) else ()


def key_format(options: Mapping[str, object]) -> str:
    """The format of keys: text where it is one column and nothing else is said, else JSON.

    >>> key_format({"key.fields": ("a",)}), key_format({"key.fields": ("a", "b")}), key_format({"key.format": "avro"})
    ('raw', 'json', 'avro')
    """
    found = options.get("key.format")
    if found is not None:
        return str(found)
    fields = options.get("key.fields")
    return "json" if isinstance(fields, tuple) and len(fields) > 1 else "raw"


def key_options(options: Mapping[str, object]) -> dict[str, object]:
    """The options of the format of keys, named as those of a value are.

    Keys have the schema registry of the values, where they name none of their own, and subjects of their own in it.
    """
    shared = {key: value for key, value in options.items() if key == "topic" or key.startswith(_REGISTRY)}
    shared.pop(f"{_REGISTRY}subject", None)
    own = {
        key.removeprefix(_PREFIX): value
        for key, value in options.items()
        if key.startswith(_PREFIX) and key not in _OWN and value is not None
    }
    return {**shared, **own, SIDE: "key"}


def key_field(column: str, options: Mapping[str, object]) -> str:
    """What a key column is called in the key itself: without the prefix that tells it from one of the value.

    >>> key_field("k_id", {"key.fields_prefix": "k_"}), key_field("id", {})
    ('id', 'id')
    """
    return column.removeprefix(str(options.get("key.fields_prefix") or ""))


def in_key_only(options: Mapping[str, object]) -> bool:
    """Whether the columns of the key are not in the value."""
    return options.get("value.fields_include") == "EXCEPT_KEY"


def key_columns(definition: SourceDefinition) -> dict[str, str]:
    """The columns of a relation that are in the key, by their names; and what each is called there."""
    options = definition.options.values
    wanted = {name.casefold() for name in key_fields(definition.options.connector, options)}
    raw = key_format(options) == "raw"
    return {
        column.name: _WHOLE if raw else key_field(column.name, options)
        for column in definition.columns
        if column.physical and column.name.casefold() in wanted
    }


def key_relation(definition: SourceDefinition) -> SourceDefinition:
    """The key of a relation's records as a relation of its own."""
    options, named = definition.options, key_columns(definition)
    format_name = key_format(options.values)
    columns = [replace(one, name=named[one.name]) for one in definition.columns if one.name in named]
    if format_name == "raw":  # a text, of which the column is made then
        columns = [one if one.type == BINARY else replace(one, type=STRING) for one in columns]
    own = replace(options, format=format_name, values=MappingProxyType(key_options(options.values)))
    return replace(definition, columns=tuple(columns), options=own)


def value_relation(definition: SourceDefinition) -> SourceDefinition:
    """The value of a relation's records: all columns, or those that are not in the key alone."""
    if not in_key_only(definition.options.values):
        return definition
    named = key_columns(definition)
    return replace(definition, columns=tuple(one for one in definition.columns if one.name not in named))
