"""Tailing: one query asked again and again while what it reads grows.

For tables that other programs write: a directory of Parquet files, a bounded table, or a view. Each answer is the whole
answer, as of one moment: the files, or the batch of the view, that were there when it was asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from threading import Event
from typing import TYPE_CHECKING, Final

from penstock.errors import InvalidArgument, RuntimeFailure

if TYPE_CHECKING:
    from penstock.interfaces.result import Result

DEFAULT_SECONDS: Final = 5.0
_POLL: Final = 0.5
_ATTEMPTS: Final = 8
_PAUSE: Final = 0.1
# A file that was listed has been replaced, removed or half written before it was read: a new listing may be whole.
_TORN: Final = frozenset({"SOURCE_DATA_LOST", "FILE_NOT_FOUND", "INVALID_ROWS"})


def tail(
    ask: Callable[[], Result],
    every: float | timedelta | None,
    event: Event | None,
    iterations: int | None,
    closed: Callable[[], bool],
) -> Iterator[Result]:
    """The answers: the first at once, then one `every` so often, or each time the event is set, or both.

    Ends after so many `iterations`, or when `closed` says so. Arguments are checked at the call.
    """
    seconds = _seconds(every, event)
    if event is not None and not all(hasattr(event, method) for method in ("wait", "clear")):
        raise InvalidArgument(
            "INVALID_ARGUMENT", f"event must be a threading.Event, not {event!r}", hint="leave it out to ask by time"
        )
    if iterations is not None and iterations < 1:
        raise InvalidArgument("INVALID_ARGUMENT", f"iterations must be 1 or more, not {iterations}")
    return _answers(ask, seconds, event, iterations, closed)


def _seconds(every: float | timedelta | None, event: Event | None) -> float | None:
    if every is None:
        return DEFAULT_SECONDS if event is None else None
    try:
        seconds = every.total_seconds() if isinstance(every, timedelta) else float(every)
    except (TypeError, ValueError):
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise InvalidArgument(
            "INVALID_ARGUMENT", f"every must be a time above zero, not {every!r}", hint="every=5 is each five seconds"
        )
    return seconds


def _answers(
    ask: Callable[[], Result],
    seconds: float | None,
    event: Event | None,
    iterations: int | None,
    closed: Callable[[], bool],
) -> Iterator[Result]:
    bell = event or Event()
    done = 0
    while not closed():
        asked = time.monotonic()
        if event is not None:
            event.clear()  # what is set from here on is answered by the next round
        yield _whole(ask)
        done += 1
        if done == iterations or not _wait(bell, None if seconds is None else asked + seconds, closed):
            return


def _wait(bell: Event, due: float | None, closed: Callable[[], bool]) -> bool:
    """Wait for the next round; False when there will be none."""
    while not closed():
        left = _POLL if due is None else due - time.monotonic()
        if left <= 0 or bell.wait(min(left, _POLL)):
            return True
    return False


def _whole(ask: Callable[[], Result]) -> Result:
    """One answer. Where a file changes in the middle of the reading, it is asked again, from a new listing."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return ask()
        except RuntimeFailure as error:
            if error.condition not in _TORN:
                raise
        time.sleep(_PAUSE)
    return ask()
