"""Rows are picked by the touched keys alike, whichever way DuckDB is asked for them."""

from __future__ import annotations

from itertools import product
from typing import Any

import duckdb
import pytest

from penstock.stores.views.touched_keys import ALL_KEYS, Keys, counting

# Of a type: values that are easily mixed up.
VALUES: dict[str, list[Any]] = {
    "BIGINT": [None, 0, 1, -(2**63), 2**63 - 1],
    "DOUBLE": [None, 0.0, -0.0, float("nan"), float("inf"), 1.5],
    "VARCHAR": [None, "", "a", "A", "ä"],
    "BIGINT[]": [None, [], [None], [1], [1, None]],
    "STRUCT(a BIGINT, b VARCHAR)": [None, {"a": None, "b": None}, {"a": 1, "b": None}, {"a": 1, "b": "x"}],
}
Key = tuple[Any, ...]


def database(kind: str, keys: list[Key]) -> duckdb.DuckDBPyConnection:
    """Rows of every pair of values, numbered, and these touched keys."""
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE kept (place BIGINT, a {kind}, b {kind})")
    connection.executemany(
        "INSERT INTO kept VALUES (?, ?, ?)",
        [[place, *pair] for place, pair in enumerate(product(VALUES[kind], repeat=2))],
    )
    columns = ", ".join(f"t{place} {kind}" for place, _ in enumerate(keys[0]))
    connection.execute(f"CREATE TEMP TABLE given ({columns})")
    connection.executemany(f"INSERT INTO given VALUES ({', '.join('?' for _ in keys[0])})", [list(key) for key in keys])
    connection.execute("CREATE TEMP TABLE ck AS SELECT DISTINCT * FROM given")
    return connection


def counted(connection: duckdb.DuckDBPyConnection, columns: int) -> Keys:
    row = connection.execute(counting(columns)).fetchone()
    assert row is not None
    return Keys.counted(row)


def picked(connection: duckdb.DuckDBPyConnection, keys: Keys, columns: list[str]) -> list[int]:
    """The places of the rows that are read, which are those that are deleted."""
    read = connection.execute(f"SELECT place FROM {keys.read('kept', columns)} ORDER BY place").fetchall()
    connection.execute("BEGIN")
    deleted = connection.execute(f"{keys.delete('kept', columns)} RETURNING place").fetchall()
    connection.execute("ROLLBACK")
    assert sorted(deleted) == read
    return [row[0] for row in read]


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("nulls", [True, False])
def test_every_form_picks_the_same_rows(kind: str, nulls: bool) -> None:
    values = [value for value in VALUES[kind] if nulls or value is not None]
    for chosen in (values[:1], values[1:], values):
        keys = list(product(chosen, repeat=2))[::2]
        connection = database(kind, keys)
        found = counted(connection, 2)
        assert found.given == (None not in chosen)
        expected = picked(connection, Keys(found.touched), ["a", "b"])  # by IS NOT DISTINCT FROM
        assert expected
        forms = [Keys(found.touched, found.given, by) for by in (None, 0, 1)]
        assert [picked(connection, form, ["a", "b"]) for form in (found, *forms)] == [expected] * 4


@pytest.mark.parametrize("kind", VALUES)
def test_a_null_beside_a_key_is_another_key(kind: str) -> None:
    """Rows are looked up by the first column here, and those with NULL in the other one do not belong to the key."""
    value = VALUES[kind][-1]
    connection = database(kind, [(value, value)])
    found = counted(connection, 2)
    assert (found.given, found.by) == (True, 0)
    assert picked(connection, found, ["a", "b"]) == [len(VALUES[kind]) ** 2 - 1]


def test_one_column_is_joined_and_null_is_found() -> None:
    connection = database("BIGINT", [(0,), (1,)])
    assert counted(connection, 1) == Keys(2, given=True)
    assert picked(connection, counted(connection, 1), ["b"]) == [place for place in range(25) if place % 5 in (1, 2)]
    connection.execute("INSERT INTO ck VALUES (NULL)")
    assert counted(connection, 1) == Keys(3)
    assert picked(connection, counted(connection, 1), ["b"]) == [place for place in range(25) if place % 5 < 3]


def test_the_column_that_tells_keys_apart() -> None:
    assert Keys.counted([1000, 1000, 5, 1000, 990]) == Keys(1000, given=True, by=1)
    assert Keys.counted([1000, 1000, 5, 1000, 200]) == Keys(1000, given=True)
    assert Keys.counted([1000, 1000, 5, 999, 990]) == Keys(1000, by=1)


def test_without_a_key_all_rows_are_picked() -> None:
    connection = database("BIGINT", [(0,)])
    assert picked(connection, ALL_KEYS, ["a"]) == picked(connection, counted(connection, 0), []) == list(range(25))
