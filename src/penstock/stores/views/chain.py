"""Views that are built on other views: refreshed in the transaction of the batch that changes one of those.

So all views of a chain show the same batch, in every snapshot. A view is built on views that were there before it, so
the order in which views were made is one in which they can be refreshed, each once.

A view can be held: it is then not refreshed, and neither is what is built on it, which would show two batches at once.
The ledger has a row of each view that stands still, with the batches of the jobs below that it shows; a view that
follows has none, since it shows what is committed. Held views are filled anew before they follow again.

A view may read streams beside views: batches of its own come into it then, and the ledger has those.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from penstock.errors import InternalError, PenstockError
from penstock.stores.views.added_view import AddedView
from penstock.stores.views.finish_view import FinishView
from penstock.stores.views.handed import NOTHING_HANDED
from penstock.stores.views.ledger import HELD, WAITS, held_mark, write_entry
from penstock.stores.views.model import LedgerEntry, PartitionOffset
from penstock.stores.views.view_rows import note_changes
from penstock.stores.views.view_table import BatchMark

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    import duckdb

    from penstock.stores.views.database import ViewDatabase
    from penstock.stores.views.handed import Handed
    from penstock.stores.views.ledger import Ledger
    from penstock.stores.views.model import SeenVersion
    from penstock.stores.views.view_table import ViewTable

    Writer = duckdb.DuckDBPyConnection

# Not the fault of a view: whoever commits gets to know.
_OF_THE_STORE: Final = frozenset({"DATABASE_CLOSED"})


class RefreshFailedError(Exception):
    """A view cannot be answered from those that it is built on."""

    def __init__(self, view: str, reason: PenstockError) -> None:
        super().__init__(view, reason)
        self.view = view
        self.reason = reason


class Refreshed:
    """What a transaction has changed in views beside the one it was for: how many changes each has, by name."""

    def __init__(self) -> None:
        self.changes: dict[str, int] = {}
        self.held: list[LedgerEntry] = []  # views that stand still from now on
        self.released: list[str] = []  # views that follow from now on
        self.written: tuple[int, LedgerEntry | None] = (0, None)  # of the batch: its changes, its place in the ledger


class Chain:
    """Refreshes views. The store's lock guards it."""

    def __init__(
        self, database: ViewDatabase, ledger: Ledger, last_seq: Mapping[str, int], handed: Mapping[str, Handed]
    ) -> None:
        """`handed`: of views that nobody sees, the last batch that has come into them."""
        self._database = database
        self._handed = handed
        self._ledger = ledger
        self._last_seq = last_seq
        self.views: Mapping[str, ViewTable] = {}

    def still(self, name: str) -> bool:
        """Whether a view is not refreshed, by itself or because of one below."""
        latest = self._ledger.get(self.mark_of(name))
        return latest is not None and latest.offsets_hash in (HELD, WAITS)

    def held(self, name: str) -> bool:
        """Whether somebody holds the view itself."""
        latest = self._ledger.get(self.mark_of(name))
        return latest is not None and latest.offsets_hash == HELD

    def entry(self, name: str, released: Collection[str] = ()) -> LedgerEntry | None:
        """What a view shows: its own last batch, or those of the jobs below; `offsets` tell of each of them.

        `released` are views that stood still until now.
        """
        table = self.views.get(name)
        fed = table is not None and _fed(table)
        own = None if name in released and not fed else self._ledger.get(name)
        if own is not None or table is None or not table.parents or fed:
            return own
        offsets: dict[str, PartitionOffset] = {}
        below: list[LedgerEntry] = []
        for parent in table.parents:
            entry = self.entry(parent.spec.name, released)
            if entry is None:
                continue
            below.append(entry)
            if parent.parents and not _fed(parent):
                offsets |= {at.connector_id: at for at in entry.offsets}
            else:
                offsets[entry.job] = PartitionOffset(entry.job, 0, entry.batch_id, entry.completed_at_us)
        if not below:
            return None
        latest = max(below, key=lambda entry: entry.completed_at_us)
        marks = [entry.watermark_us for entry in below]
        return LedgerEntry(
            job=name,
            batch_id=latest.batch_id,
            offsets_hash="",
            watermark_us=None if None in marks else min(mark for mark in marks if mark is not None),
            tracker="",
            offsets=tuple(offsets.values()),
            counters={},
            input_rows=0,
            size_bytes=0,
            started_at_us=latest.started_at_us,
            completed_at_us=latest.completed_at_us,
        )

    # refreshing

    def refresh(
        self, writer: Writer, changed: ViewTable, mark: BatchMark, changes: int, failed: Collection[str]
    ) -> Refreshed:
        """A batch has changed a view: bring those built on it along; those in `failed` stand still from now on."""
        result = Refreshed()
        for name in failed:
            self._hold(writer, name, result)
        moved: set[int] = set()
        if changes:
            self._note(writer, changed, mark.first_seq, changes, moved)
        for table in self._following(moved, result):
            first = self._last_seq[table.spec.name] + 1
            own = self._own(table, replace(mark, first_seq=first, versions=()))
            with self._of(table):
                count = table.refresh(writer, moved, own)
            result.changes[table.spec.name] = count
            if count:
                self._note(writer, table, first, count, moved)
        return result

    def pass_time(self, writer: Writer, name: str, now_us: int, clock_us: int, failed: Collection[str]) -> Refreshed:
        """The clock of a view has moved: bring it along, and those built on it."""
        mark = replace(_mark(self._newest(self.views[name], ()), now_us, self._last_seq[name] + 1), clock_us=clock_us)
        return self._moved(writer, name, mark, failed)

    def see(
        self, writer: Writer, name: str, now_us: int, versions: tuple[SeenVersion, ...], failed: Collection[str]
    ) -> Refreshed:
        """A view sees new versions of dimensions: bring it along, and those built on it."""
        mark = replace(_mark(self._newest(self.views[name], ()), now_us, self._last_seq[name] + 1), versions=versions)
        return self._moved(writer, name, mark, failed)

    def _moved(self, writer: Writer, name: str, mark: BatchMark, failed: Collection[str]) -> Refreshed:
        table = _filled(self.views[name])
        with self._of(table):
            count = table.refresh(writer, (), self._own(table, mark))
        result = self.refresh(writer, table, mark, count, failed)
        result.changes[name] = count
        return result

    def refill(self, writer: Writer, below: Iterable[ViewTable], now_us: int, failed: Collection[str]) -> Refreshed:
        """Views have become what they were once: answer everything anew that is built on them and follows."""
        result = Refreshed()
        for name in failed:
            self._hold(writer, name, result)
        moved = {table.id for table in below}
        for table in self._following(moved, result):
            result.changes[table.spec.name] = self._fill(writer, table, now_us)
            moved.add(table.id)
        return result

    def release(
        self, writer: Writer, name: str, now_us: int, failed: Collection[str], versions: tuple[SeenVersion, ...] = ()
    ) -> Refreshed:
        """Let a view follow again, and what waits for it: each is filled anew."""
        result = Refreshed()
        for each in failed:
            self._hold(writer, each, result)
        stopped = {entry.job for entry in result.held}
        for table in self.views.values():
            own = table.spec.name
            marked = self.mark_of(own)
            if marked in stopped or not self.still(own) or (self.held(own) and own != name):
                continue
            below = {parent.spec.name for parent in table.parents} - {*result.released}
            if any(self.still(parent) for parent in below):
                if own == name:  # it waits for another one
                    writer.execute("UPDATE store.ledger SET hash = ? WHERE job = ?", [WAITS, marked])
                    entry = self._ledger.get(marked)
                    assert entry is not None
                    result.held.append(replace(entry, offsets_hash=WAITS))
                continue
            writer.execute("DELETE FROM store.ledger WHERE job = ?", [marked])
            result.released.append(own)
            seen = versions if own == name else ()
            result.changes[own] = self._fill(writer, table, now_us, result.released, seen)
        return result

    def fill_new(
        self, writer: Writer, table: ViewTable, now_us: int, versions: tuple[SeenVersion, ...] = ()
    ) -> tuple[int, LedgerEntry | None]:
        """The first rows of a view; its entry in the ledger where it has to wait for one below."""
        entry = self._newest(table, ())
        mark = replace(_mark(entry, now_us, 1), versions=versions)
        count = _filled(table).refill(writer, self._own(table, mark))
        if entry is None or not any(self.still(parent.spec.name) for parent in table.parents):
            return count, None
        entry = replace(entry, job=_marked(table), offsets_hash=WAITS, tracker="", counters={})
        write_entry(writer, entry, None if _fed(table) else table.id)
        return count, entry

    def hold(self, writer: Writer, name: str) -> Refreshed:
        """Let a view, and what is built on it, stand still."""
        result = Refreshed()
        self._hold(writer, name, result)
        return result

    def _hold(self, writer: Writer, name: str, result: Refreshed) -> None:
        noted = {entry.job for entry in result.held}
        for table in (self.views[name], *self.built_on(name)):
            own, marked = table.spec.name, _marked(table)
            word = HELD if own == name else WAITS
            if marked in noted or (self.still(own) and (word == WAITS or self.held(own))):
                continue
            entry = self.entry(own)
            if entry is None:  # nothing has come yet, below neither
                entry = LedgerEntry(own, -1, word, None, "", (), {}, 0, 0, 0, 0)
            entry = replace(entry, job=marked, offsets_hash=word)
            writer.execute("DELETE FROM store.ledger WHERE job = ?", [marked])
            write_entry(writer, entry, None if _fed(table) else table.id)
            result.held.append(entry)

    def built_on(self, name: str) -> Iterator[ViewTable]:
        """The views that are built on one, near and far, each behind those it reads."""
        found = {self.views[name].id}
        for table in self.views.values():
            if any(parent.id in found for parent in table.parents):
                found.add(table.id)
                yield table

    def _following(self, moved: set[int], result: Refreshed) -> Iterator[AddedView | FinishView]:
        """The views to refresh, in order; `moved` grows on the way."""
        stopped = {entry.job for entry in result.held}
        for table in self.views.values():
            own = table.spec.name
            if _marked(table) in stopped or not any(parent.id in moved for parent in table.parents) or self.still(own):
                continue
            yield _filled(table)

    def _note(self, writer: Writer, table: ViewTable, first_seq: int, changes: int, moved: set[int]) -> None:
        """What has changed in a view, where somebody is built on it."""
        if any(parent.id == table.id for other in self.views.values() for parent in other.parents):
            writer.execute(note_changes(table, first_seq, changes))
            moved.add(table.id)

    def _newest(self, table: ViewTable, released: Collection[str]) -> LedgerEntry | None:
        below = (self.entry(parent.spec.name, released) for parent in table.parents)
        return max((each for each in below if each is not None), key=lambda each: each.completed_at_us, default=None)

    def _fill(
        self,
        writer: Writer,
        table: ViewTable,
        now_us: int,
        released: Collection[str] = (),
        versions: tuple[SeenVersion, ...] = (),
    ) -> int:
        mark = _mark(self._newest(table, released), now_us, self._last_seq[table.spec.name] + 1)
        mark = replace(mark, versions=versions)
        with self._of(table):
            return _filled(table).refill(writer, self._own(table, mark))

    def _own(self, table: ViewTable, mark: BatchMark) -> BatchMark:
        """The mark, with the batch that the view shows: where rows come of its own, it counts batches by itself."""
        if not _fed(table):
            return mark
        latest = self._ledger.get(table.spec.name)
        if latest is None:
            return replace(mark, batch=self._handed.get(table.spec.name, NOTHING_HANDED).batch)
        return replace(mark, batch=latest.batch_id)

    def mark_of(self, name: str) -> str:
        """The job under which the ledger has it that a view stands still."""
        table = self.views.get(name)
        return name if table is None else _marked(table)

    @contextmanager
    def _of(self, table: ViewTable) -> Iterator[None]:
        """What goes wrong inside is told of the view."""
        try:
            with self._database.errors():
                yield
        except PenstockError as error:
            if error.condition in _OF_THE_STORE:
                raise
            raise RefreshFailedError(table.spec.name, error) from error


def _fed(table: ViewTable) -> bool:
    """Whether batches of its own come into a view, beside what the views below bring."""
    return isinstance(table, AddedView | FinishView) and table.fed


def _marked(table: ViewTable) -> str:
    """The job under which the ledger has it that a view stands still: one that has batches of its own keeps those."""
    return held_mark(table.spec.name) if _fed(table) else table.spec.name


def _mark(entry: LedgerEntry | None, now_us: int, first_seq: int) -> BatchMark:
    if entry is None:
        return BatchMark(-1, now_us, None, first_seq)
    return BatchMark(entry.batch_id, now_us, entry.watermark_us, first_seq)


def _filled(table: ViewTable) -> AddedView | FinishView:
    if not isinstance(table, AddedView | FinishView):
        raise InternalError(f"view {table.spec.name} is built on others and has no finish")
    return table
