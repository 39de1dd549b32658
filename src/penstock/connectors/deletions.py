"""What becomes of rows that are handed over with an operation: `_op` is 'insert', 'update', 'upsert' or 'delete'."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from penstock.connectors.metadata_columns import DELETE, OPERATION
from penstock.errors import RuntimeFailure

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.catalog.model import SinkDefinition, SourceDefinition

_WORDS: Final = {None: "insert", "insert": "insert", "update": "insert", "upsert": "insert", DELETE: DELETE}


def checked_operations(given: pa.ChunkedArray, relation: SourceDefinition | SinkDefinition) -> list[str]:
    """The operation of each row; a row without one is there from now on."""
    found = given.to_pylist()
    for place, word in enumerate(found, start=1):
        if word not in _WORDS:
            raise RuntimeFailure(
                "INVALID_ROWS",
                f'row {place} for "{relation.name}" has the operation {word[:40]!r}',
                hint=f"{OPERATION} is 'insert', 'update', 'upsert' or '{DELETE}'",
            )
    return [_WORDS[word] for word in found]


def deletion_headers(operations: Sequence[str]) -> pa.Array:
    """The headers of records of a topic of ours: those of deleted rows say so."""
    import pyarrow as pa

    header = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
    marked = [{"key": OPERATION, "value": DELETE.encode()}]
    return pa.array(
        [marked if operation == DELETE else None for operation in operations], pa.list_(pa.field("element", header))
    )
