"""How a job joins its dimensions: by a broadcast, by asking for rows, or by a shuffle.

Spark sends a broadcast to its tasks again in every batch, which is quick for a small dimension and grows with it. Rows
of a large one are asked for by key instead, where the join is by one key that no two rows share. What is larger than
the limits, or is not to be broadcast, is shuffled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from penstock.catalog.model import DimensionDefinition, SourceDefinition
from penstock.options.settings import default_settings
from penstock.options.units import show_size
from penstock.runtime.dimension_rows import repeated_keys

if TYPE_CHECKING:
    from penstock.plan.job_plan import JobPlan
    from penstock.spark.dimension_frames import JoinMethod
    from penstock.stores.dimensions import DimensionStore, DimensionVersion

Looked = DimensionDefinition | SourceDefinition  # what can be looked up: a dimension, or a table that ends

# From so many rows on they are asked for: a small batch then takes less than half of what sending them takes, and a
# large one no more (benchmarks/dimensions.py). With fewer, what is sent is little, and rows need no Python.
LOOKUP_ROWS: Final = 200_000


class JoinMethods:
    """Decides by size and keys. `settings` gives the settings in force; `lookup_rows` is where asking begins."""

    def __init__(self, store: DimensionStore, settings: Callable[[], Mapping[str, object]]) -> None:
        self._store = store
        self._settings = settings
        self._repeated: dict[tuple[str, int, tuple[str, ...]], int] = {}
        self.lookup_rows = LOOKUP_ROWS

    def of(
        self, plan: JobPlan, definitions: Mapping[str, Looked], versions: Mapping[str, Sequence[DimensionVersion]]
    ) -> dict[str, JoinMethod]:
        """The method for each reading of a dimension, by its id.

        `versions` are, by relation, those that batches of the job may see, the newest last.
        """
        found: dict[str, JoinMethod] = {}
        for dimension in plan.dimensions:
            if dimension.kept:
                found[dimension.id] = "kept"
                continue
            why = self.why_shuffle(definitions[dimension.relation], versions[dimension.relation][-1])
            found[dimension.id] = "broadcast" if why is None else "shuffle"
        lookups = plan.lookup.lookups if plan.lookup is not None else ()
        asked = [lookup for lookup in lookups if found[lookup.dimension.id] == "broadcast"]
        if len(asked) < len(lookups):
            return found  # the text with calls has calls for all of them
        if not any(versions[lookup.dimension.relation][-1].rows >= self.lookup_rows for lookup in asked):
            return found
        for lookup in asked:
            relation = lookup.dimension.relation
            if definitions[relation].primary_key == (lookup.key,):
                continue
            if any(self.repeated(relation, version.number, (lookup.key,)) for version in versions[relation]):
                return found
        return {**found, **{lookup.dimension.id: "lookup" for lookup in asked}}

    def why_shuffle(self, definition: Looked, version: DimensionVersion) -> str | None:
        """Why a dimension is not broadcast; None where it may be."""
        if isinstance(definition, DimensionDefinition) and not definition.broadcast:
            return "broadcast = False"
        limit, most = self.setting("broadcast_max_bytes"), self.setting("broadcast_max_rows")
        if version.bytes > limit:
            return f"{show_size(version.bytes)} is over broadcast_max_bytes ({show_size(limit)})"
        if version.rows > most:
            return f"{version.rows} rows are over broadcast_max_rows ({most})"
        return None

    def repeated(self, name: str, number: int, key: tuple[str, ...]) -> int:
        """How many keys stand in more than one row of a version."""
        mark = (name, number, key)
        if mark not in self._repeated:
            self._repeated[mark] = repeated_keys(self._store.read(name, number), key)
        return self._repeated[mark]

    def forget(self, name: str) -> None:
        """A dimension was dropped; another may get its name, and its numbers."""
        self._repeated = {mark: count for mark, count in self._repeated.items() if mark[0] != name}

    def setting(self, key: str) -> int:
        """A setting that is a number."""
        value = self._settings().get(key, default_settings()[key])
        assert isinstance(value, int)
        return value
