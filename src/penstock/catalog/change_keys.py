"""What rows that replace each other are told apart by, and which of two is the later one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from penstock.catalog.columns import find_column, option_span, unknown_column
from penstock.errors import CatalogError
from penstock.sql.statements import Name

if TYPE_CHECKING:
    from penstock.catalog.model import ColumnDefinition
    from penstock.errors import Span
    from penstock.options.resolved import ResolvedOptions

VERSION: Final = "version_column"
_KEY: Final = "key.fields"
_ENVELOPES: Final = "debezium-json"
# Connectors whose records have keys of bytes beside the value.
_KEYED: Final = frozenset({"kafka", "upsert-kafka"})


def with_change_key(
    options: ResolvedOptions, key: Sequence[str], columns: Sequence[ColumnDefinition]
) -> ResolvedOptions:
    """The options of a relation of changes: its primary key is the key of its records, unless it names another.

    A record that deletes a row of upserts has no value, so its key is all that says which one. What else a sink writes
    of changes has the key so that those of one row stay in one partition, in their order; sources do not need it there.
    """
    values = options.values
    keyed = options.changes == "upsert" or (options.role == "sink" and options.changes != "append")
    if not keyed or options.connector not in _KEYED or not key:
        return options
    if values.get(_KEY) is not None or values.get("key_field") is not None:
        return options
    physical = {column.name.casefold() for column in columns if column.physical}
    if columns and not {name.casefold() for name in key} <= physical:
        return options  # part of it is the key of the record itself, as metadata
    named: dict[str, object] = {_KEY: tuple(key)}
    if options.format == _ENVELOPES:
        named["key.format"] = values.get("key.format") or "json"  # as Debezium writes them, also where it is one column
    return _with(options, named)


def with_version(options: ResolvedOptions, columns: Sequence[ColumnDefinition], otherwise: Span) -> ResolvedOptions:
    """The options of a source with the version column by its declared name, checked."""
    named = options.values.get(VERSION)
    if named is None:
        return options
    span = option_span(options, VERSION, otherwise)
    found = find_column(columns, Name(str(named), span=span))
    if found is None:
        raise unknown_column(Name(str(named), span=span), [column.name for column in columns], f"option {VERSION}")
    if options.changes == "append":
        raise CatalogError(
            "INVALID_DEFINITION",
            f"option {VERSION} is for rows that replace each other, and these are only added",
            hint="add changes = 'upsert' and a primary key, or leave the option out",
            span=span,
        )
    return _with(options, {VERSION: found.name})


def _with(options: ResolvedOptions, more: Mapping[str, object]) -> ResolvedOptions:
    return replace(options, values=MappingProxyType({**options.values, **more}))
