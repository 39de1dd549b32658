"""Schemas of Avro: read from options, made of columns, and changed so that Spark can tell whether a record is whole.

A schema stays the JSON it is written in. Every field of a schema that is made of columns may be NULL.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import OptionError

if TYPE_CHECKING:
    from penstock.formats.outside import Outside
    from penstock.types import SqlType

Schema = dict[str, Any]

PRIMITIVE: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
RECORD: Final = "topLevelRecord"  # as Spark names the records that it makes up
# Bytes that are put behind a record, and the field at the end of the schema that reads them: where they come out as
# they went in, the record was exactly as long as its schema says.
END: Final = "__end"
END_MARK: Final = bytes.fromhex("9f3ca17e55d00eb1")
_DEEPEST: Final = 32
_LONGEST: Final = 1 << 20
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TYPES: Final[dict[str, object]] = {
    "STRING": "string",
    "BOOLEAN": "boolean",
    "TINYINT": "int",
    "SMALLINT": "int",
    "INT": "int",
    "UTINYINT": "int",
    "USMALLINT": "int",
    "BIGINT": "long",
    "UINT": "long",
    "UBIGINT": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 0},
    "FLOAT": "float",
    "DOUBLE": "double",
    "BINARY": "bytes",
    "DATE": {"type": "int", "logicalType": "date"},
    "TIMESTAMP": {"type": "long", "logicalType": "timestamp-micros"},
}


def given_schema(relation: str, options: Mapping[str, object], outside: Outside) -> Schema | None:
    """The schema that the options of a relation give, in their text or in a file; None where they give none."""
    text = outside.text(options, "avro.schema")
    written = outside.file(options, "schema_location")
    if text is not None and written is not None:
        raise OptionError(
            "CONFLICTING_OPTIONS", f"{relation} has avro.schema and schema_location", hint="keep one of them"
        )
    if text is None and written is None:
        return None
    try:
        found = read_schema(text if text is not None else (written or b"").decode(), f"the schema of {relation}")
    except UnicodeDecodeError:
        raise OptionError("INVALID_OPTION", f"the schema file of {relation} is no text") from None
    wanted = options.get("message")
    if wanted is not None and wanted not in (found["name"], _full_name(found)):
        raise OptionError("INVALID_OPTION", f"the schema of {relation} is of record {found['name']}, not of {wanted}")
    return found


def read_schema(text: str, what: str) -> Schema:
    """A schema from its JSON: a record, not too large, and not made of itself."""
    if len(text) > _LONGEST:
        raise _wrong(what, f"is longer than {_LONGEST} characters")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise _wrong(what, "is no JSON") from None
    if not isinstance(found, dict) or found.get("type") != "record" or not isinstance(found.get("name"), str):
        raise _wrong(what, "is not of a record", 'an Avro schema begins with {"type": "record", "name": …')
    _check(found, what, {}, (), 0)
    if any(field["name"] == END for field in found["fields"]):
        raise _wrong(what, f"has a field {END}, which is a name of ours")
    return found


def schema_of(columns: Iterable[tuple[str, SqlType | None]], what: str) -> Schema:
    """A schema for columns: each one may be NULL.

    >>> from penstock.types import INT
    >>> schema_of([("n", INT)], "t")["fields"]
    [{'name': 'n', 'type': ['null', 'int'], 'default': None}]
    """
    return {
        "type": "record",
        "name": RECORD,
        "fields": [_field(name, type_, name, what) for name, type_ in columns],
    }


def marked(schema: Schema) -> Schema:
    """The schema of the same records with our mark behind them."""
    mark = {"name": END, "type": {"type": "fixed", "name": "penstock_end", "size": len(END_MARK)}}
    return {**schema, "fields": [*schema["fields"], mark]}


def narrowed(schema: Schema, fields: Sequence[str]) -> Schema:
    """The schema with these fields only, for a reader that skips the others.

    All of them stay where one may be the place at which a type is described that another uses by its name.
    """
    if _uses_names(schema):
        return schema
    wanted = set(fields)
    return {**schema, "fields": [field for field in schema["fields"] if field["name"] in wanted]}


def field_of(column: str, fields: Iterable[str]) -> str | None:
    """The field that a column is read from or written to: of its very name, or of the one that differs in case only.

    >>> field_of("userid", ["userId", "n"]), field_of("n", ["N", "n"]), field_of("x", ["n"])
    ('userId', 'n', None)
    """
    names = list(fields)
    if column in names:
        return column
    close = [name for name in names if name.casefold() == column.casefold()]
    return close[0] if len(close) == 1 else None


def branches(type_: object) -> list[object]:
    """The types of a union other than null; a type that is no union is its own only one."""
    return [one for one in type_ if one != "null"] if isinstance(type_, list) else [type_]


def nullable(type_: object) -> bool:
    """Whether NULL is a value of the type."""
    return type_ == "null" or (isinstance(type_, list) and "null" in type_)


def columns_of(schema: Schema, columns: Sequence[str], what: str) -> dict[str, str | None]:
    """For each field of a schema the column that it is written from; None where it gets its default, or NULL."""
    names = [field["name"] for field in schema["fields"]]
    found: dict[str, str | None] = dict.fromkeys(names)
    for column in columns:
        field = field_of(column, names)
        if field is None:
            raise OptionError(
                "INVALID_OPTION",
                f'column "{column}" of {what} is not in its Avro schema',
                hint=f"the fields of {schema['name']}: {', '.join(names)}",
            )
        found[field] = column
    for field in schema["fields"]:
        if found[field["name"]] is None and not nullable(field["type"]) and "default" not in field:
            raise OptionError(
                "INVALID_OPTION",
                f'{what} has no column for the field "{field["name"]}" of its Avro schema',
                hint="add the column, or give the field a default",
            )
    return found


def _field(name: str, type_: SqlType | None, path: str, what: str) -> Schema:
    if _NAME.fullmatch(name) is None:
        raise OptionError(
            "INVALID_OPTION",
            f'column "{name}" of {what} has a name that Avro does not take',
            hint="letters, digits and _ only, with no digit first",
        )
    return {"name": name, "type": ["null", _type(type_, path, what)], "default": None}


def _type(type_: SqlType | None, path: str, what: str) -> object:
    name = "" if type_ is None else type_.name
    if type_ is None or name in ("VARIANT", "INTERVAL"):
        raise OptionError(
            "INVALID_OPTION",
            f'column "{path}" of {what} has a type that Avro does not have',
            hint="CAST it to STRING, or to another type",
        )
    if name == "DECIMAL":
        precision, scale = type_.parameters
        return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
    if name == "ARRAY":
        return {"type": "array", "items": ["null", _type(type_.elements[0], path, what)]}
    if name == "MAP":
        if type_.elements[0].name != "STRING":
            raise OptionError(
                "INVALID_OPTION", f'column "{path}" of {what} is a map whose keys are no texts, as Avro wants them'
            )
        return {"type": "map", "values": ["null", _type(type_.elements[1], path, what)]}
    if name == "STRUCT":
        inner = [_field(part.name, part.type, f"{path}_{part.name}", what) for part in type_.fields]
        return {"type": "record", "name": f"{path}_record", "fields": inner}
    return _TYPES[name]


def _check(type_: object, what: str, known: dict[str, object], inside: tuple[str, ...], depth: int) -> None:
    """Every type that is used is known, and none holds itself."""
    if depth > _DEEPEST:
        raise _wrong(what, f"is nested deeper than {_DEEPEST} types")
    if isinstance(type_, str):
        if type_ in PRIMITIVE:
            return
        if any(type_ in (name, name.rpartition(".")[2]) for name in inside):
            raise _wrong(what, f"is made of itself, in {type_}", "flatten it; a table has no such columns")
        if not any(type_ in (name, name.rpartition(".")[2]) for name in known):
            raise _wrong(what, f"uses {type_[:60]}, which it does not describe")
        return
    if isinstance(type_, list):
        for one in type_:
            _check(one, what, known, inside, depth + 1)
        return
    kind = type_.get("type") if isinstance(type_, dict) else None
    assert kind is None or isinstance(type_, dict)
    if kind in ("record", "enum", "fixed") and isinstance(type_, dict):
        _check_named(type_, what, known, inside, depth)
    elif kind in ("array", "map") and isinstance(type_, dict):
        _check(type_.get("items" if kind == "array" else "values"), what, known, inside, depth + 1)
    elif kind is not None:
        _check(kind, what, known, inside, depth + 1)
    else:
        raise _wrong(what, "has a part that is no type")


def _check_named(type_: Schema, what: str, known: dict[str, object], inside: tuple[str, ...], depth: int) -> None:
    name = type_.get("name")
    if not isinstance(name, str) or not all(_NAME.fullmatch(part) for part in name.split(".")):
        raise _wrong(what, "has a type without a name")
    full = _full_name(type_)
    known[full] = type_
    if type_["type"] != "record":
        return
    fields = type_.get("fields")
    if not isinstance(fields, list):
        raise _wrong(what, f"has no fields for {name}")
    for field in fields:
        label = field.get("name") if isinstance(field, dict) else None
        if not isinstance(label, str) or _NAME.fullmatch(label) is None:
            raise _wrong(what, f"has a field without a name in {name}")
        _check(field.get("type"), what, known, (*inside, full), depth + 1)


def _uses_names(type_: object) -> bool:
    if isinstance(type_, str):
        return type_ not in PRIMITIVE
    if isinstance(type_, list):
        return any(map(_uses_names, type_))
    assert isinstance(type_, dict)
    kind = type_["type"]
    if kind == "record":
        return any(_uses_names(field["type"]) for field in type_["fields"])
    if kind in ("array", "map"):
        return _uses_names(type_["items" if kind == "array" else "values"])
    return kind not in ("enum", "fixed") and _uses_names(kind)


def _full_name(type_: Schema) -> str:
    name, space = str(type_["name"]), type_.get("namespace")
    return f"{space}.{name}" if space and "." not in name else name


def _wrong(what: str, why: str, hint: str | None = None) -> OptionError:
    return OptionError("INVALID_OPTION", f"{what} {why}", hint=hint)
