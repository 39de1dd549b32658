"""Values in the view store's text: their types, and which of them may stand together.

The store is DuckDB. A term knows the type that Spark would give it, and its text has exactly that type in DuckDB, so
that neither engine is left to find a common type by rules of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.frozen import frozen
from penstock.types import DOUBLE, SqlType

if TYPE_CHECKING:
    from sqlglot import exp

_NAMES: Final = {
    "STRING": "VARCHAR", "BOOLEAN": "BOOLEAN", "TINYINT": "TINYINT", "SMALLINT": "SMALLINT", "INT": "INTEGER",
    "BIGINT": "BIGINT", "UTINYINT": "SMALLINT", "USMALLINT": "INTEGER", "UINT": "BIGINT", "UBIGINT": "DECIMAL(20, 0)",
    "FLOAT": "FLOAT", "DOUBLE": "DOUBLE", "BINARY": "BLOB", "DATE": "DATE", "TIMESTAMP": "TIMESTAMP",
}  # fmt: skip
_KEPT: Final = {"UTINYINT": "SMALLINT", "USMALLINT": "INT", "UINT": "BIGINT"}
_WHOLE: Final = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_DIGITS: Final = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 20}
MAX_DIGITS: Final = 38
_EXACT_DIGITS: Final = 15  # of a DOUBLE
UNKNOWN: Final = SqlType("UNKNOWN")  # of a view's column that Spark typed: it can be handed on, not computed with
_COMPARE: Final = "compare texts or entries that are made of it, such as TO_JSON(…) or MAP_ENTRIES(…)"
HANDED_ON: Final = frozenset({"UNKNOWN", "INTERVAL", "STRUCT", "ARRAY", "MAP", "VARIANT"})


class DiffersError(Exception):
    """The expression might mean something else in the store than in Spark; `node` is the innermost that does.

    `why` says more than that only Spark knows it, and `hint` what to write instead.
    """

    node: exp.Expr | None = None

    def __init__(self, why: str | None = None, hint: str | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.hint = hint


@frozen
class Term:
    """A piece of DuckDB text and its type; None is the type of NULL. `constant`: a number that was written out."""

    sql: str
    type: SqlType | None
    constant: str | None = None

    @property
    def known(self) -> SqlType:
        if self.type is None:
            raise DiffersError
        return self.type


def kept(sql_type: SqlType | None) -> SqlType | None:
    """The type in which both engines keep a value: unsigned integers stand in the next wider type."""
    if sql_type is None:
        return None
    if sql_type.name == "UBIGINT":
        return SqlType("DECIMAL", (20, 0))
    return SqlType(_KEPT[sql_type.name]) if sql_type.name in _KEPT else sql_type


def store_type(sql_type: SqlType) -> str:
    """A type in DuckDB's words."""
    if sql_type.name == "DECIMAL":
        return f"DECIMAL({sql_type.parameters[0]}, {sql_type.parameters[1]})"
    if sql_type.name == "ARRAY":
        return f"{store_type(sql_type.elements[0])}[]"
    if sql_type.name == "MAP":
        return f"MAP({store_type(sql_type.elements[0])}, {store_type(sql_type.elements[1])})"
    if sql_type.name == "STRUCT":
        return f"STRUCT({', '.join(f'{quoted(part.name)} {store_type(part.type)}' for part in sql_type.fields)})"
    if sql_type.name not in _NAMES:
        raise DiffersError
    return _NAMES[sql_type.name]


def told_apart_alike(term: Term) -> Term:
    """The term, if both engines tell its values apart alike; structs and lists of such values, too, which they order
    differently."""
    if not _told_apart(term.known):
        raise DiffersError(f"nothing says which values of type {term.known} are equal", _COMPARE)
    return term


def _told_apart(kind: SqlType) -> bool:
    inner = (*kind.elements, *(part.type for part in kind.fields))
    if kind.name in HANDED_ON and (kind.name not in ("ARRAY", "STRUCT") or not inner):
        return False
    return all(map(_told_apart, inner))


def in_some_order(term: Term) -> Term:
    """The term, if the store has an order of its own for all values of its type, lists, structs and maps included.
    Spark may have another one, or none: it serves where any order will do that is always the same."""
    if not _in_some_order(term.known):
        raise DiffersError
    return term


def _in_some_order(kind: SqlType) -> bool:
    inner = (*kind.elements, *(part.type for part in kind.fields))
    return kind.name != "VARIANT" and all(map(_in_some_order, inner))


