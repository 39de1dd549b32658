"""The open windows and kept joins of a running job, read from its checkpoint: what `penstock.window_aggregates` and
`penstock.join_buffers` show.

Spark keeps, for each group, the buffers of its aggregates in the order of the query, and names them after what they
hold: two sums are both called `sum`, and an average has a `sum` and a `count`. So buffers are told apart by place. The
reader sees the last batch that is done and may be used while the job runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from penstock.frozen import frozen
from penstock.spark.offset_log import committed

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

# The buffers of each aggregate, in order. One that is not here has a buffer of one column.
_BUFFERS: Final = {
    "count": ("count",),
    "count_if": ("count",),
    "min": ("min",),
    "max": ("max",),
    "avg": ("sum", "count"),
    "first": ("first", "valueSet"),
    "first_value": ("first", "valueSet"),
    "any_value": ("first", "valueSet"),
    "last": ("last", "valueSet"),
    "last_value": ("last", "valueSet"),
    "max_by": ("value", "ordering"),
    "min_by": ("value", "ordering"),
    "stddev": ("n", "avg", "m2"),
    "stddev_samp": ("n", "avg", "m2"),
    "stddev_pop": ("n", "avg", "m2"),
    "variance": ("n", "avg", "m2"),
    "var_samp": ("n", "avg", "m2"),
    "var_pop": ("n", "avg", "m2"),
    "corr": ("n", "xAvg", "yAvg", "ck", "n", "avg", "m2", "n", "avg", "m2"),  # see penstock.plan.correlation
}
_SHOWN: Final = ("count", "sum", "min", "max")


@frozen
class _Layout:
    """Where the parts of a state row are: expressions over it."""

    window: Column
    keys: tuple[Column, ...]
    buffers: tuple[Column, ...]
    buffer_names: tuple[str, ...]
    numbers: frozenset[int]  # the places of buffers that are numbers


def state_frame(
    spark: SparkSession, checkpoint: Path, aggregates: Sequence[str], operator: int = 0, *, keyed: bool = True
) -> pa.Table:
    """The groups of a window aggregate: key, window_start, count, sum, min, max.

    `key` is the text of the group's other keys, with `,` between them; NULL without any. Of several aggregates of a
    kind the first is shown, of an average its sum and count where the query has none; what it has not, and what is no
    number, is NULL.

    `aggregates` are the functions that the query calls, in its order and in lower case, each distinct call once;
    `operator` tells which of its stateful operators is meant, as Spark numbers them, from the result down. Where groups
    are not `keyed`, what stands beside the window in Spark's key is nothing to show.
    """
    return window_frame(spark, checkpoint, aggregates, operator, keyed=keyed).drop_columns(["window_end"])


def window_frame(
    spark: SparkSession, checkpoint: Path, aggregates: Sequence[str], operator: int = 0, *, keyed: bool = True
) -> pa.Table:
    """The same with the end of each window behind its start."""
    import pyarrow as pa

    if committed(checkpoint) is None:
        return _schema().empty_table()
    from pyspark.sql import functions as f

    frame, parts = _layout(_read(spark, checkpoint, operator))
    places = buffer_places(aggregates, parts.buffer_names)
    keys = [key.cast("string") for key in parts.keys] if keyed else []
    shown: dict[str, Column] = {
        "key": f.concat_ws(",", *keys) if len(keys) > 1 else keys[0] if keys else f.lit(None).cast("string"),
        "window_start": parts.window["start"],
        "window_end": parts.window["end"],
    }
    for name in _SHOWN:
        type_ = "bigint" if name == "count" else "double"
        place = places.get(name)
        shown[name] = (parts.buffers[place] if place in parts.numbers else f.lit(None)).cast(type_)
    rows: Any = frame.select(*[column.alias(name) for name, column in shown.items()]).toArrow()
    return pa.table(rows).cast(_schema()).sort_by([("window_start", "ascending"), ("key", "ascending")])


def operator_names(spark: SparkSession, checkpoint: Path) -> tuple[str, ...]:
    """What Spark calls the stateful operators of a query, by their numbers; none before the first batch."""
    if committed(checkpoint) is None:
        return ()
    rows = spark.read.format("state-metadata").load(str(checkpoint.absolute()))
    found = {row.operatorId: row.operatorName for row in rows.select("operatorId", "operatorName").collect()}
    return tuple(name for _, name in sorted(found.items()))


def pending_windows(spark: SparkSession, checkpoint: Path, operator: int = 0) -> tuple[int, ...]:
    """The starts of the windows that are still open, in microseconds since 1970."""
    import pyarrow as pa

    starts = state_frame(spark, checkpoint, (), operator).column("window_start")
    return tuple(sorted({int(start) for start in starts.cast(pa.int64()).to_pylist()}))


def buffer_places(aggregates: Sequence[str], names: Sequence[str]) -> dict[str, int]:
    """The place of the buffer that holds each of count, sum, min and max.

    >>> buffer_places(["avg", "sum", "count", "max"], ["sum", "count", "sum", "count", "max"])
    {'sum': 2, 'count': 3, 'max': 4}
    >>> buffer_places(["avg", "min"], ["sum", "count", "min"])
    {'min': 2, 'sum': 0, 'count': 1}
    """
    found: dict[str, int] = {}
    averages: dict[str, int] = {}
    place = 0
    for function in aggregates:
        if place >= len(names):
            break
        buffers: tuple[str, ...] = _BUFFERS.get(function, (function,))
        if function == "sum" and place + 1 < len(names) and names[place + 1] == "isEmpty":
            buffers = ("sum", "isEmpty")  # a sum of decimals
        if function == "avg":
            averages.setdefault("sum", place)
            averages.setdefault("count", place + 1)
        elif buffers[0] in _SHOWN and function != "count_if":
            found.setdefault(buffers[0], place)
        place += len(buffers)
    return {**found, **{name: at for name, at in averages.items() if name not in found}}


def join_frame(spark: SparkSession, checkpoint: Path, operator: int, side: str, time: str | None) -> pa.Table:
    """The rows that one side of a join keeps: key, ts, data. `side` is left or right, `time` the name of its event time
    or window; `data` is the row as JSON, without the columns that the query does not need."""
    import pyarrow as pa

    if committed(checkpoint) is None:
        return _join_schema().empty_table()
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    frame = _read(spark, checkpoint, operator, joinSide=side)
    key, value = _struct(frame, "key"), _struct(frame, "value")
    names = _told_apart([field.name for field in value.fields])
    # Field by field: the rows of the reader have one more than its schema says, whether they have found a partner.
    placed = f.col("value").cast(_by_place(value))
    row = f.struct(*[placed[f"c{place}"].alias(name) for place, name in enumerate(names)])
    keys = [f.col("key").cast(_by_place(key))[f"c{place}"].cast("string") for place in range(len(key.fields))]
    frame = frame.select(f.concat_ws(",", *keys).alias("key"), row.alias("row"))
    ts: Column = f.lit(None)
    if time in names:
        ts = f.col("row")[time]
        ts = ts["start"] if isinstance(value.fields[names.index(time)].dataType, StructType) else ts
    rows: Any = frame.select(
        "key", ts.cast("timestamp").alias("ts"), f.to_json("row").cast("binary").alias("data")
    ).toArrow()
    return pa.table(rows).cast(_join_schema()).sort_by([("ts", "ascending"), ("key", "ascending")])


def _told_apart(names: Sequence[str]) -> list[str]:
    """Names without repetition.

    >>> _told_apart(["k", "ts", "k"])
    ['k', 'ts', 'k_2']
    """
    return [
        name if names.index(name) == place else f"{name}_{names[: place + 1].count(name)}"
        for place, name in enumerate(names)
    ]


def _read(spark: SparkSession, checkpoint: Path, operator: int, **options: str) -> DataFrame:
    reader = spark.read.format("statestore").option("operatorId", operator).options(**options)
    return reader.load(str(checkpoint.absolute()))


def _layout(frame: DataFrame) -> tuple[DataFrame, _Layout]:
    """The frame with fields named by their places, and where what is."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import NumericType

    key, value = _struct(frame, "key"), _struct(frame, "value")
    renamed = frame.select(
        f.col("key").cast(_by_place(key)).alias("key"), f.col("value").cast(_by_place(value)).alias("value")
    )
    # The state of session windows has the whole group in its value, and only the keys and the start in its key.
    holder, struct = ("key", key) if _window_place(key) is not None else ("value", value)
    at = _window_place(struct)
    assert at is not None, "the state is of a window aggregate"
    others = [place for place in range(len(struct.fields)) if place != at]
    if holder == "key":
        keys, first_buffer = others, 0
    else:
        keys = [place for place in others if place < len(key.fields)]
        first_buffer = len(key.fields)
    return renamed, _Layout(
        f.col(holder)[f"c{at}"],
        tuple(f.col(holder)[f"c{place}"] for place in keys),
        tuple(f.col("value")[f"c{place}"] for place in range(first_buffer, len(value.fields))),
        tuple(field.name for field in value.fields[first_buffer:]),
        frozenset(
            place for place, field in enumerate(value.fields[first_buffer:]) if isinstance(field.dataType, NumericType)
        ),
    )


def _struct(frame: DataFrame, name: str) -> StructType:
    from pyspark.sql.types import StructType

    found = frame.schema[name].dataType
    assert isinstance(found, StructType)
    return found


def _window_place(struct: StructType) -> int | None:
    from pyspark.sql.types import StructType

    for place, field in enumerate(struct.fields):
        if isinstance(field.dataType, StructType) and field.dataType.fieldNames() == ["start", "end"]:
            return place
    return None


def _by_place(struct: StructType) -> StructType:
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(f"c{place}", field.dataType) for place, field in enumerate(struct.fields)])


def _schema() -> pa.Schema:
    import pyarrow as pa

    return pa.schema(
        [
            ("key", pa.string()),
            ("window_start", pa.timestamp("us", "UTC")),
            ("window_end", pa.timestamp("us", "UTC")),
            ("count", pa.int64()),
            ("sum", pa.float64()),
            ("min", pa.float64()),
            ("max", pa.float64()),
        ]
    )


def _join_schema() -> pa.Schema:
    import pyarrow as pa

    return pa.schema([("key", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("data", pa.binary())])
