"""Clocks: the system's, and one that a test moves."""

from __future__ import annotations

import time

import pytest

from penstock.clock import Clock, ManualClock, SystemClock, now_us


def test_the_wall_clock_counts_microseconds_since_1970() -> None:
    before = int(time.time() * 1_000_000)
    assert before - 1_000 <= now_us() <= before + 60_000_000
    assert abs(SystemClock().now_us() - now_us()) < 60_000_000


def test_the_monotonic_clock_goes_forward() -> None:
    clock: Clock = SystemClock()
    first = clock.monotonic()
    assert clock.monotonic() >= first


def test_a_manual_clock_stands_until_it_is_moved() -> None:
    clock = ManualClock(100)
    assert (clock.now_us(), clock.monotonic()) == (100, 0.0)
    clock.advance(seconds=2, us=5)
    assert (clock.now_us(), clock.monotonic()) == (2_000_105, 2.000005)
    with pytest.raises(ValueError, match="forward"):
        clock.advance(us=-1)
