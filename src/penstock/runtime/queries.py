"""Answers to queries that end: over views, system tables and bounded tables, from what they hold now.

Most go to the view store, in milliseconds. A query with something in it that the store and Spark do not mean alike, or
over a bounded table, is answered by Spark: slower, and the same answer as a job would give.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.catalog.model import DimensionDefinition, MaterializedViewDefinition, ObjectKey, SourceDefinition
from penstock.catalog.system import find_system
from penstock.errors import PenstockError, RuntimeFailure
from penstock.plan.distinct_steps import plain_sessions
from penstock.plan.scan_columns import columns_asked
from penstock.plan.spark_text import spark_sql
from penstock.plan.store_text import store_sql
from penstock.runtime.bounded import bounded_frame
from penstock.runtime.failures import as_failure
from penstock.runtime.lost_workers import gone_in_functions
from penstock.spark.dimension_frames import version_frame
from penstock.stores.views import Answer

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from penstock.errors import Span
    from penstock.plan.logical import LogicalPlan
    from penstock.runtime.engine import Engine
    from penstock.types import SqlType

    AsOf = dict[str, tuple[int | None, int | None]]

_WHAT = "the query"


def answer(engine: Engine, plan: LogicalPlan, span: Span | None = None) -> Answer:
    """The answer to a query over views, system tables and bounded tables."""
    refuse_unbounded(plan, span)
    scans = plan.scans()
    if all(scan.kind in ("materialized view", "system table", "dimension") for scan in scans):
        text = store_sql(plan, _view_types(engine))
        if text is not None:
            given = _given_relations(engine, plan)
            try:
                return engine.home.views.read(text, given)
            except RuntimeFailure as error:
                raise as_failure(_WHAT, error) from error
    return spark_answer(engine, plan)


def refuse_unbounded(plan: LogicalPlan, span: Span | None) -> None:
    """UNBOUNDED_QUERY where a query would never end."""
    for scan in plan.streams():
        raise RuntimeFailure(
            "UNBOUNDED_QUERY",
            f'"{scan.relation}" is a stream, and a query over it never ends',
            hint="CREATE MATERIALIZED VIEW … AS and read the view, follow the query with db.stream(sql), "
            "or ask once for what is there now with db.select_once(sql)",
            span=span,
        )


def _view_types(engine: Engine) -> dict[str, dict[str, SqlType]]:
    """The types of the columns of views; some of them only Spark could tell."""
    return {spec.name: dict(spec.columns) for spec in engine.home.views.specs()}


def _given_relations(engine: Engine, plan: LogicalPlan) -> Mapping[str, pa.Table]:
    """The tables that the store does not keep itself: of the system, and dimensions."""
    needed = dict(plan.reads)
    found: dict[str, pa.Table] = {}
    for scan in plan.scans():
        if scan.kind == "system table":
            found[scan.relation] = engine.system_table(scan.relation, needed.get(scan.relation))
        elif scan.kind == "dimension":
            found[scan.relation] = engine.dimensions.table(scan.relation)
    return found


def spark_answer(engine: Engine, plan: LogicalPlan) -> Answer:
    """The answer of Spark, whoever else could give it."""
    spark = engine.home.spark().newSession()
    tree = plan.spark.copy()
    plain_sessions(tree)
    as_of: AsOf = {}
    views: dict[str, str] = {}
    try:
        # UNNEST in a FROM clause is a table without a name.
        names = list(dict.fromkeys(table.name for table in tree.find_all(exp.Table) if table.name))
        kept = engine.home.views.read_views([name for name in names if _is_view(engine, name)])
        for name in names:
            views[name] = f"__table_{len(views)}"
            _frame(engine, spark, plan, name, kept).createOrReplaceTempView(views[name])
        for each in kept.values():
            as_of |= each.as_of
        for table in list(tree.find_all(exp.Table)):
            if table.name in views:
                alias = table.alias or table.name
                table.set("this", exp.to_identifier(views[table.name], quoted=True))
                table.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
        engine.functions.make_ready(spark, plan.functions)
        found = spark.sql(spark_sql(tree)).toArrow()
    except PenstockError:
        raise
    except Exception as error:
        failed = as_failure(_WHAT, error)
        raise (gone_in_functions(_WHAT, failed, plan.functions) or failed) from error
    return Answer(found, as_of)


def _is_view(engine: Engine, name: str) -> bool:
    return find_system(name) is None and isinstance(
        engine.session.catalog[ObjectKey("relation", name)], MaterializedViewDefinition
    )


def _frame(engine: Engine, spark: SparkSession, plan: LogicalPlan, name: str, kept: Mapping[str, Answer]) -> DataFrame:
    if name in kept:
        return spark.createDataFrame(kept[name].table)
    if find_system(name) is not None:
        return spark.createDataFrame(engine.system_table(name))
    definition = engine.session.catalog[ObjectKey("relation", name)]
    if isinstance(definition, SourceDefinition):
        return bounded_frame(engine, spark, definition, columns_asked(plan, name))
    assert isinstance(definition, DimensionDefinition)
    return _dimension_frame(engine, spark, definition)


def _dimension_frame(engine: Engine, spark: SparkSession, definition: DimensionDefinition) -> DataFrame:
    name = definition.name.text
    types = tuple((column.name, column.type) for column in definition.columns if column.type is not None)
    directory, number = engine.home.dimensions.directory(name), engine.home.dimensions.latest(name).number
    return version_frame(spark, name, types, directory, pins=None, number=number)
