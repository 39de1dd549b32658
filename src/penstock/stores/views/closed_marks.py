"""Up to which watermark each batch of a view closed windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import InternalError
from penstock.stores.views.database import one_row
from penstock.stores.views.view_table import KEPT_BATCHES, TIDY_EVERY

if TYPE_CHECKING:
    import duckdb

    from penstock.stores.views.view_table import BatchMark


class ClosedMarks:
    """The table w<n> of a view: the watermark of each batch, where it moved. It begins at 1970, in Spark as well."""

    def __init__(self, number: int, view: str) -> None:
        self._id = number
        self._view = view
        self._table = f"store.w{number}"
        self.latest = f"(SELECT coalesce(max(wm), 0) FROM {self._table})"

    def create(self, writer: duckdb.DuckDBPyConnection) -> None:
        writer.execute(f"CREATE TABLE {self._table} (batch BIGINT, wm BIGINT)")

    def drop(self, writer: duckdb.DuckDBPyConnection) -> None:
        writer.execute(f"DROP TABLE {self._table}")

    def closed_us(self, reader: duckdb.DuckDBPyConnection) -> int:
        """The watermark up to which windows are closed."""
        row = one_row(reader, f"SELECT {self.latest}")
        assert row is not None
        return int(row[0])

    def moved(self, writer: duckdb.DuckDBPyConnection, closed_us: int, mark: BatchMark) -> bool:
        """Note the watermark of a batch; whether it closes more than those before."""
        if mark.closing_us < closed_us:
            raise InternalError(f"the watermark of view {self._view} moved back")
        if mark.closing_us > closed_us:
            writer.execute(f"INSERT INTO {self._table} VALUES ({mark.batch}, {mark.closing_us})")
        return mark.closing_us > closed_us

    def due(self, writer: duckdb.DuckDBPyConnection, batch: int) -> tuple[int, int] | None:
        """Now and then a batch that nobody goes back behind from now on, and the watermark that it had reached."""
        floor = batch - KEPT_BATCHES
        if batch % TIDY_EVERY or floor <= 0:
            return None
        closed_us = self.tidy(writer, floor)
        writer.execute("UPDATE store.views SET floor = ? WHERE id = ? AND floor < ?", [floor, self._id, floor])
        return floor, closed_us

    def tidy(self, writer: duckdb.DuckDBPyConnection, floor: int) -> int:
        """Forget the watermarks of batches that nobody goes back behind; the one that the last of them had reached."""
        row = one_row(writer, f"SELECT coalesce(max(wm), 0) FROM {self._table} WHERE batch <= {floor}")
        assert row is not None
        writer.execute(f"DELETE FROM {self._table} WHERE batch <= {floor}")
        writer.execute(f"INSERT INTO {self._table} VALUES ({floor}, {row[0]})")
        return int(row[0])

    def undo(self, writer: duckdb.DuckDBPyConnection, batch: int) -> None:
        writer.execute(f"DELETE FROM {self._table} WHERE batch > {batch}")
