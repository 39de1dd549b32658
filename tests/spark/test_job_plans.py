"""What the planner writes for jobs, held against the real engines: Spark analyses and runs it, DuckDB reads its part."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.errors import NotYetError
from penstock.plan.changed_rows import DELETED, PLACE
from penstock.plan.finish_plan import SIDE
from penstock.plan.job_plan import BATCH_VIEW, JobPlan, plan_job
from penstock.plan.late_plan import LATE_COLUMNS, late_sql
from penstock.plan.logical import LogicalPlan
from penstock.plan.merge_plan import MergeKey, Partial
from penstock.plan.nodes import Aggregate, Deduplicate, Join, Scan, SetOperation, TopN, Unnest, WindowAssign
from penstock.plan.script import analyze_script
from penstock.plan.store_terms import store_type
from penstock.spark.core_frame import core_frame
from penstock.stores.duckdb_types import duckdb_type
from penstock.types import BIGINT, BOOLEAN, INT, SqlType
from tests.unit.test_fixtures import ACCEPTED, Block, reports

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def job_plans() -> list[tuple[str, LogicalPlan, JobPlan]]:
    """Every plan of the accepted fixtures that a job runs."""
    found: dict[str, tuple[str, LogicalPlan, JobPlan]] = {}
    for block in ACCEPTED:
        if block.lenient:
            continue
        for plan in block_plans(block):
            if any(field.type is None for scan in plan.scans() for field in scan.fields):
                continue  # the type of a computed column is Spark's to find, once the scan is there
            try:
                job = plan_job(plan)
            except NotYetError:
                continue
            if not job.of_views:  # which runs without Spark
                found.setdefault(f"{job.core}{job.scans}", (block.name, plan, job))
    return list(found.values())


def block_plans(block: Block) -> list[LogicalPlan]:
    plans: list[LogicalPlan] = []
    for report in reports(block):
        if report.analysis is not None and report.statement is not None:
            plans += [plan for plan in report.analysis.plans if not plan.functions and plan.root.kind != "view"]
    return plans


Columns = list[tuple[str, SqlType]]


def backquoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def simple(spark_type: str) -> str:
    from pyspark.sql.types import DataType

    return DataType.fromDDL(spark_type).simpleString()


class Streams:
    """Streams for the scans of jobs: for Spark's analysis alone, or without rows but running one batch."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark = spark
        self.root = root
        self.known: dict[str, str] = {}

    def analysed(self, columns: Columns) -> DataFrame:
        """A stream that is never started."""
        frame = self.spark.readStream.format("rate").load()
        return frame.selectExpr(*[f"CAST(NULL AS {kind.spark()}) AS {backquoted(name)}" for name, kind in columns])

    def empty(self, columns: Columns) -> DataFrame:
        """A stream that ends after one batch without rows."""
        schema = ", ".join(f"{backquoted(name)} {kind.spark()}" for name, kind in columns)
        if schema not in self.known:
            path = str(self.root / f"empty-{len(self.known)}")
            self.spark.createDataFrame([], schema).coalesce(1).write.parquet(path)
            self.known[schema] = path
        return self.spark.readStream.schema(schema).parquet(self.known[schema])

    def register(self, plan: LogicalPlan, job: JobPlan, *, runs: bool) -> None:
        for scan in job.scans:
            readings = [*plan.scans(), *(node for node in plan.subquery_nodes() if isinstance(node, Scan))]
            fields = next(node.fields for node in readings if node.relation == scan.relation)
            columns = [(field.name, field.type) for field in fields if field.name in scan.columns and field.type]
            assert [name for name, _ in columns] == list(scan.columns)
            columns = columns or [("__offset", BIGINT)]
            if scan.changes:
                columns += [(DELETED, BOOLEAN), (PLACE[0], INT), (PLACE[1], BIGINT)]
            frame = self.empty(columns) if runs else self.analysed(columns)
            if scan.event_time is not None:
                frame = frame.withWatermark(scan.event_time.column, f"{scan.event_time.delay_us} microseconds")
            frame.createOrReplaceTempView(scan.view)
        for dimension in job.dimensions:
            if dimension.kept:
                continue  # the view store reads it
            readings = [*plan.scans(), *(node for node in plan.subquery_nodes() if isinstance(node, Scan))]
            fields = next(node.fields for node in readings if node.relation == dimension.relation)
            cells = [
                f"CAST(NULL AS {field.type.spark()}) AS {backquoted(field.name)}" for field in fields if field.type
            ]
            self.spark.range(1).selectExpr(*cells).createOrReplaceTempView(dimension.view)


