"""Where the time of day comes from: the system, or a test that moves it by hand."""

from __future__ import annotations

import time
from typing import Protocol


def now_us() -> int:
    """The wall clock: microseconds since 1970, UTC."""
    return time.time_ns() // 1_000


class Clock(Protocol):
    """A wall clock, which may jump, and a monotonic one, which measures stretches of time in seconds."""

    def now_us(self) -> int: ...

    def monotonic(self) -> float: ...


class SystemClock:
    """The clocks of the operating system."""

    def now_us(self) -> int:
        return now_us()

    def monotonic(self) -> float:
        return time.monotonic()


class ManualClock:
    """Time that stands still until it is moved.

    >>> clock = ManualClock(1_000_000)
    >>> clock.advance(seconds=1.5)
    >>> clock.now_us(), clock.monotonic()
    (2500000, 1.5)
    """

    def __init__(self, start_us: int = 0) -> None:
        self._start_us = start_us
        self._passed_us = 0

    def now_us(self) -> int:
        return self._start_us + self._passed_us

    def monotonic(self) -> float:
        return self._passed_us / 1_000_000

    def advance(self, *, seconds: float = 0.0, us: int = 0) -> None:
        """Let time pass."""
        passed = round(seconds * 1_000_000) + us
        if passed < 0:
            raise ValueError("time goes forward only")
        self._passed_us += passed
