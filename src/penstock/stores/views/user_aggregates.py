"""Aggregates of the user's in the view store: DuckDB calls them back to merge partial results and to finish them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from penstock.plan.merge_plan import FINISH, MERGE
from penstock.stores.duckdb_types import duckdb_type

if TYPE_CHECKING:
    import duckdb

    from penstock.types import SqlType


class AggregateParts(Protocol):
    """What is called: partial results are texts."""

    def merge(self, left: str, right: str) -> str: ...

    def finish(self, partial: str) -> Any: ...


def add_aggregate(writer: duckdb.DuckDBPyConnection, name: str, parts: AggregateParts, returns: SqlType) -> None:
    """Make the parts known under the names that texts of merge plans have; those of an older one go."""
    import duckdb
    from duckdb.func import FunctionNullHandling

    text = duckdb.type("VARCHAR")
    for known in (MERGE + name, FINISH + name):
        with suppress(duckdb.InvalidInputException):  # there is none yet
            writer.remove_function(known)
    writer.create_function(MERGE + name, parts.merge, [text, text], text)

    def finish(partial: str | None) -> Any:
        return None if partial is None else parts.finish(partial)

    # Special: without it no result could be NULL.
    shown = duckdb.type(duckdb_type(returns))
    writer.create_function(FINISH + name, finish, [text], shown, null_handling=FunctionNullHandling.SPECIAL)
