"""DataFrames over our own data sources: the one place where Spark is asked for them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.datasource import DataSource

    from penstock.connectors.reading import Scan

Columns = Sequence[tuple[str, str]]  # a name and a type of Spark's

_EVOLUTION: Final = "spark.sql.streaming.queryEvolution.enableSourceEvolution"


def stream_frame(
    spark: SparkSession, source: type[DataSource], columns: Columns, scan: Scan, scan_id: str
) -> DataFrame:
    """The rows of a scan as a stream."""
    register_source(spark, source)
    reader = spark.readStream.format(source.name()).schema(ddl(columns)).option("scan", scan.text())
    if spark.conf.get(_EVOLUTION, "false") == "true":
        reader = reader.name(source_name(scan_id))
    return reader.load()


def batch_frame(spark: SparkSession, source: type[DataSource], columns: Columns, scan: Scan) -> DataFrame:
    """The rows of a scan from its start to its end."""
    register_source(spark, source)
    return spark.read.format(source.name()).schema(ddl(columns)).option("scan", scan.text()).load()


def register_source(spark: SparkSession, source: type[DataSource]) -> None:
    """Make a data source of ours known to a session, once."""
    own: Any = spark._jsparkSession  # noqa: SLF001 - PySpark has no way to ask
    if own.sessionState().dataSourceManager().dataSourceExists(source.name()):
        return
    # Spark looks for the name in the session of the thread, which in a batch's callback is that of the batch.
    jvm: Any = spark._jvm  # noqa: SLF001
    sessions = jvm.org.apache.spark.sql.classic.SparkSession
    before = sessions.getActiveSession()
    sessions.setActiveSession(own)
    try:
        spark.dataSource.register(source)
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def source_name(scan_id: str) -> str:
    """The name under which Spark keeps a scan's offsets: letters, digits and `_` are all it takes.

    >>> source_name("bids"), source_name("bids#2"), source_name("bids_2")
    ('bids', 'bids_232', 'bids_5f2')
    """
    return re.sub(r"[^A-Za-z0-9]", lambda found: "_" + found[0].encode().hex(), scan_id)


def ddl(columns: Columns) -> str:
    """Columns as Spark's DDL.

    >>> ddl([("a", "INT"), ("unit price", "DOUBLE")])
    '`a` INT, `unit price` DOUBLE'
    """
    return ", ".join(f"`{name.replace('`', '``')}` {type_}" for name, type_ in columns)
