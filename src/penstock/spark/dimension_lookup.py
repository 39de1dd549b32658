"""A dimension as Spark's workers ask it: a function from keys to rows, over the version that the batch sees.

The index of a version is a file that was written when the version came, mapped once by each worker and kept: a batch
sends nothing but its keys, and gets back the rows that were found.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.stores.dimensions import index_file, missing, version_file
from penstock.stores.key_index import KeyIndex, sorted_by

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.connectors.dimension_reader import DimensionReading

# Versions that a worker keeps open: the one in force and those of batches that run again.
_KEPT: Final = 8
_indexes: dict[Path, KeyIndex] = {}


@dataclass(frozen=True)
class DimensionLookup:
    """What Spark is given as the function: keys in, a struct of the columns out, NULL where no row has the key."""

    reading: DimensionReading
    key: str
    columns: tuple[str, ...]

    def __call__(self, keys: pa.Array) -> pa.Array:
        """One batch of keys."""
        index = _index(self.reading.name, Path(self.reading.directory), self.reading.version(), self.key)
        return index.rows(keys, self.columns)


def _index(name: str, directory: Path, number: int, key: str) -> KeyIndex:
    path = index_file(directory, number, key)
    found = _indexes.get(path)
    if found is None:
        while len(_indexes) >= _KEPT:
            del _indexes[next(iter(_indexes))]
        found = _indexes[path] = KeyIndex(_table(name, directory, number, key), key)
    return found


def _table(name: str, directory: Path, number: int, key: str) -> pa.Table:
    """The version in the order of the key: its file, or made here where the version was small when it came."""
    import pyarrow as pa

    path = index_file(directory, number, key)
    whole = path.exists()
    source = path if whole else version_file(directory, number)
    if not source.exists():
        raise missing(name, number)
    with pa.memory_map(str(source)) as mapped:
        table = pa.ipc.open_file(mapped).read_all()
    return table if whole else sorted_by(table, key)
