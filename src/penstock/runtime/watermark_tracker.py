"""`penstock.WatermarkTracker`: event time for a program's own use and tests, in milliseconds.

Thin over `EventTimeTracker`, which decides the watermark of every job, with the names the source texts use. Two ways
to drive it: `observe` and `advance`, time by time, or `update_watermark` with a batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from penstock.clock import Clock, SystemClock
from penstock.errors import InvalidArgument, ResolutionError
from penstock.runtime.event_time import EventTimeTracker, ScanTime

if TYPE_CHECKING:
    import pyarrow as pa

Time = int | datetime
"""An event time: epoch milliseconds, or a datetime, taken as UTC where it has no zone."""

_SCAN: Final = "input"
_US: Final = 1_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class WatermarkTracker:
    """The watermark of partitions whose rows come up to `max_out_of_orderness_ms` late.

    With `partitions` given, all of them must have a row before there is a watermark; without, a partition counts from
    its first row. A partition without rows for `idle_timeout_ms` is left out.

    >>> tracker = WatermarkTracker(max_out_of_orderness_ms=1000)
    >>> tracker.update_watermark([1000, 2000, 3000, 4000])
    3000
    >>> tracker.should_trigger_window(3500), tracker.get_triggered_windows([2000, 3000, 4000])
    (False, [2000, 3000])
    """

    def __init__(
        self,
        max_out_of_orderness_ms: int | timedelta = 0,
        *,
        partitions: int | None = None,
        timestamp_column: str | None = None,
        idle_timeout_ms: int | None = None,
        clock: Clock | None = None,
    ) -> None:
        delay_us = _delay_us(max_out_of_orderness_ms)
        if partitions is not None and (not _is_number(partitions) or partitions < 1):
            raise InvalidArgument("INVALID_ARGUMENT", f"partitions is a number from 1 on, not {partitions!r}")
        if idle_timeout_ms is not None and (not _is_number(idle_timeout_ms) or idle_timeout_ms < 0):
            raise InvalidArgument(
                "INVALID_ARGUMENT",
                f"idle_timeout_ms is a number of milliseconds from 0 on, not {idle_timeout_ms!r}",
                hint="leave it out to wait for ever",
            )
        self._partitions = partitions
        self._clock = clock or SystemClock()
        self._column = timestamp_column
        idle_us = idle_timeout_ms * _US if idle_timeout_ms else None
        scan = ScanTime(_SCAN, delay_us, idle_us, partitions or 0)
        self._tracker = EventTimeTracker([scan], self._clock.now_us())
        self._watermark_us: int | None = None
        self._timers: set[tuple[int, str]] = set()

    def observe(self, event_time: Time | None, partition_id: int = 0) -> None:
        """Take in the time of one row; None is passed over. The watermark moves at the next `advance`."""
        self._check(partition_id)
        largest = None if event_time is None else _us(event_time)
        self._tracker.observe(_SCAN, {partition_id: largest}, {partition_id: 1}, now_us=self._clock.now_us())

    def advance(self) -> int | None:
        """Move the watermark as far as what was observed lets it; its new value, or None where it stays."""
        reached = self._tracker.tick(self._clock.now_us())
        if reached is None or (self._watermark_us is not None and reached <= self._watermark_us):
            return None
        self._watermark_us = reached
        return self.watermark()

    def update_watermark(
        self, batch: pa.RecordBatch | pa.Table | Iterable[Time | None] | Time, partition_id: int = 0
    ) -> int | None:
        """Take in a batch of one partition, and advance: the watermark over all partitions.

        The times are those of `timestamp_column`, or of the only timestamp column, of an Arrow batch.
        """
        self._check(partition_id)
        largest, rows = self._largest(batch)
        self._tracker.observe(_SCAN, {partition_id: largest}, {partition_id: rows}, now_us=self._clock.now_us())
        self.advance()
        return self.watermark()

    def watermark(self) -> int | None:
        """The watermark over all partitions; None before anything is known."""
        return None if self._watermark_us is None else self._watermark_us // _US

    @property
    def current_watermark(self) -> int | None:
        """The watermark over all partitions; None before anything is known."""
        return self.watermark()

    def get_global_watermark(self) -> int | None:
        """The watermark over all partitions; None before anything is known."""
        return self.watermark()

    def get_watermark(self, partition_id: int = 0) -> int | None:
        """The watermark of one partition; None before its first row."""
        found = self._tracker.partition_watermarks()[_SCAN].get(partition_id)
        return None if found is None else found // _US

    def is_late(self, event_time: Time) -> bool:
        """Whether a row of this time is behind the watermark; one at the watermark is not."""
        return self._watermark_us is not None and _us(event_time) < self._watermark_us

    def should_trigger_window(self, window_end: Time) -> bool:
        """Whether a window that ends here is closed: its end is at the watermark or before it."""
        return self._watermark_us is not None and _us(window_end) <= self._watermark_us

    def get_triggered_windows(self, pending_windows: Iterable[int]) -> list[int]:
        """Those of these window ends that are closed."""
        return [end for end in pending_windows if self.should_trigger_window(end)]

    def register_timer(self, key: str, time_ms: int) -> None:
        """Ask to be told once when the watermark has reached this time; the same key and time again is one timer."""
        self._timers.add((time_ms, key))

    def cancel_timer(self, key: str, time_ms: int) -> bool:
        """Take a timer back; whether there was one."""
        known = (time_ms, key) in self._timers
        self._timers.discard((time_ms, key))
        return known

    def fire_timers(self) -> list[tuple[str, int]]:
        """The timers that the watermark has reached since the last call, in order of time: key and time."""
        due = sorted(timer for timer in self._timers if self.should_trigger_window(timer[0]))
        self._timers.difference_update(due)
        return [(key, time_ms) for time_ms, key in due]

    def _check(self, partition_id: object) -> None:
        """A partition that there is none of would hold the watermark back for ever, or be waited for in vain."""
        whole = isinstance(partition_id, int) and not isinstance(partition_id, bool) and partition_id >= 0
        if not whole or (self._partitions is not None and partition_id >= self._partitions):  # type: ignore[operator]
            upto = "" if self._partitions is None else f" to {self._partitions - 1}"
            raise InvalidArgument(
                "INVALID_ARGUMENT",
                f"there is no partition {partition_id!r}",
                hint=f"partitions are numbered from 0{upto or ' on'}",
            )

    def _largest(self, batch: Any) -> tuple[int | None, int]:
        """The largest time of a batch, and the number of its rows."""
        if isinstance(batch, int | float | datetime):
            return _us(batch), 1
        if hasattr(batch, "schema"):
            return self._largest_of_column(batch), batch.num_rows
        times = list(batch)
        return max((_us(time) for time in times if time is not None), default=None), len(times)

    def _largest_of_column(self, batch: pa.RecordBatch | pa.Table) -> int | None:
        import pyarrow as pa
        import pyarrow.compute as pc

        schema = batch.schema
        times = [name for name, type_ in zip(schema.names, schema.types, strict=True) if pa.types.is_timestamp(type_)]
        name = self._column or (times[0] if len(times) == 1 else None)
        if name is None or name not in schema.names:
            raise ResolutionError(
                "UNKNOWN_COLUMN",
                f"the batch has no column {name}" if name else f"the batch has {len(times)} timestamp columns",
                hint=f"name one with timestamp_column; there are {', '.join(schema.names) or 'none'}",
            )
        column = batch.column(name)
        # An integer is epoch milliseconds.
        stamps = column.cast(pa.timestamp("ms")) if pa.types.is_integer(column.type) else column
        largest = pc.max(stamps).cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).as_py()
        return None if largest is None else int(largest)


def _is_number(given: object) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(given)


def _delay_us(given: object) -> int:
    if isinstance(given, timedelta):
        found = given // timedelta(microseconds=1)
    else:
        found = int(given * _US) if isinstance(given, int | float) and _is_number(given) else -1
    if found < 0:
        raise InvalidArgument(
            "INVALID_ARGUMENT",
            f"max_out_of_orderness_ms is a number of milliseconds from 0 on, not {given!r}",
            hint="give a number or a timedelta of zero or more",
        )
    return found


def _us(time: object) -> int:
    if isinstance(time, datetime):
        aware = time if time.tzinfo else time.replace(tzinfo=UTC)
        return (aware - _EPOCH) // timedelta(microseconds=1)
    if isinstance(time, bool) or not isinstance(time, int | float) or not math.isfinite(time):
        raise ResolutionError(
            "INVALID_ARGUMENT",
            f"{time!r} is no event time",
            hint="give epoch milliseconds or a datetime; None where a row has no time",
        )
    return int(time * _US)
