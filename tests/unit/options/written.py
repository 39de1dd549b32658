"""WITH clauses as the parser would hand them over, for the tests of options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from penstock.errors import PenstockError, Span
from penstock.options import ResolvedOptions, resolve_options
from penstock.secrets import Secret
from penstock.sql.statements import Format, Name, Option, OptionValue

WITH = Span(9, 1, 4, 900)


def value(written: object) -> OptionValue:
    """A string is a string literal, a number a number, a bool a boolean; an OptionValue stays."""
    if isinstance(written, OptionValue):
        return written
    if isinstance(written, bool):
        return OptionValue("boolean", Secret("true" if written else "false"))
    if isinstance(written, int | float):
        return OptionValue("number", Secret(str(written)))
    return OptionValue("text", Secret(str(written)))


def interval(microseconds: int) -> OptionValue:
    """INTERVAL '…'."""
    return OptionValue("interval", Secret(str(microseconds)))


def secret(name: str) -> OptionValue:
    """SECRET name."""
    return OptionValue("secret", Secret(name))


def options(written: Mapping[str, object]) -> tuple[Option, ...]:
    """One option a line: the key in column 1, the value in column 50."""
    return tuple(
        Option(key, value(text), Span(line, 1, len(key), line * 100), Span(line, 50, 1, line * 100 + 50))
        for line, (key, text) in enumerate(written.items(), 1)
    )


def resolve(
    written: Mapping[str, object],
    *,
    role: Literal["source", "sink"] = "source",
    clause: Format | None = None,
    settings: Mapping[str, object] | None = None,
    strict: bool = False,
) -> ResolvedOptions:
    """The options of a relation named orders."""
    return resolve_options(
        options(written),
        role=role,
        relation=Name("orders"),
        format=clause,
        with_span=WITH,
        settings=settings,
        strict_role=strict,
    )


def refusal(
    written: Mapping[str, object],
    *,
    role: Literal["source", "sink"] = "source",
    clause: Format | None = None,
    strict: bool = False,
) -> PenstockError:
    """The error that a WITH clause gives."""
    try:
        found = resolve(written, role=role, clause=clause, strict=strict)
    except PenstockError as error:
        return error
    raise AssertionError(f"not refused: {found.connector} with {sorted(found.given)}")
