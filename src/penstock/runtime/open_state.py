"""What the jobs of a database keep open in Spark right now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.spark.state_rows import join_frame, operator_names, window_frame

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from penstock.plan.kept_state import Kept

_JOIN: Final = "symmetricHashJoin"


def open_windows(spark: SparkSession, checkpoint: Path, kept: Sequence[Kept]) -> pa.Table | None:
    """The live groups of the windows nearest to a job's input, from Spark's state; None where it has none.

    Their columns are those of `window_frame`.
    """
    import pyarrow as pa

    wanted = [(place, each) for place, each in enumerate(kept) if each.windowed and each.lowest]
    if not wanted or not _as_planned(spark, checkpoint, kept):
        return None
    return pa.concat_tables(
        [window_frame(spark, checkpoint, each.functions, place, keyed=each.keyed) for place, each in wanted]
    )


def join_buffers(spark: SparkSession, checkpoint: Path, kept: Sequence[Kept]) -> pa.Table | None:
    """The rows that the joins of a job keep for partners that may come: side, key, ts, data; None without a join."""
    import pyarrow as pa

    wanted = [(place, each) for place, each in enumerate(kept) if each.kind == "join"]
    if not wanted or not _as_planned(spark, checkpoint, kept):
        return None
    found: list[pa.Table] = []
    for place, each in wanted:
        for number, side in enumerate(("left", "right")):
            rows = join_frame(spark, checkpoint, place, side, each.times[number] if each.times else None)
            found.append(rows.add_column(0, "side", pa.array([side] * rows.num_rows, pa.string())))
    return pa.concat_tables(found)


def _as_planned(spark: SparkSession, checkpoint: Path, kept: Sequence[Kept]) -> bool:
    """Whether Spark has the operators that the plan says; its optimizer may have made one of two."""
    if len(kept) == 1:
        return True
    names = operator_names(spark, checkpoint)
    return not names or [name == _JOIN for name in names] == [each.kind == "join" for each in kept]
