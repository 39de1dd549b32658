"""Rows of a relation that only those stages read that are answered once: nothing is kept of them.

A batch has its rows where others have what it changed. What is kept is when the first of them came: an aggregate of all
rows has a row from then on, and going back behind it takes that row away again.
"""

from __future__ import annotations

from penstock.stores.views.finish_sources import KeptTable


class PassingTable(KeptTable):
    """The rows of one relation as they pass by, and the batch that brought the first."""

    def creates(self) -> list[str]:
        return [f"CREATE TABLE {self._table} (batch BIGINT)"]

    @property
    def place(self) -> int:
        """The place among what the stages read."""
        return self._place

    def passes(self) -> str:
        """The rows of a batch, which stands in `bt`, are there while it is worked on."""
        staged = ", ".join(f"s{self._place}_{name} AS {name}" for name in self.source.columns.values())
        changed = self.source.changed
        return f"CREATE OR REPLACE TEMP TABLE {changed} AS SELECT {staged} FROM bt WHERE side = {self._place}"

    def adds(self, batch: int) -> list[str]:
        changed = self.source.changed
        first = f"SELECT {batch} WHERE EXISTS (FROM {changed}) AND NOT EXISTS (FROM {self._table})"
        return [self.passes(), f"INSERT INTO {self._table} {first}"]

    def arrived(self, batch: int) -> str:
        return self.source.changed

    def expires(self, batch: int) -> list[str]:
        return []

    def tidies(self, floor: int, clock_us: int) -> list[str]:
        return []

    def unchanged(self) -> str:
        columns = ", ".join(
            f"CAST(NULL AS {kind}) AS {name}"
            for name, kind in zip(self.source.columns.values(), self._types, strict=True)
        )
        return f"CREATE OR REPLACE TEMP TABLE {self.source.changed} AS SELECT {columns} LIMIT 0"

    def forgets(self, batch: int) -> list[str]:
        return [self.unchanged(), f"DELETE FROM {self._table} WHERE batch > {batch}"]
