"""The option reference, written from the schemas; `docs/reference/options.md` holds what `reference()` returns."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from penstock.options.foreign_settings import IDLE_SETTINGS, NOT_YET_SETTINGS
from penstock.options.jobs import INSERT_OPTIONS, VIEW_OPTIONS
from penstock.options.registry import known_connectors, known_formats
from penstock.options.resolved import show
from penstock.options.schema import ConnectorSpec, FormatSpec, OptionFamily, OptionSpec, Passthrough, Role
from penstock.options.schemas.common import CHANGES, CONNECTOR, FORMAT, TYPE, VERSION
from penstock.options.schemas.elsewhere import NOT_YET_CONNECTORS, NOT_YET_FORMATS, NOT_YET_OPTIONS
from penstock.options.settings import OWN_SETTINGS
from penstock.options.subscriptions import SUBSCRIBE_OPTIONS

_INTRODUCTION = """\
# Options and settings

<!-- Written by penstock.options.reference; a test fails when this page and the schemas differ. -->

Keys are compared without regard to case, and `-`, `_` and `.` count as the same character: `batch-size`, `batch_size`
and `BATCH.SIZE` are one option. Two spellings of one option may be given with the same value, not with different ones.
An unknown key is refused, with the nearest known one.

Durations are `INTERVAL '5' SECOND` or text such as `'5 s'`, `'1 min'`, `'PT5M'`; in a setting a number without a unit
counts milliseconds, as in Flink, and a notice says so. Sizes are numbers of bytes or text such as `'64 MB'` (a kilobyte
is 1024 bytes). Times are epoch milliseconds or ISO 8601 text. Lists are separated by commas.

The value of any option that the plan itself does not depend on may be a reference: `SECRET name`, `'${env:NAME}'`,
`'{{ NAME }}'` or `'${file:/path}'`. References are kept as written and read when a job starts. Options marked
*secret* are shown as `********` everywhere; so is every option that no schema knows, and every value that is an address
with a user, a password or parameters in it (`s3a://key:word@bucket`, `…?sig=word`). What begins like a reference and is
none of these four is refused.

