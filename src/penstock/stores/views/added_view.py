"""A view that makes one row, or none, of each row of other views or streams that rows are only added to.

Nothing is kept but the view, which is its own log of changes: a batch adds the rows that are made of those it brought
below. When a view below has gone back to an earlier batch, or this one has stood still for a while, all of its rows are
compared with what the views below give now. Rows that are there no more leave the log as well, and the numbers of
those behind them go back, as the numbers of a view do that goes back itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import InternalError
from penstock.plan.finish_plan import SIDE
from penstock.stores.duckdb_types import duckdb_type
from penstock.stores.views.append_view import AppendView
from penstock.stores.views.database import one_row
from penstock.stores.views.passing_rows import PassingTable
from penstock.stores.views.stage_text import StageText
from penstock.stores.views.touched_keys import ALL_KEYS
from penstock.stores.views.view_rows import ViewRows
from penstock.stores.views.view_table import NO_VIEWS, BatchMark, ViewTable, picked

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import duckdb
    import pyarrow as pa

    from penstock.stores.views.finish_sources import Source
    from penstock.stores.views.model import ViewSpec


class AddedView(AppendView):
    """The table of an append view, with a column more: whether a row was made of one of a view below."""

    clocked = False

    def __init__(self, number: int, spec: ViewSpec, views: Mapping[str, ViewTable] = NO_VIEWS) -> None:
        """`views` are those that it may be built on, by their names."""
        super().__init__(number, spec)
        if spec.finish is None:
            raise InternalError(f"view {spec.name} has no finish")
        self._passing: list[PassingTable] = []
        self._below: list[ViewRows] = []
        sources: list[Source] = []
        for place, rows in enumerate(spec.finish.rows):
            if rows.read is None:
                self._passing.append(PassingTable("", place, rows))
                sources.append(self._passing[-1].source)
            else:
                self._below.append(ViewRows(place, rows, views[rows.relation]))
                sources.append(self._below[-1].source)
        stage = StageText("", "", spec.finish.view, tuple(sources))
        names = [stage.source.columns[name] for name, _ in spec.columns]
        self._came = {place: source.changed for place, source in enumerate(sources)}
        self._there = {place: source.table for place, source in enumerate(sources)}
        for passing in self._passing:  # what has passed by is not made anew
            self._there[passing.place] = passing.source.changed
        self._stage = stage
        self._made = ", ".join(f"{own} AS {stored}" for own, stored in zip(names, self._stored, strict=True))
        self._listed = ", ".join(self._stored)
        self.parents = tuple({rows.parent.id: rows.parent for rows in self._below}.values())
        self.fed = bool(self._passing)  # batches bring rows of its own

    def create(self, writer: duckdb.DuckDBPyConnection) -> None:
        types = (duckdb_type(kind) for _, kind in self.spec.columns)
        columns = "".join(f", {stored} {kind}" for stored, kind in zip(self._stored, types, strict=True))
        marks = "seq BIGINT, batch BIGINT, done BIGINT, wm BIGINT, below BOOLEAN"
        writer.execute(f"CREATE TABLE {self._table} ({marks}{columns})")

    def apply(self, writer: duckdb.DuckDBPyConnection, rows: pa.Table, mark: BatchMark) -> int:
        if not rows.num_rows:
            return 0
        given = {SIDE: "side"}
        for passing in self._passing:
            given |= passing.given
        # Where a statement fails, the transaction ends and takes the name with it.
        writer.register("bt", picked(rows, self.spec.name, list(given), list(given.values())))
        for passing in self._passing:
            writer.execute(passing.passes())
        writer.unregister("bt")
        for view in self._below:
            writer.execute(view.unchanged())
        return self._add(writer, self._answered(self._came), mark, below=False)

    def refresh(self, writer: duckdb.DuckDBPyConnection, moved: Collection[int], mark: BatchMark) -> int:
        """Rows have been added to views that it is built on, told by their numbers; how many that makes here."""
        for passing in self._passing:
            writer.execute(passing.unchanged())
        for view in self._below:
            for statement in view.changed() if view.parent.id in moved else [view.unchanged()]:
                writer.execute(statement)
        return self._add(writer, self._answered(self._came), mark, below=True)

    def refill(self, writer: duckdb.DuckDBPyConnection, mark: BatchMark) -> int:
        """Make the rows those of the views below as they are now; by how many there are more."""
        for passing in self._passing:
            writer.execute(passing.unchanged())
        answer = self._answered(self._there)
        if not _count(writer, f"FROM {self._table} WHERE below"):
            return self._add(writer, answer, mark, below=True)
        writer.execute(f"CREATE OR REPLACE TEMP TABLE df AS {self._differing(answer)}")
        gone = _count(writer, "FROM df WHERE here")
        if gone:
            self._take_out(writer, mark.first_seq - 1 - gone)
        come = f"SELECT {self._listed} FROM df WHERE NOT here"
        return self._add(writer, come, mark, below=True, first=mark.first_seq - gone) - gone

    def _answered(self, read: Mapping[int, str]) -> str:
        """The query of the view over these rows of what it reads."""
        return f"SELECT {self._made} FROM ({self._stage.asked(ALL_KEYS, read)})"

    def _add(
        self, writer: duckdb.DuckDBPyConnection, rows: str, mark: BatchMark, *, below: bool, first: int | None = None
    ) -> int:
        before = (mark.first_seq if first is None else first) - 1
        writer.execute(f"CREATE OR REPLACE TEMP TABLE nw AS {rows}")
        writer.execute(
            f"INSERT INTO {self._table} SELECT {before} + row_number() OVER (), {mark.batch}, {mark.at_us}, "
            f"{mark.watermark_text}, {below}, {self._listed} FROM nw"
        )
        return _count(writer, "FROM nw")

    def _differing(self, answer: str) -> str:
        """The rows that are `here` and not in an answer, and those that are not here; the same one may be there
        several times."""
        own = f"SELECT seq, true AS here, {self._listed} FROM {self._table} WHERE below"
        both = f"{own} UNION ALL SELECT NULL, false, {self._listed} FROM ({answer})"
        same = f"PARTITION BY {self._listed}"
        counted = (
            f"SELECT *, row_number() OVER ({same}, here ORDER BY seq) AS nth, "
            f"count(*) FILTER (WHERE here) OVER ({same}) AS before, "
            f"count(*) FILTER (WHERE NOT here) OVER ({same}) AS after FROM ({both})"
        )
        return (
            f"SELECT seq, here, {self._listed} FROM ({counted}) WHERE nth > CASE WHEN here THEN after ELSE before END"
        )

    def _take_out(self, writer: duckdb.DuckDBPyConnection, last: int) -> None:
        """Rows leave the view; those behind the first of them follow each other without a gap."""
        first = "(SELECT min(seq) FROM df WHERE here)"
        stay = f"FROM {self._table} WHERE seq > {first} AND seq NOT IN (SELECT seq FROM df WHERE here)"
        number = f"{first} - 1 + row_number() OVER (ORDER BY seq)"
        writer.execute(f"CREATE OR REPLACE TEMP TABLE kp AS SELECT * REPLACE ({number} AS seq) {stay}")
        writer.execute(f"DELETE FROM {self._table} WHERE seq >= {first}")
        writer.execute(f"INSERT INTO {self._table} FROM kp")
        writer.execute("UPDATE store.views SET first_seq = least(first_seq, ?) WHERE id = ?", [last + 1, self.id])

    def undo(self, writer: duckdb.DuckDBPyConnection, batch: int) -> None:
        writer.execute(f"DELETE FROM {self._table} WHERE batch > {batch}")


def _count(writer: duckdb.DuckDBPyConnection, rows: str) -> int:
    row = one_row(writer, f"SELECT count(*) {rows}")
    assert row is not None
    return int(row[0])
