"""Transactions of the view store's database."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from penstock.errors import InternalError
from penstock.stores.views.database import ViewDatabase


class _Interrupted:
    """A connection that begins a transaction and then says that it could not: so DuckDB does where a clock is set back."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._fails = True

    def execute(self, text: str, *given: Any) -> Any:
        found = self._connection.execute(text, *given)
        if self._fails and text.startswith("BEGIN"):
            self._fails = False
            raise duckdb.InternalException("Information loss on integer cast")
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def test_a_transaction_that_fails_to_begin_does_not_stand_in_the_way_of_the_next() -> None:
    database = ViewDatabase.open(None)
    database.writer = _Interrupted(database.writer)  # type: ignore[assignment]
    with pytest.raises(InternalError, match="information loss"), database.transaction():
        pytest.fail("it has not begun")
    with database.transaction() as writer:
        writer.execute("CREATE TABLE kept AS SELECT 1 AS n")
    with database.snapshot() as reader:
        assert reader.execute("SELECT n FROM kept").fetchall() == [(1,)]
    database.close()


def test_a_reader_that_fails_to_begin_is_not_used_again() -> None:
    database = ViewDatabase.open(None)
    with database.snapshot():
        pass
    (idle,) = database._idle
    database._idle[0] = _Interrupted(idle)  # type: ignore[call-overload]
    with pytest.raises(InternalError, match="information loss"), database.snapshot():
        pytest.fail("it has not begun")
    with database.snapshot() as reader:
        assert reader.execute("SELECT 1").fetchall() == [(1,)]
    database.close()
