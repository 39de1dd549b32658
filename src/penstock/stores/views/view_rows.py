"""The rows of another view, as the stages of a finished view read them: nothing is kept a second time.

What a batch changed in the other view stands in a temporary table of it, with the rows as they were and as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import InternalError
from penstock.stores.duckdb_types import quoted
from penstock.stores.views.finish_sources import Source
from penstock.stores.views.shown_rows import ShownRows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.plan.finish_plan import KeptRows
    from penstock.stores.views.view_table import ViewTable


class ViewRows:
    """A reading of another view."""

    def __init__(self, place: int, rows: KeptRows, parent: ViewTable) -> None:
        if rows.read is None:
            raise InternalError(f"the rows of {rows.relation} are kept")
        self._rows = rows
        self.parent = parent
        columns = {entry.name: f"r{at}" for at, entry in enumerate(rows.columns)}
        self.shown = ShownRows(rows, columns)
        self.present = self.read(parent.select(), columns)
        self.source = Source(self.shown.now(self.present), f"x{place}", columns)

    def read(self, source: str, columns: Mapping[str, str]) -> str:
        """What the plan reads of the view, over a query that gives rows of it."""
        listed = ", ".join(f"{quoted(name)} AS {own}" for name, own in columns.items())
        return f"(WITH {quoted(self._rows.relation)} AS ({source}) SELECT {listed} FROM ({self._rows.read}))"

    @property
    def tables(self) -> list[str]:
        """What is to be dropped with the view."""
        return []

    def creates(self) -> list[str]:
        """Make the tables; nothing is kept here."""
        return []

    def filled(self) -> list[str]:
        """Everything is answered anew from what is there now; nothing is kept here."""
        return []

    def changed(self) -> list[str]:
        """What the batch changed there becomes what has changed for the stages."""
        read = self.read(f"FROM {changed_table(self.parent)}", self.source.columns)
        return [f"CREATE OR REPLACE TEMP TABLE {self.source.changed} AS FROM {read}"]

    def crosses(self, before_us: int, now_us: int) -> list[str]:
        """The rows that the clock brought in or took out on its way are among what has changed."""
        return self.shown.crosses(self.source.changed, self.present, before_us, now_us)

    def unchanged(self) -> str:
        """Nothing has changed there."""
        return f"CREATE OR REPLACE TEMP TABLE {self.source.changed} AS FROM {self.source.table} LIMIT 0"


def changed_table(view: ViewTable) -> str:
    """The temporary table of what the batch that is worked on has changed in a view."""
    return f"cg{view.id}"


def note_changes(view: ViewTable, first_seq: int, changes: int) -> str:
    """Fills it from the log: the rows that changed, as they were and as they are."""
    names = [name for name, _ in view.spec.columns]
    logged = view.changes(first_seq - 1, changes)
    after = ", ".join(f"a{place} AS {quoted(name)}" for place, name in enumerate(names))
    text = f"WITH logged AS ({logged}) SELECT {after} FROM logged WHERE op <> 'delete'"
    if view.keyed:
        before = ", ".join(f"b{place}" for place in range(len(names)))
        text += f" UNION ALL SELECT {before} FROM logged WHERE op <> 'insert'"
    return f"CREATE OR REPLACE TEMP TABLE {changed_table(view)} AS {text}"
