"""Kept rows of which only the best of each key are seen.

Of the rows of a batch those come in that are among the best of their key in it. When the store tidies, those of old
batches go that are behind the best by now: whatever comes, and whichever batch is gone back to, they stay behind them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.stores.views.finish_sources import KeptTable
from penstock.stores.views.view_table import TIDY_EVERY

if TYPE_CHECKING:
    from penstock.plan.finish_plan import BestOfKey, KeptRows


class BestTable(KeptTable):
    """The rows of one relation that are among the best of their key, and those of batches that can be undone."""

    def __init__(self, table: str, place: int, rows: KeptRows, best: BestOfKey) -> None:
        super().__init__(table, place, rows)
        self._best = best
        columns = self.source.columns
        self._by = [columns[name] for name in best.by]
        terms = [
            f"r.{columns[each.column]} {'DESC' if each.descending else 'ASC'} "
            f"NULLS {'FIRST' if each.nulls_first else 'LAST'}"
            for each in best.order
        ]
        keys = ", ".join(f"r.{name}" for name in self._by)
        self._number = f"{best.number}() OVER ({f'PARTITION BY {keys} ' if keys else ''}ORDER BY {', '.join(terms)})"

    def adds(self, batch: int) -> list[str]:
        own = self.source.columns.values()
        staged = ", ".join(f"s{self._place}_{name} AS {name}" for name in own)
        came = f"(SELECT {staged} FROM bt WHERE side = {self._place}) AS r"
        best = f"SELECT {', '.join(own)} FROM {came} QUALIFY {self._number} <= {self._best.count}"
        return [
            f"CREATE OR REPLACE TEMP TABLE {self.source.changed} AS {best}",
            f"INSERT INTO {self._table} SELECT {batch}, {', '.join(own)} FROM {self.source.changed}",
        ]

    def tidies(self, floor: int, clock_us: int) -> list[str]:
        return [*super().tidies(floor, clock_us), self._lets_go(floor)]

    def _lets_go(self, floor: int) -> str:
        """Of keys that have had rows since the time before: the others are as they were left then."""
        old = f"r.batch <= {floor}"
        if self._by:
            same = " AND ".join(f"t.{name} IS NOT DISTINCT FROM r.{name}" for name in self._by)
            since = f"t.batch >= {floor - TIDY_EVERY} AND t.batch <= {floor}"
            old += f" AND EXISTS (FROM {self._table} AS t WHERE {since} AND {same})"
        placed = f"SELECT r.rowid AS spot, {self._number} AS place FROM {self._table} AS r"
        behind = f"SELECT spot FROM ({placed} WHERE {old}) WHERE place > {self._best.count}"
        return f"DELETE FROM {self._table} WHERE rowid IN ({behind})"
