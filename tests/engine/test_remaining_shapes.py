"""Shapes of relational algebra over streams that came last, each beside DuckDB after every batch (G3, G9, G12)."""

from __future__ import annotations

import random
from typing import Final

import duckdb
import pytest

import penstock
from tests.engine.answers import at, read
from tests.engine.test_quantified import add_both, answer_of, make_streams

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

C: Final = "id BIGINT, cat BIGINT, label {0}, tags ARRAY<{0}>, ts TIMESTAMP"
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
    "own_tags": (
        "SELECT id, ARRAY(SELECT tag FROM UNNEST(a.tags) AS t(tag) WHERE tag <> 'x') AS l FROM a",
        "SELECT id, list_sort(list_filter(coalesce(tags, []), lambda t: t <> 'x')) FROM a",
    ),
    # Rows of arrays beside joins, and of rows that replace each other.
    "joined_tags": (
        "SELECT a.id, b.price, t.tag FROM a LEFT JOIN b ON a.cat = b.aid CROSS JOIN UNNEST(a.tags) AS t(tag)",
        "SELECT a.id, b.price, t.tag FROM a LEFT JOIN b ON a.cat = b.aid, (SELECT unnest(a.tags) AS tag) AS t",
    ),
    "kept_tags": (
        "SELECT c.id, t.tag, t.o FROM c LEFT JOIN UNNEST(c.tags) WITH ORDINALITY AS t(tag, o) ON TRUE WHERE c.id > 1",
        (
            "SELECT c.id, t.tag, t.o FROM c LEFT JOIN LATERAL (SELECT unnest(c.tags) AS tag, "
            "generate_subscripts(c.tags, 1)::INTEGER AS o) AS t ON TRUE WHERE c.id > 1"
        ),
    ),
    "tags_and_numbers": (
        (
            "SELECT a.id, t.x, t.y, t.o FROM a LEFT JOIN b ON a.cat = b.aid "
            "CROSS JOIN UNNEST(a.tags, a.ns) WITH ORDINALITY AS t(x, y, o)"
        ),
        (
            "SELECT a.id, a.tags[r.o], a.ns[r.o], r.o::INTEGER FROM a LEFT JOIN b ON a.cat = b.aid, range(1, 9) AS r(o) "
            "WHERE r.o <= greatest(coalesce(len(a.tags), 0), coalesce(len(a.ns), 0))"
        ),
    ),
    "counted_tags": (
        "SELECT t.tag, COUNT(*) AS n FROM c CROSS JOIN UNNEST(c.tags) AS t(tag) GROUP BY t.tag",
        "SELECT tag, count(*) FROM (SELECT unnest(tags) AS tag FROM c) GROUP BY tag",
    ),
    "parts": (
        "SELECT c.id, t.x FROM c CROSS JOIN UNNEST(SPLIT(c.label, ',')) AS t(x)",
        "SELECT id, unnest(string_split(label, ',')) FROM c",
    ),
    "many_tags": (
        "SELECT c.id, (SELECT COUNT(*) FROM UNNEST(c.tags) AS t(x) WHERE x > 'x') AS n FROM c",
        "SELECT id, len(list_filter(coalesce(tags, []), lambda t: t > 'x')) FROM c",
    ),
    "lateral_tags": (
        "SELECT a.id, l.n FROM a, LATERAL (SELECT COUNT(*) AS n FROM UNNEST(a.tags) AS t(x) WHERE x <> 'y') AS l",
        "SELECT id, len(list_filter(coalesce(tags, []), lambda t: t <> 'y')) FROM a",
    ),
    "first_tag": (
        (
            "SELECT a.cat, a.id, t.tag FROM a LEFT JOIN b ON a.cat = b.aid CROSS JOIN UNNEST(a.tags) AS t(tag) "
            "QUALIFY ROW_NUMBER() OVER (PARTITION BY a.cat ORDER BY t.tag DESC, a.id) = 1"
        ),
        (
            "SELECT cat, id, tag FROM (SELECT cat, id, unnest(tags) AS tag FROM a) "
            "QUALIFY row_number() OVER (PARTITION BY cat ORDER BY tag DESC, id) = 1"
        ),
    ),
}


def test_answers_that_change(db: penstock.Database) -> None:
    rnd = random.Random(21)  # noqa: S311
    with duckdb.connect() as oracle:
        make_streams(db, oracle)
        db.execute(f"CREATE STREAM c ({C.format('STRING')}, PRIMARY KEY (id) NOT ENFORCED) WITH (changes = 'upsert')")
        oracle.execute(f"CREATE TABLE c ({C.format('VARCHAR').replace('ARRAY<VARCHAR>', 'VARCHAR[]')})")
        for name, query in CHANGING.items():
            db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query if isinstance(query, str) else query[0]}")
        had_rows = set()
        for step in range(3):
            add_both(db, oracle, rnd, step, count=14)
            for _ in range(10):
                _change(db, oracle, rnd, step)
            db.settle(180)
            for name, query in CHANGING.items():
                answer = answer_of(oracle, query if isinstance(query, str) else query[1])
                assert read(db, name) == answer, f"{name} after step {step}"
                had_rows |= {name} if answer else set()
        assert had_rows == set(CHANGING), "an answer without rows says nothing"


def _change(db: penstock.Database, oracle: duckdb.DuckDBPyConnection, rnd: random.Random, step: int) -> None:
    """A row of `c` that comes, takes the place of another one or goes."""
    key = rnd.randrange(8)
    oracle.execute("DELETE FROM c WHERE id = ?", [key])
    if rnd.random() < 0.2:
        db.append("c", [{"id": key, "_op": "delete"}])
        return
    tags = None if rnd.random() < 0.2 else [rnd.choice("xyz") for _ in range(rnd.randrange(4))]
    label, moment = rnd.choice([None, "p", "p,q", "r,p,q"]), at(20 * step + rnd.randrange(20))
    row = {"id": key, "cat": rnd.randrange(4), "label": label, "tags": tags}
    db.append("c", [{**row, "ts": moment}])
    oracle.execute("INSERT INTO c VALUES (?, ?, ?, ?, ?)", [*row.values(), moment.replace(tzinfo=None)])
