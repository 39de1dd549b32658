"""A dimension table in the hand of a program: rows by key, and batches enriched with them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from penstock.errors import ResolutionError
from penstock.runtime.dimension_join import joined
from penstock.stores.key_index import KeyIndex, sorted_by

if TYPE_CHECKING:
    import pyarrow as pa


class DimensionTable:
    """The rows of one version, found by a key; of several rows with the same key the first one is found.

    >>> import pyarrow as pa
    >>> table = DimensionTable(pa.table({"id": ["A", "B"], "name": ["Apple", "Bee"]}), "id")
    >>> len(table), "B" in table, table["B"]["name"], table.get("C", "nobody")
    (2, True, 'Bee', 'nobody')
    """

    def __init__(self, table: pa.Table, key: str) -> None:
        if key not in table.column_names:
            raise ResolutionError(
                "UNKNOWN_COLUMN",
                f'the dimension has no column "{key}"',
                hint="the columns are: " + ", ".join(table.column_names),
            )
        self.table = table
        self.key = key
        self._index = KeyIndex(sorted_by(table, key), key)

    def __len__(self) -> int:
        count: int = self.table.num_rows
        return count

    def __contains__(self, key: object) -> bool:
        return self._find([key])[0] is not None

    def __getitem__(self, key: object) -> dict[str, Any]:
        found = self._find([key])[0]
        if found is None:
            raise KeyError(key)
        return found

    def get(self, key: object, default: Any = None) -> Any:
        """The row of a key as a dict, or `default`."""
        found = self._find([key])[0]
        return default if found is None else found

    def get_many(self, keys: Iterable[object]) -> list[dict[str, Any] | None]:
        """The rows of many keys in one search; None for those without one."""
        return self._find(list(keys))

    def scan(self, limit: int | None = None) -> pa.Table:
        """The rows in their order, at most `limit` of them."""
        return self.table if limit is None else self.table.slice(0, limit)

    def enrich(
        self, batch: pa.Table | pa.RecordBatch, on: str | None = None, how: Literal["inner", "left"] = "left"
    ) -> pa.Table:
        """The rows of a batch with the columns of the dimension; `on` is the column of the batch that has the key."""
        return joined(batch, self.table, {on or self.key: self.key}, how)

    def _find(self, keys: list[object]) -> list[dict[str, Any] | None]:
        import pyarrow as pa

        try:
            wanted = pa.array(keys, self.table.schema.field(self.key).type)
        except (pa.ArrowException, TypeError, OverflowError):
            if len(keys) == 1:
                return [None]  # a value that the column cannot hold is in no row
            return [found for key in keys for found in self._find([key])]
        found: list[dict[str, Any] | None] = self._index.rows(wanted, self.table.column_names).to_pylist()
        return found
