"""The types of structs, maps, lists and what functions with lambdas make of them, where Spark's rules leave no doubt.

A value whose type is known before it runs can be computed above joins and other answers of the view store, which makes
a column for it. `None` stands for a type that only Spark can tell, as everywhere in the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from sqlglot import exp
from sqlglot.errors import SqlglotError

from penstock.plan.trees import type_of
from penstock.types import DATE, INT, STRING, TIMESTAMP, Field, SqlType

Arguments = Sequence[exp.Expr]

_SCHEMA_TYPES: Final = {
    exp.DType.TEXT: STRING,
    exp.DType.VARCHAR: STRING,
    exp.DType.CHAR: STRING,
    exp.DType.BOOLEAN: SqlType("BOOLEAN"),
    exp.DType.TINYINT: SqlType("TINYINT"),
    exp.DType.SMALLINT: SqlType("SMALLINT"),
    exp.DType.INT: INT,
    exp.DType.BIGINT: SqlType("BIGINT"),
    exp.DType.FLOAT: SqlType("FLOAT"),
    exp.DType.DOUBLE: SqlType("DOUBLE"),
    exp.DType.BINARY: SqlType("BINARY"),
    exp.DType.DATE: DATE,
    exp.DType.TIMESTAMP: TIMESTAMP,
    exp.DType.TIMESTAMPTZ: TIMESTAMP,
    exp.DType.TIMESTAMPLTZ: TIMESTAMP,
}
_SPARK_DECIMAL: Final = (10, 0)  # of a schema that says DECIMAL alone


def list_of(element: SqlType | None) -> SqlType | None:
    """The type of a list."""
    return None if element is None else SqlType("ARRAY", elements=(element,))


def map_of(key: SqlType | None, value: SqlType | None) -> SqlType | None:
    """The type of a map."""
    return None if key is None or value is None else SqlType("MAP", elements=(key, value))


def struct_of(fields: Sequence[tuple[str, SqlType | None]]) -> SqlType | None:
    """The type of a struct; None also where two fields have one name, which the view store cannot keep."""
    known = [Field(name, kind) for name, kind in fields if kind is not None]
    if not known or len(known) != len(fields) or len({field.name.casefold() for field in known}) != len(known):
        return None
    return SqlType("STRUCT", fields=tuple(known))


def written_type(node: exp.Expr) -> SqlType | None:
    """The type of `STRUCT(x AS a, …)` and `MAP[k, v, …]`."""
    if isinstance(node, exp.Struct):
        named = [part for part in node.expressions if isinstance(part, exp.PropertyEQ)]
        fields = [(part.this.name, type_of(part.expression)) for part in named]
        return struct_of(fields) if len(named) == len(node.expressions) else None
    keys, values = (type_of(node.args[part]) for part in ("keys", "values"))
    return map_of(_element(keys), _element(values))


def named_fields(bound: Sequence[exp.Expr]) -> list[exp.Expr]:
    """The parts of a struct, each with the name that Spark gives it: that of a column, or its place."""
    made: list[exp.Expr] = []
    for place, part in enumerate(bound, start=1):
        if isinstance(part, exp.PropertyEQ) or (isinstance(part, exp.Dot) and _root(part) is None):
            made.append(part)
            continue
        name = part.name if isinstance(part, exp.Column | exp.Dot | exp.Identifier) else f"col{place}"
        made.append(exp.PropertyEQ(this=exp.Identifier(this=name, quoted=True), expression=part))
    return made


def _root(node: exp.Expr) -> exp.Expr | None:
    """The column that a path of fields begins at."""
    while isinstance(node, exp.Dot):
        node = node.this
    return node if isinstance(node, exp.Column | exp.Identifier) else None


def lambda_parameters(name: str, before: Arguments, place: int) -> Sequence[SqlType | None]:
    """The types of the parameters of the lambda at a place of a call, by the arguments before it."""
    types = [type_of(argument) for argument in before]
    if not types:
        return ()
    if name in ("aggregate", "reduce") and len(types) > 1:
        return (types[1], _element(types[0])) if place == 2 else (types[1],)
    if name in ("transform", "filter"):
        return (_element(types[0]), INT)
    if name in ("exists", "forall", "any_match", "all_match"):
        return (_element(types[0]),)
    if name == "array_sort":
        return (_element(types[0]), _element(types[0]))
    if name in ("map_filter", "transform_keys", "transform_values"):
        return _entry(types[0])
    if name == "zip_with" and len(types) > 1:
        return (_element(types[0]), _element(types[1]))
    if name == "map_zip_with" and len(types) > 1:
        (key, one), (other_key, two) = _entry(types[0]), _entry(types[1])
        return (key if key == other_key else None, one, two)
    return ()


def nested_call_type(name: str, bound: Arguments) -> SqlType | None:
    """The type of a call whose rule needs more than the types of its arguments: names, lambdas, a schema."""
    rule = _CALLS.get(name)
    return rule(bound) if rule is not None and bound else None


def _named_struct(bound: Arguments) -> SqlType | None:
    names, values = bound[0::2], bound[1::2]
    if len(names) != len(values) or not all(isinstance(each, exp.Literal) and each.is_string for each in names):
        return None
    return struct_of([(str(each.this), type_of(value)) for each, value in zip(names, values, strict=True)])


def _transform(bound: Arguments) -> SqlType | None:
    return list_of(_result(bound[-1]))


def _transform_keys(bound: Arguments) -> SqlType | None:
    return map_of(_result(bound[-1]), _entry(type_of(bound[0]))[1])


def _transform_values(bound: Arguments) -> SqlType | None:
    return map_of(_entry(type_of(bound[0]))[0], _result(bound[-1]))


def _map_zip_with(bound: Arguments) -> SqlType | None:
    keys = [_entry(type_of(each))[0] for each in bound[:2]]
    return map_of(keys[0] if keys[0] == keys[-1] else None, _result(bound[-1]))


def _aggregate(bound: Arguments) -> SqlType | None:
    """What is aggregated keeps the type that it begins with; a last step may make another of it."""
    return _result(bound[3]) if len(bound) > 3 else type_of(bound[1])


def _from_text(bound: Arguments) -> SqlType | None:
    schema = bound[1]
    return schema_type(str(schema.this)) if isinstance(schema, exp.Literal) and schema.is_string else None


def _result(node: exp.Expr) -> SqlType | None:
    return type_of(node.this) if isinstance(node, exp.Lambda) else None


def _element(kind: SqlType | None) -> SqlType | None:
    return kind.elements[0] if kind is not None and kind.name == "ARRAY" else None


def _entry(kind: SqlType | None) -> tuple[SqlType | None, SqlType | None]:
    return (kind.elements[0], kind.elements[1]) if kind is not None and kind.name == "MAP" else (None, None)


_CALLS: Final[dict[str, Callable[[Arguments], SqlType | None]]] = {
    "named_struct": _named_struct,
    "transform": _transform,
    "zip_with": _transform,
    "transform_keys": _transform_keys,
    "transform_values": _transform_values,
    "map_zip_with": _map_zip_with,
    "aggregate": _aggregate,
    "reduce": _aggregate,
    "from_json": _from_text,
    "from_csv": _from_text,
}


def schema_type(text: str) -> SqlType | None:
    """The type that a schema of FROM_JSON or FROM_CSV stands for.

    >>> str(schema_type("a INT, b ARRAY<STRUCT<c: DECIMAL(5, 1)>>")), str(schema_type("MAP<STRING, BIGINT>"))
    ('STRUCT<a INT, b ARRAY<STRUCT<c DECIMAL(5, 1)>>>', 'MAP<STRING, BIGINT>')
    >>> schema_type("a VOID") is None
    True
    """
    for written in (text, f"STRUCT<{text}>"):
        try:
            built = exp.DataType.build(written, dialect="spark")
        except (SqlglotError, ValueError):
            continue
        found = _schema_type(built)
        if found is not None:
            return found
    return None


def _schema_type(node: exp.Expr) -> SqlType | None:
    if not isinstance(node, exp.DataType):
        return None
    inner = list(node.expressions)
    if node.this is exp.DType.STRUCT:
        named = [(part.name, _schema_type(part.args["kind"])) for part in inner if isinstance(part, exp.ColumnDef)]
        return struct_of(named) if len(named) == len(inner) else None
    if node.this is exp.DType.ARRAY:
        return list_of(_schema_type(inner[0])) if len(inner) == 1 else None
    if node.this is exp.DType.MAP:
        return map_of(_schema_type(inner[0]), _schema_type(inner[1])) if len(inner) == 2 else None
    if node.this is exp.DType.DECIMAL:
        numbers = [int(part.name) for part in inner]
        precision, scale = (*numbers, *_SPARK_DECIMAL[len(numbers) :])
        return SqlType("DECIMAL", (precision, scale))
    return _SCHEMA_TYPES.get(node.this)
