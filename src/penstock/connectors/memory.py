"""The memory connector: rows that a program hands over and that last as long as the database is open.

They are kept in a topic that is never forced to disk and is gone when the database is closed. A job that has read some
of them cannot go on after that, and says so; one that has not begins with whatever is handed over next.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, ClassVar, Final

from penstock.connectors.metadata_columns import topic_name
from penstock.connectors.topic import TopicSource, topic_layout
from penstock.stores.topics.store import TopicStore

if TYPE_CHECKING:
    from penstock.catalog.model import SourceDefinition
    from penstock.connectors.range_reader import RangeDataSource

_FOLDER: Final = "memory"
_lock: Final = Lock()
_stores: Final[dict[Path, TopicStore]] = {}


def memory_topics(state_path: Path) -> TopicStore:
    """The topics of the memory streams of an open database."""
    with _lock:
        return _stores.setdefault(state_path, TopicStore(state_path / _FOLDER))


def clear_memory(state_path: Path) -> None:
    """Forget every row: the database is opened or closed."""
    with _lock:
        store = _stores.pop(state_path, None)
    if store is not None:
        store.close()
    shutil.rmtree(state_path / _FOLDER, ignore_errors=True)


class MemorySource(TopicSource):
    """Reads memory streams."""

    folder: ClassVar[str] = _FOLDER

    def data_source(self) -> type[RangeDataSource]:
        from penstock.connectors.memory_reader import MemoryDataSource

        return MemoryDataSource

    def prepare(self, definition: SourceDefinition, state_path: Path, topics: TopicStore) -> None:
        memory_topics(state_path).create(topic_name(definition), replace(topic_layout(definition), fsync="never"))

    def forget(self, definition: SourceDefinition, state_path: Path, topics: TopicStore) -> None:
        super().forget(definition, state_path, memory_topics(state_path))