def types_of(frame: DataFrame) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]


def check_columns(plan: LogicalPlan, job: JobPlan, frame: DataFrame) -> None:
    found = types_of(frame)
    shown = found[: len(plan.columns)]
    assert [name for name, _ in shown] == [column.name for column in job.columns]
    for (name, spark_type), column in zip(shown, job.columns, strict=True):
        if column.type is not None:
            assert spark_type == simple(column.type.spark()), name
    assert set(job.key) <= {name for name, _ in found}


def check_merge(spark: SparkSession, job: JobPlan, frame: DataFrame) -> None:
    """The batch text gives the partials as planned, and DuckDB can compute the view from them."""
    import duckdb

    merge = job.merge
    assert merge is not None
    assert job.batch is not None
    frame.createOrReplaceTempView(BATCH_VIEW)
    batch = spark.sql(job.batch)
    found = dict(types_of(batch))
    planned: list[MergeKey | Partial] = [*merge.keys, *merge.partials]
    assert list(found) == [entry.name for entry in planned]
    cells = []
    for entry in planned:
        if entry.type is not None:
            assert found[entry.name] == simple(entry.type.spark()), entry.name
        cells.append(f'CAST(NULL AS {store_type(entry.type) if entry.type else "VARCHAR"}) AS "{entry.name}"')
    if job.kind != "merge":
        return  # what stands over windows speaks of their bounds too
    shown = ", ".join(column.expression for column in merge.columns)
    keep = f" WHERE {merge.keep}" if merge.keep else ""
    duckdb.connect().execute(f"SELECT {shown} FROM (SELECT {', '.join(cells)}){keep}")


def check_finish(job: JobPlan, frame: DataFrame) -> None:
    """The batch gives the kept rows as planned, and DuckDB takes the text of the answer over them."""
    import duckdb

    finish = job.finish
    assert finish is not None
    found = dict(types_of(frame))
    kept = [entry for rows in finish.rows for entry in rows.columns]
    brought = [entry.name for rows in finish.rows if rows.read is None for entry in rows.columns]
    changes = [rows.changes for rows in finish.rows if rows.changes is not None]
    places = [name for each in changes for name in (each.gone, each.partition, each.offset)]
    assert sorted(found) == sorted([SIDE, *brought, *places])
    types: dict[str, SqlType] = {}
    for entry in kept:
        assert entry.type is not None
        if entry.name in brought:  # what the store reads elsewhere does not come from Spark
            assert found[entry.name] == simple(entry.type.spark()), entry.name
        types[entry.name] = entry.type
    for stage in finish.stages:
        leaves = []
        for leaf in stage.leaves:
            below = finish.stage_of(leaf.source)
            known = types if below is None else dict(below.columns)
            cells = [f'CAST(NULL AS {duckdb_type(known[name])}) AS "{shown}"' for shown, name in leaf.columns]
            leaves.append(f'"{leaf.name}" AS (SELECT {", ".join(cells)})')
        shown = duckdb.connect().execute(f"WITH {', '.join(leaves)} {stage.text}").description
        assert shown is not None
        assert [entry[0] for entry in shown] == [name for name, _ in stage.columns]
    assert [name for name, _ in finish.view.columns][: len(job.columns)] == [c.name for c in job.columns]


@pytest.fixture(scope="module")
def streams(spark: SparkSession) -> Iterator[Streams]:
    with tempfile.TemporaryDirectory(prefix="job-plans-") as root:
        yield Streams(spark, Path(root))


PLANS = job_plans()


