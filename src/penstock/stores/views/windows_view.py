"""A view of windows that show each change.

The groups of windows that are open are kept as a keyed view keeps its rows, and merged in the same way. What a batch
brings for a window that the watermark has passed is left out: its rows came too late. When nobody can go back to a time
in which a window was open, its rows move to a table of their own, without the partial results they were made from; so
what a batch is merged into stays as small as what is open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import InternalError
from penstock.plan.pane_plan import END, START
from penstock.plan.windows_plan import ROW_TIME
from penstock.stores.duckdb_types import quoted
from penstock.stores.views.closed_marks import ClosedMarks
from penstock.stores.views.keyed_layout import KeyedLayout, with_derived
from penstock.stores.views.keyed_view import KeyedView
from penstock.stores.views.model import ViewSpec
from penstock.stores.views.view_table import BatchMark

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_MEASURES = (("count", "BIGINT"), ("sum", "DOUBLE"), ("min", "DOUBLE"), ("max", "DOUBLE"))


class WindowsView(KeyedView):
    """The tables of a view of windows: v<n> with the rows of open windows, and of those that closed not long ago, a<n>
    with the rows of older ones, l<n> with the log, and w<n> with how far windows are closed."""

    def __init__(self, number: int, spec: ViewSpec, layout: KeyedLayout | None = None) -> None:
        super().__init__(number, spec, layout)
        if spec.windows is None or spec.merge is None:
            raise InternalError(f"view {spec.name} has no windows")
        self._windows = spec.windows
        self._merge = spec.merge
        self._marks = ClosedMarks(number, spec.name)
        self._past = f"store.a{number}"
        self._end = dict(self._layout.sources)[END]
        self._read = ", ".join((*(name for name, _ in self._layout.keys), *self._layout.visible_values))

    def create(self, writer: duckdb.DuckDBPyConnection) -> None:
        super().create(writer)
        shown = self._layout.visible_values
        columns = [*self._layout.keys, *((name, kind) for name, kind in self._layout.values if name in shown)]
        writer.execute(f"CREATE TABLE {self._past} ({', '.join(f'{name} {kind}' for name, kind in columns)})")
        self._marks.create(writer)

    def drop(self, writer: duckdb.DuckDBPyConnection) -> None:
        super().drop(writer)
        writer.execute(f"DROP TABLE {self._past}")
        self._marks.drop(writer)

    def apply(self, writer: duckdb.DuckDBPyConnection, rows: pa.Table, mark: BatchMark) -> int:
        closed_us = self._marks.closed_us(writer)
        changes = super().apply(writer, self._in_time(rows, closed_us), mark)
        if self._marks.moved(writer, closed_us, mark):
            changes += self._close(writer, closed_us, mark, changes)
        due = self._marks.due(writer, mark.batch)
        if due is not None:
            self._archive(writer, due[1])
        return changes

    def _close(self, writer: duckdb.DuckDBPyConnection, closed_us: int, mark: BatchMark, before: int) -> int:
        """What the watermark of a batch changes, behind `before` changes of its rows: nothing, all is shown already."""
        return 0

    def _in_time(self, rows: pa.Table, closed_us: int) -> pa.Table:
        """The rows of a batch whose windows are open."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not rows.num_rows:
            return rows
        last = closed_us - self._windows.gap_us
        return rows.filter(pc.greater(rows.column(self._windows.column).cast(pa.int64()), last))

    def _archive(self, writer: duckdb.DuckDBPyConnection, closed_us: int) -> None:
        """Keep of windows that closed long ago what readers see."""
        gone = f"DELETE FROM {self._table} WHERE {self._end} <= make_timestamp({closed_us}) RETURNING *"
        writer.execute(
            f"CREATE OR REPLACE TEMP TABLE nw AS WITH gone AS ({gone}) SELECT {self._read} FROM gone WHERE shown"
        )
        writer.execute(f"INSERT INTO {self._past} FROM nw")

    def undo(self, writer: duckdb.DuckDBPyConnection, batch: int) -> None:
        super().undo(writer, batch)
        self._marks.undo(writer, batch)

    def kept_panes(self) -> str:
        """How many groups of open windows there are, as a query."""
        return f"SELECT count(*) FROM {self._table} WHERE {self._open}"

    @property
    def _open(self) -> str:
        return f"{self._end} > make_timestamp({self._marks.latest})"

    def open_windows(self) -> str:
        """The groups of the windows that are open, as a query: key, window_start, window_end, count, sum, min, max."""
        sources = dict(self._layout.sources)
        named = ", ".join(f"{stored} AS {quoted(name)}" for name, stored in sources.items())
        groups = with_derived(self._merge, f"SELECT {named} FROM {self._table} WHERE {self._open}")
        keys = [f"CAST({quoted(key.name)} AS VARCHAR)" for key in self._merge.keys if key.name not in (END, ROW_TIME)]
        key = f"concat_ws(',', {', '.join(keys)})" if len(keys) > 1 else keys[0] if keys else "CAST(NULL AS VARCHAR)"
        shown = dict(self._windows.shown)
        numbers = {part.name for part in self._merge.partials if part.type is not None and part.type.numeric}
        values = "".join(
            f", CAST({quoted(shown[name]) if shown.get(name) in numbers else 'NULL'} AS {kind}) AS {quoted(name)}"
            for name, kind in _MEASURES
        )
        bounds = f"{quoted(START)} AS window_start, {quoted(END)} AS window_end"
        return f"SELECT {key} AS key, {bounds}{values} FROM ({groups}) ORDER BY window_end, key"

    def select(self) -> str:
        shown = ", ".join(f"{stored} AS {quoted(name)}" for name, stored in self._layout.visible)
        return f"SELECT {shown} FROM ({self._rows()}) AS v{self.id}"

    def _rows(self) -> str:
        """The rows that readers see, as they are stored."""
        return f"SELECT {self._read} FROM {self._table} WHERE shown UNION ALL SELECT {self._read} FROM {self._past}"
