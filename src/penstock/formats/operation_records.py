"""Rows in JSON that say what they do in their field `_op`, as sinks of changes write them where no header and no
tombstone can: `{"_op": "delete", "k": 1, "n": 2}` takes the row back, any other one brings it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.catalog.model import ColumnDefinition
from penstock.formats.json_records import decode_json
from penstock.plan.changed_rows import DELETED
from penstock.types import STRING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from penstock.catalog.model import SourceDefinition

_OPERATION: Final = "_op"
_DELETE: Final = "delete"
_BRINGS: Final = {"retract": ("insert",), "upsert": ("insert", "update", "upsert")}
_WITH_HEADERS: Final = frozenset({"topic", "memory"})
_WITH_TOMBSTONES: Final = frozenset({"kafka", "upsert-kafka"})


def names_operations(definition: SourceDefinition) -> bool:
    """Whether nothing but a field of the record itself can say that a row is taken back."""
    options = definition.options
    if definition.mode == "append" or options.format != "json" or options.connector in _WITH_HEADERS:
        return False
    if definition.mode == "retract":
        return True
    return options.connector not in _WITH_TOMBSTONES and options.values.get("json.fail_on_missing_field") is not True


def decode_operations(frame: DataFrame, definition: SourceDefinition, wanted: Sequence[ColumnDefinition]) -> DataFrame:
    """The frame with the wanted columns, `__deleted` and `__error`; a record that says nothing brings a row."""
    from pyspark.sql import functions as f

    more = [] if any(one.name == _OPERATION for one in wanted) else [ColumnDefinition(_OPERATION, STRING)]
    decoded = decode_json(frame, definition, [*wanted, *more])
    operation = f.col(_OPERATION).cast("string")
    known = (_DELETE, *_BRINGS[definition.mode])
    error = f.when(~operation.isin(*known), f.concat(f.lit("no operation of such rows: "), operation))
    gone = f.coalesce(operation == _DELETE, f.lit(False))
    decoded = decoded.withColumns({DELETED: gone, "__error": f.coalesce(f.col("__error"), error)})
    return decoded.drop(*[column.name for column in more])
