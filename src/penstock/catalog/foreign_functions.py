"""Functions of Flink, PostgreSQL, RisingWave and Arroyo that people paste, and how each is written for Spark.

A name of Spark's own stands here too where other systems mean something else by it, or where Spark would fail or answer
NULL for every row and the planner can tell beforehand.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from penstock.catalog.foreign_aggregates import AGGREGATES
from penstock.catalog.foreign_call import ForeignFunction
from penstock.catalog.foreign_json import JSON
from penstock.catalog.foreign_text import TEXT
from penstock.catalog.foreign_time import TIME

FOREIGN: Mapping[str, ForeignFunction] = MappingProxyType(TEXT | TIME | JSON | AGGREGATES)

_BUILD_JSON = "build the value with named_struct or array and use TO_JSON"

NOT_YET: Mapping[str, str] = MappingProxyType(
    {
        "current_watermark": "late rows are kept in penstock.late_rows; EXPLAIN WATERMARK shows the watermark of a job",
        "json_object": _BUILD_JSON,
        "json_array": _BUILD_JSON,
        "group_id": "use GROUPING_ID with the grouped columns",
    }
)
"""Functions that are planned: the name, and what to do until then."""
