"""The difference between two catalogs as a list of changes, for the store to apply as one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import TypeAlias

from penstock.catalog.model import Definition, ObjectKey
from penstock.catalog.snapshot import Catalog
from penstock.frozen import frozen

_NO_SETTINGS: Mapping[str, str] = MappingProxyType({})


@frozen
class PutObject:
    """Create an object or replace its definition. `settings` were in force then, and are again when it is read back."""

    definition: Definition
    settings: Mapping[str, str] = field(default_factory=lambda: _NO_SETTINGS)


@frozen
class RemoveObject:
    """Remove an object."""

    key: ObjectKey


@frozen
class ChangeSetting:
    """Set a setting to a canonical value, or back to its default with None."""

    key: str
    value: str | None


Change: TypeAlias = PutObject | RemoveObject | ChangeSetting


def changes_between(old: Catalog, new: Catalog, settings: Mapping[str, str] = _NO_SETTINGS) -> tuple[Change, ...]:
    """What turns one catalog into the other: first what goes, last made first, then what comes, needs first."""
    gone = [RemoveObject(item.object_key) for item in reversed(old.ordered()) if item.object_key not in new]
    come = [PutObject(item, settings) for item in new.ordered() if not _unchanged(old, item)]
    return (*gone, *come)


def _unchanged(old: Catalog, item: Definition) -> bool:
    key = item.object_key
    return key in old and (old[key] is item or (old[key] == item and old[key].text == item.text))
