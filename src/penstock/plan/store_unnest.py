"""Rows that are made of arrays, in the view store's text.

Spark makes them by `explode` and `inline`; `penstock.plan.unnest` writes those calls, and this module reads them again.
DuckDB's UNNEST of several arrays in one SELECT puts their elements side by side, and fills up with NULL, as Spark's
`arrays_zip` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.plan.store_terms import DiffersError, Term, kept, quoted
from penstock.plan.trees import whole_number
from penstock.types import INT, SqlType

if TYPE_CHECKING:
    from penstock.plan.store_expressions import StoreExpressions
    from penstock.types import SqlType

_ORDINAL: Final = "penstock_ordinal"
_ELEMENT: Final = "__element"
Columns = dict[str, "SqlType | None"]


def with_ordinal(call: exp.Anonymous) -> exp.Anonymous:
    """The call, marked as one whose last column is the place of each element."""
    call.meta[_ORDINAL] = True
    return call


def makes_rows_of(item: exp.Expr | None) -> exp.Anonymous | None:
    """The call by which a relation of a FROM clause makes rows of arrays; None where it is another."""
    found = item.this if isinstance(item, exp.Lateral | exp.Table) else None
    return found if isinstance(found, exp.Anonymous) and found.name.lower() in ("explode", "inline") else None


def arrays_of(call: exp.Anonymous) -> list[exp.Expr]:
    """The arrays, or the map, that such a call makes rows of."""
    inner = call.expressions[0]
    if call.name.lower() == "explode":
        return [inner]
    if not isinstance(inner, exp.Anonymous) or inner.name.lower() not in ("arrays_zip", "transform"):
        return [inner]
    if inner.name.lower() == "transform":
        return inner.expressions[:1] if call.meta.get(_ORDINAL) else [inner]
    arrays = inner.expressions[:-1] if call.meta.get(_ORDINAL) else inner.expressions
    return [_alone(array) for array in arrays]


def _alone(array: exp.Expr) -> exp.Expr:
    """Beside other arrays, one that is not there counts as empty: UNNEST takes it so by itself."""
    if isinstance(array, exp.Anonymous) and array.name.lower() == "coalesce":
        found: exp.Expr = array.expressions[0]
        return found
    return array


def rows_of(write: StoreExpressions, call: exp.Anonymous, names: list[str]) -> tuple[str, Columns]:
    """DuckDB's query that makes the rows, and their columns."""
    arrays = [_numbers(array) or write.term(array) for array in arrays_of(call)]
    values = names[:-1] if call.meta.get(_ORDINAL) else names
    place = names[-1] if call.meta.get(_ORDINAL) else None
    if any(array.known.name not in ("ARRAY", "MAP") for array in arrays):
        raise DiffersError
    if len(arrays) == 1:
        found = _of_one(arrays[0], values, place)
    else:
        found = [(f"unnest({array.sql})", kept(array.known.elements[0])) for array in arrays]
    if place is not None:
        longest = f"greatest({', '.join(f'coalesce(len({array.sql}), 0)' for array in arrays)})"
        found.append((f"unnest(CAST(range(1, {longest} + 1) AS INTEGER[]))", INT))
    if len(found) != len(names):
        raise DiffersError
    if len(arrays) == 1 and len(values) > 1 and arrays[0].known.name == "ARRAY":
        return _taken_apart(arrays[0], found, names)
    items = ", ".join(f"{sql} AS {quoted(name)}" for (sql, _), name in zip(found, names, strict=True))
    return f"SELECT {items}", {name: kind for (_, kind), name in zip(found, names, strict=True)}


def _numbers(array: exp.Expr) -> Term | None:
    """SEQUENCE of numbers that are written out."""
    if not isinstance(array, exp.Anonymous) or array.name.lower() != "sequence" or len(array.expressions) != 2:
        return None
    first, last = (whole_number(end) for end in array.expressions)
    if first is None or last is None or last < first:
        return None
    return Term(f"CAST(range({first}, {last + 1}) AS INTEGER[])", SqlType("ARRAY", elements=(INT,)))


def _of_one(array: Term, names: list[str], place: str | None) -> list[tuple[str, SqlType | None]]:
    elements = array.known.elements
    if array.known.name == "MAP":
        if place is not None:
            raise DiffersError
        return [
            (f"unnest(map_keys({array.sql}))", kept(elements[0])),
            (f"unnest(map_values({array.sql}))", kept(elements[1])),
        ]
    if len(names) == 1:
        return [(f"unnest({array.sql})", kept(elements[0]))]
    if elements[0].name != "STRUCT" or len(elements[0].fields) != len(names):
        raise DiffersError
    return [(f"{quoted(_ELEMENT)}.{quoted(part.name)}", kept(part.type)) for part in elements[0].fields]


def _taken_apart(array: Term, found: list[tuple[str, SqlType | None]], names: list[str]) -> tuple[str, Columns]:
    """The fields of each element as columns."""
    made = [sql if sql.startswith(quoted(_ELEMENT)) else quoted(names[-1]) for sql, _ in found]
    inner = f"SELECT unnest({array.sql}) AS {quoted(_ELEMENT)}"
    if not found[-1][0].startswith(quoted(_ELEMENT)):
        inner += f", {found[-1][0]} AS {quoted(names[-1])}"
    items = ", ".join(f"{sql} AS {quoted(name)}" for sql, name in zip(made, names, strict=True))
    return f"SELECT {items} FROM ({inner})", {name: kind for (_, kind), name in zip(found, names, strict=True)}
