"""JSON functions of other systems, written for Spark.

JSON is text here. A path must be a constant, so that it can be checked and written the way Spark reads it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from penstock.catalog.foreign_call import (
    Arguments,
    Builder,
    ForeignFunction,
    call,
    constant_number,
    constant_text,
    foreign,
    invalid,
    renamed,
    required_text,
    text,
)

WHOLE_ROW: Final = "whole_row"  # said in the meta of a struct that stands for the row of a relation
_MODE = r"(?i)\s*(?:lax|strict)\s+"
_QUOTED_KEY = r"\.?\[\s*(?:\"([^\"']*)\"|'([^\"']*)')\s*\]"
_PATH = r"\$(?:\.[^.\[\]'\"*\s]+|\['[^']*'\]|\[\d+\]|\[\*\])*"


def _path(function: str, node: exp.Expr, *, many: bool = False) -> exp.Literal:
    """A constant path as Spark reads it: without `lax`, keys in single quotes; `[*]` only where `many` is set."""
    written = required_text(function, "path", node).strip()
    plain = re.sub(_QUOTED_KEY, lambda found: f"['{found[1] or found[2] or ''}']", re.sub(_MODE, "", written, count=1))
    if not re.fullmatch(_PATH, plain) or ("*" in plain and not many):
        raise invalid(
            function, "the path cannot be used", node, "write $.field, $['a field'] and $[0], one value at a time"
        )
    return text(plain)


def _keys(function: str, nodes: Sequence[exp.Expr]) -> exp.Literal:
    """Keys and positions, each an argument of its own, as a path."""
    steps = []
    for node in nodes:
        key, position = constant_text(node), constant_number(node)
        if position is None and key is not None and key.isdigit():
            position = int(key)
        if position is not None and position >= 0:
            steps.append(f"[{position}]")
        elif key and "'" not in key:
            steps.append(f"['{key}']")
        else:
            raise invalid(
                function, "keys must be constants", node, "write a key in single quotes, a position as a number"
            )
    return text("$" + "".join(steps))


def _variant(json: exp.Expr, path: exp.Expr, as_type: str = "variant") -> exp.Expr:
    return call("try_variant_get", call("try_parse_json", json), path, text(as_type))


def _json_value(args: Arguments, _dialect: str | None) -> exp.Expr:
    return call("get_json_object", args[0], _path("json_value", args[1], many=True))


def _json_query(args: Arguments, _dialect: str | None) -> exp.Expr:
    """Objects and arrays only; NULL for a scalar."""
    found = call("get_json_object", args[0], _path("json_query", args[1], many=True))
    return call("if", call("rlike", found, text(r"^\s*[\[{]")), found.copy(), exp.null())


def _json_exists(args: Arguments, _dialect: str | None) -> exp.Expr:
    return call("isnotnull", _variant(args[0], _path("json_exists", args[1])))


def _by_keys(function: str) -> Builder:
    return lambda args, _dialect: call("get_json_object", args[0], _keys(function, args[1:]))


def _typed_by_keys(function: str, as_type: str) -> Builder:
    return lambda args, _dialect: _variant(args[0], _keys(function, args[1:]), as_type)


def _json_get_json(args: Arguments, _dialect: str | None) -> exp.Expr:
    return call("to_json", _variant(args[0], _keys("json_get_json", args[1:])))


def _json_contains(args: Arguments, _dialect: str | None) -> exp.Expr:
    return call("isnotnull", _variant(args[0], _keys("json_contains", args[1:])))


def _string_only(found: exp.Expr, as_text: exp.Expr) -> exp.Expr:
    """The value where it is a JSON string, NULL where it is anything else."""
    is_string = exp.EQ(this=call("schema_of_variant", found), expression=text("STRING"))
    return call("if", is_string, as_text, exp.null())


def _json_get_str(args: Arguments, _dialect: str | None) -> exp.Expr:
    path = _keys("json_get_str", args[1:])
    return _string_only(_variant(args[0].copy(), path.copy()), _variant(args[0], path, "string"))


def _extract_json_string(args: Arguments, _dialect: str | None) -> exp.Expr:
    path = _path("extract_json_string", args[1])
    return _string_only(_variant(args[0].copy(), path.copy()), _variant(args[0], path, "string"))


def _first_json_object(args: Arguments, _dialect: str | None) -> exp.Expr:
    return call("to_json", _variant(args[0], _path("get_first_json_object", args[1])))


def _extract_json(args: Arguments, _dialect: str | None) -> exp.Expr:
    """An array with the value as JSON text; empty where the path leads nowhere, NULL where the text is no JSON."""
    path = _path("extract_json", args[1])
    readable = call("isnotnull", call("try_parse_json", args[0].copy()))
    found = call("to_json", _variant(args[0], path))
    return call("if", readable, call("array_compact", call("array", found)), exp.null())


def _array_elements(args: Arguments, _dialect: str | None) -> exp.Expr:
    return call("explode", call("from_json", args[0], text("ARRAY<STRING>")))


def _object_keys(args: Arguments, _dialect: str | None) -> exp.Expr:
    return call("explode", call("json_object_keys", args[0]))


def _build_object(args: Arguments, _dialect: str | None) -> exp.Expr:
    if len(args) % 2:
        raise invalid("jsonb_build_object", "keys and values must come in pairs", args[-1], "give each key a value")
    for key in args[::2]:
        required_text("jsonb_build_object", "key", key)
    return call("to_json", call("named_struct", *args), keep_nulls())


def _row_to_json(args: Arguments, _dialect: str | None) -> exp.Expr:
    return call("to_json", args[0], keep_nulls())


def has_whole_row(args: Arguments) -> bool:
    """Whether a row of a relation is among what is written as JSON: PostgreSQL writes its NULLs too."""
    return any(part.meta.get(WHOLE_ROW) for arg in args for part in arg.find_all(exp.Struct))


def keep_nulls() -> exp.Expr:
    """Spark leaves NULL fields out of JSON unless told otherwise."""
    return call("map", text("ignoreNullFields"), text("false"))


def _json_string(args: Arguments, _dialect: str | None) -> exp.Expr:
    return call("to_json", exp.Cast(this=args[0], to=exp.DataType.build("VARIANT")))


JSON: dict[str, ForeignFunction] = {
    **foreign("2 STRING json_value", _json_value, "Flink", "get_json_object; an object comes back as its text"),
    **foreign("2 STRING json_query", _json_query, "Flink", "get_json_object, NULL for a scalar"),
    **foreign("2 BOOLEAN json_exists", _json_exists, "Flink", "whether the path leads to a value, be it null"),
    **foreign("1 STRING row_to_json", _row_to_json, "PostgreSQL", "to_json of a struct or a relation, with nulls"),
    **foreign("1 STRING json_string", _json_string, "Flink", "to_json of a scalar or an array"),
    **foreign(
        "2.. STRING jsonb_extract_path_text json_extract_path_text",
        _by_keys("jsonb_extract_path_text"),
        "PostgreSQL",
        "get_json_object",
    ),
    **foreign(
        "2.. STRING jsonb_extract_path json_extract_path",
        _by_keys("jsonb_extract_path"),
        "PostgreSQL",
        "get_json_object",
    ),
    **foreign("1 INT jsonb_array_length", renamed("json_array_length"), "PostgreSQL", "json_array_length"),
    **foreign(
        "2.. STRING jsonb_build_object json_build_object",
        _build_object,
        "PostgreSQL",
        "to_json(named_struct(…)), with nulls",
    ),
    **foreign(
        "1 STRING jsonb_array_elements jsonb_array_elements_text",
        _array_elements,
        "PostgreSQL",
        "one row an element",
        kind="generator",
    ),
    **foreign("1 STRING jsonb_object_keys", _object_keys, "PostgreSQL", "one row a key", kind="generator"),
    **foreign("2 ARRAY<STRING> extract_json", _extract_json, "Arroyo", "the value as JSON text, in an array"),
    **foreign("2 STRING extract_json_string", _extract_json_string, "Arroyo", "the value where it is a string"),
    **foreign("2 STRING get_first_json_object", _first_json_object, "Arroyo", "the value as JSON text"),
    **foreign("2.. STRING json_get json_as_text", _by_keys("json_get"), "Arroyo", "get_json_object"),
    **foreign("2.. STRING json_get_str", _json_get_str, "Arroyo", "the value where it is a string"),
    **foreign("2.. STRING json_get_json", _json_get_json, "Arroyo", "the value as JSON text"),
    **foreign("2.. BIGINT json_get_int", _typed_by_keys("json_get_int", "bigint"), "Arroyo", "the value as BIGINT"),
    **foreign("2.. DOUBLE json_get_float", _typed_by_keys("json_get_float", "double"), "Arroyo", "the value as DOUBLE"),
    **foreign(
        "2.. BOOLEAN json_get_bool", _typed_by_keys("json_get_bool", "boolean"), "Arroyo", "the value as BOOLEAN"
    ),
    **foreign("2.. BOOLEAN json_contains", _json_contains, "Arroyo", "whether the keys lead to a value"),
}
