"""A view of windows, which are kept as panes until they close.

A batch adds its partial results, by key and pane. When the watermark passes the end of a window, the window is merged
from the panes it is made of and its rows are added to the view, once. A row that comes behind the watermark is in its
pane, and so counts in those windows of the pane that are open; the closed ones are never computed again.

Where windows of several GROUP BYs are joined, each of them has its panes. All close with the same watermark, and what
is added to the view is the answer of a query over the windows that close.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.stores.duckdb_types import quoted
from penstock.stores.views.append_view import AppendView
from penstock.stores.views.closed_marks import ClosedMarks
from penstock.stores.views.database import one_row
from penstock.stores.views.kept_panes import panes_of
from penstock.stores.views.model import ViewSpec
from penstock.stores.views.view_table import BatchMark, ViewTable

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


class PanesView:
    """The tables of a view of windows: v<n> with its rows, those of its panes as batches gave them, and w<n> with the
    watermark up to which each batch closed windows, where it moved."""

    keyed = False
    parents: tuple[ViewTable, ...] = ()

    def __init__(self, number: int, spec: ViewSpec) -> None:
        self.id = number
        self.spec = spec
        self._rows = AppendView(number, spec)
        self._panes = panes_of(number, spec)
        self._marks = ClosedMarks(number, spec.name)

    def create(self, writer: duckdb.DuckDBPyConnection) -> None:
        self._rows.create(writer)
        for panes in self._panes:
            panes.create(writer)
        self._marks.create(writer)

    def drop(self, writer: duckdb.DuckDBPyConnection) -> None:
        self._rows.drop(writer)
        for panes in self._panes:
            panes.drop(writer)
        self._marks.drop(writer)

    def apply(self, writer: duckdb.DuckDBPyConnection, rows: pa.Table, mark: BatchMark) -> int:
        closed_us = self._marks.closed_us(writer)
        if rows.num_rows:
            for panes in self._panes:
                panes.add(writer, rows, mark.batch, closed_us)
        changes = self._close(writer, closed_us, mark) if self._marks.moved(writer, closed_us, mark) else 0
        due = self._marks.due(writer, mark.batch)
        if due is not None:
            for panes in self._panes:
                panes.tidy(writer, *due)
        return changes

    def _close(self, writer: duckdb.DuckDBPyConnection, closed_us: int, mark: BatchMark) -> int:
        """Add the rows of the windows that end after one watermark and not after the next."""
        writer.execute(f"CREATE OR REPLACE TEMP TABLE nw AS {self._closing(closed_us, mark.closing_us)}")
        counted = one_row(writer, "SELECT count(*) FROM nw")
        assert counted is not None
        writer.execute(
            f"INSERT INTO {self._rows.log()} SELECT {mark.first_seq - 1} + row_number() OVER (), {mark.batch}, "
            f"{mark.at_us}, {mark.watermark_text}, * FROM nw"
        )
        return int(counted[0])

    def _closing(self, after: int, upto: int) -> str:
        """What follows from the windows that end after one watermark and not after the next, as the view stores it."""
        joined = self.spec.joined
        if joined is None:
            (panes,) = self._panes
            return panes.text.closing(after, upto)
        closed: list[str] = []
        for side, panes in zip(joined.sides, self._panes, strict=True):
            names = ", ".join(quoted(name) for name, _ in side.columns)
            closed.append(f"{quoted(side.name)} ({names}) AS ({panes.text.closed(after, upto)})")
        return f"WITH {', '.join(closed)} {joined.text}"

    def undo(self, writer: duckdb.DuckDBPyConnection, batch: int) -> None:
        self._rows.undo(writer, batch)
        for panes in self._panes:
            panes.undo(writer, batch)
        self._marks.undo(writer, batch)

    def kept_panes(self) -> str:
        """How many rows of panes there are that an open window needs, as a query."""
        counts = (
            f"(SELECT count(*) FROM {panes.table} WHERE {panes.text.last_end} > {self._marks.latest})"
            for panes in self._panes
        )
        return f"SELECT {' + '.join(counts)}"

    def open_windows(self) -> str:
        """The groups of the windows that are open, as a query: key, window_start, window_end, count, sum, min, max."""
        groups = " UNION ALL ".join(panes.text.open_groups(self._marks.latest) for panes in self._panes)
        return f"{groups} ORDER BY window_end, key"

    def select(self) -> str:
        return self._rows.select()

    def whole(self) -> str:
        return self._rows.whole()

    def changes(self, since: int, limit: int) -> str:
        return self._rows.changes(since, limit)

    def log(self) -> str:
        return self._rows.log()