def test_enough_plans() -> None:
    """The fixtures hold jobs of every kind."""
    kinds = [job.kind for _, _, job in PLANS]
    assert kinds.count("append") > 40
    assert kinds.count("merge") > 8
    assert kinds.count("update") >= 2
    assert kinds.count("windows") >= 5
    assert kinds.count("finish") > 10


# Every fourth in the quick tests, the others in `make test-soak`.
each_plan = pytest.mark.parametrize(
    ("plan", "job"),
    [
        pytest.param(plan, job, id=name, marks=() if place % 4 == 0 else pytest.mark.soak)
        for place, (name, plan, job) in enumerate(PLANS)
    ],
)


@each_plan
def test_spark_takes_it(spark: SparkSession, streams: Streams, plan: LogicalPlan, job: JobPlan) -> None:
    """Spark analyses the text, finds the planned types, and would run it as a stream in the mode of its kind."""
    streams.register(plan, job, runs=False)
    frame = core_frame(spark, job)
    if job.merge is not None:
        if job.processing is None:  # whose time the batch brings
            check_merge(spark, job, frame)
    elif job.kind == "finish":
        check_finish(job, frame)
    else:
        check_columns(plan, job, frame)
    check_streaming(spark, frame, job)


def check_streaming(spark: SparkSession, frame: DataFrame, job: JobPlan) -> None:
    """Spark's own check before it starts a stream; it raises where it would refuse."""
    jvm: Any = spark._jvm
    modes = jvm.org.apache.spark.sql.streaming.OutputMode
    mode = modes.Update() if job.kind == "update" else modes.Append()
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    checker.checkForStreaming(frame._jdf.queryExecution().analyzed(), mode)


def shape(plan: LogicalPlan, job: JobPlan) -> object:
    """What makes Spark plan a query differently: its kind, its operators and its windows."""
    windows = tuple(node.window.kind for node in plan.nodes() if isinstance(node, Aggregate) and node.window)
    sets = any(isinstance(node, Aggregate) and node.grouping_sets for node in plan.nodes())
    kinds = frozenset(type(node) for node in plan.nodes()) & {Unnest, SetOperation, WindowAssign, Deduplicate, TopN}
    joins = tuple(node.kind for node in plan.nodes() if isinstance(node, Join))
    if job.kind == "finish":
        return job.kind, len(job.scans)
    return job.kind, windows, sets, joins, kinds if not windows else None


def of_each_shape() -> list[tuple[str, LogicalPlan, JobPlan]]:
    found = {shape(plan, job): (name, plan, job) for name, plan, job in reversed(PLANS)}
    return list(found.values())


SHAPES = of_each_shape()


@pytest.mark.parametrize(("plan", "job"), [entry[1:] for entry in SHAPES], ids=[entry[0] for entry in SHAPES])
def test_spark_runs_it(spark: SparkSession, streams: Streams, plan: LogicalPlan, job: JobPlan) -> None:
    """One query of each shape runs a whole batch."""
    streams.register(plan, job, runs=True)
    frame = core_frame(spark, job)
    mode = "update" if job.kind == "update" else "append"
    with tempfile.TemporaryDirectory(prefix="checkpoint-", dir=streams.root) as checkpoint:
        run(frame, mode, checkpoint)


