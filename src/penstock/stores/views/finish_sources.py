"""What the stages of a finished view read: kept rows, and the answers of other stages.

Every source is a table and, while a batch is worked on, a second one beside it, `changed`: the rows that the batch
brought into the first and those that it took out of it. A stage asks it for the keys that the batch touched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import InternalError
from penstock.frozen import frozen
from penstock.stores.duckdb_types import duckdb_type
from penstock.stores.views.shown_rows import ShownRows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.plan.finish_plan import KeptRows


@frozen
class Source:
    """A table that a stage reads; `columns` are the names in the plan, with those in the table."""

    table: str
    changed: str
    columns: Mapping[str, str]


class KeptTable:
    """The kept rows of one relation: a batch brings rows, and going back takes them away again. See changed_table for
    rows that replace each other."""

    def __init__(self, table: str, place: int, rows: KeptRows) -> None:
        self._place = place
        self._table = table
        columns = {entry.name: f"r{at}" for at, entry in enumerate(rows.columns)}
        self.shown = ShownRows(rows, columns)
        self.source = Source(self.shown.now(table), f"x{place}", columns)
        self._ends = rows.ends
        self._types: list[str] = []
        for entry in rows.columns:
            if entry.type is None:
                raise InternalError(f"the type of {entry.name} of the rows of {rows.relation} is not known")
            self._types.append(duckdb_type(entry.type))

    @property
    def given(self) -> dict[str, str]:
        """The columns to take from a batch, with the names that they get in `bt`."""
        return {name: f"s{self._place}_{own}" for name, own in self.source.columns.items()}

    @property
    def tables(self) -> list[str]:
        """What is to be dropped with the view."""
        return [self._table]

    @property
    def seen(self) -> str:
        """A relation with a row where any row has come."""
        return self._table

    @property
    def present(self) -> str:
        """The rows that are there, shown or not."""
        return self._table

    def creates(self) -> list[str]:
        """Make the tables."""
        own = self.source.columns.values()
        listed = "".join(f", {name} {kind}" for name, kind in zip(own, self._types, strict=True))
        return [f"CREATE TABLE {self._table} (batch BIGINT{listed})"]

    def tidies(self, floor: int, clock_us: int) -> list[str]:
        """Let go of what only going back behind a batch would need: rows that the clock, as it was then, had taken out
        of what is shown."""
        return [f"DELETE FROM {self._table} WHERE {over}" for over in self.shown.over(clock_us)]

    def closes(self, closed_us: int) -> list[str]:
        """Let go of rows whose windows have all closed at a watermark behind which nobody goes back."""
        if self._ends is None:
            return []
        panes = self._ends.panes
        length = panes.size_us if panes.cumulates else panes.slide_us
        time = f"epoch_us({self.source.columns[self._ends.column]})"
        last = f"{time} - ((({time} - {panes.offset_us}) % {length}) + {length}) % {length} + {panes.size_us}"
        return [f"DELETE FROM {self._table} WHERE coalesce({last} <= {closed_us}, true)"]

    def adds(self, batch: int) -> list[str]:
        """The rows of a batch, which stands in `bt`, become kept ones."""
        own = self.source.columns.values()
        staged = "".join(f", s{self._place}_{name}" for name in own)
        # What comes when its time is over is never shown, however far one goes back.
        rows = f"SELECT {batch}{staged} FROM bt WHERE side = {self._place}{self.shown.still(f's{self._place}_')}"
        came = f"INSERT INTO {self._table} {rows}"
        returned = f"WITH i AS ({came} RETURNING {', '.join(own)}) FROM i"
        return [f"CREATE OR REPLACE TEMP TABLE {self.source.changed} AS {returned}"]

    def arrived(self, batch: int) -> str:
        """The rows that a batch has brought: what has changed may be more than these."""
        return f"(FROM {self._table} WHERE batch = {batch})"

    def expires(self, batch: int) -> list[str]:
        """The rows of batches up to one are kept no longer; they are among what has changed."""
        gone = f"DELETE FROM {self._table} WHERE batch <= {batch} RETURNING *"
        return [
            f"CREATE OR REPLACE TEMP TABLE ex AS WITH o AS ({gone}) SELECT * EXCLUDE (batch) FROM o",
            f"INSERT INTO {self.source.changed} FROM ex",
        ]

    def crosses(self, before_us: int, now_us: int) -> list[str]:
        """The rows that the clock brought in or took out on its way are among what has changed."""
        return self.shown.crosses(self.source.changed, self.present, before_us, now_us)

    def unchanged(self) -> str:
        """No batch of its own is worked on."""
        empty = f"SELECT {', '.join(self.source.columns.values())} FROM {self.source.table} LIMIT 0"
        return f"CREATE OR REPLACE TEMP TABLE {self.source.changed} AS {empty}"

    def forgets(self, batch: int) -> list[str]:
        """The rows that came after a batch are kept no longer."""
        gone = f"DELETE FROM {self._table} WHERE batch > {batch} RETURNING *"
        return [
            f"CREATE OR REPLACE TEMP TABLE {self.source.changed} AS WITH o AS ({gone}) SELECT * EXCLUDE (batch) FROM o"
        ]
