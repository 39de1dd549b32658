"""The event-time tracker against its own definition, computed from scratch over the whole history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from penstock.runtime.event_time import EventTimeTracker, ScanTime, Seen

SCANS = (
    ScanTime("a", delay_us=0, idle_timeout_us=10, partitions=2),
    ScanTime("b", delay_us=7, idle_timeout_us=25, partitions=1),
    ScanTime("c", delay_us=3, idle_timeout_us=None, partitions=1),
)
DELAY = {scan.id: scan.delay_us for scan in SCANS}
TIMEOUT = {scan.id: scan.idle_timeout_us for scan in SCANS}


@dataclass(frozen=True)
class Batch:
    rows: tuple[tuple[str, int, int | None], ...]  # scan, partition, event time
    now: int


@dataclass(frozen=True)
class Tick:
    now: int


@dataclass(frozen=True)
class Advance:
    scan: str
    to: int


@dataclass(frozen=True)
class End:
    scan: str


@dataclass(frozen=True)
class Drain:
    spread: int


Event = Batch | Tick | Advance | End | Drain

TIMES = st.integers(0, 200)
PARTITIONS = st.sampled_from([("a", 0), ("a", 1), ("b", 0), ("c", 0)])
ROWS = st.tuples(PARTITIONS, st.none() | TIMES).map(lambda row: (*row[0], row[1]))
STEPS = st.integers(0, 15)
MOVES = st.one_of(
    st.tuples(st.just("batch"), st.lists(ROWS, max_size=6).map(tuple), STEPS),
    st.tuples(st.just("tick"), st.just(()), STEPS),
)
RARE = st.one_of(
    st.builds(Advance, st.sampled_from("abc"), TIMES),
    st.builds(End, st.sampled_from("abc")),
    st.builds(Drain, st.integers(0, 50)),
)


@st.composite
def histories(draw: st.DrawFn, rare: int = 2) -> list[Event]:
    """Batches and ticks on a clock that goes forward, with a few statements in between."""
    now, events = 0, list[Event]()
    for kind, rows, step in draw(st.lists(MOVES, max_size=15)):
        now += step
        events.append(Batch(rows, now) if kind == "batch" else Tick(now))
    for event in draw(st.lists(RARE, max_size=rare)):
        events.insert(draw(st.integers(0, len(events))), event)
    return events


def seen(rows: Sequence[tuple[str, int, int | None]]) -> dict[str, Seen]:
    told: dict[str, Seen] = {}
    for scan in {scan for scan, _, _ in rows}:
        own = [(partition, time) for name, partition, time in rows if name == scan]
        maxima: dict[int, int | None] = {}
        count: dict[int, int] = {}
        for partition, time in own:
            known = maxima.get(partition)
            maxima[partition] = time if known is None else known if time is None else max(known, time)
            count[partition] = count.get(partition, 0) + 1
        told[scan] = Seen(maxima, count)
    return told


def apply(tracker: EventTimeTracker, event: Event) -> None:
    match event:
        case Batch(rows, now):
            tracker.observe_batch(seen(rows), now)
        case Tick(now):
            tracker.tick(now)
        case Advance(scan, to):
            tracker.advance([scan], to)
        case End(scan):
            tracker.end(scan)
        case Drain(spread):
            tracker.drain(spread)


def fresh() -> EventTimeTracker:
    return EventTimeTracker(SCANS, started_us=0)


def allowed(history: Sequence[Event], started: dict[int, int]) -> int | None:
    """What the last event of this history lets the watermark be: the definition, with nothing carried over.

    `started` maps positions in the history to the clock of a (re)start that came before them.
    """
    now = max([0, *started.values(), *(event.now for event in history if isinstance(event, Batch | Tick))])
    ended = {event.scan for event in history if isinstance(event, End)}
    began = max(started.items(), default=(0, 0))
    stand: list[tuple[int | None, int | None]] = []  # watermark, idle at
    every: list[int] = []
    for scan, partition in (("a", 0), ("a", 1), ("b", 0), ("c", 0)):
        rows = [
            (position, event.now, time)
            for position, event in enumerate(history)
            if isinstance(event, Batch)
            for name, number, time in event.rows
            if (name, number) == (scan, partition)
        ]
        floors = [event.to for event in history if isinstance(event, Advance) and event.scan == scan]
        times = [time for _, _, time in rows if time is not None]
        every += times + floors
        if scan in ended:
            continue
        marks = [*floors, *([max(times) - DELAY[scan]] if times else [])]
        last = max([began[1], *(at for position, at, _ in rows if position >= began[0])])
        timeout = TIMEOUT[scan]
        stand.append((max(marks, default=None), None if timeout is None else last + timeout))
    active = [mark for mark, idle_at in stand if idle_at is None or idle_at > now]
    event = history[-1]
    told: list[int] = []
    if isinstance(event, Drain):
        return max(every) + event.spread if every else None
    if isinstance(event, Advance) and not active:
        told.append(event.to)
    if not active and stand:
        last_idle = max(idle_at for _, idle_at in stand if idle_at is not None)
        active = [mark for mark, idle_at in stand if idle_at == last_idle]
    if active and None not in active:
        told.append(min(mark for mark in active if mark is not None))
    return max(told, default=None)


def defined(history: Sequence[Event], started: dict[int, int] | None = None) -> int | None:
    """The largest value allowed at any point of the history."""
    starts = started or {}
    values = [
        allowed(history[: end + 1], {at: clock for at, clock in starts.items() if at <= end})
        for end in range(len(history))
    ]
    return max((value for value in values if value is not None), default=None)


@given(histories())
def test_the_watermark_is_what_the_definition_says(history: list[Event]) -> None:
    """E2, E3, E5, E6, E7, E16, E24"""
    tracker = fresh()
    for event in history:
        apply(tracker, event)
    assert tracker.watermark_us == defined(history)


@given(histories())
def test_it_never_moves_back(history: list[Event]) -> None:
    """E3, for the job and for each partition"""
    tracker = fresh()
    before: int | None = None
    each_before: dict[tuple[str, int], int] = {}
    for event in history:
        apply(tracker, event)
        now = tracker.watermark_us
        assert before is None or (now is not None and now >= before)
        before = now
        for each in tracker.partitions():
            key = (each.scan, each.partition)
            if each.watermark_us is None:
                assert key not in each_before
            else:
                assert each.watermark_us >= each_before.get(key, each.watermark_us)
                each_before[key] = each.watermark_us


@given(histories(), st.data())
def test_a_restart_anywhere_changes_nothing_but_the_idle_clocks(history: list[Event], data: st.DataObject) -> None:
    """E15: the same state right after it, and from there on the definition with clocks that begin at the restart."""
    at = data.draw(st.integers(0, len(history)))
    tracker = fresh()
    clock = 0
    for event in history[:at]:
        apply(tracker, event)
        clock = event.now if isinstance(event, Batch | Tick) else clock
    again = EventTimeTracker.from_json(tracker.to_json(), SCANS, clock)
    assert again.watermark_us == tracker.watermark_us
    assert again.to_json() == tracker.to_json()
    assert again.partition_watermarks() == tracker.partition_watermarks()
    for event in history[at:]:
        apply(again, event)
    assert again.watermark_us == defined(history, {at: clock})


@given(histories(rare=0), st.data())
def test_without_idleness_a_restart_changes_nothing_at_all(history: list[Event], data: st.DataObject) -> None:
    """E15"""
    scans = tuple(ScanTime(scan.id, scan.delay_us, None, scan.partitions) for scan in SCANS)
    at = data.draw(st.integers(0, len(history)))
    whole, broken = EventTimeTracker(scans, 0), EventTimeTracker(scans, 0)
    for position, event in enumerate(history):
        if position == at:
            broken = EventTimeTracker.from_json(broken.to_json(), scans, 10**9)
        apply(whole, event)
        apply(broken, event)
        assert broken.watermark_us == whole.watermark_us


@given(histories(), st.randoms(use_true_random=False))
def test_the_order_of_rows_and_scans_in_a_batch_does_not_matter(history: list[Event], random: Random) -> None:
    tracker, shuffled = fresh(), fresh()
    for event in history:
        apply(tracker, event)
        if isinstance(event, Batch):
            rows = list(event.rows)
            random.shuffle(rows)
            told = list(seen(rows).items())
            random.shuffle(told)
            shuffled.observe_batch(dict(told), event.now)
        else:
            apply(shuffled, event)
        assert shuffled.to_json() == tracker.to_json()


@given(histories())
def test_a_batch_taken_in_again_changes_nothing(history: list[Event]) -> None:
    """A batch that is run again after a crash (K8) leaves event time where it was."""
    tracker, twice = fresh(), fresh()
    for event in history:
        apply(tracker, event)
        apply(twice, event)
        apply(twice, event)
        assert twice.to_json() == tracker.to_json()


@given(histories(), st.lists(st.integers(0, 60), max_size=8))
def test_looking_often_or_seldom_during_silence_gives_the_same(history: list[Event], looks: list[int]) -> None:
    """E7, E13"""
    often, seldom = fresh(), fresh()
    for event in history:
        apply(often, event)
        apply(seldom, event)
    clock = max([0, *(event.now for event in history if isinstance(event, Batch | Tick))])
    for look in sorted(looks):
        often.tick(clock + look)
    often.tick(clock + 60)
    assert seldom.tick(clock + 60) == often.watermark_us


@given(histories(), st.integers(0, 60))
def test_no_tick_before_the_next_idle_moment_moves_anything(history: list[Event], wait: int) -> None:
    tracker = fresh()
    for event in history:
        apply(tracker, event)
    before, due = tracker.watermark_us, tracker.next_idle_us
    clock = max([0, *(event.now for event in history if isinstance(event, Batch | Tick))])
    after = tracker.tick(clock + wait)
    assert after == before or (due is not None and clock + wait >= due)


@given(histories())
def test_the_watermark_stands_still_until_what_is_named_has_moved(history: list[Event]) -> None:
    """EXPLAIN WATERMARK names the truth: rows in every other partition move nothing."""
    tracker = fresh()
    for event in history:
        apply(tracker, event)
    held = {(each.scan, each.partition) for each in tracker.held_back_by()}
    clock = max([0, *(event.now for event in history if isinstance(event, Batch | Tick))])
    active = [each for each in tracker.partitions() if each.state in ("active", "no rows yet")]
    if held:
        before = tracker.watermark_us
        others = [each for each in active if (each.scan, each.partition) not in held]
        tracker.observe_batch(seen([(each.scan, each.partition, 10**6) for each in others]), clock)
        assert tracker.watermark_us == before
        tracker.observe_batch(seen([(each.scan, each.partition, 10**6) for each in active]), clock)
        assert tracker.watermark_us is not None
        assert tracker.watermark_us >= 10**6 - 7
    else:
        assert active == []
