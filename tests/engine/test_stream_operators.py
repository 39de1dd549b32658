"""The operators of the table in docs/sql/streams.md as views over streams, beside DuckDB after every batch (SC35)."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

import duckdb
import pytest

import penstock
from tests.batch import test_operators as plain
from tests.batch.stream_operators import STREAMS, WINDOWED
from tests.databases import Opened
from tests.engine.answers import at
from tests.engine.beside_duckdb import Queries, add_row, answer_of, hold_beside

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

PEOPLE: Final = [("a", "north"), ("b", "south"), ("d", "west"), (None, "nowhere")]
# What shows rows only when a window has closed, or goes by the clock, is held against DuckDB in tests of its own.
SAME_TEXT: Final = (
    "distinct count",
    "grouping sets",
    "top n of a key",
    "join of streams within a time",
    "join of streams",
    "left join of streams",
    "join of streams by inequality",
    "lateral limit over streams",
    "full join of streams",
    "ASOF join of streams",
    "ASOF left join of streams",
    "rows that replace each other",
    "aggregate of rows that replace each other",
    "join with rows that replace each other",
)


def queries(operators: list[str]) -> Queries:
    return {
        f"v{place}": plain.over_a_stream(plain.OPERATORS[name][0])
        for place, name in enumerate(operators)
    }  # fmt: skip


def some_orders(rnd: random.Random, step: int) -> list[tuple[int, str | None, int | None]]:
    """Rows of a step, some of them alike."""
    return [
        (10 * step + place, rnd.choice(["a", "b", "c", None]), rnd.choice([100, 250, 500, 750, None]))
        for place in range(6)
    ]


@pytest.mark.parametrize("beside", ["a table", "a stream"])
def test_operators_over_streams(opened: Opened, tmp_path: Path, beside: str) -> None:
    """Each of them that a stream has, with a bounded table beside it and with a second stream."""
    rnd = random.Random(35)  # noqa: S311
    db = opened(allowed_paths=[tmp_path])
    operators = list(plain.OPERATORS)
    if beside == "a stream":
        operators.remove("cross join")  # that is refused
    with duckdb.connect() as oracle:
        oracle.execute("CREATE TABLE orders (id BIGINT, who VARCHAR, cents BIGINT)")
        oracle.execute("CREATE TABLE people (who VARCHAR, region VARCHAR)")
        db.execute("CREATE STREAM orders (id BIGINT, who STRING, cents BIGINT)")
        if beside == "a table":
            oracle.executemany("INSERT INTO people VALUES (?, ?)", PEOPLE)
            oracle.execute(f"COPY people TO '{tmp_path / 'people.json'}' (FORMAT json)")
            db.execute(
                f"CREATE TABLE people (who STRING, region STRING) WITH (connector = 'file', "
                f"path = '{tmp_path / 'people.json'}', format = 'json')"
            )
        else:
            db.execute("CREATE STREAM people (who STRING, region STRING)")

        def advance(again: penstock.Database, step: int) -> None:
            for row in some_orders(rnd, step):
                add_row(again, oracle, "orders", ("id", "who", "cents"), row)
            if beside == "a stream":
                for person in PEOPLE[step : step + 2]:
                    add_row(again, oracle, "people", ("who", "region"), person)

        hold_beside(db, oracle, queries(operators), advance)


def test_operators_that_only_streams_have(opened: Opened) -> None:
    rnd = random.Random(36)  # noqa: S311
    db = opened()
    db.execute(STREAMS)
    with duckdb.connect() as oracle:
        oracle.execute("CREATE TABLE orders (id BIGINT, who VARCHAR, cents BIGINT, ts TIMESTAMP)")
        oracle.execute("CREATE TABLE payments (id BIGINT, cents BIGINT, ts TIMESTAMP)")
        oracle.execute("CREATE TABLE accounts (who VARCHAR PRIMARY KEY, owner VARCHAR)")

        def advance(again: penstock.Database, step: int) -> None:
            for identity, who, cents in some_orders(rnd, step):
                second = 1000 * (step + 1) + 10 * (identity % 10)
                add_row(again, oracle, "orders", ("id", "who", "cents", "ts"), (identity, who, cents, at(second)))
                for place in range(rnd.choice([0, 1, 2])):  # no two at the same time: one of them is the latest
                    when = at(second - 0.01 + 0.001 * place)
                    paid = (identity - rnd.choice([0, 1]), rnd.choice([100, 250]), when)
                    add_row(again, oracle, "payments", ("id", "cents", "ts"), paid)
            for who in ("a", "b")[: 1 + step % 2]:
                again.append("accounts", [{"who": who, "owner": f"o{(step + ord(who)) % 3}"}])
                oracle.execute("INSERT OR REPLACE INTO accounts VALUES (?, ?)", [who, f"o{(step + ord(who)) % 3}"])
            if step == 2:
                again.append("accounts", [{"who": "b", "_op": "delete"}])
                oracle.execute("DELETE FROM accounts WHERE who = 'b'")

        asked = {f"v{place}": WINDOWED[name][0] for place, name in enumerate(SAME_TEXT)}
        hold_beside(db, oracle, asked, advance)
        assert answer_of(oracle, "SELECT who FROM accounts") == [("a",)]
