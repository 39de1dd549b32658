"""Dimension tables that come through the Python interface have no statement; their text is a small JSON object."""

from __future__ import annotations

import json

from penstock.catalog.model import ColumnDefinition, DimensionDefinition
from penstock.errors import CatalogError, InternalError
from penstock.sql.statements import Name
from penstock.types import Field, SqlType


def define_dimension(
    name: Name, columns: tuple[ColumnDefinition, ...], *, broadcast: bool = True, key: tuple[str, ...] = ()
) -> DimensionDefinition:
    """The definition of a table with these columns, in which no two rows have the same `key`."""
    seen: set[str] = set()
    for column in columns:
        if column.name.lower() in seen:
            raise CatalogError(
                "DUPLICATE_COLUMN",
                f"dimension {name} has two columns named {column.name}",
                hint="column names differ in more than case; rename one of them",
                span=name.span,
            )
        seen.add(column.name.lower())
    if not columns:
        raise CatalogError("INVALID_DEFINITION", f"dimension {name} has no columns", span=name.span)
    shape = [[column.name, _type_out(column.type), column.nullable] for column in columns]
    stored: dict[str, object] = {"columns": shape, "broadcast": broadcast}
    if key:
        names = {column.name.lower(): column.name for column in columns}
        for part in key:
            if part.lower() not in names:
                raise CatalogError("INVALID_DEFINITION", f"dimension {name} has no column {part} to be its key")
        key = tuple(names[part.lower()] for part in key)
        stored["key"] = list(key)
    text = json.dumps(stored, ensure_ascii=False)
    return DimensionDefinition(name=name, columns=columns, broadcast=broadcast, primary_key=key, text=text)


def read_dimension(name: Name, text: str) -> DimensionDefinition:
    """The definition behind a stored text."""
    try:
        stored = json.loads(text)
        columns = tuple(
            ColumnDefinition(column, _type_in(type_), nullable=nullable)
            for column, type_, nullable in stored["columns"]
        )
        return define_dimension(name, columns, broadcast=stored["broadcast"], key=tuple(stored.get("key", ())))
    except (ValueError, KeyError, TypeError):
        raise InternalError(f"the stored text of dimension {name} cannot be read") from None


def _type_out(type_: SqlType | None) -> object:
    if type_ is None:
        return None
    fields = [[field.name, _type_out(field.type)] for field in type_.fields]
    return [type_.name, list(type_.parameters), [_type_out(element) for element in type_.elements], fields]


def _type_in(stored: object) -> SqlType | None:
    return None if stored is None else _inner(stored)


def _inner(stored: object) -> SqlType:
    if not isinstance(stored, list):
        raise TypeError(stored)
    name, parameters, elements, fields = stored
    return SqlType(
        name,
        tuple(parameters),
        tuple(_inner(element) for element in elements),
        tuple(Field(field, _inner(type_)) for field, type_ in fields),
    )
