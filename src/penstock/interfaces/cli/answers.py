"""Answers on the standard output: each in its format, apart from the one before."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

from penstock.interfaces.cli.output import print_text, write_rows
from penstock.interfaces.table_output import OutputFormat, RowWriter, count_rows

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.interfaces.result import Result
    from penstock.sql.statements import Statement


class Answers:
    """Prints the answers of one script. `full` prints long values whole."""

    def __init__(self, how: OutputFormat, *, full: bool = False) -> None:
        self.how: OutputFormat = how
        self._full = full
        self._printed = False

    def show(self, statement: Statement, result: Result) -> None:
        """A whole answer. What is a text, such as a plan, is printed as one where people read it."""
        from penstock.interfaces.catalog_answers import text_answer

        self.separate()
        text = text_answer(statement, result.arrow()) if self.how == "table" else None
        if text is not None:
            print_text(text)
            return
        writer = self.writer()
        writer.add(result.arrow())
        if self.how == "table":
            write_rows(f"({count_rows(len(result))}{_as_of(result)})\n")

    def writer(self) -> RowWriter:
        """For rows that come one batch after another."""
        width = shutil.get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else None
        return RowWriter(write_rows, self.how, width=width, full=self._full)

    def separate(self, title: str | None = None) -> None:
        """An empty line before every answer but the first, where a format has room for it; a title for tables."""
        if self._printed and self.how != "json":
            write_rows("\n" if self.how == "table" else "\r\n")
        if title is not None and self.how == "table":
            write_rows(f"{title}\n")
        self._printed = True


def _as_of(result: Result) -> str:
    if not result.as_of:
        return ""
    batches = ", ".join(f"{view} batch {batch}" for view, batch in result.as_of.items())
    time = f", watermark {result.watermark:%Y-%m-%d %H:%M:%S}" if result.watermark is not None else ""
    return f"; as of {batches}{time}"


def new_rows(before: pa.Table | None, after: pa.Table) -> pa.Table:
    """The rows of an answer that an earlier one did not have; a row that is there twice counts twice."""
    if before is None:
        return after
    from collections import Counter

    import pyarrow as pa

    had = Counter(_fingerprints(before))
    fresh = []
    for row in _fingerprints(after):
        known = had[row] > 0
        had[row] -= known
        fresh.append(not known)
    return after.filter(pa.array(fresh, pa.bool_()))


def _fingerprints(table: pa.Table) -> list[str]:
    from penstock.interfaces.row_text import json_lines

    return list(json_lines(table))
