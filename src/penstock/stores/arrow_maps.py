"""Maps in which a key stands twice, as records of other programs may have them: DuckDB has none.

The last value of a key counts, as it does for a name that comes twice in a JSON record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def with_keys_once(table: pa.Table) -> pa.Table:
    """The table with maps in which each key stands once; the same table where they all do."""
    for place, field in enumerate(table.schema):
        if not has_maps(field.type):
            continue
        column = table.column(place)
        if any(_comes_twice(chunk) for chunk in column.chunks):
            table = table.set_column(place, field, _rebuilt(column))
    return table


def has_maps(kind: pa.DataType) -> bool:
    """Whether there are maps in values of a type."""
    import pyarrow as pa

    if pa.types.is_map(kind):
        return True
    return any(has_maps(kind.field(place).type) for place in range(kind.num_fields))


def _comes_twice(values: pa.Array) -> bool:
    """Whether a key stands twice in one of the maps."""
    import pyarrow as pa

    kind = values.type
    if pa.types.is_map(kind):
        offsets = values.offsets.to_numpy()
        first, last = int(offsets[0]), int(offsets[-1])
        keys, items = values.keys.slice(first, last - first), values.items.slice(first, last - first)
        return _twice_in_one(keys, offsets - first) or (has_maps(kind.item_type) and _comes_twice(items))
    if pa.types.is_struct(kind):
        inner = [field.type for field in kind]
        return any(has_maps(each) and _comes_twice(values.field(place)) for place, each in enumerate(inner))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return has_maps(kind.value_type) and _comes_twice(values.flatten())
    return False


def _twice_in_one(keys: pa.Array, offsets: Any) -> bool:
    """Whether, of the maps that begin at the offsets, one has a key twice."""
    import numpy as np
    import pyarrow as pa

    try:
        codes = keys.dictionary_encode()
    except pa.ArrowNotImplementedError:  # keys that are structs or lists, which no format brings
        return False
    owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    places = owners * len(codes.dictionary) + codes.indices.to_numpy(zero_copy_only=False)
    return len(np.unique(places)) < len(places)


def _rebuilt(column: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa

    return pa.chunked_array([pa.array([_once(value, column.type) for value in column.to_pylist()], column.type)])


def _once(value: Any, kind: pa.DataType) -> Any:
    """A value whose maps have each key once."""
    import pyarrow as pa

    if value is None or not has_maps(kind):
        return value
    if pa.types.is_map(kind):
        return list({key: _once(item, kind.item_type) for key, item in value}.items())
    if pa.types.is_struct(kind):
        return {field.name: _once(value[field.name], field.type) for field in kind}
    return [_once(each, kind.value_type) for each in value]