"Declared" means: statements with it are read, checked and planned, and it runs in a later version.
"""


def reference() -> str:
    """The whole page, as Markdown."""
    return "\n".join(_lines()) + "\n"


def connector_reference(spec: ConnectorSpec) -> str:
    """The section of one connector, also of one that a third party registered."""
    return "\n".join(_connector(spec))


def _lines() -> Iterator[str]:
    yield _INTRODUCTION
    yield "## Every connector\n"
    yield from _table((CONNECTOR, TYPE, FORMAT, CHANGES, VERSION))
    for connector in known_connectors():
        yield from _connector(connector)
    for spec in known_formats():
        yield from _format(spec)
    yield "\n## Materialized views\n"
    yield from _table(VIEW_OPTIONS)
    yield "\n## INSERT and CREATE SINK\n"
    yield from _table(INSERT_OPTIONS)
    yield "\n## SUBSCRIBE\n"
    yield from _table(SUBSCRIBE_OPTIONS)
    yield "\n## Settings\n"
    yield "Given with `SET key = value`, taken back with `RESET key`.\n"
    yield from _table(OWN_SETTINGS)
    yield "\n## Not there yet\n"
    yield "Known from other systems and refused as `CONNECTOR_NOT_YET` or `FORMAT_NOT_YET`, with what to do instead.\n"
    yield f"Connectors: {', '.join(f'`{name}`' for name in NOT_YET_CONNECTORS)}.\n"
    yield f"Formats: {', '.join(f'`{name}`' for name in NOT_YET_FORMATS)}.\n"
    yield "Options, refused as `CLAUSE_NOT_YET`; one that ends with a dot stands for all that begin with it:\n"
    for name, options in NOT_YET_OPTIONS.items():
        yield f"- {f'`{name}`' if name else 'every connector'}: {_words(options)}"
    yield "\nSettings, refused as `CLAUSE_NOT_YET`:\n"
    yield f"{_words(NOT_YET_SETTINGS)}."
    yield "\n## Settings that change nothing\n"
    yield "Accepted, so that texts of other systems run as they are.\n"
    yield from _table(IDLE_SETTINGS)


def _connector(spec: ConnectorSpec) -> Iterator[str]:
    yield f"\n## Connector `{spec.name}`\n"
    facts = [f"{spec.summary[0].upper()}{spec.summary[1:]}."]
    if spec.aliases:
        facts.append(f"Also called {_words(spec.aliases)}.")
    facts.append(f"Can be a {' or '.join(_roles(spec.roles))}.")
    if spec.formats:
        kept = (
            f"`{spec.default_format}` when none is given" if spec.default_format else "typed columns when none is given"
        )
        facts.append(f"Formats: {_words(spec.formats)}; {kept}.")
    facts.append("Available." if spec.available else "Declared.")
    yield " ".join(facts) + "\n"
    if spec.options:
        yield from _table(spec.options)
    for family in spec.families:
        yield from _family(family)
    if spec.passthrough is not None:
        yield from _passthrough(spec.passthrough)


def _format(spec: FormatSpec) -> Iterator[str]:
    yield f"\n## Format `{spec.name}`\n"
    called = f" Also called {_words(spec.aliases)}." if spec.aliases else ""
    state = "Available." if spec.available else "Declared."
    yield f"{spec.summary[0].upper()}{spec.summary[1:]}.{called} {state}\n"
    yield from _table(spec.options)


def _family(family: OptionFamily) -> Iterator[str]:
    yield f"\n`{family.prefix}.<{family.name}>.…`: {family.summary}.\n"
    prefix = f"{family.prefix}.<{family.name}>"
    yield from _table(family.members, prefix)


def _passthrough(spec: Passthrough) -> Iterator[str]:
    spellings = " or ".join(f"`{prefix}`" for prefix in spec.prefixes)
    public = _words(sorted(set(spec.allowed) - spec.secret - set(spec.idle)))
    yield f"\nWith {spellings} before their name, these {spec.summary} are handed on:"
    yield f"{public}; and as secrets {_words(sorted(spec.secret))}."
    if spec.idle:
        yield "\nThese are taken and not handed on, with a notice that says why:\n"
        yield from (f"- `{name}`: {reason}" for name, reason in sorted(spec.idle.items()))


def _table(options: Iterable[OptionSpec], prefix: str = "") -> Iterator[str]:
    yield "| option | value | default | meaning |"
    yield "|---|---|---|---|"
    for spec in options:
        yield f"| {_key(spec, prefix)} | {_cell(spec.kind.name)} | {_cell(_default(spec))} | {_cell(_meaning(spec))} |"


def _key(spec: OptionSpec, prefix: str) -> str:
    return f"`{'.'.join(part for part in (prefix, spec.key) if part)}`"


def _default(spec: OptionSpec) -> str:
    if spec.setting is not None:
        return f"setting `{spec.setting}`"
    if spec.required:
        return "required"
    return "" if spec.default is None else f"`{show(spec.default)}`"


def _meaning(spec: OptionSpec) -> str:
    parts = [spec.summary]
    if spec.idle is not None:
        parts.append(f"Taken, with a notice that it changes nothing: {spec.idle}.")
    marks = [*(["secret"] if spec.secret else []), *_only(spec.roles)]
    if marks:
        parts.append(f"({', '.join(marks)})")
    others = [alias.key for alias in spec.spellings()[1:]]
    meaning = " ".join(parts)
    return f"{meaning}. Also {_words(others)}." if others else meaning


def _only(roles: frozenset[Role]) -> list[str]:
    if len(roles) == 1:
        return [f"{next(iter(roles))}s only"]
    return [] if "sink" in roles else ["not for sinks"]


def _roles(roles: frozenset[Role]) -> list[str]:
    return [role for role in ("source", "sink", "lookup") if role in roles]


def _words(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(reference())
