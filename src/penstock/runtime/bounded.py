"""The whole content of a bounded relation, as of now: for queries that end, and for tables that jobs look up in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.connectors.registry import source_of
from penstock.connectors.source import ScanRequest
from penstock.errors import NotYetError, PenstockError, RuntimeFailure
from penstock.plan.job_plan import ScanPlan
from penstock.plan.scan_columns import columns_of_rows, columns_to_read
from penstock.runtime.failures import as_failure
from penstock.runtime.job_spec import jars_of
from penstock.spark.checked_scan import CheckedScan
from penstock.spark.latest_rows import latest_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from penstock.catalog.model import SourceDefinition
    from penstock.runtime.engine import Engine


def bounded_frame(
    engine: Engine, spark: SparkSession, definition: SourceDefinition, columns: Sequence[str] | None = None
) -> DataFrame:
    """All good rows of a bounded relation, with the columns named, or all; of rows that replace each other the latest.

    Bad records are left out, unless the relation says `bad_data = 'fail'`: then the first is BAD_RECORD.
    """
    name = definition.name.text
    if not definition.bounded:
        raise RuntimeFailure(
            "UNBOUNDED_QUERY",
            f'"{name}" is a stream, and its rows never end',
            hint="CREATE MATERIALIZED VIEW … AS and read the view",
        )
    changes = definition.mode != "append"
    if changes and not definition.primary_key:
        raise NotYetError(
            "QUERY_NOT_YET",
            f'a query over "{name}", whose rows change, without a primary key is not there yet',
            hint="add PRIMARY KEY (column) NOT ENFORCED to it, by which its rows replace each other",
        )
    shown = tuple(columns) if columns else tuple(entry.name for entry in definition.columns)
    version = definition.options.values.get("version_column")
    view = ScanPlan(name, name, name, columns_of_rows(definition, columns), None, changes)
    wanted = columns_to_read(definition, view)
    request = ScanRequest(name, definition, wanted, engine.home.path, 0, "query", roots=engine.home.roots)
    engine.functions.make_ready(spark, (), (definition,))
    source = source_of(definition.options.connector)
    scan = CheckedScan(view, definition, engine.session, request, source.partitions(request), False)
    end = source.end_offset(request)
    now_ms = engine.clock.now_us() // 1000
    if scan.policy == "fail" and scan.checked:
        whole = replace(request, columns=tuple(entry.name for entry in definition.columns if entry.physical))
        _refuse_bad(replace(scan, request=whole).bad_again(spark, None, end, now_ms), name)
    found = scan.good_rows(spark, end, now_ms)
    if not changes:
        return found
    return latest_rows(found, definition.primary_key, None if version is None else str(version), shown)


def bounded_table(engine: Engine, definition: SourceDefinition, columns: Sequence[str] | None = None) -> pa.Table:
    """The same rows in memory, as Arrow."""
    try:
        needed = jars_of(definition.options)
        return bounded_frame(engine, engine.home.spark(needed).newSession(), definition, columns).toArrow()
    except PenstockError:
        raise
    except Exception as error:
        raise as_failure(f'reading "{definition.name}"', error) from error


def _refuse_bad(bad: DataFrame, name: str) -> None:
    for row in bad.limit(1).collect():
        raise RuntimeFailure(
            "BAD_RECORD",
            f'a record of "{name}" (partition {row["partition"]}, offset {row["offset"]}) cannot be read: '
            f"{row['error']}",
            hint="mend the file, or set bad_data = 'dead_letter' to go on without such records",
        )
