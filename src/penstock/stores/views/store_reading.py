"""What readers ask of the view store: each has a snapshot, and waits for nobody."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import ResolutionError
from penstock.stores.arrow_values import python_dicts
from penstock.stores.duckdb_types import from_duckdb, quoted
from penstock.stores.views.change_log import LoggedChanges, read_changes, read_logged, read_snapshot
from penstock.stores.views.database import fetched, one_row
from penstock.stores.views.finish_view import FinishView
from penstock.stores.views.model import Answer, Snapshot, StoredChange
from penstock.stores.views.panes_view import PanesView
from penstock.stores.views.reading import answer
from penstock.stores.views.system_tables import stored_system_table
from penstock.stores.views.windows_view import WindowsView

if TYPE_CHECKING:
    from threading import Condition

    import pyarrow as pa

    from penstock.stores.views.database import ViewDatabase
    from penstock.stores.views.view_table import ViewTable

NO_RELATIONS: Final[Mapping[str, Any]] = MappingProxyType({})


class StoreReading:
    """The readers' side of the store."""

    _database: ViewDatabase
    _views: dict[str, ViewTable]
    _last_seq: dict[str, int]
    _changed: Condition

    def read(self, sql: str, relations: Mapping[str, pa.Table] = NO_RELATIONS) -> Answer:
        """Run one SELECT over views and the Arrow tables given with it, in one snapshot."""
        with self._database.snapshot() as reader:
            return answer(reader, sql, relations, self._views)

    def read_views(self, names: Sequence[str]) -> dict[str, Answer]:
        """The rows of several views, all in one snapshot: of a chain they show one batch."""
        with self._database.snapshot() as reader:
            return {name: answer(reader, f"SELECT * FROM {quoted(name)}", {}, self._views) for name in names}

    def system_table(self, name: str) -> pa.Table | None:
        """A system table that is kept here, or None."""
        with self._database.snapshot() as reader:
            return stored_system_table(reader, name)

    def changes(self, view: str, since: int | None, limit: int = 10_000) -> list[StoredChange]:
        """The changes after a sequence number; None: the whole view as inserts, whatever the limit."""
        if since is None:
            whole = self.snapshot(view)
            return [
                StoredChange(whole.seq, "insert", None, row, whole.batch_id, whole.watermark_us, None)
                for row in python_dicts(whole.table)
            ]
        table = self._table(view)
        with self._database.snapshot() as reader:
            return read_changes(reader, table, since, limit)

    def logged(self, view: str, since: int, limit: int = 10_000) -> LoggedChanges:
        """The changes after a sequence number, as columns."""
        table = self._table(view)
        with self._database.snapshot() as reader:
            return read_logged(reader, table, since, limit)

    def snapshot(self, view: str) -> Snapshot:
        """The whole view, and the sequence number from which its changes go on."""
        table = self._table(view)
        with self._database.snapshot() as reader:
            return read_snapshot(reader, table)

    def open_windows(self, view: str) -> pa.Table | None:
        """The groups of windows that a view has not closed: key, window_start, window_end, count, sum, min, max; None
        where it keeps none."""
        table = self._views.get(view)
        if not isinstance(table, PanesView | WindowsView):
            return None
        with self._database.snapshot() as reader:
            return from_duckdb(fetched(reader, table.open_windows()))

    def kept_panes(self, view: str) -> int:
        """How many groups of open windows, or of their panes, a view keeps."""
        table = self._views.get(view)
        if not isinstance(table, PanesView | WindowsView):
            return 0
        with self._database.snapshot() as reader:
            row = one_row(reader, table.kept_panes())
        return 0 if row is None else int(row[0])

    def due(self, view: str) -> int | None:
        """The time at which a view may show other rows though none come, in microseconds; None: never."""
        table = self._views.get(view)
        if not isinstance(table, FinishView) or not table.clocked:
            return None
        with self._database.snapshot() as reader:
            return table.due(reader)

    def last_seq(self, view: str) -> int:
        """The sequence number of the last change of a view, 0 where it had none."""
        self._table(view)
        return self._last_seq[view]

    def wait_for(self, view: str, after_seq: int, timeout: float) -> bool:
        """Wait until the view has a change after `after_seq`; False where none came in `timeout` seconds."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while self.last_seq(view) <= after_seq:
                left = deadline - time.monotonic()
                if left <= 0 or self._database.closed:
                    return False
                self._changed.wait(left)
        return True

    def _table(self, view: str) -> ViewTable:
        table = self._views.get(view)
        if table is None:
            raise ResolutionError("UNKNOWN_RELATION", f"view {view} is not kept", hint="create the view first")
        return table
