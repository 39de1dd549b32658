"""What a view hands to a sink: commit by commit, in their order, from its log of changes.

A commit is what one batch did to the view, and the log never changes behind it. So what comes after a number is the
same however often it is asked for, and a sink that was cut off is given the same once more.

A sink whose batches Spark runs is told the changes of each before the batch is in the ledger: see `handed`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.frozen import frozen
from penstock.stores.duckdb_types import from_duckdb, quoted, typed
from penstock.stores.views import records
from penstock.stores.views.change_log import batch_changes, extent, logged_changes, merged_changes, trim_batches
from penstock.stores.views.database import fetched, one_row
from penstock.stores.views.finish_view import FinishView
from penstock.stores.views.handed import NOTHING_HANDED, STAGED, Handed
from penstock.stores.views.stage_text import StageText
from penstock.stores.views.store_reading import StoreReading
from penstock.stores.views.touched_keys import ALL_KEYS
from penstock.stores.views.view_rows import ViewRows
from penstock.stores.views.view_table import KEPT_BATCHES, TIDY_EVERY, BatchMark

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import RLock

    import duckdb
    import pyarrow as pa

    from penstock.plan.finish_plan import FinishPlan
    from penstock.stores.views.change_log import BatchChanges
    from penstock.stores.views.model import SeenVersion
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
    _clock: Callable[[], int]
    _handed: dict[str, Handed]

    def stage(
        self,
        job: str,
        view: str,
        batch_id: int,
        rows: pa.Table,
        closing_us: int = 0,
        clock_us: int = 0,
        versions: tuple[SeenVersion, ...] = (),
    ) -> BatchChanges:
        """Bring the rows of a batch into a view ahead of the ledger, and tell what has changed: for a sink, which is
        told before the batch is committed. A batch that is staged already has the same changes again.

        Of a view that is built on others as well, it tells also what those have changed since the batch before, merged
        into one change a key."""
        with self._lock:
            table = self._table(view)
            changes, told = 0, self._handed.get(view, NOTHING_HANDED)
            with self._database.transaction() as writer:
                facts = records.read_facts(writer, job)
                if facts.get(STAGED, -1) < batch_id:
                    first = self._last_seq[view] + 1
                    mark = BatchMark(batch_id, self._clock(), None, first, closing_us, clock_us, versions)
                    changes = table.apply(writer, rows, mark)
                    told = Handed(batch_id, min(told.upto, first - 1), first + changes - 1)
                    more = told.facts(view) if table.parents else {STAGED: batch_id}
                    records.write_facts(writer, job, {**facts, **more})
                if batch_id % TIDY_EVERY == 0 and batch_id > KEPT_BATCHES:
                    _tidy(writer, table, batch_id - KEPT_BATCHES)
            self._last_seq[view] += changes
            with self._database.snapshot() as reader:
                if not table.parents:
                    return batch_changes(reader, table, batch_id)
                self._handed[view] = told
                adds = table.spec.finish is not None and table.spec.finish.only_adds
                tell = logged_changes if adds else merged_changes
                return tell(reader, table, told.since, told.upto - told.since)

    def handed(self, view: str) -> int:
        """The last change of a view that batches have handed to its sink; 0 before the first."""
        return self._handed.get(view, NOTHING_HANDED).upto

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


def _tidy(writer: duckdb.DuckDBPyConnection, table: ViewTable, floor: int) -> None:
    """Let go of what was handed on long ago. The rows of a view over others that is its own log stay: they are compared
    with those of the views below when it has stood still."""
    if table.keyed or not table.parents:
        trim_batches(writer, table, floor)
    if isinstance(table, FinishView):
        table.forget_shown(writer, floor)


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
