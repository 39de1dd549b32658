"""Between the rows of an append and the payloads of frames."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from penstock.errors import RuntimeFailure
from penstock.stores.topics.frames import NO_HEADERS, NO_KEY, NO_TIMESTAMP, Frame
from penstock.stores.topics.layout import HEADERS, KEY, TIMESTAMP

if TYPE_CHECKING:
    import pyarrow as pa

# A frame is what is checked and read at once: large enough to be quick, small enough to be handed on as one batch.
_FRAME_BYTES: Final = 16 * 1024 * 1024
_FRAME_ROWS: Final = 65_536

_FLAGS: Final = {TIMESTAMP: NO_TIMESTAMP, KEY: NO_KEY, HEADERS: NO_HEADERS}


def payload_flags(data: pa.RecordBatch | pa.Table) -> int:
    """Which of the hidden columns an append does not give."""
    given = set(data.schema.names)
    return sum(flag for name, flag in _FLAGS.items() if name not in given)


@lru_cache(maxsize=64)
def payload_schema(schema: pa.Schema, flags: int) -> pa.Schema:
    """The schema of a payload: the stored record without the hidden columns that are left out."""
    import pyarrow as pa

    return pa.schema([field for field in schema if not flags & _FLAGS.get(field.name, 0)])


def payloads(topic: str, data: pa.RecordBatch | pa.Table, schema: pa.Schema) -> list[tuple[int, pa.Buffer]]:
    """The rows of an append as payloads, each with its number of rows."""
    fitting = _fitted(topic, data, payload_schema(schema, payload_flags(data)))
    return [(batch.num_rows, batch.serialize()) for batch in _frames(fitting)]


def _fitted(topic: str, data: pa.RecordBatch | pa.Table, schema: pa.Schema) -> pa.RecordBatch | pa.Table:
    import pyarrow as pa

    if data.schema.equals(schema):
        return data
    names = data.schema.names
    wrong = sorted(set(names) - set(schema.names)) + sorted({name for name in names if names.count(name) > 1})
    if wrong:
        raise RuntimeFailure(
            "INVALID_ROWS",
            f"topic {topic} has no column {wrong[0]}" if wrong[0] not in schema.names else f"{wrong[0]} is given twice",
            hint=f"columns: {', '.join(schema.names)}",
        )
    table = pa.table(data) if isinstance(data, pa.RecordBatch) else data
    columns = []
    for field in schema:
        if field.name not in names:
            columns.append(pa.chunked_array([pa.nulls(table.num_rows, field.type)]))
            continue
        column = table.column(field.name)
        try:
            columns.append(column if column.type == field.type else column.cast(field.type))
        except pa.ArrowException as error:
            raise RuntimeFailure(
                "INVALID_ROWS",
                f"topic {topic}, column {field.name}: {str(error)[:200].lower()}",
                hint=f"the column holds {field.type}",
            ) from None
    return pa.Table.from_arrays(columns, schema=schema)


def _frames(data: pa.RecordBatch | pa.Table) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    rows = data.num_rows
    each = max(1, min(_FRAME_ROWS, _FRAME_BYTES * rows // max(1, data.nbytes)))
    for first in range(0, rows, each):
        part = data if rows <= each else data.slice(first, each)
        if isinstance(part, pa.RecordBatch):
            yield part
        else:
            # More than one batch only where a column has over 2 GiB.
            yield from part.combine_chunks().to_batches()


def read_payload(data: memoryview, frame: Frame, start: int, schema: pa.Schema) -> pa.RecordBatch:
    """The rows of a frame, in place; `start` is where its payload begins."""
    import pyarrow as pa

    buffer = pa.py_buffer(data[start : start + frame.payload_bytes])
    return pa.ipc.read_record_batch(buffer, payload_schema(schema, frame.flags))


def hidden_column(name: str, frame: Frame, rows: int, type_: pa.DataType) -> pa.Array:
    """A hidden column that is not in the payload."""
    import pyarrow as pa

    if name == TIMESTAMP:
        return pa.repeat(pa.scalar(frame.appended_us, pa.int64()), rows).view(type_)
    return pa.nulls(rows, type_)
