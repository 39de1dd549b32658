"""JSON records read by a class of our own in Spark's JVM, several times as fast as by `from_json`.

It is sure of most records and hands their columns over in their types; about all others it says nothing. What it takes
stands in `spark/java/QuickJson.java`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from penstock.formats.java_calls import java_call

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

    from penstock.types import SqlType

QUICK: Final = "__quick"  # the column of what was read; NULL where it is not sure

_PLAIN: Final = frozenset(
    {"BIGINT", "INT", "SMALLINT", "TINYINT", "BOOLEAN", "DOUBLE", "STRING", "TIMESTAMP", "DATE", "DECIMAL"}
)
_MOST_COLUMNS: Final = 64  # as QuickJson.java has it


def can_read(types: Mapping[str, SqlType]) -> bool:
    """Whether columns of these types can be read here."""
    return len(types) <= _MOST_COLUMNS and all(map(_readable, types.values()))


def _readable(type_: SqlType) -> bool:
    if type_.name == "STRUCT":
        return can_read({field.name: field.type for field in type_.fields})
    if type_.name == "ARRAY":
        return _readable(type_.elements[0])
    if type_.name == "MAP":
        return type_.elements[0].name == "STRING" and _readable(type_.elements[1])
    return type_.name in _PLAIN


class QuicklyRead:
    """What was read of a record. `inside` is the member that holds the record proper."""

    def __init__(self, inside: str | None) -> None:
        from pyspark.sql import functions as f

        self._read = f.col(QUICK) if inside is None else f.col(QUICK)[inside]
        self.sure = self._read.isNotNull()

    def value_or(self, name: str, other: Column) -> Column:
        """A column's value; another one where it is not sure."""
        from pyspark.sql import functions as f

        return f.when(self.sure, self._read.getField(name)).otherwise(other)


def with_quick(frame: DataFrame, value: Column, types: Mapping[str, SqlType], inside: str | None) -> DataFrame:
    """The frame with the column `__quick`, read from the bytes of a record, where these columns can be read so."""
    if not can_read(types):
        return frame
    columns = ", ".join(f"{_quoted(name)} {type_.spark()}" for name, type_ in types.items())
    if inside is not None:
        columns = f"{_quoted(inside)} STRUCT<{columns}>"
    jvm: Any = frame.sparkSession._jvm  # noqa: SLF001 - there is no public way to the JVM
    sql = jvm.org.apache.spark.sql
    type_ = sql.types.StructType.fromDDL(columns) if columns else sql.types.StructType()
    reader = jvm.penstock.QuickJson(type_)
    return frame.withColumn(QUICK, java_call(frame.sparkSession, reader, "read", type_, value))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
