"""The thread that reads tables with the option `refresh` again, each after its own time."""

from __future__ import annotations

import logging
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from penstock.catalog.model import SourceDefinition
    from penstock.clock import Clock
    from penstock.runtime.dimensions import Dimensions

_LOG: Final = logging.getLogger(__name__)
_EVERY: Final = 0.25


class Refresher:
    """Looks now and then which tables are due. A table that nobody joins with is not read."""

    def __init__(self, dimensions: Dimensions, clock: Clock) -> None:
        self._dimensions = dimensions
        self._clock = clock
        self._closing = threading.Event()
        self._due: dict[str, float] = {}
        self._thread = threading.Thread(target=self._loop, name="penstock-refresh", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """End the thread; what it is reading is let finish."""
        self._closing.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(30)

    def _loop(self) -> None:
        while not self._closing.wait(_EVERY):
            tables = self._dimensions.refreshed_tables()
            self._due = {table.name.text: self._due_at(table) for table in tables}
            for table in tables:
                if self._clock.monotonic() >= self._due[table.name.text] and not self._closing.is_set():
                    self._refresh(table)

    def _due_at(self, table: SourceDefinition) -> float:
        known = self._due.get(table.name.text)
        return known if known is not None else self._clock.monotonic() + _seconds(table)

    def _refresh(self, table: SourceDefinition) -> None:
        try:
            self._dimensions.refresh(table)
        except Exception:  # noqa: BLE001 - one table must not end the care for the others
            _LOG.exception("reading table %s again", table.name)
        self._due[table.name.text] = self._clock.monotonic() + _seconds(table)


def _seconds(table: SourceDefinition) -> float:
    length = table.options.values["refresh"]
    assert isinstance(length, timedelta)
    return length.total_seconds()
