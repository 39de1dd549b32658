"""Rows as tables for a terminal, and the writer of all output formats.

In a table, instants are in UTC and say no zone; a value that is too long is cut with `…`, and nothing in it can act on
the terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Final, Literal

from penstock.interfaces.render import plain
from penstock.interfaces.row_text import csv_head, csv_lines, fraction_text, json_lines, json_text
from penstock.stores.arrow_values import python_values

if TYPE_CHECKING:
    import pyarrow as pa

OutputFormat = Literal["table", "json", "csv"]
FORMATS: Final[tuple[OutputFormat, ...]] = ("table", "json", "csv")

WIDEST: Final = 60
_NARROWEST: Final = 8
_GAP: Final = " | "
_NULL: Final = "NULL"
_CUT: Final = "…"


def count_rows(number: int) -> str:
    """How many rows, in words.

    >>> count_rows(1), count_rows(120_000)
    ('1 row', '120,000 rows')
    """
    return "1 row" if number == 1 else f"{number:,} rows"


# tables


class TableLayout:
    """How wide the columns of a table are, so that batches that come one after another line up."""

    def __init__(self, table: pa.Table, *, width: int | None = None, full: bool = False) -> None:
        self._right = [_is_number(field.type) for field in table.schema]
        self._names = [plain(name) for name in table.column_names]
        natural = [
            max([_columns(name), *map(_columns, cells)]) for name, cells in zip(self._names, _cells(table), strict=True)
        ]
        self._widths = natural if full else _fitted([min(one, WIDEST) for one in natural], width)
        self._cuts = [width < wanted for width, wanted in zip(self._widths, natural, strict=True)]

    def head(self) -> list[str]:
        """The names of the columns and the line below them."""
        names = _GAP.join(
            self._fit(name, column, right=right)
            for column, (name, right) in enumerate(zip(self._names, self._right, strict=True))
        )
        return [names.rstrip(), "-+-".join("-" * one for one in self._widths)]

    def rows(self, table: pa.Table) -> list[str]:
        """The lines of the rows."""
        if table.num_columns == 0:
            return [""] * table.num_rows
        return [
            _GAP.join(self._fit(cell, column, right=self._right[column]) for column, cell in enumerate(line)).rstrip()
            for line in zip(*_cells(table), strict=True)
        ]

    def fits(self, table: pa.Table) -> bool:
        """Whether the rows of a later batch stand in these columns; a column that is cut already takes anything."""
        if [plain(name) for name in table.column_names] != self._names:
            return False
        return all(
            cuts or all(_columns(cell) <= width for cell in cells)
            for cells, width, cuts in zip(_cells(table), self._widths, self._cuts, strict=True)
        )

    def _fit(self, text: str, column: int, *, right: bool) -> str:
        width = self._widths[column]
        if _columns(text) > width:
            text = _cut(text, width)
        blanks = " " * (width - _columns(text))
        return blanks + text if right else text + blanks


def render_table(table: pa.Table, *, width: int | None = None, full: bool = False) -> str:
    """A whole table. `width` is that of the terminal, where it is known; with `full` no value is cut."""
    layout = TableLayout(table, width=width, full=full)
    return "\n".join([*layout.head(), *layout.rows(table)])


def _cells(table: pa.Table) -> list[list[str]]:
    return [_column_cells(column) for column in table.columns]


def _column_cells(column: pa.ChunkedArray) -> list[str]:
    import pyarrow as pa

    values = python_values(column)
    if pa.types.is_timestamp(column.type):
        digits = 6 if any(isinstance(value, datetime) and value.microsecond % 1_000 for value in values) else 3
        return [_instant_cell(value, digits) for value in values]
    return [plain(_cell(value)) for value in values]


def _instant_cell(value: datetime | str | None, digits: int) -> str:
    if value is None:
        return _NULL
    if isinstance(value, str):
        return value.replace("T", " ").removesuffix("Z")
    fraction = f"{value.microsecond:06d}"[:digits]
    return f"{value.year:04d}-{value:%m-%d %H:%M:%S}.{fraction}"


def _cell(value: object) -> str:
    if value is None:
        return _NULL
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, timedelta):
        return _clock(value)
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, Mapping | list | tuple):
        return json_text(value)
    return str(value)


def _clock(length: timedelta) -> str:
    """An interval as hours, minutes and seconds.

    >>> _clock(timedelta(days=1, seconds=5, milliseconds=250)), _clock(timedelta(seconds=-3))
    ('24:00:05.250', '-00:00:03')
    """
    microseconds = length // timedelta(microseconds=1)
    seconds, fraction = divmod(abs(microseconds), 1_000_000)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction_text(fraction)}"
    return f"-{text}" if microseconds < 0 else text


def _is_number(type_: pa.DataType) -> bool:
    import pyarrow as pa

    types = pa.types
    return bool(types.is_integer(type_) or types.is_floating(type_) or types.is_decimal(type_))


def _columns(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _cut(text: str, width: int) -> str:
    if text.isascii():
        return text[: width - 1] + _CUT
    from rich.cells import set_cell_size

    return set_cell_size(text, width - 1).rstrip() + _CUT


def _fitted(widths: list[int], terminal: int | None) -> list[int]:
    """The widths with the widest columns narrowed until the line fits, as far as a column stays readable."""
    widths = list(widths)
    while terminal is not None and sum(widths) + len(_GAP) * (len(widths) - 1) > terminal:
        widest = max(range(len(widths)), key=widths.__getitem__, default=None)
        if widest is None or widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1
    return widths


# one answer, or batches as they come


class RowWriter:
    """Writes the rows of one query in one format, as they come: names once, then rows.

    `write` takes lines with their ends. A table is laid out anew, with its head, when a batch has wider values.
    """

    def __init__(
        self, write: Callable[[str], None], how: OutputFormat, *, width: int | None = None, full: bool = False
    ) -> None:
        self._write = write
        self._how: OutputFormat = how
        self._width = width
        self._full = full
        self._layout: TableLayout | None = None
        self._started = False
        self.rows = 0

    def add(self, table: pa.Table) -> None:
        """Rows that follow those before; the first call writes the names, with or without rows."""
        self.rows += table.num_rows
        if self._how == "json":
            lines, end = list(json_lines(table)), "\n"
        elif self._how == "csv":
            head = [] if self._started else [csv_head(table)]
            lines, end = [*head, *csv_lines(table)], "\r\n"
        else:
            lines, end = self._table_lines(table), "\n"
        self._started = True
        if lines:
            self._write(end.join(lines) + end)

    def _table_lines(self, table: pa.Table) -> list[str]:
        lines: list[str] = []
        if self._layout is None or not self._layout.fits(table):
            lines = [""] if self._layout is not None else []
            self._layout = TableLayout(table, width=self._width, full=self._full)
            lines += self._layout.head()
        return [*lines, *self._layout.rows(table)]
