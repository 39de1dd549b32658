"""Views over streams held against DuckDB over the same rows, after every batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import duckdb

import penstock
from tests.engine.answers import Rows, at, in_order, read

# Of each view its query, and DuckDB's where that is written otherwise.
Queries = Mapping[str, str | tuple[str, str]]


def hold_beside(
    db: penstock.Database,
    oracle: duckdb.DuckDBPyConnection,
    queries: Queries,
    advance: Callable[[penstock.Database, int], None],
    *,
    reopened: Callable[[], penstock.Database] | None = None,
) -> None:
    """Makes the views, and compares them after each of three steps; `reopened` opens what is closed in between."""
    for name, query in queries.items():
        db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query if isinstance(query, str) else query[0]}")
    had_rows = set()
    for step in range(3):
        if step and reopened is not None:
            db.close()
            db = reopened()
        advance(db, step)
        db.settle(180)
        for name, query in queries.items():
            answer = answer_of(oracle, query if isinstance(query, str) else query[1])
            found = read(db, name)
            assert found == answer, f"{name} after step {step}: {found} instead of {answer}"
            had_rows |= {name} if answer else set()
    assert had_rows == set(queries), "an answer without rows says nothing"


def add_row(
    db: penstock.Database,
    oracle: duckdb.DuckDBPyConnection,
    name: str,
    columns: Sequence[str],
    row: Sequence[Any],
) -> None:
    """The same row for a stream and for the table beside it."""
    db.append(name, [dict(zip(columns, row, strict=True))])
    plain = [value.replace(tzinfo=None) if isinstance(value, datetime) else value for value in row]
    oracle.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", plain)


def answer_of(oracle: duckdb.DuckDBPyConnection, query: str) -> Rows:
    """What DuckDB answers over the same rows."""
    zone = at(0).tzinfo
    return in_order(
        tuple(value.replace(tzinfo=zone) if isinstance(value, datetime) else value for value in row)
        for row in oracle.execute(query).fetchall()
    )
