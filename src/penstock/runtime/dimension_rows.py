"""The rows that a program hands over as a dimension: what columns they have, and whether their keys are unique."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.catalog.model import ColumnDefinition
from penstock.errors import RuntimeFailure
from penstock.stores.arrow_types import sql_type_of_arrow
from penstock.stores.topics.rows import given_columns, rows_to_table

if TYPE_CHECKING:
    import pyarrow as pa


def given_table(data: Any) -> pa.Table:
    """The data as an Arrow table in types of its own; INVALID_ROWS where it is no table."""
    import pyarrow as pa

    if isinstance(data, pa.Table):
        return data
    columns, count = given_columns(data)
    if not columns:
        raise RuntimeFailure(
            "INVALID_ROWS", "there are no rows to take the columns from", hint="give an Arrow table with a schema"
        )
    arrays: list[Any] = []
    for name, values in columns.items():
        try:
            arrays.append(values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values))
        except (pa.ArrowException, TypeError, OverflowError) as error:
            first = str(error).splitlines()[0]
            raise RuntimeFailure(
                "INVALID_ROWS", f"column {name} has values of different types: {first}", hint="give an Arrow table"
            ) from None
    assert all(len(array) == count for array in arrays)
    return pa.table(dict(zip(columns, arrays, strict=True)))


def columns_of_table(table: pa.Table) -> tuple[ColumnDefinition, ...]:
    """The columns of a table as the catalog keeps them."""
    found: list[ColumnDefinition] = []
    for field in table.schema:
        sql_type = sql_type_of_arrow(field.type)
        if sql_type is None:
            raise RuntimeFailure(
                "INVALID_ROWS",
                f"column {field.name} has the Arrow type {field.type}, which has no SQL type",
                hint="cast the column first",
            )
        found.append(ColumnDefinition(field.name, sql_type))
    return tuple(found)


def fitted_table(data: Any, columns: Sequence[ColumnDefinition]) -> pa.Table:
    """The data in declared columns; unlike rows that are appended, those of a dimension have all of them."""
    given, count = given_columns(data)
    folded = {name.lower() for name in given}
    for column in columns:
        if count and column.name.lower() not in folded:
            raise RuntimeFailure(
                "INVALID_ROWS",
                f"column {column.name} is not given",
                hint="a new version has all columns: " + ", ".join(column.name for column in columns),
            )
    return rows_to_table(given, columns)


def repeated_keys(table: pa.Table, key: Sequence[str]) -> int:
    """How many keys stand in more than one row; keys with a NULL match nothing and do not count."""
    import pyarrow.compute as pc

    if not key or table.num_rows < 2:
        return 0
    found = table.select(list(key)).drop_null()
    groups = found.group_by(list(key)).aggregate([([], "count_all")])
    if groups.num_rows == found.num_rows:
        return 0
    return int(pc.sum(pc.greater(groups.column("count_all"), 1).cast("int64")).as_py() or 0)


def refuse_repeated(name: str, table: pa.Table, key: Sequence[str]) -> None:
    """DUPLICATE_KEYS where two rows have the same values in the columns of a declared key."""
    count = repeated_keys(table, key)
    if count:
        raise RuntimeFailure(
            "DUPLICATE_KEYS",
            f"dimension {name}: {count} {'keys stand' if count > 1 else 'key stands'} in more than one row "
            f"({', '.join(key)})",
            hint="keep one row for each key, or declare no key",
        )
