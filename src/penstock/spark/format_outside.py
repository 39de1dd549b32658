"""What the formats of a state directory may reach: its allowed directories, its secrets, and schema registries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from penstock.connectors.schema_registry import SchemaRegistry, registry_of
from penstock.connectors.secret_values import revealed
from penstock.formats import KeptReadings, Outside


def outside_for(state_path: Path, roots: tuple[str, ...] | None, kept: KeptReadings | None = None) -> Outside:
    """The same for sources and sinks; `roots` are where files may lie, None: anywhere. `kept`: what was read before."""

    def reveal(value: object) -> object:
        return revealed(value, state_path)

    def registry(options: Mapping[str, object]) -> SchemaRegistry:
        return registry_of(options, reveal)

    return Outside(roots, reveal, registry, kept)
