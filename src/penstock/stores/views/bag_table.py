"""Kept rows of a source whose rows come and go without a key: each change names the whole row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.stores.views.counted_rows import CountedRows

if TYPE_CHECKING:
    from penstock.plan.finish_plan import KeptRows, RowChanges


class BagTable(CountedRows):
    """The rows of one relation that are there, as its changes say."""

    def __init__(self, table: str, place: int, rows: KeptRows, changes: RowChanges) -> None:
        super().__init__(table, place, rows)
        self._changes = changes

    @property
    def given(self) -> dict[str, str]:
        return {**super().given, self._changes.gone: f"s{self._place}_gone"}

    def adds(self, batch: int) -> list[str]:
        staged = ", ".join(f"s{self._place}_{name} AS {name}" for name in self._columns)
        way = f"CASE WHEN coalesce(s{self._place}_gone, false) THEN -1 ELSE 1 END AS way"
        return self._takes(batch, f"SELECT {staged}, {way} FROM bt WHERE side = {self._place}")
