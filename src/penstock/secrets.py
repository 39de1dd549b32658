"""Values that must never be printed, and references to values that live elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Literal

from penstock.frozen import frozen

MASK: Final = "********"

_REFERENCE = re.compile(
    r"\$\{(?:env:(?P<env>[^{}\s=]+)|file:(?P<file>[^{}\s](?:[^{}]*[^{}\s])?))\}"
    r"|\{\{\s*(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*\}\}"
)
REFERENCE_FORMS: Final = "'${env:NAME}', '{{ NAME }}', '${file:/path}' and SECRET name"


class Secret:
    """A string that prints as a mask everywhere; `reveal()` is the one way to read it.

    >>> Secret("hunter2")
    Secret(********)
    >>> f"{Secret('hunter2')}"
    '********'
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return f"Secret({MASK})"

    def __str__(self) -> str:
        return MASK

    def __format__(self, spec: str) -> str:
        return format(MASK, spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash(("Secret", self._value))

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a Secret is never pickled; keep a reference instead")


@frozen
class Reference:
    """`${env:X}`, `{{ X }}`, `${file:…}` or `SECRET name` in a value: kept as written, read when the value is used."""

    kind: Literal["env", "file", "secret"]
    name: str


def references(text: str) -> tuple[Reference, ...]:
    """The references inside a text, in order.

    >>> references("user:${env:PASSWORD}@{{ HOST }}")
    (Reference(kind='env', name='PASSWORD'), Reference(kind='env', name='HOST'))
    """
    found: list[Reference] = []
    for match in _REFERENCE.finditer(text):
        if match["file"] is not None:
            found.append(Reference("file", match["file"]))
        else:
            found.append(Reference("env", match["env"] or match["name"]))
    return tuple(found)


def filled_in(text: str, value: Callable[[Reference], str]) -> str:
    """A text with what stands behind its references in their place.

    >>> filled_in("Bearer ${env:TOKEN}", lambda reference: reference.name.lower())
    'Bearer token'
    """
    return _REFERENCE.sub(lambda match: value(references(match[0])[0]), text)


def only_references(text: str) -> bool:
    """Whether a text holds nothing but references, so that printing it gives nothing away."""
    return bool(text) and _REFERENCE.sub("", text) == ""


def has_malformed_reference(text: str) -> bool:
    """Whether something in a text begins like a reference and is none: it would be taken for the value itself.

    >>> has_malformed_reference("${ENV:PASSWORD}"), has_malformed_reference("${env:PASSWORD}")
    (True, False)
    """
    # A blank in its place, so that what stands on both sides of a reference does not grow into another one.
    rest = _REFERENCE.sub(" ", text)
    return "${" in rest or "{{" in rest


def carries_credentials(text: str) -> bool:
    """Whether a text looks like an address with a user, a password or parameters in it.

    >>> carries_credentials("s3a://key:word@bucket/x"), carries_credentials("https://h/x?sig=word")
    (True, True)
    >>> carries_credentials("host:9092"), carries_credentials("user@example.org"), carries_credentials("part-?.json")
    (False, False, False)
    """
    before, at, _ = text.rpartition("@")
    _, _, query = text.partition("?")
    return (bool(at) and (":" in before or "//" in before)) or "=" in query
