"""Rows that replace each other, as a table: of each key the latest row, unless it is deleted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from penstock.plan.changed_rows import DELETED, PLACE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_VERSION: Final = "__version"
_RANK: Final = "__rank"


def latest_rows(frame: DataFrame, key: Sequence[str], version: str | None, columns: Sequence[str]) -> DataFrame:
    """The columns named, of the latest row of each key.

    Without a version the last row of a key counts. With one the row of the highest version does, and one that has none,
    as a deletion often is, is as new as the newest row before it. So does the view store, batch by batch.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    by = Window.partitionBy(*(_quoted(name) for name in key))
    order = [f.col(name).desc() for name in PLACE]
    if version is not None:
        given = f.col(_quoted(version))
        before = by.orderBy(*PLACE).rowsBetween(Window.unboundedPreceding, Window.currentRow)
        frame = frame.withColumn(_VERSION, f.coalesce(given, f.max(given).over(before)))
        order = [f.col(_VERSION).desc_nulls_last(), *order]
    ranked = frame.withColumn(_RANK, f.row_number().over(by.orderBy(*order)))
    there = (f.col(_RANK) == 1) & ~f.coalesce(f.col(DELETED), f.lit(True))
    return ranked.filter(there).select(*(_quoted(name) for name in columns))


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
