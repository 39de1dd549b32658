"""The type of an expression, as far as the plan needs it.

Event times, keys, window arguments and sink columns need a type here; for everything else None ("Spark decides") is a
good answer, and Spark's coercion rules are not written a second time.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from penstock.plan.nested_types import written_type
from penstock.plan.trees import type_of, whole_number
from penstock.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, INTERVAL, STRING, TIMESTAMP, SqlType

_BOOLEAN_NODES = (
    exp.Predicate,
    exp.Connector,
    exp.Not,
    exp.Between,
    exp.In,
    exp.Exists,
    exp.Is,
)
_TRANSPARENT = (exp.Paren, exp.Neg, exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.Alias, exp.Distinct)
_FIXED: tuple[tuple[tuple[type[exp.Expr], ...], SqlType], ...] = (
    ((exp.Boolean, exp.All, exp.Any, *_BOOLEAN_NODES), BOOLEAN),
    ((exp.Interval,), INTERVAL),
    ((exp.DPipe, exp.Trim, exp.Substring, exp.Overlay), STRING),
    ((exp.CurrentTimestamp, exp.Localtimestamp, exp.AtTimeZone), TIMESTAMP),
    ((exp.CurrentDate,), DATE),
    ((exp.StrPosition,), INT),
)
_RANK = ["TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL", "FLOAT", "DOUBLE"]


def infer(node: exp.Expr) -> SqlType | None:
    """The type of a bound node from the types of its parts."""
    for kinds, sql_type in _FIXED:
        if isinstance(node, kinds):
            return sql_type
    if isinstance(node, exp.Literal):
        return _literal(node)
    if isinstance(node, _TRANSPARENT):
        return type_of(_first(node))
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Mod | exp.IntDiv):
        return _arithmetic(node)
    if isinstance(node, exp.Case):
        return common_type([branch.args["true"] for branch in node.args["ifs"]] + [node.args.get("default")])
    if isinstance(node, exp.If):
        return common_type([node.args.get("true"), node.args.get("false")])
    if isinstance(node, exp.Array):
        element = common_type(list(node.expressions))
        return SqlType("ARRAY", elements=(element,)) if element else None
    if isinstance(node, exp.Struct | exp.VarMap):
        return written_type(node)
    return None


def _first(node: exp.Expr) -> exp.Expr:
    inner = node.args.get("this") or (node.expressions[0] if node.expressions else None)
    return inner if isinstance(inner, exp.Expr) else exp.Null()


def _literal(node: exp.Literal) -> SqlType | None:
    if node.is_string:
        return STRING
    text = str(node.this)
    value = whole_number(node)
    if value is not None:
        return INT if value < 2**31 else BIGINT if value < 2**63 else None
    return DOUBLE if "e" in text.lower() else None


def common_type(nodes: Sequence[exp.Expr | None]) -> SqlType | None:
    """The type of several values in one column; None where it is not known."""
    types = {type_of(node) for node in nodes if node is not None and not isinstance(node, exp.Null)}
    if len(types) == 1:
        return types.pop()
    known = [found for found in types if found is not None]
    if len(known) == len(types) and known and all(found.name in _RANK and not found.parameters for found in known):
        return max(known, key=lambda found: _RANK.index(found.name))
    return None


def _arithmetic(node: exp.Expr) -> SqlType | None:
    left, right = type_of(node.args["this"]), type_of(node.args["expression"])
    if left is None or right is None:
        return None
    if {left.name, right.name} <= {"TIMESTAMP", "DATE"}:
        return INTERVAL
    if left.temporal and right.name == "INTERVAL":
        return TIMESTAMP if left.name == "TIMESTAMP" else None
    if left.name == "INTERVAL" and right.temporal:
        return TIMESTAMP if right.name == "TIMESTAMP" else None
    if "DOUBLE" in (left.name, right.name) and left.numeric and right.numeric:
        return DOUBLE
    if isinstance(node, exp.IntDiv):
        return BIGINT
    if isinstance(node, exp.Div):
        return DOUBLE if left.integral and right.integral else None
    if left.integral and right.integral and left.name in _RANK and right.name in _RANK:
        return max((left, right), key=lambda found: _RANK.index(found.name))
    return None


def assignable(source: SqlType | None, target: SqlType | None) -> bool:
    """Whether a value may go into a column; unknown types are Spark's to judge."""
    if source is None or target is None or source == target:
        return True
    if source.numeric and target.numeric:
        return True
    if source.name == target.name and source.name in ("ARRAY", "MAP", "STRUCT", "DECIMAL"):
        return _same_shape(source, target)
    if target.name == "STRING":
        return source.name not in ("ARRAY", "MAP", "STRUCT", "BINARY", "VARIANT")
    return source.temporal and target.temporal


def _same_shape(source: SqlType, target: SqlType) -> bool:
    if len(source.elements) != len(target.elements) or len(source.fields) != len(target.fields):
        return False
    inner = all(assignable(a, b) for a, b in zip(source.elements, target.elements, strict=True))
    return inner and all(assignable(a.type, b.type) for a, b in zip(source.fields, target.fields, strict=True))
