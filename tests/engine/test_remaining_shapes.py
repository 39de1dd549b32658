"""Shapes of relational algebra over streams that came last, each beside DuckDB after every batch (G3, G9, G12)."""

from __future__ import annotations

import random
from typing import Final

import duckdb
import pytest

import penstock
from tests.engine.answers import read
from tests.engine.test_quantified import add_both, answer_of, make_streams

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

# The answer changes as rows come, and is held against DuckDB's after each batch: same text, unless there are two.
CHANGING: Final[dict[str, str | tuple[str, str]]] = {
    # Aggregates that are compared with all rows of a subquery.
    "most": (
        "SELECT cat, SUM(price) AS s FROM a GROUP BY cat HAVING SUM(price) >= ALL "
        "(SELECT SUM(price) FROM a WHERE price IS NOT NULL GROUP BY cat)"
    ),
    "more_than_some": (
        "SELECT a.cat, COUNT(*) AS n FROM a GROUP BY a.cat HAVING COUNT(*) > 1 "
        "AND COUNT(*) > SOME (SELECT price FROM b WHERE b.aid = a.cat)"
    ),
    "not_more": (
        "SELECT SUM(price) AS s FROM a GROUP BY cat HAVING NOT s > ANY (SELECT price + 8 FROM b WHERE aid = cat)",
        (
            "SELECT s FROM (SELECT cat, sum(price)::BIGINT AS s FROM a GROUP BY cat) "
            "WHERE NOT s > ANY (SELECT price + 8 FROM b WHERE aid = cat)"
        ),
    ),
    "group_pairs": (
        "SELECT cat, MAX(price) AS m FROM a GROUP BY cat HAVING (cat, MAX(price)) IN (SELECT aid, price FROM b)",
        (
            "SELECT cat, m FROM (SELECT cat, max(price) AS m FROM a GROUP BY cat) AS x "
            "WHERE EXISTS (FROM b WHERE x.cat = b.aid AND x.m = b.price)"
        ),
    ),
    # Arrays of the rows of a subquery.
    "listed": (
        "SELECT a.id, ARRAY(SELECT price FROM b WHERE b.aid = a.cat ORDER BY ts DESC, price) AS l FROM a",
        (
            "SELECT a.id, coalesce((SELECT list(price ORDER BY ts DESC, price NULLS FIRST) FROM b WHERE b.aid = a.cat), []) "
            "FROM a"
        ),
    ),
    "first_two": (
        "SELECT a.id, ARRAY(SELECT b.price + a.id AS x FROM b WHERE b.aid = a.cat ORDER BY x DESC LIMIT 2) AS l FROM a",
        (
            "SELECT a.id, coalesce((SELECT list(b.price + a.id ORDER BY b.price DESC NULLS LAST) FROM b "
            "WHERE b.aid = a.cat), [])[:2] FROM a"
        ),
    ),
    "once_each": (
        "SELECT cat, COUNT(*) AS n, ARRAY(SELECT DISTINCT price FROM b) AS l FROM a GROUP BY cat",
        (
            "SELECT cat, count(*), (SELECT list(price ORDER BY price NULLS FIRST) FROM (SELECT DISTINCT price FROM b)) "
            "FROM a GROUP BY cat"
        ),
    ),
}


def test_answers_that_change(db: penstock.Database) -> None:
    rnd = random.Random(21)  # noqa: S311
    with duckdb.connect() as oracle:
        make_streams(db, oracle)
        for name, query in CHANGING.items():
            db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query if isinstance(query, str) else query[0]}")
        had_rows = set()
        for step in range(3):
            add_both(db, oracle, rnd, step, count=14)
            db.settle(180)
            for name, query in CHANGING.items():
                answer = answer_of(oracle, query if isinstance(query, str) else query[1])
                assert read(db, name) == answer, f"{name} after step {step}"
                had_rows |= {name} if answer else set()
        assert had_rows == set(CHANGING), "an answer without rows says nothing"
