"""Typed values out of resolved options, for code that runs them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from penstock.errors import OptionError
from penstock.options.values import Deferred

if TYPE_CHECKING:
    from collections.abc import Mapping

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def integer(values: Mapping[str, object], key: str) -> int | None:
    """The whole number of an option, None where it has no value."""
    found = _value(values, key)
    assert found is None or isinstance(found, int)
    return found


def real(values: Mapping[str, object], key: str) -> float | None:
    """The number of an option, None where it has no value."""
    found = _value(values, key)
    assert found is None or isinstance(found, int | float)
    return found


def text(values: Mapping[str, object], key: str) -> str | None:
    """The text of an option, None where it has no value."""
    found = _value(values, key)
    return None if found is None else str(found)


def microseconds(values: Mapping[str, object], key: str) -> int | None:
    """The duration of an option, None where it has no value."""
    found = _value(values, key)
    assert found is None or isinstance(found, timedelta)
    return None if found is None else found // timedelta(microseconds=1)


def moment_us(values: Mapping[str, object], key: str) -> int | None:
    """The point in time of an option in microseconds since 1970, None where it has no value."""
    found = _value(values, key)
    assert found is None or isinstance(found, datetime)
    return None if found is None else (found - _EPOCH) // timedelta(microseconds=1)


def _value(values: Mapping[str, object], key: str) -> object:
    found = values.get(key)
    if isinstance(found, Deferred):
        raise OptionError(
            "INVALID_OPTION",
            f"option {key} of this connector takes no reference",
            hint="write the value itself",
        )
    return found
