"""The rows a program hands over, as an Arrow table of the declared columns.

Columns of Arrow are cast as a whole. Values of Python are converted one by one where their types do not settle the
matter at a glance; where a value does not fit, the message names the column, the row (counted from 1) and the value.
"""

from __future__ import annotations

import datetime as dt
import decimal
import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from penstock.errors import RuntimeFailure
from penstock.stores.arrow_types import arrow_type
from penstock.stores.topics.arrow_casts import cast_column
from penstock.stores.topics.row_values import RANGES, Unfit, converter, plain_value, within
from penstock.types import SqlType

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN: Final = 40

# Types of Python that Arrow itself turns into the column, by the rules of `row_values`.
_TAKEN: Final[dict[str, frozenset[type]]] = {
    "STRING": frozenset({str}),
    "BOOLEAN": frozenset({bool}),
    "DOUBLE": frozenset({float}),
    "BINARY": frozenset({bytes}),
    "DATE": frozenset({dt.date}),
    "DECIMAL": frozenset({int, decimal.Decimal}),
    **dict.fromkeys(RANGES, frozenset({int})),
}


class DeclaredColumn(Protocol):
    """A column as the catalog declares it."""

    @property
    def name(self) -> str: ...

    @property
    def type(self) -> SqlType | None: ...


def rows_to_table(data: Any, columns: Sequence[DeclaredColumn]) -> pa.Table:
    """The rows as a table of the columns, in their order; INVALID_ROWS where they do not fit.

    `data` is a list of dicts, a dict of lists, or a table or batch of Arrow, pandas or Polars. Columns that it does not
    have are NULL. NULL in a NOT NULL column passes: each job judges it.
    """
    import pyarrow as pa

    given, count = given_columns(data)
    matched = _matched(given, [column.name for column in columns])
    arrays, fields = [], []
    for column in columns:
        assert column.type is not None, "a column that comes with the data has a type"
        values = matched.get(column.name)
        fields.append(pa.field(column.name, arrow_type(column.type)))
        arrays.append(pa.nulls(count, fields[-1].type) if values is None else _column(column.name, column.type, values))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def given_columns(data: Any) -> tuple[dict[str, Any], int]:
    """The columns of the data by name, and the number of rows."""
    import pyarrow as pa

    if isinstance(data, pa.Table | pa.RecordBatch):
        return _arrow_columns(data)
    if isinstance(data, Mapping):
        return _mapping_columns(data)
    if type(data).__module__.startswith("pandas") and hasattr(data, "columns"):
        return _pandas_columns(data)
    if hasattr(data, "__arrow_c_stream__"):
        return _arrow_columns(pa.table(data))
    if isinstance(data, str | bytes) or not isinstance(data, Iterable):
        raise _invalid(f"{_short(data)} is no rows", "give a list of dicts, a dict of lists, or a table of Arrow")
    return _row_columns(list(data))


def _arrow_columns(table: pa.Table | pa.RecordBatch) -> tuple[dict[str, Any], int]:
    names = table.schema.names
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise _invalid(f"column {twice[0]} is given twice", "give each column once")
    return dict(zip(names, table.columns, strict=True)), table.num_rows


def _pandas_columns(frame: Any) -> tuple[dict[str, Any], int]:
    import pyarrow as pa

    found: dict[str, Any] = {}
    for name in frame.columns:
        series = frame[name]
        if series.dtype == object:
            # NaN stands for a missing value in a column of objects too.
            missing = series.isna()
            found[str(name)] = [None if gone else value for value, gone in zip(series, missing, strict=True)]
        else:
            made = pa.array(series, from_pandas=True)
            found[str(name)] = made if isinstance(made, pa.ChunkedArray) else pa.chunked_array([made])
    return found, len(frame)


