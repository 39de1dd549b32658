"""The panes that a view keeps: of its one GROUP BY, or of each side of a join of windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import InternalError
from penstock.plan.finish_plan import SIDE
from penstock.plan.joined_pane_plan import batch_column
from penstock.plan.pane_plan import PANE
from penstock.stores.duckdb_types import quoted
from penstock.stores.views.database import run_with
from penstock.stores.views.pane_text import PaneText
from penstock.stores.views.view_table import BATCH, picked

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from penstock.stores.views.model import ViewSpec


class KeptPanes:
    """A table of panes as batches gave them. `side`: which rows of a batch are meant, where there are several sides."""

    def __init__(self, view: str, table: str, text: PaneText, side: int | None = None) -> None:
        self.table = table
        self.text = text
        self._view = view
        self._side = side
        self._given = [name if side is None or name == PANE else batch_column(side, name) for name in text.given]

    def create(self, writer: duckdb.DuckDBPyConnection) -> None:
        columns = "".join(f", {name} {kind}" for name, kind in self.text.stored)
        writer.execute(f"CREATE TABLE {self.table} (batch BIGINT{columns})")

    def drop(self, writer: duckdb.DuckDBPyConnection) -> None:
        writer.execute(f"DROP TABLE {self.table}")

    def add(self, writer: duckdb.DuckDBPyConnection, rows: pa.Table, batch: int, closed_us: int) -> None:
        """Keep the partial results of a batch that count in windows that are open."""
        import pyarrow.compute as pc

        if self._side is not None:
            rows = rows.filter(pc.equal(rows.column(SIDE), self._side))
        if not rows.num_rows:
            return
        given = picked(rows, self._view, self._given, [name for name, _ in self.text.stored])
        text = (
            f"INSERT INTO {self.table} SELECT {batch}, {self.text.staged} FROM {quoted(BATCH)} "
            f"WHERE {self.text.last_end} > {closed_us}"
        )
        run_with(writer, text, BATCH, given)

    def tidy(self, writer: duckdb.DuckDBPyConnection, floor: int, closed_us: int) -> None:
        """Let go of panes that no window needs, and merge those of old batches; nobody goes back behind `floor`."""
        writer.execute(f"CREATE OR REPLACE TEMP TABLE nw AS {self.text.tidied(floor, closed_us)}")
        writer.execute(f"INSERT INTO {self.table} SELECT {floor}, * FROM nw")

    def undo(self, writer: duckdb.DuckDBPyConnection, batch: int) -> None:
        writer.execute(f"DELETE FROM {self.table} WHERE batch > {batch}")


def panes_of(number: int, spec: ViewSpec) -> list[KeptPanes]:
    """The panes of a view: p<n>, or p<n>_0, p<n>_1, … for the sides of a join."""
    if spec.panes is None or spec.merge is None:
        raise InternalError(f"view {spec.name} is not kept as panes")
    if spec.joined is None:
        table, types = f"store.p{number}", [kind for _, kind in spec.columns]
        return [KeptPanes(spec.name, table, PaneText(spec.name, table, spec.panes, spec.merge, types))]
    found: list[KeptPanes] = []
    for place, side in enumerate(spec.joined.sides):
        table, types = f"store.p{number}_{place}", [kind for _, kind in side.columns]
        text = PaneText(spec.name, table, side.panes, side.merge, types)
        found.append(KeptPanes(spec.name, table, text, place))
    return found
