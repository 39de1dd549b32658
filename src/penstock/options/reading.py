"""From the options of a statement to typed values: matching, reading, conflicts. Shared by every kind of statement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from penstock.frozen import frozen
from penstock.options.keys import normalise
from penstock.options.matching import KeyTable, Match
from penstock.options.problems import conflicting, invalid_value, malformed_reference, masked_value, value_hint
from penstock.options.schema import OptionSpec
from penstock.options.values import Deferred, Duration, deferred, text_value
from penstock.secrets import MASK, Secret, has_malformed_reference
from penstock.sql.statements import Option, OptionValue


@frozen
class Given:
    """One option of the statement with what it means and its typed value."""

    option: Option
    match: Match
    typed: object
    secret: bool

    @property
    def slot(self) -> str:
        return self.match.slot

    def canonical(self) -> Option:
        """The option with its canonical key and value."""
        value = self.option.value
        if not isinstance(self.typed, Deferred):
            write = self.match.spec.kind.write
            value = OptionValue("text", self.typed) if isinstance(self.typed, Secret) else write(self.typed)
        return replace(self.option, key=self.slot, value=value)


@dataclass(slots=True)
class Readings:
    """What a statement gave, by canonical key, and the keys nobody knows."""

    given: dict[str, Given] = field(default_factory=dict)
    unknown: list[Option] = field(default_factory=list)


def read_options(options: Iterable[Option], table: KeyTable) -> Readings:
    """Match every option; then, only if all are known, read their values."""
    found = Readings()
    matched: list[tuple[Option, Match]] = []
    for option in options:
        match = table.find(option.key)
        if match is None:
            found.unknown.append(option)
        else:
            matched.append((option, match))
    if found.unknown:
        return found
    for option, match in matched:
        reading = read_option(option, match)
        before = found.given.get(match.slot)
        if before is None:
            found.given[match.slot] = reading
        elif before.typed != reading.typed:
            raise conflicting(before.option, option)
    return found


def read_option(option: Option, match: Match) -> Given:
    """The typed value of one option; references stay what they are."""
    spec = match.spec
    if option.value.kind == "text" and has_malformed_reference(option.value.reveal()):
        raise malformed_reference(option)
    if spec.secret and option.value.kind == "text" and option.value.reveal().strip() == MASK:
        raise masked_value(option)
    later = deferred(option.value)
    if later is not None and spec.literal:
        raise invalid_value(option, "written out, because the plan depends on it", show=False)
    if later is not None:
        return Given(option, match, later, spec.secret or spec.kind.sensitive(option.value.reveal()))
    value = _translated(option.value, match)
    kind = spec.kind
    if match.alias.unit is not None and isinstance(kind, Duration):
        kind = replace(kind, unit=match.alias.unit)
    try:
        typed = kind.read(value)
    except ValueError as error:
        public = not spec.secret and not kind.sensitive(value.reveal())
        hint = value_hint(spec, value) if public else None
        raise invalid_value(option, str(error), show=public, hint=hint) from None
    if not spec.secret and not kind.sensitive(typed):
        return Given(option, match, typed, secret=False)
    if spec.literal:
        raise invalid_value(option, "a plain name, because the plan depends on it", show=False)
    return Given(option, match, Secret(kind.write(typed).reveal()), secret=True)


def defaults(
    specs: Mapping[str, OptionSpec], given: Mapping[str, Given], settings: Mapping[str, object]
) -> tuple[dict[str, object], frozenset[str]]:
    """The values of every option, and the keys whose value a setting gave."""
    values: dict[str, object] = {}
    from_settings: set[str] = set()
    for key, spec in specs.items():
        if key in given:
            continue
        if spec.setting is not None and settings.get(spec.setting) is not None:
            values[key] = settings[spec.setting]
            from_settings.add(key)
        elif spec.default is not None:
            values[key] = spec.default
    for key, reading in given.items():
        values[key] = reading.typed
    return values, frozenset(from_settings)


def _translated(value: OptionValue, match: Match) -> OptionValue:
    """The value as the canonical option would spell it, where another system's option has other words for it."""
    words = {normalise(word): meaning for word, meaning in match.alias.values.items()}
    if words and value.kind in ("text", "boolean"):
        meaning = words.get(normalise(value.reveal()))
        return text_value(meaning) if meaning is not None else value
    return value
