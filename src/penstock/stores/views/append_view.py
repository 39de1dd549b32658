"""A view whose rows are only ever added: each row carries its sequence number, so the table is its own change log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.stores.duckdb_types import duckdb_type, quoted
from penstock.stores.views.database import run_with
from penstock.stores.views.model import ViewSpec
from penstock.stores.views.view_table import BATCH, BatchMark, ViewTable, picked

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


class AppendView:
    """The table of an append view: seq, batch, done, wm, and the columns as c0, c1, …"""

    keyed = False
    parents: tuple[ViewTable, ...] = ()

    def __init__(self, number: int, spec: ViewSpec) -> None:
        self.id = number
        self.spec = spec
        self._table = f"store.v{number}"
        self._names = [name for name, _ in spec.columns]
        self._stored = [f"c{place}" for place in range(len(spec.columns))]

    def create(self, writer: duckdb.DuckDBPyConnection) -> None:
        types = (duckdb_type(kind) for _, kind in self.spec.columns)
        columns = "".join(f", {stored} {kind}" for stored, kind in zip(self._stored, types, strict=True))
        writer.execute(f"CREATE TABLE {self._table} (seq BIGINT, batch BIGINT, done BIGINT, wm BIGINT{columns})")

    def drop(self, writer: duckdb.DuckDBPyConnection) -> None:
        writer.execute(f"DROP TABLE {self._table}")

    def apply(self, writer: duckdb.DuckDBPyConnection, rows: pa.Table, mark: BatchMark) -> int:
        import numpy as np
        import pyarrow as pa

        if not rows.num_rows:
            return 0
        batch = picked(rows, self.spec.name, self._names, self._stored)
        # Numbered here, not in the statement: the order of the rows is the batch's, however DuckDB spreads the work.
        numbers = pa.array(np.arange(mark.first_seq, mark.first_seq + rows.num_rows, dtype=np.int64))
        columns = "".join(f", {stored}" for stored in self._stored)
        text = (
            f"INSERT INTO {self._table} SELECT seq, {mark.batch}, {mark.at_us}, {mark.watermark_text}{columns} "
            f"FROM {quoted(BATCH)}"
        )
        run_with(writer, text, BATCH, batch.append_column("seq", numbers))
        return int(rows.num_rows)

    def undo(self, writer: duckdb.DuckDBPyConnection, batch: int) -> None:
        writer.execute(f"DELETE FROM {self._table} WHERE batch > {batch}")

    def select(self) -> str:
        shown = ", ".join(f"{stored} AS {quoted(name)}" for stored, name in zip(self._stored, self._names, strict=True))
        return f"SELECT {shown} FROM {self._table}"

    def whole(self) -> str:
        return f"{self.select()} ORDER BY v{self.id}.seq"

    def changes(self, since: int, limit: int) -> str:
        after = "".join(f", {stored} AS a{place}" for place, stored in enumerate(self._stored))
        return (
            f"SELECT seq, 'insert' AS op, batch, wm, done{after} FROM {self._table} "
            f"WHERE seq > {since} ORDER BY seq LIMIT {limit}"
        )

    def log(self) -> str:
        return self._table
