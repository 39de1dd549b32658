"""Arguments of a wrong type, told where they are given: a TypeError that names the parameter, not one from deep inside.

What is asked for stands in the annotations already: texts and numbers are checked by them, everything else where its
meaning is known.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from numbers import Integral, Real
from typing import Any, Final, TypeVar

from penstock.catalog.object_names import name_problem
from penstock.errors import InvalidArgument

T = TypeVar("T")

# Annotation -> the types that are taken, and the word for them. Numbers of numpy are numbers, too.
_KINDS: Final[dict[str, tuple[tuple[type, ...], str]]] = {
    "str": ((str,), "a text"),
    "float": ((Real,), "a number"),
    "int": ((Integral,), "a whole number"),
}
_SCRIPTS: Final = ((str, bytes), "a text")  # of SQL, which may come as it was read from a file
_JUDGED_LATER: Final = frozenset({"since"})


def checks_arguments(checked: type[T]) -> type[T]:
    """Make every public method of a class check the texts and numbers that it is given."""
    for name, function in list(vars(checked).items()):
        if inspect.isfunction(function) and not name.startswith("_"):
            setattr(checked, name, _checking(function))
    return checked


def check_type(function: str, parameter: str, value: object, types: tuple[type, ...], word: str) -> None:
    """Raise a TypeError that says what a parameter takes, where a value is something else.

    >>> check_type("append", "stream", 5, (str,), "a text")
    Traceback (most recent call last):
    TypeError: append() takes a text for stream, not 5
    """
    if not isinstance(value, types):
        # A list or a dict may hold anything, a password too: its type is enough.
        shown = repr(value) if value is None or isinstance(value, int | float) else f"a {type(value).__name__}"
        raise TypeError(f"{function}() takes {word} for {parameter}, not {shown}")


def check_name(function: str, parameter: str, value: str) -> None:
    """Raise INVALID_ARGUMENT for a name that nothing can have.

    >>> check_name("register_table", "name", "")
    Traceback (most recent call last):
    penstock.errors.InvalidArgument: [INVALID_ARGUMENT] register_table(): name is empty; hint: choose another name
    """
    problem = name_problem(value)
    if problem is not None:
        raise InvalidArgument("INVALID_ARGUMENT", f"{function}(): {parameter} {problem}", hint="choose another name")


def _checking(function: Callable[..., Any]) -> Callable[..., Any]:
    asked: dict[str, tuple[tuple[type, ...], str]] = {}
    signature = inspect.signature(function)
    for name, parameter in signature.parameters.items():
        annotation = str(parameter.annotation)
        kind = _KINDS.get(annotation.removesuffix(" | None"))
        if kind is None or name in _JUDGED_LATER:
            continue
        types, word = _SCRIPTS if name == "sql" else kind
        optional = annotation.endswith(" | None")
        asked[name] = ((*types, type(None)), f"{word} or None") if optional else (types, word)
    if not asked:
        return function

    @functools.wraps(function)
    def checking(*args: Any, **kwargs: Any) -> Any:
        given: Mapping[str, Any] = {}
        with suppress(TypeError):  # Python itself says what is missing or too much
            given = signature.bind(*args, **kwargs).arguments
        for name, (types, word) in asked.items():
            if name in given:
                check_type(function.__name__, name, given[name], types, word)
        return function(*args, **kwargs)

    return checking
