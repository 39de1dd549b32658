"""A sink that throws rows away, for measurements: Spark does all the work and nothing is kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.catalog.model import SinkDefinition
    from penstock.connectors.sink import SinkContext
    from penstock.stores.topics.store import TopicStore


class BlackholeSink:
    """Takes everything, keeps nothing."""

    takes_frame = True
    exactly_once = True

    def prepare(self, definition: SinkDefinition, state_path: Path, topics: TopicStore) -> None:
        """Nothing is needed."""

    def forget(self, definition: SinkDefinition, state_path: Path, topics: TopicStore) -> None:
        """Nothing was made."""

    def write(self, rows: pa.Table, context: SinkContext, batch_id: int | None) -> None:
        """Gone."""
