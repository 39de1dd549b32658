"""A batch that waits in the middle until the test lets it go on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event

import pytest

from penstock import failpoints

_LONGEST_S = 120


@contextmanager
def held_batch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Event]:
    """Holds the next batch that has its rows and is not committed, to the end of the with block.

    The event is set as soon as a batch is held.
    """
    reached, go_on = Event(), Event()
    known = failpoints.hit

    def hit(name: str) -> None:
        known(name)
        if name == "batch.after_action" and not reached.is_set():
            reached.set()
            assert go_on.wait(_LONGEST_S), "nobody lets the batch go on"

    with monkeypatch.context() as patch:
        patch.setattr("penstock.runtime.batches.hit", hit)
        try:
            yield reached
        finally:
            go_on.set()
