"""How many rows a batch puts out, counted by Spark as they pass: for sinks that Spark writes to without telling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

_OBSERVATION: Final = "penstock_output"
_ROWS: Final = "rows"


def counting(frame: DataFrame) -> DataFrame:
    """The frame of a query, whose rows are counted in every batch."""
    from pyspark.sql import functions as f

    return frame.observe(_OBSERVATION, f.count(f.lit(1)).alias(_ROWS))


def counted(observed: Mapping[str, Mapping[str, object]]) -> int:
    """How many there were, by what was observed of a batch."""
    found = observed.get(_OBSERVATION, {}).get(_ROWS)
    return found if isinstance(found, int) else 0
