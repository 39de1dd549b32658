"""What statements see and change: the catalog, the settings, the jobs that have been started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from datetime import timedelta
from types import MappingProxyType

from penstock.catalog.snapshot import Catalog
from penstock.frozen import frozen
from penstock.plan.context import PlanSettings
from penstock.secrets import Secret
from penstock.sql.dialects.defaults import DEFAULTS
from penstock.sql.statements import Emit

_NO_SECRETS: Mapping[str, Secret] = MappingProxyType({})
_EMPTY: Mapping[str, object] = MappingProxyType({})


@frozen
class Session:
    """A catalog snapshot and the settings in force. Every statement gives a new one.

    `secrets` are the values behind stored statements, by name: of CREATE SECRET, and of options that held one.
    """

    catalog: Catalog = field(default_factory=Catalog)
    settings: Mapping[str, object] = field(default_factory=lambda: _EMPTY)
    jobs: frozenset[str] = frozenset()
    secrets: Mapping[str, Secret] = field(default_factory=lambda: _NO_SECRETS, repr=False)
    lenient: bool = False

    def plan_settings(self) -> PlanSettings:
        """The settings that change what a query means."""
        dialect = str(self.settings.get("dialect", "penstock"))
        defaults = DEFAULTS[dialect]
        delay = self.settings.get("default_watermark_delay", timedelta(seconds=5))
        assert isinstance(delay, timedelta)
        return PlanSettings(
            dialect=dialect,
            default_watermark_delay_us=delay // timedelta(microseconds=1),
            emit_changes_always=defaults.windows is Emit.CHANGES,
            truncating_division=defaults.integer_division,
        )

    def with_catalog(self, catalog: Catalog) -> Session:
        return replace(self, catalog=catalog)

    def with_job(self, name: str) -> Session:
        return replace(self, jobs=self.jobs | {name})

    def without_job(self, name: str) -> Session:
        return replace(self, jobs=frozenset(job for job in self.jobs if job.casefold() != name.casefold()))

    def with_setting(self, key: str, value: object) -> Session:
        return replace(self, settings=MappingProxyType({**self.settings, key: value}))

    def without_setting(self, key: str | None) -> Session:
        kept = {} if key is None else {other: value for other, value in self.settings.items() if other != key}
        return replace(self, settings=MappingProxyType(kept))
