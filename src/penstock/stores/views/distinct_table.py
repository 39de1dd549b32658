"""Kept rows of which no stage counts how often they are there: each is kept once, with the batch that first brought it.

A row that comes again changes nothing, and touches no key. Rows are the same as DISTINCT has it: NULL is NULL, NaN is
NaN, and 0.0 is -0.0.
"""

from __future__ import annotations

from penstock.stores.views.finish_sources import KeptTable


class DistinctTable(KeptTable):
    """The distinct rows of one relation."""

    def adds(self, batch: int) -> list[str]:
        listed = ", ".join(self.source.columns.values())
        changed, came = self.source.changed, f"dn{self._place}"
        staged = ", ".join(f"s{self._place}_{name} AS {name}" for name in self.source.columns.values())
        same = " AND ".join(f"r.{name} IS NOT DISTINCT FROM n.{name}" for name in self.source.columns.values())
        new = f"SELECT {listed} FROM {came} AS n WHERE NOT EXISTS (FROM {self._table} AS r WHERE {same})"
        return [
            # One after the other: DuckDB has to know how few rows came, to look for them and not for those kept.
            f"CREATE OR REPLACE TEMP TABLE {came} AS SELECT DISTINCT {staged} FROM bt WHERE side = {self._place}",
            f"CREATE OR REPLACE TEMP TABLE {changed} AS {new}",
            f"INSERT INTO {self._table} SELECT {batch}, {listed} FROM {changed}",
        ]
