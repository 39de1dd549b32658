"""A sink that prints: a table for each batch, or one record a line in the format json or csv."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from penstock.connectors.option_values import integer, text
from penstock.connectors.sink import record_values

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.catalog.model import SinkDefinition
    from penstock.connectors.sink import SinkContext
    from penstock.stores.topics.store import TopicStore

_ROWS: Final = 20
_WIDEST: Final = 40  # of a value that is cut
_WIDE: Final = 10_000  # of a table that nothing is cut from


class ConsoleSink:
    """Prints rows. A batch that is written again is printed again."""

    takes_frame = False
    exactly_once = False

    def prepare(self, definition: SinkDefinition, state_path: Path, topics: TopicStore) -> None:
        """Nothing is needed."""

    def forget(self, definition: SinkDefinition, state_path: Path, topics: TopicStore) -> None:
        """Nothing was made."""

    def write(self, rows: pa.Table, context: SinkContext, batch_id: int | None) -> None:
        if rows.num_rows == 0:
            return
        options = context.definition.options
        prefix = text(options.values, "prefix") or ""
        output = context.output or (sys.stderr if options.values.get("standard_error") else sys.stdout)
        limit = integer(options.values, "rows") or _ROWS
        if options.format is not None:
            _print_records(rows.slice(0, limit), context, prefix, output)
        else:
            cut = options.values.get("truncate") is not False
            _print_table(rows.slice(0, limit), _title(context, rows, batch_id), prefix, output, cut=cut)
        if rows.num_rows > limit:
            print(f"{prefix}… and {rows.num_rows - limit} more rows", file=output)
        output.flush()


def _title(context: SinkContext, rows: pa.Table, batch_id: int | None) -> str:
    counted = "1 row" if rows.num_rows == 1 else f"{rows.num_rows} rows"
    batch = "" if batch_id is None else f", batch {batch_id}"
    return f"{context.definition.name}{batch}: {counted}"


def _print_records(rows: pa.Table, context: SinkContext, prefix: str, output: TextIO) -> None:
    for record in record_values(rows, context).to_pylist():
        print(f"{prefix}{'' if record is None else record.decode('utf-8', 'replace').rstrip()}", file=output)


def _print_table(rows: pa.Table, title: str, prefix: str, output: TextIO, *, cut: bool) -> None:
    from io import StringIO

    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in rows.schema:
        table.add_column(Text(column.name), justify="right" if _is_number(column) else "left", no_wrap=True)
    columns = [_shown(column.to_pylist(), cut=cut) for column in rows.columns]
    for row in zip(*columns, strict=True):
        table.add_row(*map(Text, row))
    # Lines are never folded: a terminal does it better, and a file wants them whole.
    written = StringIO()
    Console(file=written, width=_WIDE, color_system=None).print(table)
    print(f"{prefix}{title}", file=output)
    for line in written.getvalue().splitlines():
        print(f"{prefix}{line.rstrip()}", file=output)


def _shown(values: list[object], *, cut: bool) -> list[str]:
    texts = ["NULL" if value is None else _text(value) for value in values]
    return [f"{shown[: _WIDEST - 1]}…" if cut and len(shown) > _WIDEST else shown for shown in texts]


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(" ")
    if isinstance(value, bytes):
        return value.hex()
    # A line of a table is one line, and no value of a row may steer the terminal.
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in str(value))


def _is_number(column: pa.Field) -> bool:
    import pyarrow as pa

    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(is_kind(column.type) for is_kind in kinds)