def _mapping_columns(data: Mapping[Any, Any]) -> tuple[dict[str, Any], int]:
    import pyarrow as pa

    found: dict[str, Any] = {}
    for name, values in data.items():
        if isinstance(values, pa.Array | pa.ChunkedArray | list | tuple):
            found[str(name)] = values
        elif isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
            raise _invalid(
                f"column {name!s} is {_short(values)}, not a list of values",
                "give a list of values for each column, or a list of rows",
            )
        else:
            found[str(name)] = list(values)
    lengths = {name: len(values) for name, values in found.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise _invalid(f"the columns have different numbers of values: {told}", "give as many values for each column")
    return found, next(iter(lengths.values()), 0)


def _row_columns(rows: list[Any]) -> tuple[dict[str, Any], int]:
    for place, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise _invalid(f"row {place + 1} is {_short(row)}, not a dict", "give a dict of column names to values")
    # A dict, not a set: the first unknown column is the one that is named.
    names = dict.fromkeys(name for row in rows for name in row)
    return {str(name): [row.get(name) for row in rows] for name in names}, len(rows)


def _matched(given: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The given columns by declared name; upper and lower case count only where they tell two columns apart."""
    folded: dict[str, list[str]] = {}
    for name in names:
        folded.setdefault(name.lower(), []).append(name)
    found: dict[str, Any] = {}
    for name, values in given.items():
        alike = [name] if name in names else folded.get(name.lower(), [])
        if len(alike) != 1:
            near = difflib.get_close_matches(name.lower(), folded, n=1)
            hint = f"did you mean {folded[near[0]][0]}?" if near else f"columns: {', '.join(names) or 'none'}"
            raise _invalid(f"there is no column {name[:_SHOWN]}", hint)
        if alike[0] in found:
            raise _invalid(f"column {alike[0]} is given twice", "give each column once")
        found[alike[0]] = values
    return found


def _column(name: str, sql_type: SqlType, values: Any) -> pa.Array | pa.ChunkedArray:
    import pyarrow as pa

    if isinstance(values, pa.Array):
        values = pa.chunked_array([values])
    if isinstance(values, pa.ChunkedArray):
        made = cast_column(values, sql_type)
        return made if made is not None else _converted(name, sql_type, _listed(name, values))
    kinds = set(map(type, values)) - {type(None)}
    if kinds <= _TAKEN.get(sql_type.name, frozenset()):
        made = _taken(values, sql_type)
        if made is not None:
            return made
    return _converted(name, sql_type, values)


def _listed(name: str, values: pa.ChunkedArray) -> list[Any]:
    try:
        return list(values.to_pylist())
    except (OverflowError, ValueError):  # of instants, which Arrow keeps far beyond the year 9999
        message = f"column {name} has a {values.type} that no date can be given for"
        raise _invalid(message, "leave such rows out") from None


def _taken(values: Sequence[Any], sql_type: SqlType) -> pa.Array | None:
    """The column as Arrow makes it; None where a value has to be looked for that does not fit."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        made = pa.array(values, arrow_type(sql_type))
    except (pa.ArrowException, ValueError, OverflowError, TypeError):
        return None
    allowed = RANGES.get(sql_type.name)
    if allowed is not None:
        bounds = pc.min_max(made).as_py()
        if not within(bounds["min"], bounds["max"], allowed):
            return None
    return made


def _converted(name: str, sql_type: SqlType, values: Sequence[Any]) -> pa.Array:
    import pyarrow as pa

    convert = converter(sql_type)
    made: list[Any] = []
    for place, given in enumerate(values):
        value = plain_value(given)
        try:
            made.append(None if value is None else convert(value))
        except Unfit as error:
            raise _invalid(
                f"column {name}, row {place + 1}: {_short(given)} {error}", f"the column is {sql_type}"
            ) from None
    return pa.array(made, arrow_type(sql_type))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _invalid(message: str, hint: str) -> RuntimeFailure:
    return RuntimeFailure("INVALID_ROWS", message, hint=hint)
