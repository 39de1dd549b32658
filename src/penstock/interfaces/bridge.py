"""The batch bridge of the guides: tables in, one query, the whole answer out."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

from penstock.interfaces.database import Database
from penstock.interfaces.owned_database import OwnedDatabase

if TYPE_CHECKING:
    import pyarrow as pa


class SQLBridge:
    """Batch SQL over tables that are registered: the whole answer at once, as an Arrow table."""

    def __init__(self) -> None:
        self._owner = OwnedDatabase(None, {})

    @property
    def database(self) -> Database:
        """The database underneath."""
        return self._owner.get()

    def register_table(self, name: str, table: object) -> None:
        """Make an Arrow table, or whatever `Database.register_table` takes, known under a name."""
        self.database.register_table(name, table)

    def execute_sql(self, sql: str) -> pa.Table:
        """The answer to one query; over a stream it is UNBOUNDED_QUERY."""
        return self.database.sql(sql).arrow()

    def close(self) -> None:
        """Let go of the tables."""
        self._owner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def create_penstock_sql_bridge() -> SQLBridge:
    """A bridge for batch SQL: `register_table`, `execute_sql`."""
    return SQLBridge()


create_sabot_sql_bridge = create_penstock_sql_bridge
