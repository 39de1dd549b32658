"""Which option a key means: built once for each connector and format, then only looked up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from penstock.frozen import frozen
from penstock.options.keys import nearest, normalise
from penstock.options.schema import Alias, ConnectorSpec, FormatSpec, OptionFamily, OptionSpec, Passthrough
from penstock.options.schemas.common import (
    BAD_DATA,
    CHANGES,
    CONNECTOR,
    FORMAT,
    IGNORE_ERRORS,
    JOB,
    JOB_NAME,
    TYPE,
    VERSION,
)

# How much a key must be like a known one to be suggested, and to be taken for it and not for another system's.
ALIKE: Final = 0.8
NEARLY: Final = 0.92


@frozen
class Match:
    """What a key means: the canonical key (`slot`), its option, the spelling used, and the client property it sets."""

    slot: str
    spec: OptionSpec
    alias: Alias
    passed: str | None = None


class KeyTable:
    """All keys that one statement may give."""

    __slots__ = ("_exact", "_families", "_passthrough", "_properties", "slots")

    def __init__(
        self,
        specs: Iterable[OptionSpec],
        families: tuple[OptionFamily, ...] = (),
        passthrough: Passthrough | None = None,
    ) -> None:
        self._exact: dict[str, Match] = {}
        self._families = families
        self._passthrough = passthrough
        self._properties = {normalise(name): name for name in passthrough.allowed} if passthrough else {}
        self.slots: dict[str, OptionSpec] = {}
        for spec in specs:
            self.add(spec)

    def add(self, spec: OptionSpec, slot: str | None = None, prefix: str = "") -> None:
        """Make an option known; the first one to claim a spelling keeps it."""
        slot = slot or spec.key
        self.slots.setdefault(slot, spec)
        for alias in spec.spellings():
            self._exact.setdefault(normalise(prefix + alias.key), Match(slot, spec, alias))

    def alias(self, alias: Alias, spec: OptionSpec) -> None:
        """Make one more spelling of an option known."""
        self._exact.setdefault(normalise(alias.key), Match(spec.key, spec, alias))

    def find(self, key: str) -> Match | None:
        """What a key means, or None for an unknown one."""
        exact = self._exact.get(normalise(key))
        return exact or self._family(key) or self._passed(key)

    def suggest(self, key: str, cutoff: float = ALIKE) -> str | None:
        """The canonical key most like an unknown one, if one is so much like it."""
        passthrough = self._passthrough
        prefixes = (
            [prefix for prefix in passthrough.prefixes if normalise(key).startswith(normalise(prefix))]
            if passthrough
            else []
        )
        if passthrough and prefixes:
            # Only the property counts: every key behind the same prefix looks alike.
            close = nearest(key[len(prefixes[0]) :], passthrough.allowed, cutoff=0.75)
            return passthrough.canonical + close[0] if close else None
        spelt = {match.slot: match.slot for match in self._exact.values()} | {
            match.alias.key: match.slot for match in self._exact.values()
        }
        # A wrong suggestion is worse than none: keys of other systems share many words with ours.
        close = nearest(key, spelt, cutoff=cutoff)
        return spelt[close[0]] if close else None

    def _family(self, key: str) -> Match | None:
        for family in self._families:
            # The free part keeps its own dots and underscores, so only the prefix and the last words are normalised.
            head, rest = key[: len(family.prefix)], key[len(family.prefix) :]
            if normalise(head) != family.prefix or not rest or rest[0] not in "._-" or len(rest) < 2:
                continue
            name = rest[1:].lower()
            for member in sorted(family.members, key=lambda member: -len(member.key)):
                tail = member.key
                if not tail:
                    return Match(f"{family.prefix}.{name}", member, Alias(key))
                if (
                    len(name) > len(tail) + 1
                    and normalise(name[-len(tail) :]) == normalise(tail)
                    and name[-len(tail) - 1] in "._-"
                ):
                    return Match(f"{family.prefix}.{name[: -len(tail) - 1]}.{tail}", member, Alias(key))
        return None

    def _passed(self, key: str) -> Match | None:
        passthrough = self._passthrough
        if passthrough is None:
            return None
        wanted = normalise(key)
        for prefix in map(normalise, passthrough.prefixes):
            name = self._properties.get(wanted[len(prefix) :]) if wanted.startswith(prefix) else None
            if name is not None:
                slot = passthrough.canonical + name
                idle, secret = passthrough.idle.get(name), name in passthrough.secret
                spec = OptionSpec(slot, passthrough.allowed[name], "", secret=secret, idle=idle)
                return Match(slot, spec, Alias(slot), name)
        return None


_tables: dict[tuple[int, int, int, bool], tuple[tuple[object, ...], KeyTable]] = {}


def key_table(
    connector: ConnectorSpec, value: FormatSpec | None = None, key: FormatSpec | None = None, *, job: bool = False
) -> KeyTable:
    """The keys of a statement with this connector and these formats; `job`: the statement also starts a job."""
    identity = (id(connector), id(value), id(key), job)
    known = _tables.get(identity)
    if known is not None:
        return known[1]
    table = KeyTable((CONNECTOR, TYPE, *connector.options), connector.families, connector.passthrough)
    if connector.formats:
        table.add(FORMAT)
    if connector.formats or "sink" in connector.roles:
        table.add(CHANGES)
    if connector.formats and "source" in connector.roles:
        table.add(VERSION)
    for spec in (*JOB, JOB_NAME) if job else ():
        table.add(spec)
    if value is not None:
        _add_format(table, value)
    if key is not None:
        for spec in key.options:
            table.add(spec, slot=f"key.{spec.key}", prefix="key.")
    # The specs are kept beside the table, so that an id is never that of a dead one.
    _tables[identity] = ((connector, value, key), table)
    return table


def _add_format(table: KeyTable, spec: FormatSpec) -> None:
    for option in spec.options:
        table.add(option)
        table.add(option, prefix="value.")
    if BAD_DATA.key in table.slots:
        for name in (spec.name, *spec.aliases):
            for prefix in ("", "value."):
                table.alias(
                    Alias(f"{prefix}{name}.ignore-parse-errors", values=IGNORE_ERRORS), table.slots[BAD_DATA.key]
                )
