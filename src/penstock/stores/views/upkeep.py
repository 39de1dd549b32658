"""What is done between batches: what is no longer kept is let go of, and DuckDB's log comes into its file."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from penstock.stores.views import records
from penstock.stores.views.change_log import trim

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    import duckdb

    from penstock.stores.views.database import ViewDatabase
    from penstock.stores.views.ledger import Ledger
    from penstock.stores.views.model import Kept
    from penstock.stores.views.view_table import ViewTable

# Measured: with a checkpoint every 50 commits the slowest commit took an eighth of what DuckDB's own cost.
_COMMITS_BETWEEN_CHECKPOINTS: Final = 50
_LARGEST_LOG: Final = 256 << 20
_SECONDS_BETWEEN_CHECKPOINTS: Final = 60.0
_SECONDS_BETWEEN_TRIMS: Final = 3600.0
_TRIMS_A_RETENTION: Final = 10


class Upkeep:
    """Decides what of that is due. Whoever calls it holds the store's lock; `commits` counts those since the last
    checkpoint."""

    def __init__(self, database: ViewDatabase, ledger: Ledger, clock: Callable[[], int], kept_batches: int) -> None:
        self._database = database
        self._ledger = ledger
        self._clock = clock
        self._kept_batches = kept_batches
        self.commits = 0
        self._maintained = time.monotonic()
        self._trimmed = self._maintained

    def maintain(self, views: Collection[ViewTable], kept: Kept) -> None:
        """What is due by now."""
        now = time.monotonic()
        waited = now - self._maintained > _SECONDS_BETWEEN_CHECKPOINTS
        many = self.commits >= _COMMITS_BETWEEN_CHECKPOINTS or self._database.log_bytes() > _LARGEST_LOG
        full = many or (waited and self.commits > 0)
        lengths = [kept.shortest_us, *(table.spec.retention_us for table in views)]
        kept_us = [length for length in lengths if length is not None]
        often = max(1.0, min(kept_us, default=0) / 1e6 / _TRIMS_A_RETENTION)
        if full or (kept_us and now - self._trimmed > min(often, _SECONDS_BETWEEN_TRIMS)):
            self.trim(views, kept)
            self._trimmed = now
        if full and self._database.checkpoint():
            self.commits = 0
            self._maintained = time.monotonic()

    def trim(self, views: Collection[ViewTable], kept: Kept) -> None:
        """Let go of what is no longer kept, now."""
        with self._database.transaction() as writer:
            now = self._clock()
            for table in views:
                if table.spec.retention_us is not None:
                    trim(writer, table, now - table.spec.retention_us)
            self._trim_ledger(writer)
            records.trim(writer, kept, now)

    def _trim_ledger(self, writer: duckdb.DuckDBPyConnection) -> None:
        for entry in self._ledger.entries():
            oldest = entry.batch_id - self._kept_batches + 1
            if oldest > 0:
                writer.execute("DELETE FROM store.ledger WHERE job = ? AND batch < ?", [entry.job, oldest])
