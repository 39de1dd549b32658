"""A view of sessions that are shown once, when they have ended.

Until then a session is kept as one that shows each change is, and hidden. When the watermark, or the clock, has passed
its end, it takes in no more rows and is added to the view.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.stores.views.database import one_row
from penstock.stores.views.session_layout import WANTED
from penstock.stores.views.sessions_view import SessionsView

if TYPE_CHECKING:
    import duckdb

    from penstock.stores.views.view_table import BatchMark


class FinalSessionsView(SessionsView):
    """The tables of a view of sessions; a row is shown from the batch on that closes it."""

    def _close(self, writer: duckdb.DuckDBPyConnection, closed_us: int, mark: BatchMark, before: int) -> int:
        """Show the sessions that end after one watermark and not after the next, behind `before` other changes."""
        kept = self._layout
        keys = [name for name, _ in kept.keys]
        ends = f"e > make_timestamp({closed_us}) AND e <= make_timestamp({mark.closing_us})"
        gone = f"DELETE FROM {self._table} WHERE {ends} AND {WANTED} AND NOT shown RETURNING *"
        order = ", ".join(("e", *keys))
        writer.execute(f"CREATE OR REPLACE TEMP TABLE od AS WITH o AS ({gone}) FROM o ORDER BY {order}")
        stored = "".join(f"{name}, " for name, _ in kept.stored)
        writer.execute(f"INSERT INTO {self._table} SELECT {stored}true FROM od")
        logged = ", ".join(("shown", *keys, *(name for name, _ in kept.values), *kept.visible_values))
        writer.execute(
            f"INSERT INTO {self._log} SELECT {mark.first_seq + before - 1} + row_number() OVER (), 'insert', "
            f"{mark.batch}, {mark.at_us}, {mark.watermark_text}, {logged} FROM od"
        )
        counted = one_row(writer, "SELECT count(*) FROM od")
        assert counted is not None
        return int(counted[0])
