"""Rows of a table found by a key, many at a time: the table in the order of the key, and a binary search in it.

Mapped from a file, the table costs no memory of the process that searches it: all processes of a machine share it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def sorted_by(table: pa.Table, key: str) -> pa.Table:
    """The rows that have a key, in its order, in one chunk."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = table.filter(pc.is_valid(table.column(key))).combine_chunks()
    keys = found.column(key)
    if pa.types.is_integer(keys.type):
        order = pa.array(keys.to_numpy().argsort(kind="stable"))  # several times faster than Arrow's own
    else:
        order = pc.sort_indices(keys)
    return found.take(order).combine_chunks()


class KeyIndex:
    """A table in the order of a key that no two rows share."""

    def __init__(self, table: pa.Table, key: str) -> None:
        self._table = table
        self._keys = _one_array(table.column(key))

    def rows(self, keys: pa.Array, columns: Sequence[str]) -> pa.StructArray:
        """For each key the row that has it, as a struct of these columns; NULL where there is none."""
        import pyarrow as pa
        import pyarrow.compute as pc

        found = self.places(keys)
        arrays = [_one_array(self._table.column(name)).take(found) for name in columns]
        fields = [self._table.schema.field(name) for name in columns]
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=pc.is_null(found))

    def places(self, keys: pa.Array) -> pa.Array:
        """For each key the number of its row; NULL where there is none."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if len(self._keys) == 0:
            return pa.nulls(len(keys), pa.int64())
        wanted = keys if keys.type == self._keys.type else keys.cast(self._keys.type)
        places = pc.min_element_wise(_search(self._keys, wanted), len(self._keys) - 1, skip_nulls=False)
        hit = pc.equal(self._keys.take(places), wanted)
        return pc.if_else(pc.fill_null(hit, False), places, pa.scalar(None, pa.int64()))


def _search(ordered: pa.Array, wanted: pa.Array) -> pa.Array:
    """Where each value would stand in an ordered array."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if hasattr(pc, "search_sorted"):
        return pc.search_sorted(ordered, wanted).cast(pa.int64())
    if pa.types.is_integer(ordered.type):
        found = ordered.to_numpy().searchsorted(pc.fill_null(wanted, 0).to_numpy(zero_copy_only=False))
        return pa.array(found, pa.int64(), mask=pc.is_null(wanted).to_numpy(zero_copy_only=False))
    return pc.index_in(wanted, ordered).cast(
        pa.int64()
    )  # an Arrow that cannot search makes a table of hashes each time


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    import pyarrow as pa

    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