def run(frame: DataFrame, mode: str, checkpoint: str) -> dict[str, Any]:
    query = (
        frame.writeStream.format("noop")
        .outputMode(mode)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    progress = query.lastProgress
    assert progress is not None, "no batch ran"
    return dict(progress)


TRADES = """
CREATE STREAM trades (symbol STRING, price DOUBLE, tags ARRAY<STRING>, ts TIMESTAMP,
    WATERMARK FOR ts AS ts - INTERVAL '5' SECOND);
"""
HOP = "HOP(TABLE trades, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '30' SECOND)"
# offset, symbol, tags, second of the event time; the watermark stands at second 60
LATE_ROWS = [
    (0, "a", ["x", "y"], 5), (1, "a", ["x"], 35), (2, "b", [], 49), (3, "b", ["x"], 50), (4, "c", ["x"], 59),
    (5, "c", ["x", "y"], 60), (6, "a", ["x"], 70),
]  # fmt: skip
LATE_QUERIES = {
    # the windows that a row missed, of how many; 10 second windows ending at 60 are closed
    "SELECT COUNT(*) AS n FROM trades GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)": {
        0: (1, 1), 1: (1, 1), 2: (1, 1), 3: (1, 1), 4: (1, 1),
    },
    # 30 second windows that begin every 10: second 35 is in those ending at 40, 50 and 60, second 59 in 60, 70 and 80
    "SELECT COUNT(*) AS n FROM trades GROUP BY HOP(ts, INTERVAL '10' SECOND, INTERVAL '30' SECOND)": {
        0: (3, 3), 1: (3, 3), 2: (2, 3), 3: (1, 3), 4: (1, 3),
    },
    f"SELECT window_start, COUNT(*) AS n FROM {HOP} WHERE price > 0 GROUP BY window_start, window_end": {
        0: (3, 3), 1: (3, 3), 2: (2, 3), 3: (1, 3), 4: (1, 3),
    },
    # a session of one row ends 10 seconds behind it: at 60 for the row of second 50
    "SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol, SESSION(ts, INTERVAL '10' SECOND)": {
        0: (1, 1), 1: (1, 1), 2: (1, 1), 3: (1, 1),
    },
    # filters take rows away before they can be late, and UNNEST counts a row as often as it makes rows
    "SELECT tag, COUNT(*) AS n FROM trades CROSS JOIN UNNEST(tags) AS u(tag) WHERE symbol <> 'c' "
    "GROUP BY tag, TUMBLE(ts, INTERVAL '10' SECOND)": {0: (2, 2), 1: (1, 1), 3: (1, 1)},
    "SELECT k, COUNT(*) AS n FROM (SELECT symbol AS k, ts FROM trades WHERE symbol = 'a' UNION ALL "
    "SELECT tags[1], ts FROM trades WHERE symbol = 'b') AS t GROUP BY k, TUMBLE(ts, INTERVAL '10' SECOND)": {
        0: (1, 1), 1: (1, 1), 102: (1, 1), 103: (1, 1),
    },
    # of a window over a window only the lower one drops rows of the source
    "SELECT COUNT(*) AS n FROM (SELECT TUMBLE_ROWTIME(ts, INTERVAL '10' SECOND) AS rt, symbol FROM trades "
    "GROUP BY symbol, TUMBLE(ts, INTERVAL '10' SECOND)) AS t GROUP BY TUMBLE(rt, INTERVAL '1' MINUTE)": {
        0: (1, 1), 1: (1, 1), 2: (1, 1), 3: (1, 1), 4: (1, 1),
    },
}  # fmt: skip


@pytest.mark.parametrize("sql", list(LATE_QUERIES))
def test_late_rows(spark: SparkSession, sql: str) -> None:
    """The query over re-read rows names each source row that missed a window, once, with how many it missed (F3)."""
    report = analyze_script(f"{TRADES}{sql};")[-1]
    assert report.plan is not None, report.error
    job = plan_job(report.plan)
    for place, scan in enumerate(job.scans):
        rows = [
            (symbol, 1.0, tags, datetime.fromtimestamp(second, UTC), (scan.id, 0, offset + 100 * place, "{}"))
            for offset, symbol, tags, second in LATE_ROWS
        ]
        source = "STRUCT<scan: STRING, partition: INT, offset: BIGINT, row: STRING>"
        schema = f"symbol STRING, price DOUBLE, tags ARRAY<STRING>, ts TIMESTAMP, __source {source}"
        spark.createDataFrame(rows, schema).createOrReplaceTempView(scan.view)
    found = spark.sql(late_sql(job, 60_000_000))
    assert found.columns == list(LATE_COLUMNS)
    listed = {row["__source"]["offset"]: (row["missed"], row["windows"]) for row in found.collect()}
    assert listed == LATE_QUERIES[sql]
    seconds = {offset: second for offset, _, _, second in LATE_ROWS}
    times = found.selectExpr("__source.offset % 100 AS o", "unix_seconds(event_time) AS t").collect()
    assert all(row["t"] == seconds[row["o"]] for row in times)
