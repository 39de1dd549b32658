"""The function of the user's that query 14 calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def count_char(text: pa.Array, letter: pa.Array) -> pa.Array:
    """How often a letter, the same for all rows, stands in each text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if len(text) == 0:
        return pa.array([], pa.int64())
    return pc.count_substring(text, letter[0].as_py()).cast(pa.int64())
