"""What the store asks of the tables behind a view, whichever kind it is."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

from penstock.errors import InternalError
from penstock.frozen import frozen
from penstock.stores.duckdb_types import to_duckdb
from penstock.stores.views.model import SeenVersion, ViewSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb
    import pyarrow as pa

# The name under which the Arrow table of a batch stands while the statements of a commit run.
BATCH = "__batch"
# As many batches as Spark's checkpoint can be taken back to (spark.sql.streaming.minBatchesToRetain).
KEPT_BATCHES: Final = 100
TIDY_EVERY: Final = 20


@frozen
class BatchMark:
    """What every row of a batch is marked with."""

    batch: int
    at_us: int
    watermark_us: int | None
    first_seq: int
    closing_us: int = 0
    clock_us: int = 0
    versions: tuple[SeenVersion, ...] = ()  # of dimensions; none where they stay what they are

    @property
    def watermark_text(self) -> str:
        return "NULL" if self.watermark_us is None else str(self.watermark_us)


class ViewTable(Protocol):
    """The tables of one view. All statements run inside a transaction of the caller. `parents` are views that it is
    answered from."""

    id: int
    spec: ViewSpec
    keyed: bool
    parents: tuple[ViewTable, ...]

    def create(self, writer: duckdb.DuckDBPyConnection) -> None:
        """Make the tables."""

    def drop(self, writer: duckdb.DuckDBPyConnection) -> None:
        """Remove the tables."""

    def apply(self, writer: duckdb.DuckDBPyConnection, rows: pa.Table, mark: BatchMark) -> int:
        """Bring a batch into the view; how many changes it made."""

    def undo(self, writer: duckdb.DuckDBPyConnection, batch: int) -> None:
        """Put the view and its changes back to what they were after a batch."""

    def select(self) -> str:
        """The visible rows and columns, as a query."""

    def whole(self) -> str:
        """The same for who begins to follow the view: in the order of keys, or as rows came."""

    def changes(self, since: int, limit: int) -> str:
        """The changes after a sequence number, as a query: seq, op, batch, wm, done, then the columns before and after.

        The columns are named b0, b1, … and a0, a1, … by their place in the view.
        """

    def log(self) -> str:
        """The table that holds the changes, with the columns seq, batch and done, the time of the commit."""


NO_VIEWS: Final[Mapping[str, ViewTable]] = MappingProxyType({})


def picked(rows: pa.Table, view: str, names: Sequence[str], stored: Sequence[str]) -> pa.Table:
    """The named columns of a batch under the names they are stored by, in DuckDB's types."""
    missing = [name for name in names if name not in rows.column_names]
    if missing:
        raise InternalError(f"a batch of view {view} has no column {missing[0]}")
    return to_duckdb(rows.select(list(names)).rename_columns(list(stored)))
