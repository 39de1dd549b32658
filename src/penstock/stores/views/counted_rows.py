"""Kept rows that come and go, the same row as often as it is there, and their history.

What a batch brings is counted by row: a row that it brings and takes back again is none of its changes. A row that goes
is any of those that are equal to it, and one that was never there is passed over. A second table, the history, has the
rows that each batch took away, so that an earlier batch can be gone back to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.stores.views.finish_sources import KeptTable

if TYPE_CHECKING:
    from penstock.plan.finish_plan import KeptRows


class CountedRows(KeptTable):
    """The rows of one relation that are there, and their history."""

    def __init__(self, table: str, place: int, rows: KeptRows) -> None:
        super().__init__(table, place, rows)
        self._history = f"{table}_h"
        self._columns = list(self.source.columns.values())
        self._new, self._old = f"cn{place}", f"co{place}"

    @property
    def tables(self) -> list[str]:
        return [self._table, self._history]

    @property
    def seen(self) -> str:
        return f"(SELECT 1 FROM {self._table} UNION ALL SELECT 1 FROM {self._history})"

    def creates(self) -> list[str]:
        listed = "".join(f", {name} {kind}" for name, kind in zip(self._columns, self._types, strict=True))
        return [*super().creates(), f"CREATE TABLE {self._history} (since BIGINT, batch BIGINT{listed})"]

    def forgets(self, batch: int) -> list[str]:
        listed = ", ".join(self._columns)
        came = f"DELETE FROM {self._table} WHERE batch > {batch} RETURNING *"
        gone = f"DELETE FROM {self._history} WHERE since > {batch} RETURNING *"
        return [
            f"CREATE OR REPLACE TEMP TABLE {self._new} AS WITH o AS ({came}) FROM o",
            f"CREATE OR REPLACE TEMP TABLE {self._old} AS WITH o AS ({gone}) SELECT * FROM o WHERE batch <= {batch}",
            f"INSERT INTO {self._table} SELECT batch, {listed} FROM {self._old}",
            self._changed(),
        ]

    def tidies(self, floor: int, clock_us: int) -> list[str]:
        return [f"DELETE FROM {self._history} WHERE since <= {floor}"]

    def _takes(self, batch: int, rows: str) -> list[str]:
        """Rows come and go with a batch: `rows` gives them, with 1 as `way` for each that comes, -1 for one that
        goes."""
        listed = ", ".join(self._columns)
        counted = f"SELECT {listed}, sum(way) AS n FROM ({rows}) GROUP BY {listed} HAVING sum(way) <> 0"
        same = " AND ".join(f"r.{name} IS NOT DISTINCT FROM c.{name}" for name in self._columns)
        by = ", ".join(f"r.{name}" for name in self._columns)
        placed = f"row_number() OVER (PARTITION BY {by} ORDER BY r.rowid DESC) AS place"
        found = f"SELECT r.rowid AS spot, {placed}, c.n FROM {self._table} AS r JOIN cb AS c ON {same} WHERE c.n < 0"
        gone = f"DELETE FROM {self._table} WHERE rowid IN (SELECT spot FROM ({found}) WHERE place <= -n) RETURNING *"
        came = f"SELECT {listed} FROM (SELECT *, unnest(range(CAST(n AS BIGINT))) FROM cb WHERE n > 0)"
        return [
            f"CREATE OR REPLACE TEMP TABLE cb AS {counted}",
            f"CREATE OR REPLACE TEMP TABLE {self._old} AS WITH o AS ({gone}) FROM o",
            f"CREATE OR REPLACE TEMP TABLE {self._new} AS {came}",
            f"INSERT INTO {self._history} SELECT {batch}, * FROM {self._old}",
            f"INSERT INTO {self._table} SELECT {batch}, {listed} FROM {self._new}",
            self._changed(),
        ]

    def _changed(self) -> str:
        listed = ", ".join(self._columns)
        both = f"SELECT {listed} FROM {self._new} UNION ALL SELECT {listed} FROM {self._old}"
        return f"CREATE OR REPLACE TEMP TABLE {self.source.changed} AS {both}"
