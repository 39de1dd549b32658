"""A view that the store answers from rows that it keeps: see plan.finish_plan.

A batch adds its rows to the kept ones. The keys that it touches are answered anew: their rows leave the view, the new
ones come in, and what differs is the log of changes. Without a key everything is answered anew. An earlier batch is
gone back to by taking the rows of later ones away and answering the keys that they had touched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import InternalError
from penstock.stores.duckdb_types import quoted
from penstock.stores.views.database import one_row, run_with
from penstock.stores.views.finish_text import FinishText
from penstock.stores.views.model import ViewSpec
from penstock.stores.views.view_table import BATCH, BatchMark, picked

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


class FinishView:
    """The tables of a finished view: v<n> with its rows, l<n> with its log, and r<n>_0, r<n>_1, … with kept rows."""

    keyed = True

    def __init__(self, number: int, spec: ViewSpec) -> None:
        self.id = number
        self.spec = spec
        if spec.finish is None:
            raise InternalError(f"view {spec.name} has no finish")
        self._text = FinishText(number, spec, spec.finish)

    def create(self, writer: duckdb.DuckDBPyConnection) -> None:
        for statement in self._text.creates():
            writer.execute(statement)

    def drop(self, writer: duckdb.DuckDBPyConnection) -> None:
        for table in self._text.tables:
            writer.execute(f"DROP TABLE {table}")

    def apply(self, writer: duckdb.DuckDBPyConnection, rows: pa.Table, mark: BatchMark) -> int:
        if not rows.num_rows:
            return 0
        text = self._text
        names, stored = text.given
        batch = picked(rows, self.spec.name, names, stored)
        run_with(writer, f"CREATE OR REPLACE TEMP TABLE st AS SELECT * FROM {quoted(BATCH)}", BATCH, batch)
        for statement in text.adds(mark.batch):
            writer.execute(statement)
        writer.execute(text.touched())
        for statement in text.answers():
            writer.execute(statement)
        writer.execute(text.differences())
        # Counted after the fact: a row's place in `df` is its place in the log.
        counted = one_row(writer, "SELECT count(*) FROM df")
        assert counted is not None
        writer.execute(
            f"INSERT INTO {text.log} SELECT {mark.first_seq - 1} + row_number() OVER (), op, {mark.batch}, "
            f"{mark.at_us}, {mark.watermark_text}, {text.logged} FROM df"
        )
        return int(counted[0])

    def undo(self, writer: duckdb.DuckDBPyConnection, batch: int) -> None:
        text = self._text
        writer.execute(text.touched_after(batch))
        for statement in text.forgets(batch):
            writer.execute(statement)
        for statement in text.answers():
            writer.execute(statement)
        writer.execute(f"DELETE FROM {text.log} WHERE batch > {batch}")

    def select(self) -> str:
        return self._text.shown

    def whole(self) -> str:
        return f"{self._text.shown} ORDER BY ALL"

    def changes(self, since: int, limit: int) -> str:
        return (
            f"SELECT seq, op, batch, wm, done, {self._text.logged} FROM {self._text.log} "
            f"WHERE seq > {since} ORDER BY seq LIMIT {limit}"
        )

    def log(self) -> str:
        return self._text.log
