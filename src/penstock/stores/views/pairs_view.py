"""A view of inner joins of rows that are only added: each batch adds what its rows make with those that are there.

The relations take their turns. The new rows of one meet what is in the tables of the others by then, and go into its
own; those that come later in the batch find them there. So each row of the answer is made once, in the turn of the last
of the rows that it is made of. The view is its own log of changes, and nothing leaves it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import InternalError
from penstock.plan.finish_plan import SIDE
from penstock.stores.duckdb_types import quoted
from penstock.stores.views.append_view import AppendView
from penstock.stores.views.database import one_row
from penstock.stores.views.finish_sources import KeptTable
from penstock.stores.views.view_table import picked

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb
    import pyarrow as pa

    from penstock.stores.views.model import ViewSpec
    from penstock.stores.views.view_table import BatchMark


class PairsView(AppendView):
    """The table of an append view, and r<n>_0, r<n>_1, … with the kept rows of each relation."""

    def __init__(self, number: int, spec: ViewSpec) -> None:
        super().__init__(number, spec)
        if spec.finish is None:
            raise InternalError(f"view {spec.name} has no finish")
        self._rows = [_MetTable(f"store.r{number}_{place}", place, rows) for place, rows in enumerate(spec.finish.rows)]
        self._answer = spec.finish.view

    def create(self, writer: duckdb.DuckDBPyConnection) -> None:
        super().create(writer)
        for rows in self._rows:
            for statement in rows.creates():
                writer.execute(statement)

    def drop(self, writer: duckdb.DuckDBPyConnection) -> None:
        super().drop(writer)
        for rows in self._rows:
            for table in rows.tables:
                writer.execute(f"DROP TABLE {table}")

    def apply(self, writer: duckdb.DuckDBPyConnection, rows: pa.Table, mark: BatchMark) -> int:
        if not rows.num_rows:
            return 0
        given = {SIDE: "side"}
        for each in self._rows:
            given |= each.given
        # Where a statement fails, the transaction ends and takes the name with it.
        writer.register("bt", picked(rows, self.spec.name, list(given), list(given.values())))
        for each in self._rows:
            writer.execute(each.comes())
        writer.unregister("bt")
        made = 0
        for statement in self._turns(writer, mark.batch):
            if isinstance(statement, str):
                writer.execute(statement)
            else:
                made += self._add(writer, statement, mark, made)
        return made

    def undo(self, writer: duckdb.DuckDBPyConnection, batch: int) -> None:
        super().undo(writer, batch)
        for rows in self._rows:
            writer.execute(rows.goes_back(batch))

    def _turns(self, writer: duckdb.DuckDBPyConnection, batch: int) -> Iterator[str | list[str]]:
        """Statements, and for each reading of a relation that has new rows the tables to answer the query over."""
        places = [leaf.source for leaf in self._answer.leaves]
        came = {place: self._rows[place].came(writer) for place in set(places)}
        for turn, place in enumerate(places):
            if not came[place]:
                continue
            # A relation that is joined with itself is there several times: its later readings do not see the batch yet.
            yield [
                self._rows[other].met if at == turn else self._rows[other].until(batch, new=at < turn)
                for at, other in enumerate(places)
            ]
            if place not in places[:turn]:
                yield self._rows[place].stays(batch)

    def _add(self, writer: duckdb.DuckDBPyConnection, tables: list[str], mark: BatchMark, made: int) -> int:
        """Add the answer over some tables, one for each reading, to the view; how many rows that are."""
        leaves: list[str] = []
        for leaf, table in zip(self._answer.leaves, tables, strict=True):
            own = self._rows[leaf.source].source.columns
            columns = ", ".join(f"{own[name]} AS {quoted(shown)}" for shown, name in leaf.columns)
            leaves.append(f"{quoted(leaf.name)} AS (SELECT {columns} FROM {table})")
        listed = ", ".join(self._stored)
        asked = f"WITH {', '.join(leaves)} SELECT * FROM ({self._answer.text}) AS answer ({listed})"
        row = one_row(
            writer,
            f"INSERT INTO {self._table} SELECT {mark.first_seq + made - 1} + row_number() OVER (), {mark.batch}, "
            f"{mark.at_us}, {mark.watermark_text}, {listed} FROM ({asked})",
        )
        assert row is not None
        return int(row[0])


class _MetTable(KeptTable):
    """The rows of one relation. Those of the batch that is worked on stand beside it until their turn has come."""

    @property
    def met(self) -> str:
        """The rows of the batch."""
        return self.source.changed

    def comes(self) -> str:
        """Put the rows of the batch, which stands in `bt`, beside the table."""
        staged = ", ".join(f"s{self._place}_{name} AS {name}" for name in self.source.columns.values())
        return f"CREATE OR REPLACE TEMP TABLE {self.met} AS SELECT {staged} FROM bt WHERE side = {self._place}"

    def came(self, writer: duckdb.DuckDBPyConnection) -> bool:
        """Whether the batch has rows of the relation."""
        return one_row(writer, f"SELECT 1 FROM {self.met} LIMIT 1") is not None

    def stays(self, batch: int) -> str:
        """Put them into the table."""
        return f"INSERT INTO {self._table} SELECT {batch}, {', '.join(self.source.columns.values())} FROM {self.met}"

    def until(self, batch: int, *, new: bool) -> str:
        """The rows that are in the table, with those of the batch or without them."""
        return self._table if new else f"{self._table} WHERE batch < {batch}"

    def goes_back(self, batch: int) -> str:
        """Let go of the rows that came after a batch."""
        return f"DELETE FROM {self._table} WHERE batch > {batch}"
