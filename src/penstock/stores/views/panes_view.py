"""A view of windows, which are kept as panes until they close.

A batch adds its partial results, by key and pane. When the watermark passes the end of a window, the window is merged
from the panes it is made of and its rows are added to the view, once. A row that comes behind the watermark is in its
pane, and so counts in those windows of the pane that are open; the closed ones are never computed again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.stores.duckdb_types import quoted
from penstock.stores.views.append_view import AppendView
from penstock.stores.views.closed_marks import ClosedMarks
from penstock.stores.views.database import one_row, run_with
from penstock.stores.views.model import ViewSpec
from penstock.stores.views.pane_text import PaneText
from penstock.stores.views.view_table import BATCH, BatchMark, ViewTable, picked

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


class PanesView:
    """The tables of a view of windows: v<n> with its rows, p<n> with the panes as batches gave them, and w<n>
    with the watermark up to which each batch closed windows, where it moved."""

    keyed = False
    parents: tuple[ViewTable, ...] = ()

    def __init__(self, number: int, spec: ViewSpec) -> None:
        self.id = number
        self.spec = spec
        self._rows = AppendView(number, spec)
        self._panes = f"store.p{number}"
        self._marks = ClosedMarks(number, spec.name)
        self._text = PaneText(spec, self._panes)

    def create(self, writer: duckdb.DuckDBPyConnection) -> None:
        self._rows.create(writer)
        columns = "".join(f", {name} {kind}" for name, kind in self._text.stored)
        writer.execute(f"CREATE TABLE {self._panes} (batch BIGINT{columns})")
        self._marks.create(writer)

    def drop(self, writer: duckdb.DuckDBPyConnection) -> None:
        self._rows.drop(writer)
        writer.execute(f"DROP TABLE {self._panes}")
        self._marks.drop(writer)

    def apply(self, writer: duckdb.DuckDBPyConnection, rows: pa.Table, mark: BatchMark) -> int:
        closed_us = self._marks.closed_us(writer)
        if rows.num_rows:
            batch = picked(rows, self.spec.name, self._text.given, [name for name, _ in self._text.stored])
            text = (
                f"INSERT INTO {self._panes} SELECT {mark.batch}, {self._text.staged} FROM {quoted(BATCH)} "
                f"WHERE {self._text.last_end} > {closed_us}"
            )
            run_with(writer, text, BATCH, batch)
        changes = self._close(writer, closed_us, mark) if self._marks.moved(writer, closed_us, mark) else 0
        due = self._marks.due(writer, mark.batch)
        if due is not None:
            self._tidy(writer, *due)
        return changes

    def _close(self, writer: duckdb.DuckDBPyConnection, closed_us: int, mark: BatchMark) -> int:
        """Add the rows of the windows that end after one watermark and not after the next."""
        writer.execute(f"CREATE OR REPLACE TEMP TABLE nw AS {self._text.closing(closed_us, mark.closing_us)}")
        counted = one_row(writer, "SELECT count(*) FROM nw")
        assert counted is not None
        writer.execute(
            f"INSERT INTO {self._rows.log()} SELECT {mark.first_seq - 1} + row_number() OVER (), {mark.batch}, "
            f"{mark.at_us}, {mark.watermark_text}, * FROM nw"
        )
        return int(counted[0])

    def _tidy(self, writer: duckdb.DuckDBPyConnection, floor: int, closed_us: int) -> None:
        """Let go of panes that no window needs, and merge those of old batches; nobody goes back behind `floor`."""
        writer.execute(f"CREATE OR REPLACE TEMP TABLE nw AS {self._text.tidied(floor, closed_us)}")
        writer.execute(f"INSERT INTO {self._panes} SELECT {floor}, * FROM nw")

    def undo(self, writer: duckdb.DuckDBPyConnection, batch: int) -> None:
        self._rows.undo(writer, batch)
        writer.execute(f"DELETE FROM {self._panes} WHERE batch > {batch}")
        self._marks.undo(writer, batch)

    def kept_panes(self) -> str:
        """How many rows of panes there are that an open window needs, as a query."""
        return f"SELECT count(*) FROM {self._panes} WHERE {self._text.last_end} > {self._marks.latest}"

    def open_windows(self) -> str:
        """The groups of the windows that are open, as a query: key, window_start, window_end, count, sum, min, max."""
        return self._text.open_groups(self._marks.latest)

    def select(self) -> str:
        return self._rows.select()

    def whole(self) -> str:
        return self._rows.whole()

    def changes(self, since: int, limit: int) -> str:
        return self._rows.changes(since, limit)

    def log(self) -> str:
        return self._rows.log()