def quoted(name: str) -> str:
    """A name in DuckDB's text."""
    return '"' + name.replace('"', '""') + '"'


def text_literal(value: str) -> str:
    """A string in DuckDB's text."""
    if "\0" in value:
        raise DiffersError
    return "'" + value.replace("'", "''") + "'"


def as_type(term: Term, target: SqlType) -> Term:
    """The term in a type that holds its every value."""
    if term.type == target:
        return term
    if term.constant is not None:
        value = f"'{term.constant}'" if target.name in ("DOUBLE", "FLOAT", "DECIMAL") else term.constant
        return Term(f"CAST({value} AS {store_type(target)})", target, term.constant)
    return Term(f"CAST({term.sql} AS {store_type(target)})", target)


def is_whole(sql_type: SqlType | None) -> bool:
    """Whether a type holds whole numbers only."""
    return sql_type is not None and sql_type.name in _WHOLE


def wider(one: SqlType, two: SqlType) -> SqlType:
    """The wider of two whole-number types."""
    return one if _WHOLE.index(one.name) >= _WHOLE.index(two.name) else two


def of_both(one: SqlType | None, two: SqlType | None) -> SqlType | None:
    """The type of a column of a set operation, in which Spark has every value of both; None where only Spark finds it.

    >>> str(of_both(SqlType("DECIMAL", (10, 2)), SqlType("BIGINT")))
    'DECIMAL(22, 2)'
    """
    if one == two:
        return one
    if one is None or two is None:
        return None
    if is_whole(one) and is_whole(two):
        return wider(one, two)
    names = {one.name, two.name}
    if names == {"DATE", "TIMESTAMP"}:
        return SqlType("TIMESTAMP")
    if not all(is_whole(kind) or kind.name in ("FLOAT", "DOUBLE", "DECIMAL") for kind in (one, two)):
        return None
    if names & {"FLOAT", "DOUBLE"}:
        # Both engines find the nearest DOUBLE of a decimal, if it is not too long to be divided.
        exact = all(kind.name != "DECIMAL" or kind.parameters[0] <= _EXACT_DIGITS for kind in (one, two))
        return DOUBLE if exact else None
    (p1, s1), (p2, s2) = (kind.parameters if kind.name == "DECIMAL" else (_DIGITS[kind.name], 0) for kind in (one, two))
    scale = max(s1, s2)
    digits = max(p1 - s1, p2 - s2) + scale
    return SqlType("DECIMAL", (digits, scale)) if digits <= MAX_DIGITS else None


def decimal_of(term: Term) -> tuple[int, int]:
    """Precision and scale of a number among decimals; one that is written out has only the digits it needs."""
    known = term.known
    if known.name == "DECIMAL":
        return (known.parameters[0], known.parameters[1])
    if known.name not in _DIGITS:
        raise DiffersError
    if term.constant is not None:
        return (len(term.constant.lstrip("-")), 0)
    return (_DIGITS[known.name], 0)


def common(one: Term, two: Term) -> SqlType:
    """The type in which Spark compares two values or puts them into one column."""
    if one.type is None or two.type is None:
        return one.type or two.known
    left, right = one.type, two.type
    if UNKNOWN in (left, right):
        raise DiffersError
    if left == right:
        return left
    if is_whole(left) and is_whole(right):
        return wider(left, right)
    names = {left.name, right.name}
    if names == {"DATE", "TIMESTAMP"}:
        return SqlType("TIMESTAMP")
    if "DOUBLE" in names:
        other = two if left.name == "DOUBLE" else one
        if is_whole(other.type) or other.known.name == "FLOAT" or other.constant is not None:
            return DOUBLE
        raise DiffersError
    if "FLOAT" in names:
        other = two if left.name == "FLOAT" else one
        if other.constant is not None and other.known.name == "DECIMAL":
            return DOUBLE
        raise DiffersError
    if "DECIMAL" in names:
        (p1, s1), (p2, s2) = decimal_of(one), decimal_of(two)
        scale = max(s1, s2)
        digits = max(p1 - s1, p2 - s2) + scale
        if digits <= MAX_DIGITS:
            return SqlType("DECIMAL", (digits, scale))
    raise DiffersError


def common_of(terms: list[Term]) -> SqlType | None:
    """The type of several values in one column; None where all are NULL."""
    found = Term("NULL", None)
    for term in terms:
        if term.type is not None:
            joined = common(found, term)
            constant = term.constant if found.type is None else None
            found = Term("", joined, constant)
    return found.type
