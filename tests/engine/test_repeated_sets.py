"""Grouping sets of which one is there twice, and texts of values that differ in their order: beside DuckDB after every
batch, over streams, rows that change, views and windows; and the change logs of all of them (G5, G9, G14)."""

from __future__ import annotations

import random
from typing import Final

import duckdb
import pytest

from tests.databases import Opened
from tests.engine.answers import check_change_log, read
from tests.engine.beside_duckdb import Queries, answer_of, hold_beside
from tests.engine.test_quantified import make_streams
from tests.engine.test_remaining_shapes import add_changing, make_changing

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

WINDOWS: Final = "TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '10' SECOND)"
STARTS: Final = "SELECT time_bucket(INTERVAL '10 seconds', ts) AS s, * FROM a WHERE ts IS NOT NULL"
SETS: Final[Queries] = {
    "twice": "SELECT cat, COUNT(*) AS n FROM a GROUP BY GROUPING SETS ((cat), (cat))",
    "twice_of_changes": "SELECT cat, COUNT(*) AS n FROM c GROUP BY cat, ROLLUP (cat)",
    "all_rows": "SELECT id, cat, price FROM a",
    "twice_of_a_view": (
        "SELECT cat, COUNT(DISTINCT price) AS n, GROUPING(cat) AS g FROM all_rows GROUP BY cat, ROLLUP (cat)",
        "SELECT cat, COUNT(DISTINCT price), GROUPING(cat) FROM a GROUP BY cat, ROLLUP (cat)",
    ),
    "twice_in_windows": (
        (
            f"SELECT window_start, cat, COUNT(*) AS n FROM {WINDOWS} "
            "GROUP BY window_start, window_end, GROUPING SETS ((cat), (cat)) EMIT CHANGES"
        ),
        f"SELECT s, cat, count(*) FROM ({STARTS}) GROUP BY s, GROUPING SETS ((cat), (cat))",
    ),
    "texts": (
        "SELECT cat, STRING_AGG(DISTINCT label, '|' ORDER BY label DESC) AS l FROM c GROUP BY cat",
        "SELECT cat, string_agg(DISTINCT label, '|' ORDER BY label DESC) FROM c GROUP BY cat",
    ),
    "texts_of_a_stream": (
        (
            "SELECT cat, LISTAGG(DISTINCT CAST(price AS STRING), '|') WITHIN GROUP (ORDER BY CAST(price AS STRING)) AS l "
            "FROM a GROUP BY cat"
        ),
        "SELECT cat, string_agg(DISTINCT price::VARCHAR, '|' ORDER BY price::VARCHAR) FROM a GROUP BY cat",
    ),
    "texts_of_a_view": (
        (
            "SELECT cat, STRING_AGG(DISTINCT CAST(price AS STRING), '|' ORDER BY CAST(price AS STRING)) AS l "
            "FROM all_rows GROUP BY cat"
        ),
        "SELECT cat, string_agg(DISTINCT price::VARCHAR, '|' ORDER BY price::VARCHAR) FROM a GROUP BY cat",
    ),
}
CLOSED: Final = {
    "sets": (
        "SELECT window_start, cat, COUNT(*) AS n",
        "GROUPING SETS ((cat), (cat))",
        "SELECT s, cat, count(*)",
    ),
    "texts": (
        (
            "SELECT window_start, cat, "
            "STRING_AGG(DISTINCT CAST(price AS STRING), '|' ORDER BY CAST(price AS STRING) DESC) AS l"
        ),
        "cat",
        "SELECT s, cat, string_agg(DISTINCT price::VARCHAR, '|' ORDER BY price::VARCHAR DESC)",
    ),
}


def test_answers_that_change(opened: Opened) -> None:
    rnd = random.Random(47)  # noqa: S311
    db = opened()
    with duckdb.connect() as oracle:
        make_streams(db, oracle)
        make_changing(db, oracle)
        hold_beside(db, oracle, SETS, lambda again, step: add_changing(again, oracle, rnd, step))
        for name in SETS:
            check_change_log(db, name, key=())


def test_windows_that_close(opened: Opened) -> None:
    """Whatever has closed is as DuckDB has it, and everything has when much later rows have come."""
    rnd = random.Random(48)  # noqa: S311
    db = opened()
    with duckdb.connect() as oracle:
        make_streams(db, oracle)
        make_changing(db, oracle)
        for name, (shown, keys, _) in CLOSED.items():
            db.execute(
                f"CREATE MATERIALIZED VIEW {name} AS {shown} FROM {WINDOWS} GROUP BY window_start, window_end, {keys}"
            )
        for step in (0, 1, 9):
            add_changing(db, oracle, rnd, step)
            db.settle(180)
        for name, (_, keys, shown) in CLOSED.items():
            early = f"({STARTS}) AS e WHERE s < TIMESTAMP '1970-01-01 00:01:40'"
            answer = answer_of(oracle, f"{shown} FROM {early} GROUP BY s, {keys}")
            assert read(db, name) == answer, name
            assert answer
