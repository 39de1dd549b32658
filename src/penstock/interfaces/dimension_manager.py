"""`penstock.DimensionBroadcastManager`: dimension tables under the names that the source texts use.

Thin over a database: what is registered here is a dimension table of that database, for its jobs and queries. Without
one it works on a database of its own in a temporary directory, which goes with it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from penstock.errors import OptionError, ResolutionError
from penstock.interfaces.dimension_table import DimensionTable
from penstock.runtime.dimension_join import joined

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.interfaces.database import Database


@dataclass(frozen=True, slots=True)
class DimensionStatus:
    """A dimension table as it is now.

    broadcast: whether jobs send it whole to every task. copies: how many processes then hold it, so that it takes
    `memory_bytes` in all. jobs: those that join with it.
    """

    name: str
    version: int
    rows: int
    bytes: int
    broadcast: bool
    copies: int
    memory_bytes: int
    updated_at: datetime
    jobs: tuple[str, ...]


class DimensionBroadcastManager:
    """Registers, updates, measures and joins dimension tables.

    >>> import pyarrow as pa
    >>> with DimensionBroadcastManager() as manager:
    ...     version = manager.register_dimension_table("sides", pa.table({"id": [1, 2], "side": ["buy", "sell"]}))
    ...     trades = pa.table({"trade": [7, 8], "side_id": [2, 3]})
    ...     manager.broadcast_join(trades, "sides", {"side_id": "id"}, how="left").to_pylist()
    [{'trade': 7, 'side_id': 2, 'side': 'sell'}, {'trade': 8, 'side_id': 3, 'side': None}]
    """

    def __init__(self, database: Database | None = None) -> None:
        self._own: tempfile.TemporaryDirectory[str] | None = None
        if database is None:
            from penstock.interfaces.database import connect

            self._own = tempfile.TemporaryDirectory(prefix="penstock-")
            database = connect(Path(self._own.name) / "state")
        self._database = database
        self._dimensions = database._engine.dimensions  # noqa: SLF001 - a part of the interface, in a file of its own

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End a database of its own; one that was given stays open."""
        if self._own is not None:
            self._database.close()
            self._own.cleanup()

    def register_dimension_table(
        self,
        name: str,
        table: object,
        broadcast: bool | None = None,
        is_raft_replicated: bool | None = None,
    ) -> int:
        """Register a table; its version. `broadcast` and `is_raft_replicated` are two words for one thing."""
        return self._database.register_dimension(name, table, one_of(broadcast, is_raft_replicated))

    def update_dimension_table(self, name: str, table: object) -> int:
        """A new version of a table; its number. Each job sees it from its next batch on."""
        return self._database.update_dimension(name, table)

    def get_dimension_table(self, name: str) -> pa.Table:
        """The rows of the newest version, as they were given; UNKNOWN_RELATION for an unknown name."""
        return self._dimensions.given(name)

    def open_dimension_table(self, name: str, key: str) -> DimensionTable:
        """The rows of the newest version, to be looked up by a key here."""
        return DimensionTable(self.get_dimension_table(name), key)

    def broadcast_table(self, name: str) -> DimensionStatus:
        """Send the newest version to every job that joins with the table, once more; what it is now.

        Jobs take up a new version by themselves. This asks each for one more batch at once, with or without rows.
        """
        self._dimensions.send(name)
        return self.get_status(name)

    def is_suitable_for_broadcast(self, name: str, max_size: int | None = None) -> bool:
        """Whether a table has at most `max_size` bytes and the rows that `broadcast_max_rows` allows.

        Without `max_size` the setting `broadcast_max_bytes` counts.
        """
        return self._dimensions.suits(name, max_size)

    def broadcast_join(
        self,
        fact: pa.Table | pa.RecordBatch,
        dimension: str | pa.Table,
        keys: str | Sequence[str] | dict[str, str],
        how: Literal["inner", "left"] = "inner",
    ) -> pa.Table:
        """The rows of `fact` with the columns of the dimension, in the order of `fact`.

        `keys` are column names that both have, or a dict of names in `fact` to names in the dimension. With "left" rows
        without a match stay, with NULLs.
        """
        table = self.get_dimension_table(dimension) if isinstance(dimension, str) else dimension
        return joined(fact, table, keys, how)

    def list_dimension_tables(self) -> list[str]:
        """The names of all dimension tables."""
        return [row["name"] for row in self._rows() if row["kind"] == "dimension"]

    def get_status(self, name: str) -> DimensionStatus:
        """What is known of a table: version, rows, size, memory, and who joins with it."""
        known = self._dimensions.definition(name).name.text
        for row in self._rows():
            if row["name"] == known:
                return DimensionStatus(
                    name=row["name"],
                    version=row["version"],
                    rows=row["rows"],
                    bytes=row["bytes"],
                    broadcast=row["broadcast"],
                    copies=row["copies"],
                    memory_bytes=row["memory_bytes"],
                    updated_at=row["updated_at"],
                    jobs=tuple(row["jobs"].split(", ")) if row["jobs"] else (),
                )
        raise ResolutionError("UNKNOWN_RELATION", f'there is no dimension table "{name}"')

    def get_stats(self) -> dict[str, int]:
        """How many tables there are, and how much of everything in all."""
        rows = [row for row in self._rows() if row["kind"] == "dimension"]
        return {
            "tables": len(rows),
            "broadcast_tables": sum(row["broadcast"] for row in rows),
            "rows": sum(row["rows"] for row in rows),
            "bytes": sum(row["bytes"] for row in rows),
            "memory_bytes": sum(row["memory_bytes"] for row in rows),
        }

    def _rows(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._database.sql("SELECT * FROM penstock.dimensions").arrow().to_pylist()
        return found


def one_of(broadcast: bool | None, is_raft_replicated: bool | None) -> bool:
    """The two spellings of one argument, true where neither is given; CONFLICTING_OPTIONS where they differ."""
    if broadcast is not None and is_raft_replicated is not None and broadcast != is_raft_replicated:
        raise OptionError(
            "CONFLICTING_OPTIONS",
            "broadcast and is_raft_replicated mean the same and have different values",
            hint="give one of the two",
        )
    given = broadcast if broadcast is not None else is_raft_replicated
    return True if given is None else given
