"""`penstock.WindowOperator`: the window aggregation of the texts, with its ten columns, as a view of the engine.

key, window_start, window_end, count, sum, avg, min, max, first_timestamp, last_timestamp
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Final, Literal, Self

from penstock.errors import InvalidArgument, PenstockError, ResolutionError
from penstock.options.resolved import show

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.interfaces.database import Database

WindowType = Literal["TUMBLE", "HOP", "SESSION"]
_WINDOWS: Final[Mapping[str, tuple[str, ...]]] = {"TUMBLE": ("size",), "HOP": ("slide", "size"), "SESSION": ("gap",)}


class WindowOperator:
    """Counts, sums and the rest of one column by key and window of a stream, emitted once a window is closed.

    key_column, value_column, timestamp_column: columns of the stream; the last one is its event time.
    window_type: `TUMBLE` with a size, `HOP` with a slide and a size, `SESSION` with a gap.

    It is a materialized view of the database while it is open, and gone when it is closed.
    """

    def __init__(
        self,
        database: Database,
        stream: str,
        *,
        key_column: str,
        value_column: str,
        timestamp_column: str,
        window_type: WindowType = "TUMBLE",
        size: timedelta | None = None,
        slide: timedelta | None = None,
        gap: timedelta | None = None,
    ) -> None:
        self._database = database
        self._stream = stream
        self._emitted = 0
        self.view = f"window_operator_{uuid.uuid4().hex[:8]}"
        self.window_type = window_type
        call = _call(window_type, timestamp_column, {"size": size, "slide": slide, "gap": gap})
        query = _query(stream, key_column, value_column, timestamp_column, call)
        try:
            database.execute(f"CREATE MATERIALIZED VIEW {self.view} AS {query}")
        except PenstockError as error:
            error.span = None  # a place in a text that nobody but us has seen
            columns = {"key_column": key_column, "value_column": value_column, "timestamp_column": timestamp_column}
            raise _unknown(error, stream, columns) or error from None

    def process_batch(self, batch: object, partition: int | None = None) -> None:
        """Append rows to the stream and wait until they are in their windows."""
        self._database.append(self._stream, batch, partition=partition)
        self._database.settle()

    def process_watermark(self, watermark: datetime | int) -> None:
        """Say that nothing older comes; windows that end by then close. A number counts milliseconds."""
        self._database.advance_watermark(self._stream, watermark)

    def active_windows(self) -> int:
        """How many windows are open: a key and a window each."""
        found = self._database.sql(f"SELECT COUNT(*) FROM penstock.window_aggregates WHERE job = '{self.view}'").rows()
        return int(found[0][0])

    def get_triggered_windows(self) -> pa.Table:
        """The windows that have closed since the last call, each once."""
        changes = list(self._database.subscribe(self.view, since=self._emitted, timeout=0.01))
        self._emitted = changes[-1].seq if changes else self._emitted
        return _shaped([change.row for change in changes if change.row is not None])

    def results(self) -> pa.Table:
        """All windows that have closed so far."""
        return _shaped(self._database.sql(f"SELECT * FROM {self.view}").arrow().to_pylist())

    def close(self) -> None:
        """End the view and remove what it holds."""
        with suppress(PenstockError):
            self._database.execute(f"DROP MATERIALIZED VIEW {self.view}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def window_schema() -> pa.Schema:
    """The columns of a window operator and their types."""
    import pyarrow as pa

    moment = pa.timestamp("ms")
    return pa.schema(
        [
            ("key", pa.string()),
            ("window_start", moment),
            ("window_end", moment),
            ("count", pa.int64()),
            ("sum", pa.float64()),
            ("avg", pa.float64()),
            ("min", pa.float64()),
            ("max", pa.float64()),
            ("first_timestamp", moment),
            ("last_timestamp", moment),
        ]
    )


def tumble_window_start(timestamp: int, size: int) -> int:
    """The start of the tumbling window that a time is in, both in milliseconds; windows begin at 1970.

    >>> tumble_window_start(1500, 2000), tumble_window_start(-1, 2000)
    (0, -2000)
    """
    return timestamp // size * size


def is_in_window(timestamp: int, window_start: int, window_end: int) -> bool:
    """Whether a time is in a window: its start is, its end is not.

    >>> is_in_window(1500, 1000, 3000), is_in_window(3000, 1000, 3000)
    (True, False)
    """
    return window_start <= timestamp < window_end


def _call(window_type: str, column: str, lengths: Mapping[str, timedelta | None]) -> tuple[str, str]:
    """The name of the window and its arguments."""
    needed = _WINDOWS.get(window_type.upper())
    if needed is None:
        raise InvalidArgument(
            "INVALID_ARGUMENT", f"window_type {window_type!r} is not known", hint=f"known are {', '.join(_WINDOWS)}"
        )
    given = tuple(name for name in ("slide", "size", "gap") if lengths[name] is not None)
    if given != needed:
        raise InvalidArgument(
            "INVALID_ARGUMENT",
            f"a {window_type.upper()} window has {' and '.join(needed)}, not {' and '.join(given) or 'nothing'}",
        )
    for name in needed:
        length = lengths[name]
        if not isinstance(length, timedelta) or length <= timedelta():
            raise InvalidArgument(
                "INVALID_ARGUMENT",
                f"{name} must be a time above zero, not {length!r}",
                hint=f"{name}=timedelta(minutes=1)",
            )
    intervals = [f"INTERVAL '{show(length)}'" for name in needed if (length := lengths[name]) is not None]
    return window_type.upper(), ", ".join((_quoted(column), *intervals))


def _query(stream: str, key: str, value: str, timestamp: str, call: tuple[str, str]) -> str:
    name, arguments = call
    number = f"CAST({_quoted(value)} AS DOUBLE)"
    moment = _quoted(timestamp)
    return f"""
        SELECT CAST({_quoted(key)} AS STRING) AS key, {name}_START({arguments}) AS window_start,
               {name}_END({arguments}) AS window_end, COUNT(*) AS count, SUM({number}) AS sum, AVG({number}) AS avg,
               MIN({number}) AS min, MAX({number}) AS max, MIN({moment}) AS first_timestamp,
               MAX({moment}) AS last_timestamp
        FROM {_quoted(stream)} GROUP BY {_quoted(key)}, {name}({arguments})"""


def _unknown(error: PenstockError, stream: str, columns: Mapping[str, str]) -> PenstockError | None:
    """UNKNOWN_COLUMN in words of the arguments."""
    if error.condition != "UNKNOWN_COLUMN":
        return None
    wrong = [name for name, column in columns.items() if _quoted(column) in error.message]
    told = " and ".join(f"{name} {columns[name]!r}" for name in wrong)
    return ResolutionError("UNKNOWN_COLUMN", f'"{stream}" has no {told}', hint=error.hint) if wrong else None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _shaped(rows: Sequence[Mapping[str, object]]) -> pa.Table:
    """Rows with the types of the texts: times in milliseconds of UTC, without a zone."""
    import pyarrow as pa

    schema = window_schema()
    zoned = pa.schema(
        [field.with_type(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(field.type) else field for field in schema]
    )
    return pa.Table.from_pylist(rows, schema=zoned).cast(schema, safe=False)
