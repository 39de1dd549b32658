"""Frozen values that are cheap to define.

A standard frozen dataclass compiles six functions when its module is imported, about half a millisecond; with over a
hundred of them that was more than half of our own start-up. A value is a standard dataclass too (`replace`, `fields`
and `field` work on it), but only its `__init__` is made for it: the other functions are shared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")


@overload
def frozen(cls: type[T], /) -> type[T]: ...


@overload
def frozen(*, kw_only: bool = False) -> Callable[[type[T]], type[T]]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T] | None = None, /, *, kw_only: bool = False) -> type[T] | Callable[[type[T]], type[T]]:
    """A frozen dataclass with slots.

    >>> @frozen
    ... class Point:
    ...     x: int
    ...     label: str = field(default="", compare=False)
    >>> Point(1, "a") == Point(1, "b"), Point(2)
    (True, Point(x=2, label=''))
    >>> Point(1).x = 3
    Traceback (most recent call last):
    dataclasses.FrozenInstanceError: cannot assign to field 'x'
    """
    if cls is None:
        return lambda later: _made(later, kw_only=kw_only)
    return _made(cls, kw_only=kw_only)


def _made(cls: type[T], *, kw_only: bool) -> type[T]:
    own = cls.__dict__
    made: Any = dataclass(cls, slots=True, eq=False, repr=False, kw_only=kw_only)
    parts = fields(made)
    made.__frozen_compared__ = tuple(part.name for part in parts if part.compare)
    made.__frozen_shown__ = tuple(part.name for part in parts if part.repr)
    shared = {"__setattr__": _set, "__delattr__": _delete, "__eq__": _equal, "__hash__": _hash, "__repr__": _repr}
    for name, function in shared.items():
        if name not in own:
            setattr(made, name, function)
    result: type[T] = made
    return result


def _set(self: Any, name: str, new: object) -> None:
    # Each slot is filled once, by `__init__`.
    if hasattr(self, name):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, new)


def _delete(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _equal(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return all(getattr(self, name) == getattr(other, name) for name in self.__frozen_compared__)


def _hash(self: Any) -> int:
    return hash(tuple([getattr(self, name) for name in self.__frozen_compared__]))


def _repr(self: Any) -> str:
    inside = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__frozen_shown__)
    return f"{self.__class__.__qualname__}({inside})"
