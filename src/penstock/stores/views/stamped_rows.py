"""The rows of another view, each with the time at which it came there: what a query asks who shows the clock.

The other view does not tell when its rows came, so they are kept a second time. Of the rows that a batch changed there,
those that are there more often than they are kept come in with the time of the clock, and those that are kept too often
go. A row that is replaced by another one is gone; one that comes back has come again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import InternalError
from penstock.plan.finish_plan import CLOCK_CALL, FORGOTTEN
from penstock.stores.duckdb_types import duckdb_type, quoted
from penstock.stores.views.finish_sources import Source
from penstock.stores.views.view_rows import ViewRows, changed_table

if TYPE_CHECKING:
    from penstock.plan.finish_plan import KeptRows
    from penstock.stores.views.view_table import ViewTable


class StampedRows(ViewRows):
    """A reading of another view whose rows are kept with their times."""

    def __init__(self, table: str, place: int, rows: KeptRows, parent: ViewTable, ttl_us: int | None = None) -> None:
        """`ttl_us`: how long a row counts, where a time to live is asked for."""
        super().__init__(place, rows, parent)
        self._table = table
        self._whole = self.present
        self.present = table
        self.source = Source(self.shown.now(table), self.source.changed, self.source.columns)
        self._types: dict[str, str] = {}
        for entry in rows.columns:
            if entry.type is None:
                raise InternalError(f"the type of {entry.name} of the rows of {rows.relation} is not known")
            self._types[self.source.columns[entry.name]] = duckdb_type(entry.type)
        stamps = {self.source.columns[name] for name in rows.stamps}
        self._plain = [name for name in self._types if name not in stamps]
        forgotten = self.source.columns.get(FORGOTTEN)
        over = {forgotten: f" + to_microseconds({ttl_us or 0})"}
        self._items = ", ".join(
            f"CAST({quoted(CLOCK_CALL)}(){over.get(name, '')} AS {kind}) AS {name}" if name in stamps else name
            for name, kind in self._types.items()
        )

    @property
    def tables(self) -> list[str]:
        return [self._table]

    def creates(self) -> list[str]:
        return [f"CREATE TABLE {self._table} ({', '.join(f'{name} {kind}' for name, kind in self._types.items())})"]

    def changed(self) -> list[str]:
        read = self.read(f"FROM {changed_table(self.parent)}", self.source.columns)
        return self._brought(f"SELECT {self._listed} FROM {read}")

    def filled(self) -> list[str]:
        return self._brought(f"SELECT {self._listed} FROM {self._whole} UNION SELECT {self._listed} FROM {self._table}")

    @property
    def _listed(self) -> str:
        return ", ".join(self._plain)

    def _brought(self, rows: str) -> list[str]:
        """The kept rows among some become what they are in the view; what came and went has changed."""
        same = " AND ".join(f"r.{name} IS NOT DISTINCT FROM c.{name}" for name in self._plain)

        def counted(table: str, one: int) -> str:
            return f"SELECT {self._listed}, {one} AS n FROM {table} AS r WHERE EXISTS (FROM sc AS c WHERE {same})"

        both = f"{counted(self._whole, 1)} UNION ALL {counted(self._table, -1)}"
        differing = f"SELECT {self._listed}, sum(n) AS n FROM ({both}) GROUP BY {self._listed} HAVING sum(n) <> 0"
        by = ", ".join(f"r.{name}" for name in self._plain)
        placed = f"row_number() OVER (PARTITION BY {by} ORDER BY r.rowid DESC) AS place"
        found = f"SELECT r.rowid AS spot, {placed}, c.n FROM {self._table} AS r JOIN sd AS c ON {same} WHERE c.n < 0"
        gone = f"DELETE FROM {self._table} WHERE rowid IN (SELECT spot FROM ({found}) WHERE place <= -n) RETURNING *"
        came = f"SELECT {self._items} FROM (SELECT *, unnest(range(CAST(n AS BIGINT))) FROM sd WHERE n > 0)"
        every = ", ".join(self._types)
        return [
            f"CREATE OR REPLACE TEMP TABLE sc AS SELECT DISTINCT * FROM ({rows})",
            f"CREATE OR REPLACE TEMP TABLE sd AS {differing}",
            f"CREATE OR REPLACE TEMP TABLE {self.source.changed} AS WITH o AS ({gone}) SELECT {every} FROM o",
            f"CREATE OR REPLACE TEMP TABLE sn AS {came}",
            f"INSERT INTO {self._table} SELECT {every} FROM sn",
            f"INSERT INTO {self.source.changed} SELECT {every} FROM sn",
        ]
