"""What option resolution gives: frozen, typed, and safe to print."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Literal

from penstock.frozen import frozen
from penstock.options.schema import Changes, Role
from penstock.options.values import Deferred
from penstock.secrets import MASK, Secret
from penstock.sql.statements import Option

PassedValue = str | Secret | Deferred
Origin = Literal["statement", "setting", "default"]


@frozen
class ResolvedOptions:
    """The options of a source or sink.

    values: typed values by canonical key, defaults included. A secret one is a `Secret`, one with references inside a
        `Deferred`; durations are timedelta, times are datetime, lists are tuples.
    given: the canonical keys that the statement gave; from_settings: those whose value a setting gave.
    canonical: what the statement gave, with canonical keys and values, in its order, the FORMAT clause included.
    secret_keys: the keys of `values` and `canonical` whose values are never shown.
    passthrough: client properties by their own name, without the prefix.
    role: what the statement makes of it; roles: what it could also serve as, because no `type` narrows it.
    changes: what a source yields, or what a sink can take.
    available: whether this version runs the connector and the format; False means declared, to run later.
    """

    connector: str
    format: str | None
    role: Role
    roles: frozenset[Role]
    values: Mapping[str, object] = field(hash=False)
    given: frozenset[str] = frozenset()
    from_settings: frozenset[str] = frozenset()
    canonical: tuple[Option, ...] = ()
    secret_keys: frozenset[str] = frozenset()
    passthrough: Mapping[str, PassedValue] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    bounded: bool = False
    changes: Changes = "append"
    available: bool = False
    event_time_field: str | None = None
    watermark_field: str | None = None
    notices: tuple[str, ...] = ()

    def shown(self) -> dict[str, str]:
        """Every value as text, secrets masked: what DESCRIBE and `penstock.options` print."""
        return _shown(self.values, self.secret_keys)

    def origin(self, key: str) -> Origin:
        """Where the value of a key comes from."""
        if key in self.given:
            return "statement"
        return "setting" if key in self.from_settings else "default"


@frozen
class ResolvedViewOptions:
    """The options of a materialized view or of an INSERT: those of its job."""

    values: Mapping[str, object] = field(hash=False)
    given: frozenset[str] = frozenset()
    from_settings: frozenset[str] = frozenset()
    canonical: tuple[Option, ...] = ()
    secret_keys: frozenset[str] = frozenset()
    notices: tuple[str, ...] = ()

    @property
    def late(self) -> str:
        return str(self.values["late"])

    @property
    def state(self) -> str | None:
        return _text(self.values.get("state"))

    @property
    def state_backend(self) -> str:
        return str(self.values["state_backend"])

    @property
    def state_ttl(self) -> timedelta | None:
        return _duration(self.values.get("state_ttl"))

    @property
    def mode(self) -> str:
        return str(self.values["mode"])

    @property
    def parallelism(self) -> int | None:
        return _integer(self.values.get("parallelism"))

    @property
    def max_rows_per_batch(self) -> int | None:
        return _integer(self.values.get("max_rows_per_batch"))

    @property
    def freshness(self) -> timedelta | None:
        return _duration(self.values.get("freshness"))

    @property
    def job_name(self) -> str | None:
        return _text(self.values.get("job_name"))

    def shown(self) -> dict[str, str]:
        """Every value as text."""
        return _shown(self.values, self.secret_keys)


def show(value: object) -> str:
    """A typed value as people read it; secrets come out masked."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, timedelta):
        return _duration_text(value)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, tuple):
        return ", ".join("=".join(map(str, part)) if isinstance(part, tuple) else str(part) for part in value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _shown(values: Mapping[str, object], secret: frozenset[str]) -> dict[str, str]:
    text: dict[str, str] = {}
    for key, value in values.items():
        if value is None:
            continue
        hidden = isinstance(value, Secret) or (key in secret and not isinstance(value, Deferred))
        if isinstance(value, Deferred) and key not in secret:
            text[key] = value.text.reveal()
        else:
            text[key] = MASK if hidden else show(value)
    return text


def _duration_text(length: timedelta) -> str:
    rest = length // timedelta(microseconds=1)
    for name, unit in (
        ("day", 86_400_000_000),
        ("hour", 3_600_000_000),
        ("minute", 60_000_000),
        ("second", 1_000_000),
        ("millisecond", 1_000),
    ):
        if rest and rest % unit == 0:
            return f"{rest // unit} {name}{'' if rest == unit else 's'}"
    return f"{rest} microseconds" if rest else "0 seconds"


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _duration(value: object) -> timedelta | None:
    return value if isinstance(value, timedelta) else None
