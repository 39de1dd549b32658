"""Which windows a batch closes of a view whose text is asked for each of them once: see plan.final_windows.

The watermarks between which they end are functions of the connection, made anew with each batch that closes some.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.plan.finish_plan import CLOSED_AFTER, CLOSED_UPTO
from penstock.stores.duckdb_types import quoted
from penstock.stores.views.closed_marks import ClosedMarks

if TYPE_CHECKING:
    import duckdb

    from penstock.plan.finish_plan import Closing
    from penstock.stores.views.view_table import BatchMark


class ClosingWindows(ClosedMarks):
    """The watermarks of a view, in its table w<n>."""

    def __init__(self, number: int, view: str, closing: Closing) -> None:
        super().__init__(number, view)
        self._panes = closing.panes

    def moves(self, writer: duckdb.DuckDBPyConnection, mark: BatchMark) -> bool:
        """Note the watermark of a batch; whether it closes windows. The text is then asked for these."""
        closed_us = self.closed_us(writer)
        if not self.moved(writer, closed_us, mark):
            return False
        # Rows at the old watermark are in no window that ends before this.
        if self._panes.first_end(closed_us) > mark.closing_us:
            return False
        for name, moment_us in ((CLOSED_AFTER, closed_us), (CLOSED_UPTO, mark.closing_us)):
            writer.execute(f"CREATE OR REPLACE TEMP MACRO {quoted(name)}() AS make_timestamp({moment_us})")
        return True
