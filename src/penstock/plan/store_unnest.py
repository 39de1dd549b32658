"""Rows that are made of arrays, in the view store's text.

Spark makes them by `explode`, `posexplode`, `inline` and `stack`; `penstock.plan.unnest` and
`penstock.plan.table_functions` write those calls, and this module reads them again.
DuckDB's UNNEST of several arrays in one SELECT puts their elements side by side, and fills up with NULL, as Spark's
`arrays_zip` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.plan.store_terms import DiffersError, Term, as_type, common_of, kept, quoted
from penstock.plan.trees import call as spark_call
from penstock.plan.trees import number, typed, whole_number
from penstock.types import INT, STRING, SqlType

if TYPE_CHECKING:
    from penstock.plan.store_expressions import StoreExpressions

_CALLS: Final = frozenset({"explode", "posexplode", "inline", "stack"})
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
    return found if isinstance(found, exp.Anonymous) and found.name.lower() in _CALLS else None


def settle_json(tree: exp.Expr) -> None:
    """Writes json_tuple, which the store does not have, as the one row of values that it makes."""
    for item in tree.find_all(exp.Lateral, exp.Table):
        made = item.this
        if isinstance(made, exp.Anonymous) and made.name.lower() == "json_tuple":
            text, *names = made.expressions
            if not all(isinstance(name, exp.Literal) and "'" not in name.name for name in names):
                continue
            values = [
                typed(spark_call("get_json_object", text.copy(), exp.Literal.string(f"$['{name.name}']")), STRING)
                for name in names
            ]
            item.set("this", spark_call("stack", number(1), *values))


def arrays_of(call: exp.Anonymous) -> list[exp.Expr]:
    """The arrays, or the map, that such a call makes rows of; of `stack` the values."""
    inner = call.expressions[0]
    if call.name.lower() == "stack":
        return list(call.expressions[1:])
    if call.name.lower() in ("explode", "posexplode"):
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
    if call.name.lower() == "stack":
        return _stacked(write, call, names)
    if call.name.lower() == "posexplode":
        return _with_places(write, call, names)
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


def _stacked(write: StoreExpressions, call: exp.Anonymous, names: list[str]) -> tuple[str, Columns]:
    """Values that are written out, row by row."""
    cells = [write.term(cell) for cell in call.expressions[1:]]
    found = [common_of(cells[place :: len(names)]) for place in range(len(names))]
    types = [kind for kind in found if kind is not None]
    rows = [cells[place : place + len(names)] for place in range(0, len(cells), len(names))]
    if len(types) != len(names) or any(len(row) != len(names) for row in rows):
        raise DiffersError
    lines = [", ".join(as_type(cell, kind).sql for cell, kind in zip(row, types, strict=True)) for row in rows]
    listed = ", ".join(map(quoted, names))
    values = ", ".join(f"({line})" for line in lines)
    return f"SELECT * FROM (VALUES {values}) AS {quoted(_ELEMENT)} ({listed})", dict(zip(names, types, strict=True))


def _with_places(write: StoreExpressions, call: exp.Anonymous, names: list[str]) -> tuple[str, Columns]:
    """Each element behind its place, counted from 0; of a map in the order that it has."""
    array = _numbers(call.expressions[0]) or write.term(call.expressions[0])
    if array.known.name not in ("ARRAY", "MAP"):
        raise DiffersError
    keys = array.sql if array.known.name == "ARRAY" else f"map_keys({array.sql})"
    places = f"unnest(CAST(range(0, coalesce(len({keys}), 0)) AS INTEGER[]))"
    elements = (
        [(f"unnest({array.sql})", kept(array.known.elements[0]))]
        if array.known.name == "ARRAY"
        else _of_one(array, names[1:], None)
    )
    found = [(places, INT), *elements]
    if len(found) != len(names):
        raise DiffersError
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
