"""JSON records with the number of their schema before them, as Confluent's clients and ksqlDB's JSON_SR write them.

A sink registers a JSON Schema that is made of its columns. Each column may be NULL, and numbers say how wide they are
in the words of Kafka Connect, so that who reads the schema gets the same types again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import NotYetError, OptionError
from penstock.formats.avro_confluent import registry_for
from penstock.formats.avro_schemas import RECORD
from penstock.formats.registry import head, subject_to_write
from penstock.stores.arrow_types import sql_type_of_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import pyarrow as pa

    from penstock.formats.outside import Outside
    from penstock.types import SqlType

_KIND: Final = "JSON"
_WIDTHS: Final = {
    "TINYINT": "int8",
    "UTINYINT": "int16",
    "SMALLINT": "int16",
    "USMALLINT": "int32",
    "INT": "int32",
    "UINT": "int64",
    "BIGINT": "int64",
}


def is_framed(options: Mapping[str, object]) -> bool:
    """Whether JSON records have the number of their schema before them."""
    return options.get("json.confluent_schema_registry") is True


def sink_front(rows: Callable[[], pa.Schema], options: Mapping[str, object], outside: Outside) -> bytes:
    """What stands before each record of a sink: nothing, or the number that the registry has for its schema."""
    if options.get("json.include_schema") is True:
        raise NotYetError(
            "QUERY_NOT_YET",
            "records with their schema beside them (json.include_schema) are read and not written yet",
            hint="leave json.include_schema out, or set json.confluent_schema_registry = true for a schema registry",
        )
    if not is_framed(options):
        return b""
    registry = registry_for(options, outside)
    asked = options.get("json.schema_id")
    if isinstance(asked, int):
        if registry.by_id(asked) is None:
            raise OptionError("INVALID_OPTION", f"the schema registry has no schema {asked}")
        return head(asked)
    text = json.dumps(schema_of([(field.name, sql_type_of_arrow(field.type)) for field in rows()], options))
    return head(registry.register(subject_to_write(options, RECORD), text, _KIND))


def schema_of(columns: Iterable[tuple[str, SqlType | None]], options: Mapping[str, object]) -> dict[str, Any]:
    """The JSON Schema of records with these columns.

    >>> from penstock.types import INT
    >>> schema_of([("n", INT)], {})["properties"]
    {'n': {'connect.index': 0, 'oneOf': [{'type': 'null'}, {'type': 'integer', 'connect.type': 'int32'}]}}
    """
    numbers = options.get("json.timestamp_format") == "epoch_ms"
    return {"type": "object", "title": RECORD, "properties": _properties(columns, epoch=numbers)}


def _properties(columns: Iterable[tuple[str, SqlType | None]], *, epoch: bool) -> dict[str, Any]:
    return {
        name: {"connect.index": place, "oneOf": [{"type": "null"}, _type(type_, epoch=epoch)]}
        for place, (name, type_) in enumerate(columns)
    }


def _type(type_: SqlType | None, *, epoch: bool) -> dict[str, Any]:
    name = "" if type_ is None else type_.name
    if type_ is None or name in ("VARIANT", "INTERVAL"):
        raise OptionError(
            "INVALID_OPTION",
            f"a column of type {name or 'NULL'} has no type in a JSON Schema",
            hint="CAST it to STRING, or to another type",
        )
    if name in _WIDTHS:
        return {"type": "integer", "connect.type": _WIDTHS[name]}
    if name in ("FLOAT", "DOUBLE"):
        return {"type": "number", "connect.type": "float32" if name == "FLOAT" else "float64"}
    if name == "ARRAY":
        return {"type": "array", "items": {"oneOf": [{"type": "null"}, _type(type_.elements[0], epoch=epoch)]}}
    if name == "MAP":
        inner = _type(type_.elements[1], epoch=epoch)
        return {"type": "object", "connect.type": "map", "additionalProperties": {"oneOf": [{"type": "null"}, inner]}}
    if name == "STRUCT":
        fields = [(part.name, part.type) for part in type_.fields]
        return {"type": "object", "properties": _properties(fields, epoch=epoch)}
    if name == "TIMESTAMP":
        return {"type": "integer", "connect.type": "int64"} if epoch else {"type": "string"}
    return {"type": {"BOOLEAN": "boolean", "DECIMAL": "number", "UBIGINT": "number"}.get(name, "string")}
