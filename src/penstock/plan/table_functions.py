"""Functions that make rows: explode, posexplode, inline, stack, json_tuple and what other systems call them.

Each becomes a call of Spark's with a name and, where it is known, a type for every column; `penstock.plan.store_unnest`
reads these calls again. The forms with _outer are outer joins with the plain ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.catalog.functions import find_function
from penstock.errors import NotYetError, ResolutionError
from penstock.plan.infer import common_type
from penstock.plan.relation import Field
from penstock.plan.trees import call, identifier, number, type_of, typed, whole_number
from penstock.sql.spans import span_of
from penstock.types import BIGINT, INT, STRING, SqlType

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.plan.expressions import ExpressionBinder

_OUTER: Final = "_outer"
Column = tuple[str, "SqlType | None"]


@dataclass(slots=True)
class Generator:
    """A call that makes rows, and the columns they have; `outer`: a row for which it makes none stays, with NULLs."""

    call: exp.Expr
    table: str
    fields: list[Field]
    outer: bool = False

    def alias(self) -> exp.TableAlias:
        columns = [identifier(entry.name) for entry in self.fields]
        return exp.TableAlias(this=identifier(self.table), columns=columns)


def is_table_function(node: exp.Expr) -> bool:
    """Whether a call, not bound so far, makes rows."""
    info = find_function(node.name) if isinstance(node, exp.Anonymous) else None
    return info is not None and info.kind == "generator"


def table_function(item: exp.Expr, binder: ExpressionBinder) -> Generator:
    """LATERAL VIEW explode(…) t AS a, b; LATERAL TABLE(f(…)) AS t(a, b); f(…) AS t(a, b)."""
    function = item.this
    if not is_table_function(function):
        name = function.name if isinstance(function, exp.Anonymous) else "this"
        raise NotYetError(
            "CLAUSE_NOT_YET",
            f"{name} as a table function is not there yet",
            hint="use UNNEST of an array, or a function that returns an array",
            span=span_of(item),
        )
    bound = binder.bind(function)
    if not isinstance(bound, exp.Anonymous):
        return _generator(item, bound, None)
    name = bound.name.lower()
    outer = name.endswith(_OUTER)
    made = call(name.removesuffix(_OUTER), *bound.expressions)
    if function.name.lower() == "generate_series":
        _with_type_of_ends(made, [binder.bind(each) for each in function.expressions])
    if function.name.lower() == "range":
        typed(made.expressions[0], SqlType("ARRAY", elements=(BIGINT,)))
    if made.name == "stack":
        made = _stack(made, item)
    columns = _COLUMNS[made.name](made) if made.name in _COLUMNS else None
    if columns is not None and len(columns) == 1 and function.name.lower() in _NAMED_LIKE_TABLE:
        columns = [(_table_name(item) or function.name.lower(), columns[0][1])]
    if function.name.lower() == "range":
        columns = [("id", BIGINT)]  # as Spark calls it
    generator = _generator(item, made, columns)
    generator.outer = outer
    return generator


def rows_of_values(item: exp.Expr, values: exp.Values, binder: ExpressionBinder) -> Generator:
    """LATERAL (VALUES (a.x), (a.y)) AS t(x): rows that are written with values of the row in front."""
    rows = [
        [binder.bind(cell) for cell in (row.expressions if isinstance(row, exp.Tuple) else [row])]
        for row in values.expressions
    ]
    if len({len(row) for row in rows}) != 1:
        raise ResolutionError("INVALID_ARGUMENT", "the rows of VALUES are not of one length", span=span_of(item))
    made = _stack(call("stack", number(len(rows)), *(cell for row in rows for cell in row)), item)
    columns = [(f"col{place}", kind) for place, (_, kind) in enumerate(_of_stack(made), 1)]
    return _generator(item, made, columns)


def table_of(alias: exp.Expr | None, otherwise: str) -> str:
    """The name of a relation that is made of rows in front."""
    return alias.name if isinstance(alias, exp.TableAlias) and alias.name else otherwise


def names_of(alias: exp.Expr | None) -> list[str]:
    """The names that an alias has for columns."""
    columns = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
    return [name.name for name in columns or []]


def _table_name(item: exp.Expr) -> str | None:
    return table_of(item.args.get("alias"), "") or None


def _generator(item: exp.Expr, made: exp.Expr, columns: list[Column] | None) -> Generator:
    alias = item.args.get("alias")
    table, names = table_of(alias, "lateral"), names_of(alias)
    if columns is None:  # how many there are only Spark knows
        columns = [(name, None) for name in names or ["col"]]
    if names and len(names) != len(columns):
        raise ResolutionError(
            "COLUMN_COUNT_MISMATCH",
            f"{item.this.name or 'VALUES'} makes {len(columns)} columns, and {len(names)} names are given",
            hint=f"write AS {table}({', '.join(name for name, _ in columns)})",
            span=span_of(item),
        )
    fields = [
        Field(name, kind, qualifier=table)
        for name, (_, kind) in zip(names or [n for n, _ in columns], columns, strict=True)
    ]
    return Generator(made, table, fields)


def _with_type_of_ends(made: exp.Anonymous, ends: list[exp.Expr]) -> None:
    """A sequence of whole numbers is one of the wider of them, and one of times is of the time it begins with."""
    first = type_of(ends[0])
    kind = common_type(ends) if first is not None and first.integral else first
    if kind is not None:
        typed(made.expressions[0], SqlType("ARRAY", elements=(kind,)))


def _stack(made: exp.Anonymous, item: exp.Expr) -> exp.Anonymous:
    """All cells of a column in one type: Spark's function takes no others."""
    count = whole_number(made.expressions[0])
    if count is None or count < 1:
        raise ResolutionError(
            "INVALID_ARGUMENT", "the first argument of stack is the number of rows, a constant", span=span_of(item)
        )
    cells = made.expressions[1:]
    width = -(-len(cells) // count)
    cells += [exp.Null() for _ in range(width * count - len(cells))]
    for place in range(width):
        column = cells[place::width]
        kind = common_type(column)
        for row, cell in enumerate(column):
            if kind is not None and type_of(cell) != kind:
                cast = exp.Cast(this=cell, to=exp.DataType.build(kind.spark(), dialect="spark"))
                cells[row * width + place] = typed(cast, kind)
    return call("stack", number(count), *cells)


def _of_elements(made: exp.Anonymous) -> list[Column] | None:
    container = type_of(made.expressions[0])
    if container is None:
        return None
    if container.name == "MAP":
        return [("key", container.elements[0]), ("value", container.elements[1])]
    return [("col", container.elements[0])] if container.name == "ARRAY" else None


def _of_places(made: exp.Anonymous) -> list[Column] | None:
    elements = _of_elements(made)
    return None if elements is None else [("pos", INT), *elements]


def _of_structs(made: exp.Anonymous) -> list[Column] | None:
    container = type_of(made.expressions[0])
    if container is None or container.name != "ARRAY" or container.elements[0].name != "STRUCT":
        return None
    return [(part.name, part.type) for part in container.elements[0].fields]


def _of_stack(made: exp.Anonymous) -> list[Column]:
    cells = made.expressions[1:]
    width = len(cells) // (whole_number(made.expressions[0]) or 1)
    return [(f"col{place}", common_type(cells[place::width])) for place in range(width)]


def _of_json(made: exp.Anonymous) -> list[Column]:
    return [(f"c{place}", STRING) for place in range(len(made.expressions) - 1)]


_NAMED_LIKE_TABLE: Final = frozenset({"generate_series"})  # as in PostgreSQL
_COLUMNS: Final[dict[str, Callable[[exp.Anonymous], list[Column] | None]]] = {
    "explode": _of_elements,
    "posexplode": _of_places,
    "inline": _of_structs,
    "stack": _of_stack,
    "json_tuple": _of_json,
}
