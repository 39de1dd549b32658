"""The types that Spark gives to computations with decimals, which the plan leaves to Spark elsewhere.

A result of more than 38 digits keeps its whole part and at least six digits behind the point, as
spark.sql.decimalOperations.allowPrecisionLoss says. Held against Spark in tests/spark.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from penstock.plan.trees import type_of, whole_number
from penstock.types import DOUBLE, SqlType

_MAX_DIGITS: Final = 38
_LEAST_SCALE: Final = 6
_DIGITS: Final = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 20, "UTINYINT": 5, "USMALLINT": 10, "UINT": 20,
                  "UBIGINT": 20}  # fmt: skip
_ROUNDED: Final = frozenset({"round", "bround"})

Shape = tuple[int, int]  # digits in all, and behind the point


def spark_type(node: exp.Expr) -> SqlType | None:
    """The type that a bound node is marked with, or that Spark gives to a computation with decimals; None: neither."""
    known = type_of(node)
    if known is not None:
        return known
    if isinstance(node, exp.Paren | exp.Neg):
        return spark_type(node.this)
    if isinstance(node, exp.Literal):
        return _decimal(_written(str(node.this))) if not node.is_string else None
    if isinstance(node, exp.Anonymous) and node.name.lower() in _ROUNDED:
        return _decimal(_rounded(node))
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Mod):
        return _computed(node)
    return None


def _computed(node: exp.Binary) -> SqlType | None:
    types = [spark_type(node.this), spark_type(node.expression)]
    if any(each is not None and each.name in ("DOUBLE", "FLOAT") for each in types):
        numbers = all(each is not None and each.numeric for each in types)
        return DOUBLE if numbers else None
    left, right = _shape(node.this), _shape(node.expression)
    if left is None or right is None or not any(each is not None and each.name == "DECIMAL" for each in types):
        return None
    return _decimal(_of_both(node, left, right))


def _of_both(node: exp.Binary, left: Shape, right: Shape) -> Shape:
    (p1, s1), (p2, s2) = left, right
    if isinstance(node, exp.Mul):
        return _fitted(p1 + p2 + 1, s1 + s2)
    if isinstance(node, exp.Div):
        scale = max(_LEAST_SCALE, s1 + p2 + 1)
        return _fitted(p1 - s1 + s2 + scale, scale)
    scale = max(s1, s2)
    if isinstance(node, exp.Mod):
        return _fitted(min(p1 - s1, p2 - s2) + scale, scale)
    return _fitted(max(p1 - s1, p2 - s2) + scale + 1, scale)


def _fitted(digits: int, scale: int) -> Shape:
    if digits <= _MAX_DIGITS:
        return (digits, scale)
    return (_MAX_DIGITS, max(_MAX_DIGITS - (digits - scale), min(scale, _LEAST_SCALE)))


def _rounded(node: exp.Anonymous) -> Shape | None:
    """One digit more in front of the point, as 9.9 is rounded to 10; places must be written out."""
    source = spark_type(node.expressions[0])
    shape = _shape(node.expressions[0]) if source is not None and source.name == "DECIMAL" else None
    places = _places(node.expressions[1]) if len(node.expressions) == 2 else 0
    if shape is None or places is None:
        return None
    whole = shape[0] - shape[1] + 1
    if places < 0:
        return (min(_MAX_DIGITS, max(whole, 1 - places)), 0)
    scale = min(shape[1], places)
    return (min(_MAX_DIGITS, whole + scale), scale)


def _places(node: exp.Expr) -> int | None:
    if isinstance(node, exp.Neg):
        found = whole_number(node.this)
        return None if found is None else -found
    return whole_number(node)


def _shape(node: exp.Expr) -> Shape | None:
    """Digits of a number among decimals; a whole number that is written out has only those it needs."""
    inner = node.this if isinstance(node, exp.Neg | exp.Paren) else node
    if whole_number(inner) is not None:
        return (len(str(whole_number(inner))), 0)
    found = spark_type(node)
    if found is None:
        return None
    if found.name == "DECIMAL":
        return (found.parameters[0], found.parameters[1])
    return (_DIGITS[found.name], 0) if found.name in _DIGITS else None


def _written(text: str) -> Shape | None:
    whole, dot, fraction = text.partition(".")
    if not dot or not (whole + fraction).isdigit():
        return None
    digits = len(whole.lstrip("0")) + len(fraction)
    shape = (max(digits, 1), len(fraction))
    return shape if shape[0] <= _MAX_DIGITS else None


def _decimal(shape: Shape | None) -> SqlType | None:
    return None if shape is None else SqlType("DECIMAL", shape)
