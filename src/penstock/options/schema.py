"""What a schema is made of: options, connectors and formats as frozen values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Final, Literal

from penstock.frozen import frozen
from penstock.options.values import Kind

Role = Literal["source", "sink", "lookup"]
Changes = Literal["append", "upsert", "retract"]

SOURCE: Final[frozenset[Role]] = frozenset({"source"})
SINK: Final[frozenset[Role]] = frozenset({"sink"})
READ: Final[frozenset[Role]] = frozenset({"source", "lookup"})
BOTH: Final[frozenset[Role]] = frozenset({"source", "sink"})
ANY: Final[frozenset[Role]] = frozenset({"source", "sink", "lookup"})


@frozen
class Alias:
    """Another spelling of an option; `unit` is what a bare number means there, `values` what its words mean here."""

    key: str
    unit: str | None = None
    values: Mapping[str, str] = field(default_factory=dict, hash=False)


@frozen
class OptionSpec:
    """One option: canonical key, kind of value, default, aliases, who may give it, whether it is secret.

    `literal`: the plan itself needs the value, so that a reference, which is read only at run time, is refused.
    `setting` names the setting that gives the value when the statement does not; it wins over `default`.
    `idle` says why the option changes nothing here; who gives it is told so by a notice.
    """

    key: str
    kind: Kind
    summary: str
    default: object = None
    aliases: tuple[str | Alias, ...] = ()
    roles: frozenset[Role] = ANY
    secret: bool = False
    required: bool = False
    literal: bool = False
    setting: str | None = None
    idle: str | None = None

    def spellings(self) -> tuple[Alias, ...]:
        """The canonical key and every alias."""
        return (Alias(self.key), *(Alias(alias) if isinstance(alias, str) else alias for alias in self.aliases))


@frozen
class OptionFamily:
    """Options with a free part in their key, such as `fields.<column>.kind`: a prefix, a name, and what follows it."""

    prefix: str
    name: str
    members: tuple[OptionSpec, ...]
    summary: str


@frozen
class Passthrough:
    """Client properties handed on under `canonical` + name; `prefixes` are the spellings, `allowed` the closed list.

    `idle` are those that are taken and not handed on, each with the reason, which a notice tells.
    """

    canonical: str
    prefixes: tuple[str, ...]
    allowed: Mapping[str, Kind] = field(hash=False)
    secret: frozenset[str]
    summary: str
    idle: Mapping[str, str] = field(default_factory=dict, hash=False)


class Problem(Exception):
    """What a check of a connector found: condition, message, and the option it is about (None: the whole clause)."""

    def __init__(self, condition: str, message: str, *, hint: str | None = None, key: str | None = None) -> None:
        self.condition = condition
        self.message = message
        self.hint = hint
        self.key = key
        super().__init__(message)


@frozen
class Draft:
    """What a check sees: typed values with defaults, the keys that the statement gave, the role, the settings."""

    connector: str
    role: Role
    values: Mapping[str, object]
    given: frozenset[str]
    settings: Mapping[str, object]


def _never(draft: Draft) -> bool:
    return False


def _no_values(draft: Draft) -> Mapping[str, object]:
    return {}


def _nothing(draft: Draft) -> tuple[str, ...]:
    return ()


@frozen
class ConnectorSpec:
    """A connector: its options, roles, formats and what its data looks like.

    alias_options: options that an alias says by itself.
    formats: the formats it takes, () where it takes none.
    default_format: the one taken when none is given; None keeps typed columns.
    changes, sink_changes: what a source yields and what a sink can take where the format does not say otherwise.
    bounded: whether a source ends, given its options.
    check: raises `Problem` for what no single option can tell. derive: values that follow from others.
    notices: what the user should know about defaults.
    available: whether this version runs it; a connector that is only declared is accepted in planning.
    """

    name: str
    summary: str
    options: tuple[OptionSpec, ...]
    aliases: tuple[str, ...] = ()
    alias_options: Mapping[str, Mapping[str, str]] = field(default_factory=dict, hash=False)
    roles: frozenset[Role] = BOTH
    formats: tuple[str, ...] = ()
    default_format: str | None = None
    families: tuple[OptionFamily, ...] = ()
    passthrough: Passthrough | None = None
    changes: Changes = "append"
    sink_changes: Changes = "append"
    bounded: Callable[[Draft], bool] = _never
    check: Callable[[Draft], object] = _nothing
    derive: Callable[[Draft], Mapping[str, object]] = _no_values
    notices: Callable[[Draft], tuple[str, ...]] = _nothing
    available: bool = False


@frozen
class FormatSpec:
    """A format: its options (their keys begin with the format's name) and the kind of change its records carry."""

    name: str
    summary: str
    options: tuple[OptionSpec, ...] = ()
    aliases: tuple[str, ...] = ()
    changes: Changes | None = None
    available: bool = False
