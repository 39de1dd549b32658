"""What one reading of a source says of itself, in the place of what the source says (Flink's hint OPTIONS)."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Final

from penstock.errors import OptionError
from penstock.options.matching import key_table
from penstock.options.reading import read_options
from penstock.options.registry import connector_named
from penstock.options.resolved import ResolvedOptions
from penstock.options.schema import Draft, Problem
from penstock.options.settings import default_settings
from penstock.sql.statements import Option

_START: Final = "start"
_DETAILS: Final = frozenset({"start_timestamp", "start_offsets"})


def with_options_of_reading(options: ResolvedOptions, given: tuple[Option, ...]) -> ResolvedOptions:
    """The options of a source with those of one reading; INVALID_OPTION for what its connector does not know."""
    if not given:
        return options
    connector = connector_named(options.connector)
    assert connector is not None, "a source has a connector"
    readings = read_options(given, key_table(connector))
    if readings.unknown:
        unknown = readings.unknown[0]
        raise OptionError(
            "INVALID_OPTION",
            f"connector '{options.connector}' knows no option {unknown.key} of a reading",
            hint="remove it from the hint",
            span=unknown.key_span,
        )
    # Where to begin is one thing: what the source says of it goes as a whole.
    gone = {_START, *_DETAILS} if readings.given.keys() & {_START, *_DETAILS} else set()
    values = {key: value for key, value in options.values.items() if key not in gone}
    values |= {key: reading.typed for key, reading in readings.given.items()}
    draft = Draft(
        options.connector,
        options.role,
        MappingProxyType(values),
        (options.given - gone) | readings.given.keys(),
        default_settings(),
    )
    try:
        connector.check(draft)
    except Problem as problem:
        about = readings.given.get(problem.key or "", next(iter(readings.given.values())))
        raise OptionError(problem.condition, problem.message, hint=problem.hint, span=about.option.key_span) from None
    derived = {key: value for key, value in connector.derive(draft).items() if key not in values}
    return replace(options, values=MappingProxyType({**values, **derived}))
