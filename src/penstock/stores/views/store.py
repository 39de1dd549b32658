"""The view store: everything that a batch leaves behind goes into one DuckDB transaction.

So a view, its change log, the job's tracker and the ledger never disagree, whatever is killed, and a reader sees whole
batches only. There is one writer, which holds the store's lock; readers have snapshots and wait for nobody. Whoever
runs the batches calls `maintain` between them: it trims what is no longer kept and brings DuckDB's log into its file,
which would otherwise strike inside a commit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Condition, RLock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self

from penstock.clock import now_us
from penstock.errors import CatalogError, InternalError, PenstockError, RuntimeFailure
from penstock.stores.views import records
from penstock.stores.views.added_view import AddedView
from penstock.stores.views.asked_functions import AskedFunctions
from penstock.stores.views.chain import Chain, Refreshed, RefreshFailedError
from penstock.stores.views.change_log import extent
from penstock.stores.views.database import ViewDatabase, one_row
from penstock.stores.views.deliveries import Deliveries
from penstock.stores.views.finish_view import FinishView
from penstock.stores.views.handed import STAGED, Handed, all_handed
from penstock.stores.views.job_records import JobRecords
from penstock.stores.views.ledger import HELD, WAITS, Ledger, held_mark, write_entry
from penstock.stores.views.model import (
    BatchCommit,
    CommitResult,
    Kept,
    LedgerEntry,
    SeenVersion,
    ViewSpec,
)
from penstock.stores.views.pairs_view import PairsView
from penstock.stores.views.panes_view import PanesView
from penstock.stores.views.schema import prepare
from penstock.stores.views.spec_text import spec_from_text, spec_to_text
from penstock.stores.views.upkeep import Upkeep
from penstock.stores.views.user_aggregates import AggregateParts, add_aggregate
from penstock.stores.views.view_kinds import view_table
from penstock.stores.views.view_table import BatchMark, ViewTable
from penstock.stores.views.windows_view import WindowsView

if TYPE_CHECKING:
    import duckdb

    from penstock.stores.views.asked_functions import Spark
    from penstock.types import SqlType

# How many batches of a job can be gone back to.
KEPT_BATCHES: Final = 1_000

At = Callable[[str], None]
_EVERYTHING: Final = Kept()
NO_RELATIONS: Final[Mapping[str, Any]] = MappingProxyType({})


class ViewStore(Deliveries, JobRecords):
    """An open view store. Any thread may use it."""

    def __init__(self, database: ViewDatabase, clock: Callable[[], int], kept_batches: int) -> None:
        self._database = database
        self._clock = clock
        self._lock = RLock()
        self._changed = Condition()
        self._views: dict[str, ViewTable] = {}
        self._last_seq: dict[str, int] = {}
        self._ledger = Ledger()
        self._handed: dict[str, Handed] = {}
        self._chain = Chain(database, self._ledger, self._last_seq, self._handed)
        self.on_failed: Callable[[str, PenstockError], None] = _nobody  # told of views that stand still from now on
        self._asked = AskedFunctions(database.raised)
        self._upkeep = Upkeep(database, self._ledger, clock, kept_batches)

    @classmethod
    def open(
        cls,
        path: Path | None,
        clock: Callable[[], int] = now_us,
        *,
        kept_batches: int = KEPT_BATCHES,
        threads: int | None = None,
    ) -> Self:
        """Open `views.duckdb` of a state directory, and make it where it is missing; None: a store in memory."""
        database = ViewDatabase.open(path, threads)
        try:
            prepare(database, clock())
            store = cls(database, clock, kept_batches)
            with database.snapshot() as reader:
                store._load(reader)
        except BaseException:
            database.close()
            raise
        return store

    def close(self) -> None:
        """Bring everything into the database file and close it. Closing twice does nothing."""
        with self._lock:
            if self._database.closed:
                return
            try:
                self._database.checkpoint()
                self._asked.remove(self._database.writer)
            finally:
                self._database.close()
        with self._changed:
            self._changed.notify_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Views

    def create_view(self, spec: ViewSpec, versions: tuple[SeenVersion, ...] = ()) -> None:
        """Make a view. The same definition again changes nothing but how long things are kept; another one is
        OBJECT_EXISTS. `versions` are those of dimensions that a view over others is first answered with."""
        with self._lock:
            self._make_known(spec)
            existing = self._views.get(spec.name)
            if existing is not None:
                if _fixed(existing.spec) != _fixed(spec):
                    raise CatalogError(
                        "OBJECT_EXISTS", f"view {spec.name} is kept with other columns", hint="drop the view first"
                    )
                if existing.spec != spec:
                    with self._database.transaction() as writer:
                        writer.execute(
                            "UPDATE store.views SET spec = ? WHERE id = ?", [spec_to_text(spec), existing.id]
                        )
                    self._use({**self._views, spec.name: view_table(existing.id, spec, self._views)})
                return
            changes, waits = 0, None
            with self._database.transaction() as writer:
                row = one_row(writer, "SELECT coalesce(max(id), 0) + 1 FROM store.views")
                assert row is not None
                table = view_table(row[0], spec, self._views)
                table.create(writer)
                writer.execute(
                    "INSERT INTO store.views VALUES (?, ?, ?, 1, -1)", [table.id, spec.name, spec_to_text(spec)]
                )
                if isinstance(table, AddedView | FinishView) and (table.parents or not table.fed):
                    changes, waits = self._chain.fill_new(writer, table, self._clock(), versions)
            self._last_seq[spec.name] = changes
            if waits is not None:
                self._ledger.remember(waits)
            self._use({**self._views, spec.name: table})

    def _use(self, views: dict[str, ViewTable]) -> None:
        # Readers take the whole mapping at once, without the lock.
        self._views = self._chain.views = views

    def _make_known(self, spec: ViewSpec) -> None:
        """The texts of a view call what Spark is asked for as functions, which no file keeps."""
        if spec.finish is not None:
            with self._database.errors():
                self._asked.add(self._database.writer, spec.finish.asked)

    def ask_with(self, spark: Spark) -> None:
        """Say who computes what only Spark knows."""
        self._asked.answer_with(spark)

    def add_aggregate(self, name: str, parts: AggregateParts, returns: SqlType) -> None:
        """Make an aggregate of the user's known to the views that merge it; a newer one takes its place."""
        with self._lock, self._database.errors():
            add_aggregate(self._database.writer, name, parts, returns)

    def drop_view(self, name: str) -> None:
        """Remove a view and its changes; no such view is fine. The ledger of its job stays: see `forget_job`."""
        with self._lock:
            table = self._views.get(name)
            if table is None:
                return
            with self._database.transaction() as writer:
                table.drop(writer)
                writer.execute("DELETE FROM store.views WHERE id = ?", [table.id])
                writer.execute("UPDATE store.ledger SET view = NULL WHERE view = ?", [table.id])
                writer.execute("DELETE FROM store.ledger WHERE job = ?", [held_mark(name)])
            self._use({other: kept for other, kept in self._views.items() if other != name})
            self._ledger.forget(held_mark(name))
            self._last_seq.pop(name, None)
            self._handed.pop(name, None)
        with self._changed:
            self._changed.notify_all()

    def specs(self) -> tuple[ViewSpec, ...]:
        """The views that are kept, in the order they were made."""
        return tuple(table.spec for table in self._views.values())

    def spec(self, name: str) -> ViewSpec:
        """The definition of a view that is kept."""
        return self._table(name).spec

    # Batches

    def commit(self, batch: BatchCommit, at: At | None = None) -> CommitResult:
        """Write everything of a batch in one transaction; a batch that is in the ledger is skipped.

        `at` is called at the failpoints view.before_write, view.before_commit and view.after_commit.
        """
        reached = at or _nowhere
        with self._lock:
            if batch.batch_id is None or batch.batch_id < 0:
                return self._commit_outside(batch)
            table = None if batch.view is None else self._table(batch.view)
            if self._ledger.check(batch):
                last = 0 if batch.view is None else self._last_seq[batch.view]
                return CommitResult(skipped=True, first_seq=last + 1 if batch.view else 0, last_seq=last)
            if table is None and batch.rows is not None and batch.rows.num_rows:
                raise InternalError(f"batch {batch.batch_id} of job {batch.job} has rows and no view")
            reached("view.before_write")
            now = self._clock()
            first = 0 if batch.view is None else self._last_seq[batch.view] + 1
            mark = BatchMark(
                batch.batch_id, now, batch.watermark_us, first, batch.closing_us, batch.clock_us, batch.versions
            )
            found, failed = self._refreshing(lambda writer, failed: self._write(writer, batch, mark, failed, reached))
            changes, entry = found.written
            assert entry is not None
            self._ledger.remember(entry)
            if batch.view is not None:
                self._last_seq[batch.view] = first + changes - 1
            result = CommitResult(False, changes, first, first + changes - 1 if batch.view else 0)
        if changes:
            with self._changed:
                self._changed.notify_all()
        self._tell(failed)
        reached("view.after_commit")
        return result

    def _write(
        self,
        writer: duckdb.DuckDBPyConnection,
        batch: BatchCommit,
        mark: BatchMark,
        failed: Collection[str],
        reached: At,
    ) -> Refreshed:
        """Everything of a batch, inside the transaction; the views in `failed` stand still from now on."""
        table = None if batch.view is None else self._table(batch.view)
        changes = 0
        if table is not None and batch.rows is not None:
            changes = table.apply(writer, batch.rows, mark)
        if batch.late is not None:
            records.add_late(writer, batch.job, mark.batch, batch.late, mark.at_us)
        if batch.dead is not None:
            records.add_dead(writer, batch.job, mark.batch, batch.dead)
        records.mark_retried(writer, batch.job, mark.batch, batch.retried)
        entry = self._ledger.next(_counted(batch, table, changes), mark.at_us)
        write_entry(writer, entry, None if table is None else table.id)
        found = Refreshed()
        if table is not None:
            found = self._chain.refresh(writer, table, mark, changes, failed)
        found.written = (changes, entry)
        reached("view.before_commit")
        return found

    def _commit_outside(self, batch: BatchCommit) -> CommitResult:
        if any(part is not None for part in (batch.rows, batch.late, batch.dead)) or batch.offsets or batch.counters:
            raise InternalError(f"job {batch.job} has rows to commit outside a batch")
        self.save_tracker(batch.job, batch.tracker, batch.watermark_us)
        last = 0 if batch.view is None else self._last_seq[batch.view]
        return CommitResult(skipped=False, first_seq=last + 1 if batch.view else 0, last_seq=last)

    def save_tracker(self, job: str, tracker: str, watermark_us: int | None) -> None:
        """Keep a tracker that moved without a batch."""
        with self._lock:
            latest = self._ledger.get(job)
            after = -1 if latest is None else latest.batch_id
            with self._database.transaction() as writer:
                writer.execute("DELETE FROM store.moves WHERE job = ?", [job])
                writer.execute("INSERT INTO store.moves VALUES (?, ?, ?, ?)", [job, after, watermark_us, tracker])
            self._ledger.move(job, tracker, watermark_us)
            self._upkeep.commits += 1

    def ledger(self, job: str) -> LedgerEntry | None:
        """The last batch that the job has committed."""
        with self._lock:
            return self._chain.entry(job)

    def tracker(self, job: str) -> tuple[str, int | None] | None:
        """The job's tracker and watermark as they were last kept, by a batch or outside one."""
        with self._lock:
            latest = self._ledger.get(job)
            return None if latest is not None and latest.offsets_hash in (HELD, WAITS) else self._ledger.tracker(job)

    def rollback(self, job: str, batch_id: int) -> None:
        """Put view, changes, ledger, tracker, late rows and dead letters back to what they were after a batch.

        -1 is the state before the first batch. Sequence numbers go back too: the batches that follow count on from
        there. UNKNOWN_CHECKPOINT where the batch is not kept.
        """
        with self._lock:

            def work(writer: duckdb.DuckDBPyConnection, failed: Collection[str]) -> Refreshed:
                views = self._views_to_undo(writer, job, batch_id)
                for table in views:
                    table.undo(writer, batch_id)
                records.undo(writer, job, batch_id)
                facts = records.read_facts(writer, job)
                if facts.get(STAGED, -1) > batch_id:
                    records.write_facts(writer, job, {**facts, STAGED: batch_id})
                seqs.update({table.spec.name: extent(writer, table).last_seq for table in views})
                return self._chain.refill(writer, views, self._clock(), failed)

            seqs: dict[str, int] = {}
            _, failed = self._refreshing(work)
            self._last_seq.update(seqs)
            with self._database.snapshot() as reader:
                self._ledger.load(reader, job)
        with self._changed:
            self._changed.notify_all()
        self._tell(failed)

    def hold(self, view: str) -> None:
        """Let a view that is built on others stand still, and what is built on it; one that does so already stays."""
        with self._lock:
            if view not in self._views or self._chain.held(view):
                return
            with self._database.transaction() as writer:
                found = self._chain.hold(writer, view)
            self._took(found)

    def follow(self, view: str, versions: tuple[SeenVersion, ...] = ()) -> None:
        """Let a view follow those that it is built on; one that was held is filled anew first, with the `versions` of
        dimensions."""
        with self._lock:
            if not self._chain.still(self._table(view).spec.name):
                return
            _, failed = self._refreshing(
                lambda writer, failed: self._chain.release(writer, view, self._clock(), failed, versions), own=view
            )
        with self._changed:
            self._changed.notify_all()
        self._tell(failed)

    def move_clock(self, view: str, clock_us: int) -> None:
        """Time has gone on for a view that no batches come into: bring in and take out what that asks for."""
        with self._lock:
            if self._chain.still(self._table(view).spec.name):
                return
            _, failed = self._refreshing(
                lambda writer, failed: self._chain.pass_time(writer, view, self._clock(), clock_us, failed), own=view
            )
        with self._changed:
            self._changed.notify_all()
        self._tell(failed)

    def see(self, view: str, versions: tuple[SeenVersion, ...]) -> None:
        """A view that no batches come into sees new versions of dimensions; one that stands still does when it follows
        again."""
        with self._lock:
            if self._chain.still(self._table(view).spec.name):
                return
            _, failed = self._refreshing(
                lambda writer, failed: self._chain.see(writer, view, self._clock(), versions, failed), own=view
            )
        with self._changed:
            self._changed.notify_all()
        self._tell(failed)

    def _refreshing(
        self,
        work: Callable[[duckdb.DuckDBPyConnection, Collection[str]], Refreshed],
        own: str | None = None,
    ) -> tuple[Refreshed, dict[str, PenstockError]]:
        """One transaction in which views are refreshed. Where one cannot be, all is done again without it: DuckDB has
        no way back to the middle of a transaction. What failed is told; what goes wrong with `own` is raised."""
        failed: dict[str, PenstockError] = {}
        while True:
            try:
                with self._database.transaction() as writer:
                    found = work(writer, failed)
            except RefreshFailedError as error:
                if error.view == own or error.view in failed:
                    raise error.reason from error
                failed[error.view] = error.reason
                continue
            self._took(found)
            return found, failed

    def _took(self, found: Refreshed) -> None:
        self._upkeep.commits += 1
        for name, changes in found.changes.items():
            self._last_seq[name] += changes
        for name in found.released:
            self._ledger.forget(self._chain.mark_of(name))
        for entry in found.held:
            self._ledger.remember(entry)

    def _tell(self, failed: Mapping[str, PenstockError]) -> None:
        for name, reason in failed.items():
            self.on_failed(name, reason)

    def _views_to_undo(self, writer: duckdb.DuckDBPyConnection, job: str, batch_id: int) -> list[ViewTable]:
        """The views of the job's batches; UNKNOWN_CHECKPOINT where not everything is there to undo them."""
        batches = [row[0] for row in writer.execute("SELECT batch FROM store.ledger WHERE job = ?", [job]).fetchall()]
        known = batch_id in batches or (batch_id == -1 and min(batches, default=0) == 0)
        rows = writer.execute("SELECT DISTINCT view FROM store.ledger WHERE job = ? AND view IS NOT NULL", [job])
        numbers = {row[0] for row in rows.fetchall()}
        tables = [table for table in self._views.values() if table.id in numbers]
        for table in tables:
            floor = one_row(writer, "SELECT floor FROM store.views WHERE id = ?", [table.id])
            known = known and floor is not None and batch_id >= floor[0]
        if not known:
            raise RuntimeFailure(
                "UNKNOWN_CHECKPOINT",
                f"job {job} cannot go back to batch {batch_id}",
                hint="penstock.checkpoints lists the batches; what retention has trimmed cannot be undone",
            )
        return tables

    def forget_job(self, job: str) -> None:
        """Remove everything a job has kept, its views aside."""
        with self._lock:
            with self._database.transaction() as writer:
                records.forget(writer, job)
            self._ledger.forget(job)

    def maintain(self, kept: Kept = _EVERYTHING) -> None:
        """Between batches: let go of what is no longer kept, and now and then a checkpoint."""
        with self._lock, self._database.errors():
            self._upkeep.maintain(self._views.values(), kept)

    def trim(self, kept: Kept = _EVERYTHING) -> None:
        """Let go of what is no longer kept, now."""
        with self._lock:
            self._upkeep.trim(self._views.values(), kept)

    def _load(self, reader: duckdb.DuckDBPyConnection) -> None:
        for number, text in reader.execute("SELECT id, spec FROM store.views ORDER BY id").fetchall():
            table = view_table(number, spec_from_text(text), self._views)
            self._make_known(table.spec)
            self._use({**self._views, table.spec.name: table})
            self._last_seq[table.spec.name] = extent(reader, table).last_seq
        self._ledger.load(reader)
        self._handed.update(all_handed(reader))


def _fixed(spec: ViewSpec) -> ViewSpec:
    """What cannot be changed of a view: all but how long it keeps things, where it tells how old they are."""
    return replace(spec, retention_us=None, ttl_us=None if spec.ttl_us is None else 0)


def _counted(batch: BatchCommit, table: ViewTable | None, changes: int) -> BatchCommit:
    """The batch with the rows that it gave: of windows that close and of answers nobody knows before how many."""
    if not isinstance(table, AddedView | PairsView | PanesView | WindowsView | FinishView) or batch.rows is None:
        return batch
    return replace(batch, counters={**batch.counters, "output_rows": float(changes)})


def _nowhere(_: str) -> None:
    """No failpoint is set."""


def _nobody(_view: str, _reason: PenstockError) -> None:
    """Nobody wants to know."""
