"""The order of values as Spark has it, in the view store's text.

    ORDER BY tags        ORDER BY list_transform(tags, lambda e0: {'n': e0 IS NOT NULL, 'v': e0})

Both engines order lists and structs by their elements and fields, one after the other, and a list before a longer one
that begins with it. But inside of them a NULL is the smallest value in Spark, and the largest in DuckDB. So each
element and field goes behind whether it is there, and what is made so is what the store orders by.
"""

from __future__ import annotations

import re
from typing import Final

from penstock.plan.store_terms import HANDED_ON, DiffersError, Term, quoted
from penstock.types import SqlType

_HINT: Final = "order by numbers, times or texts that are made of it"
_WRITTEN_OUT: Final = re.compile(
    r"\(*(?:'(?:[^']|'')*'|[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?|TRUE|FALSE|NULL)\)*", re.IGNORECASE
)


def placed(term: Term) -> Term:
    """The term, or what the store orders its values by as Spark orders them. The type stays that of the values."""
    if not _has_order(term.known):
        none = any(name in str(term.known) for name in ("MAP<", "VARIANT"))
        why = f"values of type {term.known} have no order" if none else f"only Spark knows the order of {term.known}"
        raise DiffersError(why, _HINT)
    return Term(_place(term.sql, term.known, 0), term.type, term.constant)


def orders_nothing(term: Term) -> bool:
    """Whether a value is written out, and so the same in all rows: DuckDB refuses texts and fractions as an order, and
    takes a whole number for the place of a column.

    >>> orders_nothing(Term("'it''s'", None)), orders_nothing(Term('"k"', None))
    (True, False)
    """
    return _WRITTEN_OUT.fullmatch(term.sql) is not None


def is_nested(kind: SqlType) -> bool:
    """Whether values of a type are made of others, and are ordered by something else than themselves."""
    return kind.name in ("ARRAY", "STRUCT")


def _has_order(kind: SqlType) -> bool:
    inner = (*kind.elements, *(part.type for part in kind.fields))
    if kind.name in HANDED_ON and not (is_nested(kind) and inner):
        return False
    return all(map(_has_order, inner))


def _place(value: str, kind: SqlType, depth: int) -> str:
    if kind.name == "ARRAY":
        entry = f"e{depth}"
        return f"list_transform({value}, lambda {entry}: {_known(entry, kind.elements[0], depth + 1)})"
    if kind.name == "STRUCT":
        parts = (
            f"'f{place}': {_known(f'({value}).{quoted(part.name)}', part.type, depth)}"
            for place, part in enumerate(kind.fields)
        )
        return f"(CASE WHEN {value} IS NOT NULL THEN {{{', '.join(parts)}}} END)"
    return value


def _known(value: str, kind: SqlType, depth: int) -> str:
    return f"{{'n': {value} IS NOT NULL, 'v': {_place(value, kind, depth)}}}"
