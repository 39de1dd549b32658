"""A view of sessions that show each change: a session that touches others takes their place.

A row is left out where the watermark has passed its own end, the gap after its time; and a session that the watermark
has passed takes in no more rows. These are Spark's rules, so a session ends up as it would be emitted once.
"""

from __future__ import annotations

from penstock.stores.views.model import ViewSpec
from penstock.stores.views.session_layout import session_layout
from penstock.stores.views.windows_view import WindowsView


class SessionsView(WindowsView):
    """The tables of a view of sessions, as those of other windows."""

    def __init__(self, number: int, spec: ViewSpec) -> None:
        layout = session_layout(spec)
        super().__init__(number, spec, layout)
        touches = f"{layout.same_keys()}st.s <= v.e AND v.s <= st.e"
        taken = f"DELETE FROM {self._table} AS v WHERE {self._open} AND EXISTS (FROM st WHERE {touches}) RETURNING *"
        self._texts["old"] = f"CREATE OR REPLACE TEMP TABLE od AS WITH o AS ({taken}) FROM o"
        self._texts["insert"] += " WHERE e IS NOT NULL"  # what went into another session has no end of its own
