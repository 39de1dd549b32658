"""Which partition a row goes to: a hash of its key that is the same in every process and version."""

from __future__ import annotations

import datetime as dt
import decimal
import hashlib
import math
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import RuntimeFailure

if TYPE_CHECKING:
    import pyarrow as pa

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def choose_partitions(table: pa.Table, partitions: int, key_columns: Sequence[str]) -> dict[int, pa.Array]:
    """The numbers of the rows of each partition that gets some, in their order.

    Rows with the same key go to the same partition; NULL is a key like any other.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = table.num_rows
    if partitions == 1 or not rows:
        return {0: pa.arange(0, rows)} if rows else {}
    chosen = _chosen(table, partitions, key_columns)
    order = pc.array_sort_indices(chosen)
    counts = {entry["values"]: entry["counts"] for entry in pc.value_counts(chosen).to_pylist()}
    found: dict[int, pa.Array] = {}
    first = 0
    for partition in sorted(counts):
        found[partition] = order.slice(first, counts[partition])
        first += counts[partition]
    return found


def partitions_of(table: pa.Table, partitions: int, key_columns: Sequence[str]) -> list[int]:
    """The partition of each row; without a key column they are all in one."""
    if partitions == 1 or not key_columns or not table.num_rows:
        return [0] * table.num_rows
    return list(_chosen(table, partitions, key_columns).to_pylist())


def whole_row_key(table: pa.Table, names: Sequence[str]) -> list[str]:
    """The columns among those named by which the same row always finds the same partition."""
    import pyarrow as pa

    return [name for name in names if not pa.types.is_nested(table.schema.field(name).type)]


def key_partition(values: Sequence[Any], partitions: int) -> int:
    """The partition of one key, given as the values of its columns.

    >>> key_partition(["AAPL"], 4), key_partition([None], 4)
    (1, 2)
    """
    parts = [_canonical(value) for value in values]
    whole = b"".join(struct.pack("<I", len(part)) + part for part in parts)
    return int.from_bytes(hashlib.blake2b(whole, digest_size=8).digest(), "little") % partitions


def _chosen(table: pa.Table, partitions: int, key_columns: Sequence[str]) -> pa.Array:
    """The partition of each row; each different key is hashed once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    codes: pa.Array | None = None
    keys: list[tuple[Any, ...]] = [()]
    for name in key_columns:
        column = _key_column(table, name).combine_chunks().dictionary_encode(null_encoding="encode")
        values = column.dictionary.to_pylist()
        own = column.indices.cast(pa.int64())
        if codes is not None:
            own = pc.add(pc.multiply(codes, pa.scalar(len(values), pa.int64())), own)
        pairs = own.dictionary_encode()
        codes = pairs.indices.cast(pa.int64())
        keys = [(*keys[code // len(values)], values[code % len(values)]) for code in pairs.dictionary.to_pylist()]
    assert codes is not None, "a key has at least one column"
    return pa.array([key_partition(key, partitions) for key in keys], pa.int32()).take(codes)


def _key_column(table: pa.Table, name: str) -> pa.ChunkedArray:
    import pyarrow as pa

    if name not in table.schema.names:
        raise RuntimeFailure(
            "INVALID_ROWS", f"there is no column {name} to be the key", hint=f"columns: {', '.join(table.schema.names)}"
        )
    column = table.column(name)
    if pa.types.is_nested(column.type):
        raise RuntimeFailure(
            "INVALID_ROWS",
            f"column {name} is {column.type} and cannot be a key",
            hint="choose a column of a plain type",
        )
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column


def _canonical(value: Any) -> bytes:
    """The bytes of a value: equal for equal values, whatever the width of the type that holds them."""
    match value:
        case None:
            return b""
        case bool():
            return b"?1" if value else b"?0"
        case str():
            return b"s" + value.encode()
        case bytes():
            return b"b" + value
        case int():
            return b"n%d" % value
        case float():
            return b"f" + struct.pack("<d", math.nan if math.isnan(value) else value + 0.0)
        case decimal.Decimal():
            return b"n" + format(value.normalize() if value else decimal.Decimal(0), "f").encode()
        case dt.datetime():
            aware = value if value.utcoffset() is not None else value.replace(tzinfo=dt.UTC)
            return b"n%d" % ((aware - _EPOCH) // dt.timedelta(microseconds=1))
        case dt.date():
            return b"d%d" % value.toordinal()
        case _:
            return b"r" + repr(value).encode()
