"""What a tracker tells a user: the rows of `penstock.watermarks`, and the answer to EXPLAIN WATERMARK."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from penstock.frozen import frozen
from penstock.runtime.event_time import EventTimeTracker, HeldBack, PartitionState, PartitionTime

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NAMED_AT_MOST: Final = 3
_SECOND: Final = 1_000_000


@frozen
class WatermarkRow:
    """A row of `penstock.watermarks`; times are microseconds since 1970."""

    job: str
    source: str
    partition: int
    max_event_time: int | None
    current_watermark: int | None
    idle: bool
    pending_windows: tuple[int, ...]


@frozen
class ExplainedPartition:
    """A row of EXPLAIN WATERMARK; times are microseconds since 1970."""

    source: str
    partition: int
    max_event_time: int | None
    watermark: int | None
    state: PartitionState
    holds_back: bool


@frozen
class WatermarkExplanation:
    """The answer to EXPLAIN WATERMARK FOR a view: where each partition stands, and what must move first."""

    rows: tuple[ExplainedPartition, ...]
    sentence: str


def watermark_rows(job: str, tracker: EventTimeTracker, pending_windows: Sequence[int] = ()) -> list[WatermarkRow]:
    """The rows of `penstock.watermarks` for one job; `pending_windows` are the starts of its open windows."""
    pending = tuple(sorted(pending_windows))
    return [
        WatermarkRow(
            job,
            each.scan,
            each.partition,
            each.max_event_time_us,
            each.watermark_us,
            each.state == "idle",
            pending,
        )
        for each in tracker.partitions()
    ]


def explain_watermark(view: str, tracker: EventTimeTracker, now_us: int) -> WatermarkExplanation:
    """Where each partition stands, and in one sentence what holds the watermark back."""
    held = tracker.held_back_by()
    holding = {(each.scan, each.partition) for each in held}
    rows = tuple(
        ExplainedPartition(
            each.scan,
            each.partition,
            each.max_event_time_us,
            each.watermark_us,
            each.state,
            (each.scan, each.partition) in holding,
        )
        for each in tracker.partitions()
    )
    return WatermarkExplanation(rows, f"{_standing(view, tracker)}: {_reason(tracker, held, now_us)}")


def _standing(view: str, tracker: EventTimeTracker) -> str:
    reached = tracker.watermark_us
    return f"{view} has no watermark yet" if reached is None else f"the watermark of {view} is {shown_time(reached)}"


def _reason(tracker: EventTimeTracker, held: tuple[HeldBack, ...], now_us: int) -> str:
    if tracker.ended:
        return "every source is read to its end"
    if not held:
        return "every partition is idle, and it stays until a row comes or ADVANCE WATERMARK moves it"
    names = _named(held)
    verb = "has" if len(held) == 1 else "have"
    first = held[0]
    until = _until(held, _others(tracker, held), now_us)
    if first.watermark_us is None:
        return f"{names} {verb} had no row yet{until}"
    is_slowest = f"{names} {'is' if len(held) == 1 else 'are'} slowest"
    if tracker.watermark_us is not None and first.watermark_us < tracker.watermark_us:
        return f"{is_slowest}, still at {shown_time(first.watermark_us)}{until}"
    return f"{is_slowest}{until}"


def _named(held: tuple[HeldBack, ...]) -> str:
    names = [each.scan if each.partition is None else f"{each.scan} partition {each.partition}" for each in held]
    if len(names) > _NAMED_AT_MOST:
        names = [*names[: _NAMED_AT_MOST - 1], f"{len(names) - _NAMED_AT_MOST + 1} more"]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _others(tracker: EventTimeTracker, held: tuple[HeldBack, ...]) -> list[PartitionTime]:
    """The partitions that have a say as well, and hold nothing back."""
    holding = {(each.scan, each.partition) for each in held}
    return [
        each
        for each in tracker.partitions()
        if each.state in ("active", "no rows yet") and (each.scan, each.partition) not in holding
    ]


def _until(held: tuple[HeldBack, ...], others: list[PartitionTime], now_us: int) -> str:
    """When the last of them is left out, if no row comes: in favour of others, never of silence alone."""
    moments = [each.idle_at_us for each in held]
    if None in moments:
        return ", and without an idle_timeout nothing is left out"
    last = max(moment for moment in moments if moment is not None)
    # Rounded up: "0 s" would be a promise that the clock has already broken.
    seconds = f"another {max(-(-(last - now_us) // _SECOND), 0)} s"
    it, is_, has = ("it", "is", "has") if len(held) == 1 else ("they", "are", "have")
    if not others:
        return f"; when no row comes for {seconds} {it} {is_} idle, which moves nothing"
    if any(each.idle_at_us is None or each.idle_at_us > last for each in others):
        return f"; {it} {is_} left out when no row comes for {seconds}"
    return f"; {it} {is_} left out when {it} {has} no row for {seconds} and others have"


def shown_time(time_us: int) -> str:
    """A time as text, in UTC; one past the calendar as the number it is.

    >>> shown_time(1_000_000), shown_time(1_500), shown_time(10**18)
    ('1970-01-01 00:00:01', '1970-01-01 00:00:00.001500', '1000000000000000000 us')
    """
    try:
        moment = _EPOCH + timedelta(microseconds=time_us)
    except OverflowError:
        return f"{time_us} us"
    return moment.replace(tzinfo=None).isoformat(sep=" ")
