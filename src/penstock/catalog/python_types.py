"""The SQL types of Python's annotations, for functions that say no others."""

from __future__ import annotations

import datetime as dt
import decimal
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any, Final, Literal

from penstock.frozen import frozen
from penstock.types import BIGINT, BINARY, BOOLEAN, DATE, DECIMAL, DOUBLE, STRING, TIMESTAMP, SqlType

_PLAIN: Final[dict[type, SqlType]] = {
    bool: BOOLEAN,
    int: BIGINT,
    float: DOUBLE,
    str: STRING,
    bytes: BINARY,
    dt.datetime: TIMESTAMP,
    dt.date: DATE,
    decimal.Decimal: DECIMAL,
}
PARTS: Final = ("partial", "merge", "finish")
# Arrays and series do not say what is in them; by name, so that neither package need be loaded.
_VECTORS: Final = {"pyarrow": "arrow", "pandas": "pandas"}


@frozen
class PythonSignature:
    """What a function says of itself: None where it says nothing that is a SQL type.

    `takes` is how it wants its arguments; `parameters` is None where they are arrays, not all annotated or any number.
    """

    takes: Literal["values", "arrow", "pandas"]
    parameters: tuple[tuple[str, SqlType], ...] | None
    returns: SqlType | None


def in_parts(function: object) -> bool:
    """Whether it is a class with the parts of an aggregate whose results merge."""
    return isinstance(function, type) and all(callable(getattr(function, part, None)) for part in PARTS)


def read_signature(function: Callable[..., Any], *, aggregate: bool = False) -> PythonSignature:
    """The signature of a function, from its annotations; of an aggregate in parts, from those of its parts."""
    if aggregate and in_parts(function):
        made = function()
        taken, shown = read_signature(made.partial, aggregate=True), read_signature(made.finish)
        return PythonSignature(taken.takes, taken.parameters, shown.returns)
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a function of C may not tell
        return PythonSignature("values", None, None)
    hints = _hints(function)
    takes: Literal["values", "arrow", "pandas"] = "values"
    for parameter in parameters:
        package = getattr(hints.get(parameter.name), "__module__", "").partition(".")[0]
        if package in _VECTORS:
            takes = "arrow" if package == "pyarrow" else "pandas"
            break
    returns = python_type(hints.get("return"))
    if takes != "values" or any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return PythonSignature(takes, None, returns)
    needed = [parameter for parameter in parameters if parameter.default is parameter.empty]
    found = [(parameter.name, _argument_type(hints.get(parameter.name), aggregate=aggregate)) for parameter in needed]
    typed = tuple((name, sql_type) for name, sql_type in found if sql_type is not None)
    return PythonSignature(takes, typed if len(typed) == len(found) else None, returns)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    target = function if inspect.isroutine(function) or inspect.isclass(function) else type(function).__call__
    try:
        return typing.get_type_hints(target)
    except Exception:  # noqa: BLE001 - an annotation may name anything, also what is not there
        return {}


def _argument_type(annotation: Any, *, aggregate: bool) -> SqlType | None:
    """Of an aggregate over values each argument is a list: its elements have the type of the column."""
    if aggregate:
        found = python_type(annotation)
        return found.elements[0] if found is not None and found.name == "ARRAY" else None
    return python_type(annotation)


def python_type(annotation: Any) -> SqlType | None:
    """The SQL type of an annotation, None where it has none.

    >>> str(python_type(list[int])), str(python_type(float | None)), python_type(object)
    ('ARRAY<BIGINT>', 'DOUBLE', None)
    """
    if isinstance(annotation, type) and annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        given = [part for part in inner if part is not type(None)]
        return python_type(given[0]) if len(given) == 1 else None
    if origin is list and len(inner) == 1:
        element = python_type(inner[0])
        return SqlType("ARRAY", elements=(element,)) if element is not None else None
    if origin is dict and len(inner) == 2:
        pair = tuple(python_type(part) for part in inner)
        return SqlType("MAP", elements=typing.cast("Any", pair)) if None not in pair else None
    return None
