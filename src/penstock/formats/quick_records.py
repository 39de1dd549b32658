"""JSON records of which a reader in Python has read most already: which columns it may read, and what it hands over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.quick_json import QUICK, SURE, can_read
from penstock.types import STRING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column

    from penstock.catalog.model import SourceDefinition
    from penstock.types import SqlType


def quick_json_columns(definition: SourceDefinition, columns: tuple[str, ...]) -> dict[str, str] | None:
    """The columns with their types, where DuckDB can read them out of most records; else None."""
    options = definition.options
    other_shapes = ("confluent_schema_registry", "unstructured", "include_schema", "fail_on_missing_field")
    if options.format != "json" or definition.mode != "append" or not columns:
        return None
    if any(options.values.get(f"json.{option}") is True for option in other_shapes):
        return None
    types = {entry.name: entry.type or STRING for entry in definition.columns}
    wanted = {name: types[name].name for name in columns}
    return wanted if can_read(wanted) else None


class QuicklyRead:
    """What DuckDB has read of a record."""

    def __init__(self, types: Mapping[str, SqlType]) -> None:
        from pyspark.sql import functions as f

        self._types = types
        self._read = f.col(QUICK)
        self.sure = self._read[SURE]

    def value_or(self, name: str, other: Column) -> Column:
        """A column's value; another one where it is not sure."""
        from pyspark.sql import functions as f

        value = self._read.getField(name)
        if self._types[name].name == "TIMESTAMP":
            value = f.timestamp_micros(value)
        return f.when(self.sure, value).otherwise(other)
