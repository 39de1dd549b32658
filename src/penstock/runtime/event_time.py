"""How far event time has come: the watermark of a job.

Each partition of each scan has a watermark: the largest event time seen in it, minus the scan's delay. The job's
watermark is the smallest of these over all partitions that are active, and never moves back. A partition without rows
for longer than the scan's idle timeout is left out until its next row; one that never had a row holds everything back
until that time has passed since the job's start. When every partition is idle, those that were active last decide, so
that nothing moves by silence alone: `tick` may be called as seldom as one likes.

All times are microseconds since 1970. Rows that must not move event time (no time, a time before 1970 or far in the
future) do not get here.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import RLock
from typing import Any, Final, Literal

from penstock.errors import InternalError
from penstock.frozen import frozen

PartitionState = Literal["active", "idle", "no rows yet", "ended"]
_VERSION: Final = 1


@frozen
class ScanTime:
    """What event time of one scan goes by: its delay, its idle timeout (None or 0: never idle), its partitions."""

    id: str
    delay_us: int = 0
    idle_timeout_us: int | None = None
    partitions: int = 1


@frozen
class Seen:
    """What a batch held of one scan: by partition the largest event time, and the number of rows.

    `waiting` names partitions that still have rows to read: they are not idle, though the batch took none of theirs.
    """

    maxima: Mapping[int, int | None]
    rows: Mapping[int, int] | None = None
    waiting: Collection[int] = ()


@frozen
class PartitionTime:
    """Where one partition stands; `idle_at_us` is the moment from which it is left out, if no row comes."""

    scan: str
    partition: int
    max_event_time_us: int | None
    watermark_us: int | None
    state: PartitionState
    idle_at_us: int | None


@frozen
class HeldBack:
    """A partition that keeps the watermark where it is; `partition` is None while a scan has none at all."""

    scan: str
    partition: int | None
    reason: Literal["no rows yet", "slowest"]
    watermark_us: int | None
    idle_at_us: int | None


@dataclass(slots=True)
class _Partition:
    active_us: int
    max_us: int | None = None


@dataclass(slots=True)
class _Scan:
    id: str
    delay_us: int
    idle_timeout_us: int | None
    started_us: int
    partitions: dict[int, _Partition] = field(default_factory=dict)
    floor_us: int | None = None
    ended: bool = False

    def idle_at(self, active_us: int) -> int | None:
        return active_us + self.idle_timeout_us if self.idle_timeout_us else None

    def watermark_of(self, partition: _Partition) -> int | None:
        if partition.max_us is None:
            return self.floor_us
        own = partition.max_us - self.delay_us
        return own if self.floor_us is None else max(own, self.floor_us)

    def holders(self) -> Iterable[_Holder]:
        """Every partition with what it allows, the idle ones included; a scan without partitions counts as one."""
        if not self.partitions:
            yield self, None, self.floor_us, self.idle_at(self.started_us)
        for number, partition in self.partitions.items():
            yield self, number, self.watermark_of(partition), self.idle_at(partition.active_us)


# A scan, a partition of it, its watermark, and when it becomes idle: a bare tuple, as some are made with every batch.
_Holder = tuple[_Scan, int | None, int | None, int | None]


class EventTimeTracker:
    """The event time of one job. Any thread may use it; calls take turns.

    >>> tracker = EventTimeTracker([ScanTime("trades", delay_us=5, partitions=2)], started_us=0)
    >>> tracker.observe("trades", {0: 1000, 1: 100}, now_us=1)
    95
    """

    def __init__(self, scans: Sequence[ScanTime], started_us: int) -> None:
        self._lock = RLock()
        self._now_us = started_us
        self._watermark_us: int | None = None
        self._scans: dict[str, _Scan] = {}
        for scan in scans:
            if scan.id in self._scans:
                raise InternalError(f"two scans are called {scan.id}")
            known = {number: _Partition(started_us) for number in range(scan.partitions)}
            self._scans[scan.id] = _Scan(scan.id, scan.delay_us, scan.idle_timeout_us, started_us, known)

    # what moves it

    def observe(
        self,
        scan: str,
        maxima: Mapping[int, int | None],
        rows: Mapping[int, int] | None = None,
        *,
        now_us: int,
        waiting: Collection[int] = (),
    ) -> int | None:
        """Take in what a batch held of its only scan. The new watermark."""
        return self.observe_batch({scan: Seen(maxima, rows, waiting)}, now_us)

    def observe_batch(self, seen: Mapping[str, Seen], now_us: int) -> int | None:
        """Take in what a batch held of all its scans, at once, so that none of them goes first. The new watermark.

        `now_us` is the moment the end of the batch was chosen, not the one it was done: rows that came to a quiet
        partition meanwhile are not read yet and must not find it idle. A partition not known so far is taken in.
        """
        with self._lock:
            for scan, batch in seen.items():
                self._take_in(self._scans[scan], batch, now_us)
            return self._look(now_us)

    @staticmethod
    def _take_in(scan: _Scan, seen: Seen, now_us: int) -> None:
        rows = seen.rows or {}
        for number in {*seen.maxima, *rows, *seen.waiting}:
            partition = scan.partitions.setdefault(number, _Partition(now_us))
            largest = seen.maxima.get(number)
            if largest is not None and (partition.max_us is None or largest > partition.max_us):
                partition.max_us = largest
            if largest is not None or number in seen.waiting or rows.get(number, 0) > 0:
                partition.active_us = max(partition.active_us, now_us)

    def tick(self, now_us: int) -> int | None:
        """Let time pass without rows: partitions may become idle. Call it only while no batch runs."""
        with self._lock:
            return self._look(now_us)

    def add_partitions(self, scan: str, partitions: int, now_us: int) -> None:
        """A scan now has this many partitions; new ones hold the watermark back until a row or the idle timeout."""
        with self._lock:
            known = self._scans[scan].partitions
            for number in range(partitions):
                known.setdefault(number, _Partition(now_us))

    def advance(self, scans: Collection[str], timestamp_us: int) -> int | None:
        """Nothing older comes in these scans: their partitions stand at this time at least. The new watermark.

        Other scans hold the job back as ever, unless all of them are idle or read to their end.
        """
        with self._lock:
            for scan in scans:
                found = self._scans[scan]
                found.floor_us = _latest(found.floor_us, timestamp_us)
            if scans and not self._active(self._holders()):
                self._watermark_us = _latest(self._watermark_us, timestamp_us)
            return self._look(self._now_us)

    def end(self, scan: str) -> int | None:
        """The scan is read to its end and holds nothing back any more. The new watermark."""
        with self._lock:
            self._scans[scan].ended = True
            return self._look(self._now_us)

    def drain(self, spread_us: int, *, whole_us: int = 1) -> int | None:
        """Move the watermark to the largest time seen plus `spread_us`: every open window closes. The new watermark.

        It is rounded up to a multiple of `whole_us`, where what closes windows counts no finer and rounds down.
        """
        with self._lock:
            largest: int | None = None
            for scan in self._scans.values():
                largest = _latest(largest, scan.floor_us, *(each.max_us for each in scan.partitions.values()))
            if largest is not None:
                closing_us = -(-(largest + spread_us) // whole_us) * whole_us
                self._watermark_us = _latest(self._watermark_us, closing_us)
            return self._watermark_us

    def _look(self, now_us: int) -> int | None:
        self._now_us = max(self._now_us, now_us)
        allowed = [watermark_us for _, _, watermark_us, _ in self._deciding()]
        if allowed and None not in allowed:
            self._watermark_us = _latest(self._watermark_us, _earliest(allowed))
        return self._watermark_us

    def _deciding(self) -> list[_Holder]:
        """The partitions whose minimum counts now."""
        holders = self._holders()
        active = self._active(holders)
        if active or not holders:
            return active
        # All idle: as it was when the last of them became so.
        last = max(idle_at for *_, idle_at in holders if idle_at is not None)
        return [holder for holder in holders if holder[3] == last]

    def _holders(self) -> list[_Holder]:
        return [holder for scan in self._scans.values() if not scan.ended for holder in scan.holders()]

    def _active(self, holders: list[_Holder]) -> list[_Holder]:
        return [holder for holder in holders if not self._passed(holder[3])]

    def _passed(self, moment_us: int | None) -> bool:
        return moment_us is not None and moment_us <= self._now_us

    # what it tells

    @property
    def watermark_us(self) -> int | None:
        """The job's watermark; None before anything is known."""
        return self._watermark_us

    @property
    def ended(self) -> bool:
        """Whether every scan is read to its end."""
        with self._lock:
            return all(scan.ended for scan in self._scans.values())

    @property
    def all_idle(self) -> bool:
        """Whether there are partitions that could move the watermark, and all of them are idle."""
        with self._lock:
            holders = self._holders()
            return bool(holders) and not self._active(holders)

    @property
    def next_idle_us(self) -> int | None:
        """When the next partition becomes idle if no row comes: no tick is needed before."""
        with self._lock:
            moments = (idle_at for *_, idle_at in self._active(self._holders()) if idle_at is not None)
            return min(moments, default=None)

    def partitions(self) -> tuple[PartitionTime, ...]:
        """Where each partition of each scan stands."""
        with self._lock:
            return tuple(
                self._partition_time(scan, number, partition)
                for scan in self._scans.values()
                for number, partition in sorted(scan.partitions.items())
            )

    def _partition_time(self, scan: _Scan, number: int, partition: _Partition) -> PartitionTime:
        idle_at = scan.idle_at(partition.active_us)
        state: PartitionState = "active"
        if scan.ended:
            state = "ended"
        elif self._passed(idle_at):
            state = "idle"
        elif partition.max_us is None:
            state = "no rows yet"
        return PartitionTime(
            scan.id, number, partition.max_us, scan.watermark_of(partition), state, None if scan.ended else idle_at
        )

    def partition_watermarks(self) -> dict[str, dict[int, int | None]]:
        """By scan and partition, its own watermark."""
        told: dict[str, dict[int, int | None]] = {scan: {} for scan in self._scans}
        for each in self.partitions():
            told[each.scan][each.partition] = each.watermark_us
        return told

    def held_back_by(self) -> tuple[HeldBack, ...]:
        """What must move before the watermark can: partitions without a row so far, else the slowest ones.

        Nothing where every partition is idle or read to its end.
        """
        with self._lock:
            if self.all_idle:
                return ()
            deciding = self._deciding()
            marks = [watermark_us for _, _, watermark_us, _ in deciding]
            least = None if None in marks else _earliest(marks)
            return tuple(_held_back(holder) for holder in deciding if holder[2] == least)

    def is_late(self, event_time_us: int) -> bool:
        """Whether a row of this time is behind the watermark; one at the watermark is not."""
        return self._watermark_us is not None and event_time_us < self._watermark_us

    def should_trigger(self, window_end_us: int) -> bool:
        """Whether a window that ends here is closed: its end is at the watermark or before it."""
        return self._watermark_us is not None and window_end_us <= self._watermark_us

    def triggered(self, pending: Iterable[int]) -> list[int]:
        """Those of these window ends that are closed."""
        return [end for end in pending if self.should_trigger(end)]

    # what is kept

    def to_json(self) -> str:
        """What must survive a restart: the watermark and what each partition has seen, not the idle clocks."""
        with self._lock:
            scans = {
                scan.id: {
                    "floor_us": scan.floor_us,
                    "ended": scan.ended,
                    "partitions": {str(number): each.max_us for number, each in sorted(scan.partitions.items())},
                }
                for scan in self._scans.values()
            }
            return json.dumps({"version": _VERSION, "watermark_us": self._watermark_us, "scans": scans})

    @classmethod
    def from_json(cls, text: str, scans: Sequence[ScanTime], started_us: int) -> EventTimeTracker:
        """The tracker of a job that goes on: as it was, with idle clocks that begin at `started_us`."""
        kept: dict[str, Any] = json.loads(text)
        if kept["version"] != _VERSION:
            raise InternalError(f"event time kept in version {kept['version']}, read by version {_VERSION}")
        tracker = cls(scans, started_us)
        tracker._watermark_us = kept["watermark_us"]
        for scan in tracker._scans.values():
            before = kept["scans"].get(scan.id)
            if before is None:
                continue
            scan.floor_us, scan.ended = before["floor_us"], before["ended"]
            for number, largest in before["partitions"].items():
                scan.partitions[int(number)] = _Partition(started_us, largest)
        return tracker


def _held_back(holder: _Holder) -> HeldBack:
    scan, number, watermark_us, idle_at = holder
    empty = number is None or scan.partitions[number].max_us is None
    return HeldBack(scan.id, number, "no rows yet" if empty else "slowest", watermark_us, idle_at)


def _latest(*times: int | None) -> int | None:
    return max((time for time in times if time is not None), default=None)


def _earliest(times: Iterable[int | None]) -> int | None:
    return min((time for time in times if time is not None), default=None)
