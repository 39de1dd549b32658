"""EXPLAIN PHYSICAL: what Spark makes of a query."""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.options import resolve_view_options
from penstock.plan.job_plan import BATCH_VIEW, plan_job
from penstock.runtime.failures import as_failure
from penstock.runtime.job_spec import JobSpec
from penstock.runtime.job_statements import sources_of
from penstock.runtime.runs import scans_of
from penstock.spark.core_frame import core_frame
from penstock.sql.statements import Name

if TYPE_CHECKING:
    from penstock.plan.logical import LogicalPlan
    from penstock.runtime.engine import Engine


def physical_plan(engine: Engine, logical: LogicalPlan) -> str:
    """Spark's physical plan of a continuous query: of each batch, and of what the batch is reduced to."""
    plan = plan_job(logical)
    if plan.of_views:
        return plan.how
    spec = JobSpec(
        name="explain",
        kind="ephemeral",
        sql="",
        plan=plan,
        sources=sources_of(plan, engine.session),
        options=resolve_view_options((), Name("explain"), engine.session.settings),
        session=engine.session,
    )
    spark = engine.home.spark(spec.jar_sets).newSession()
    if spec.options.parallelism is not None:
        spark.conf.set("spark.sql.shuffle.partitions", str(spec.options.parallelism))
    text = io.StringIO()
    try:
        engine.functions.make_ready(spark, plan.functions, spec.sources)
        for scan in scans_of(spec, state_path=engine.home.path, run_number=0, first={}):
            scan.stream(spark).createOrReplaceTempView(scan.scan.view)
        dimensions = engine.dimensions.explained(plan)
        if any(dimension.method == "lookup" for dimension in dimensions):
            plan = plan.with_lookups()
        for dimension in dimensions:
            dimension.make_ready(spark)
        # Spark explains a stream only where it sees that it is one: in a plan that is analysed already.
        frame = core_frame(spark, plan, dimensions).select("*")
        with contextlib.redirect_stdout(text):
            frame.explain()
            if plan.batch is not None:
                spark.createDataFrame([], frame.schema).createOrReplaceTempView(BATCH_VIEW)
                spark.sql(plan.batch).explain()
    except PenstockError:
        raise
    except Exception as error:
        raise as_failure("EXPLAIN PHYSICAL", error) from error
    return text.getvalue()
