"""What a view hands to a sink: commit by commit, in their order, from its log of changes.

A commit is what one batch did to the view, and the log never changes behind it. So what comes after a number is the
same however often it is asked for, and a sink that was cut off is given the same once more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.frozen import frozen
from penstock.stores.duckdb_types import from_duckdb, quoted, typed
from penstock.stores.views.change_log import extent, logged_changes
from penstock.stores.views.database import fetched, one_row
from penstock.stores.views.stage_text import StageText
from penstock.stores.views.store_reading import StoreReading
from penstock.stores.views.touched_keys import ALL_KEYS
from penstock.stores.views.view_rows import ViewRows

if TYPE_CHECKING:
    from threading import RLock

    import duckdb
    import pyarrow as pa

    from penstock.plan.finish_plan import FinishPlan
    from penstock.stores.views.change_log import BatchChanges
    from penstock.stores.views.view_table import ViewTable


@frozen
class Commit:
    """One commit of a view: its changes are those behind `since` up to `upto`."""

    since: int
    upto: int
    at_us: int
    watermark_us: int | None

    @property
    def changes(self) -> int:
        return self.upto - self.since


class Deliveries(StoreReading):
    """The sinks' side of the store."""

    _lock: RLock

    def commit_after(self, view: str, since: int) -> Commit | None:
        """The first commit behind a change; None where there is none yet."""
        with self._database.snapshot() as reader:
            return _commit_after(reader, self._table(view), since)

    def changes_of(self, view: str, commit: Commit) -> BatchChanges:
        """The changes of a commit."""
        table = self._table(view)
        with self._database.snapshot() as reader:
            return logged_changes(reader, table, commit.since, commit.changes)

    def added_by(self, view: str, commit: Commit, plan: FinishPlan, columns: int) -> pa.Table:
        """What a query makes of the rows that a commit added to a view: so many columns, from those rows alone."""
        table = self._table(view)
        shown = plan.view.columns[:columns]
        listed = ", ".join(f"c{place} AS {quoted(name)}" for place, (name, _) in enumerate(shown))
        with self._database.snapshot() as reader:
            found = fetched(reader, f"SELECT {listed} FROM ({_added(table, plan, commit)})")
            return typed(from_duckdb(found), shown)

    def forget_changes(self, view: str, upto: int) -> None:
        """Let go of changes that nobody asks for again, up to one of them. The rows of a view that is its own log
        stay: they are compared with those of the views below when it has stood still."""
        table = self._table(view)
        with self._lock, self._database.transaction() as writer:
            if table.keyed:
                writer.execute(f"DELETE FROM {table.log()} WHERE seq <= {upto}")
            writer.execute(
                "UPDATE store.views SET first_seq = greatest(first_seq, ?) WHERE id = ?", [upto + 1, table.id]
            )


def _commit_after(reader: duckdb.DuckDBPyConnection, view: ViewTable, since: int) -> Commit | None:
    last = extent(reader, view).last_seq
    first = one_row(reader, f"SELECT batch, done, wm FROM {view.log()} WHERE seq = {since + 1}")
    if first is None:
        return None
    batch, done, mark = first
    other = one_row(
        reader, f"SELECT min(seq) FROM {view.log()} WHERE seq > {since} AND (batch <> {batch} OR done <> {done})"
    )
    end = last if other is None or other[0] is None else other[0] - 1
    return Commit(since, end, done, mark)


def _added(view: ViewTable, plan: FinishPlan, commit: Commit) -> str:
    """The query over the rows of a commit in the place of the whole view."""
    (rows,) = plan.rows
    reading = ViewRows(0, rows, view)
    names = ", ".join(f"a{place} AS {quoted(name)}" for place, (name, _) in enumerate(view.spec.columns))
    source = f"SELECT {names} FROM ({view.changes(commit.since, commit.changes)})"
    came = reading.read(source, reading.source.columns)
    return StageText("", "", plan.view, (reading.source,)).asked(ALL_KEYS, {0: came})
