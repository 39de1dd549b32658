"""Small batches of a running aggregate, reduced to one row a key without Spark.

Spark needs a tenth of a second to plan and run an aggregate over a handful of rows, DuckDB a millisecond. Only what
gives the same in both is reduced here: sums, counts, smallest and largest values by keys of plain types.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING, Final, Self

from penstock.plan.pane_plan import PANE
from penstock.stores.duckdb_types import duckdb_type, quoted, to_duckdb
from penstock.stores.views.database import ViewDatabase, fetched

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.plan.merge_plan import MergePlan, Reduction
    from penstock.types import SqlType

_ROWS: Final = "__rows"
_FRACTIONS: Final = ("FLOAT", "DOUBLE")
_NESTED: Final = frozenset({"ARRAY", "MAP", "STRUCT", "VARIANT", "INTERVAL"})
_SUMMED: Final = frozenset({"BIGINT", "DOUBLE", "DECIMAL"})


class SmallBatches:
    """Reduces batches of one job."""

    def __init__(self, query: str) -> None:
        self._query = query
        self._database = ViewDatabase.open(None, threads=1)
        self._lock = Lock()

    @classmethod
    def of(cls, plan: MergePlan | None, reductions: tuple[Reduction, ...], types: Mapping[str, SqlType]) -> Self | None:
        """For a merging job; None where Spark has to reduce its batches. `types` are those of keys and partials."""
        if plan is None:
            return None
        keys = [key for key in plan.keys if key.name in types]  # what is added to a whole batch is no key of its rows
        if any(types[key.name].name in _NESTED for key in keys):
            return None
        if plan.best is not None and plan.best.rows:
            names = ", ".join(quoted(key.name) for key in keys)
            return cls(f"SELECT {names} FROM {_ROWS} QUALIFY {plan.best.first_among(quoted(PANE))}")
        if any(each.how in ("function", "list", "set") for each in reductions):
            return None
        if any(each.how == "sum" and types[each.partial].name not in _SUMMED for each in reductions):
            return None
        items = [f"{_key(key.name, types[key.name])} AS {quoted(key.name)}" for key in keys]
        items += [f"{_reduced(each, types[each.partial])} AS {quoted(each.partial)}" for each in reductions]
        # Without keys there is no group where there is no row, as there is none for each key.
        grouped = f"GROUP BY {', '.join(map(str, range(1, len(keys) + 1)))}" if keys else "HAVING count(*) > 0"
        return cls(f"SELECT {', '.join(items)} FROM {_ROWS} {grouped}")

    def reduced(self, rows: pa.Table) -> pa.Table:
        """One row a key, with the partial results of the batch."""
        with self._lock, self._database.errors():
            writer = self._database.writer
            writer.register(_ROWS, to_duckdb(rows))
            try:
                return fetched(writer, self._query)
            finally:
                writer.unregister(_ROWS)


def _key(name: str, kind: SqlType) -> str:
    # 0.0 and -0.0 are one key.
    column = quoted(name)
    return f"CASE WHEN {column} = 0 THEN 0 ELSE {column} END" if kind.name in _FRACTIONS else column


def _reduced(each: Reduction, kind: SqlType) -> str:
    argument = quoted(each.argument)
    if each.how == "sum" and kind.name == "DOUBLE":
        argument = f"CAST({argument} AS DOUBLE)"
    return f"CAST({each.how}({argument}) AS {duckdb_type(kind)})"
