"""Which connectors and formats there are: ours, and those that a third party registers (A16)."""

from __future__ import annotations

from typing import Final

from penstock.errors import NotYetError, OptionError, Span
from penstock.options.keys import nearest, normalise
from penstock.options.schema import ConnectorSpec, FormatSpec
from penstock.options.schemas.elsewhere import NOT_YET_CONNECTORS, NOT_YET_FORMATS
from penstock.options.schemas.embedded import BLACKHOLE, CONSOLE, MEMORY, TOPIC
from penstock.options.schemas.files import DELTA, FILE
from penstock.options.schemas.formats import FORMATS
from penstock.options.schemas.generators import DATAGEN, IMPULSE, NEXMARK
from penstock.options.schemas.kafka import KAFKA, UPSERT_KAFKA
from penstock.options.schemas.services import HTTP, POSTGRES
from penstock.options.values import is_plain_name

_OURS: Final = (
    TOPIC,
    KAFKA,
    UPSERT_KAFKA,
    FILE,
    MEMORY,
    DATAGEN,
    IMPULSE,
    NEXMARK,
    CONSOLE,
    BLACKHOLE,
    HTTP,
    POSTGRES,
    DELTA,
)

_LONGEST_NAME: Final = 40  # of a name that an error quotes

_connectors: dict[str, ConnectorSpec] = {}
_formats: dict[str, FormatSpec] = {}


def register_connector(spec: ConnectorSpec, *, replace: bool = False) -> None:
    """Make a connector known under its name and aliases; a name that is taken is refused unless `replace` is set."""
    names = [normalise(name) for name in (spec.name, *spec.aliases)]
    taken = next((name for name in names if name in _connectors and _connectors[name].name != spec.name), None)
    if taken is not None or (names[0] in _connectors and not replace):
        raise OptionError(
            "OBJECT_EXISTS",
            f"a connector named '{_connectors[taken or names[0]].name}' is registered already",
            hint="choose another name, or pass replace=True",
        )
    for name in names:
        _connectors[name] = spec


def unregister_connector(name: str) -> None:
    """Forget a registered connector; unknown names are ignored."""
    for key in [key for key, spec in _connectors.items() if spec.name == name]:
        del _connectors[key]


def register_format(spec: FormatSpec) -> None:
    """Make a format known under its name and aliases."""
    for name in (spec.name, *spec.aliases):
        _formats[normalise(name)] = spec


def known_connectors() -> tuple[ConnectorSpec, ...]:
    """Every connector that a statement may name, in the order of registration."""
    return tuple({spec.name: spec for spec in _connectors.values()}.values())


def known_formats() -> tuple[FormatSpec, ...]:
    """Every format that a statement may name."""
    return tuple({spec.name: spec for spec in _formats.values()}.values())


def connector_named(name: str) -> ConnectorSpec | None:
    """The connector of this name or alias, if it is known."""
    return _connectors.get(normalise(name))


def format_named(name: str) -> FormatSpec | None:
    """The format of this name or alias, if it is known."""
    return _formats.get(normalise(name))


def require_connector(name: str, span: Span) -> ConnectorSpec:
    """The connector of this name, or the refusal that says whether it can come."""
    spec = connector_named(name)
    if spec is not None:
        return spec
    later = {normalise(other): (other, hint) for other, hint in NOT_YET_CONNECTORS.items()}.get(normalise(name))
    if later is not None:
        raise NotYetError("CONNECTOR_NOT_YET", f"connector '{later[0]}' is not there yet", hint=later[1], span=span)
    names = [known.name for known in known_connectors()]
    aliases = {alias: known.name for known in known_connectors() for alias in known.aliases}
    raise OptionError(
        "UNKNOWN_CONNECTOR",
        f"unknown connector{_quoted(name)}",
        hint=_hint(name, [*names, *aliases], f"known connectors: {', '.join(names)}"),
        span=span,
    )


def require_format(name: str, span: Span) -> FormatSpec:
    """The format of this name, or the refusal that says whether it can come."""
    spec = format_named(name)
    if spec is not None:
        return spec
    later = {normalise(other): (other, hint) for other, hint in NOT_YET_FORMATS.items()}.get(normalise(name))
    if later is not None:
        raise NotYetError("FORMAT_NOT_YET", f"format '{later[0]}' is not there yet", hint=later[1], span=span)
    names = [known.name for known in known_formats()]
    aliases = [alias for known in known_formats() for alias in known.aliases]
    raise OptionError(
        "UNKNOWN_FORMAT",
        f"unknown format{_quoted(name)}",
        hint=_hint(name, [*names, *aliases], f"known formats: {', '.join(names)}"),
        span=span,
    )


def _hint(name: str, known: list[str], everything: str) -> str:
    close = nearest(name, known)
    return f"did you mean '{close[0]}'? {everything}" if close else everything


def _quoted(name: str) -> str:
    """The name as an error may quote it: whatever is no plain name could be an address with a password."""
    if not is_plain_name(name):
        return ""
    return f" '{name}'" if len(name) <= _LONGEST_NAME else f" '{name[:_LONGEST_NAME]}…'"


for _spec in _OURS:
    register_connector(_spec)
for _format in FORMATS:
    register_format(_format)
