"""First rows by columns that the query does not select, beside DuckDB after every batch (A11, G3, G4)."""

from __future__ import annotations

import random

import duckdb
import pytest

import penstock
from tests.engine.beside_duckdb import add_row, hold_beside

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

COLUMNS = ("id", "cat", "price")
# {0} is a stream that rows are added to, or one whose rows replace each other. DuckDB's NULLs stand last unless it is told.
FIRST = {
    "ties": ("SELECT id FROM {0} ORDER BY price DESC FETCH FIRST 3 ROWS WITH TIES",
             "SELECT id FROM {0} QUALIFY rank() OVER (ORDER BY price DESC NULLS LAST) <= 3"),
    "ties_behind": ("SELECT id FROM {0} ORDER BY price, id OFFSET 1 ROW FETCH FIRST 2 ROWS WITH TIES",
                    "SELECT id FROM {0} ORDER BY price NULLS FIRST, id LIMIT 2 OFFSET 1"),
    "ties_of_groups": ("SELECT cat FROM {0} GROUP BY cat ORDER BY COUNT(*) DESC, MAX(price) FETCH FIRST 2 ROWS WITH TIES",
                       "SELECT cat FROM {0} GROUP BY cat QUALIFY rank() OVER (ORDER BY count(*) DESC, max(price) NULLS FIRST) <= 2"),
    "ties_of_first": (("SELECT id FROM {0} QUALIFY ROW_NUMBER() OVER (PARTITION BY cat ORDER BY id) = 1 "
                      "ORDER BY price FETCH FIRST 2 ROWS WITH TIES"),
                      ("SELECT id FROM (SELECT id, price FROM {0} QUALIFY row_number() OVER (PARTITION BY cat ORDER BY id) = 1) "
                      "QUALIFY rank() OVER (ORDER BY price NULLS FIRST) <= 2")),
    "ties_of_distinct": ("SELECT DISTINCT ON (cat) id FROM {0} ORDER BY cat DESC, id FETCH FIRST 2 ROWS WITH TIES",
                         "SELECT min(id) FROM {0} GROUP BY cat ORDER BY cat DESC NULLS LAST LIMIT 2"),
    "ties_of_ranks": ("SELECT id, DENSE_RANK() OVER (ORDER BY price DESC) AS r FROM {0} ORDER BY r FETCH FIRST 3 ROWS WITH TIES",
                      ("SELECT id, r FROM (SELECT id, dense_rank() OVER (ORDER BY price DESC NULLS LAST) AS r FROM {0}) "
                      "QUALIFY rank() OVER (ORDER BY r) <= 3")),
    "ties_by_place": ("SELECT id, DENSE_RANK() OVER (ORDER BY price DESC) AS r FROM {0} ORDER BY 2 FETCH FIRST 3 ROWS WITH TIES",
                      ("SELECT id, r FROM (SELECT id, dense_rank() OVER (ORDER BY price DESC NULLS LAST) AS r FROM {0}) "
                      "QUALIFY rank() OVER (ORDER BY r) <= 3")),
    "ties_beside": (("SELECT a.id FROM {0} AS a LEFT JOIN b ON b.cat = a.cat ORDER BY b.price DESC NULLS LAST, a.price + a.id "
                    "FETCH FIRST 3 ROWS WITH TIES"),
                    ("SELECT a.id FROM {0} AS a LEFT JOIN b ON b.cat = a.cat "
                    "QUALIFY rank() OVER (ORDER BY b.price DESC NULLS LAST, a.price + a.id NULLS FIRST) <= 3")),
    "few": ("SELECT id AS x FROM {0} ORDER BY price DESC, {0}.id LIMIT 3",
            "SELECT id FROM {0} ORDER BY price DESC NULLS LAST, id LIMIT 3"),
    "few_by_subquery": ("SELECT id FROM {0} ORDER BY (SELECT MAX(b.price) FROM b WHERE b.cat = {0}.cat), id LIMIT 3",
                        "SELECT id FROM {0} ORDER BY (SELECT max(b.price) FROM b WHERE b.cat = {0}.cat) NULLS FIRST, id LIMIT 3"),
    "few_of_first": (("SELECT id FROM {0} QUALIFY ROW_NUMBER() OVER (PARTITION BY cat ORDER BY price, id) = 1 "
                     "ORDER BY price DESC, id DESC LIMIT 2 OFFSET 1"),
                     ("SELECT id FROM (SELECT id, price FROM {0} QUALIFY row_number() OVER (PARTITION BY cat "
                     "ORDER BY price NULLS FIRST, id) = 1) ORDER BY price DESC NULLS LAST, id DESC LIMIT 2 OFFSET 1")),
    "few_of_groups": (("SELECT COUNT(*) AS n FROM {0} GROUP BY cat QUALIFY RANK() OVER (ORDER BY COUNT(*)) <= 3 "
                      "ORDER BY MAX(price) DESC, MIN(id) LIMIT 2"),
                      ("SELECT n FROM (SELECT count(*) AS n, max(price) AS m, min(id) AS i FROM {0} GROUP BY cat "
                      "QUALIFY rank() OVER (ORDER BY count(*)) <= 3) ORDER BY m DESC NULLS LAST, i LIMIT 2")),
    "few_of_distinct": ("SELECT DISTINCT ON (cat) id FROM {0} ORDER BY cat DESC, price, id LIMIT 2",
                        ("SELECT id FROM (SELECT DISTINCT ON (cat) id, cat FROM {0} ORDER BY cat DESC NULLS LAST, price NULLS FIRST, id) "
                        "ORDER BY cat DESC NULLS LAST LIMIT 2")),
    "few_of_lists": ("SELECT EXPLODE(ARRAY_AGG(id)) AS x FROM {0} GROUP BY cat ORDER BY MAX(id) DESC, x LIMIT 3",
                     ("SELECT unnest(l) AS x FROM (SELECT list(id ORDER BY id) AS l, max(id) AS m FROM {0} GROUP BY cat) "
                     "ORDER BY m DESC, x LIMIT 3")),
    "distinct": ("SELECT DISTINCT ON (cat) id FROM {0} ORDER BY cat, price DESC, id",
                 "SELECT id FROM {0} QUALIFY row_number() OVER (PARTITION BY cat ORDER BY price DESC NULLS LAST, id) = 1"),
    "qualified": ("SELECT id FROM {0} QUALIFY RANK() OVER (PARTITION BY cat ORDER BY price) = 1",
                  "SELECT id FROM {0} QUALIFY rank() OVER (PARTITION BY cat ORDER BY price NULLS FIRST) = 1"),
}  # fmt: skip
QUERIES = {f"{name}_of_{rows}": (query.format(rows), other.format(rows)) for rows in ("a", "c") for name, (query, other) in FIRST.items()}  # fmt: skip


def test_first_rows_by_what_is_not_selected(db: penstock.Database) -> None:
    rnd = random.Random(7)  # noqa: S311
    db.execute("CREATE STREAM a (id BIGINT, cat BIGINT, price BIGINT)")
    db.execute("CREATE STREAM b (id BIGINT, cat BIGINT, price BIGINT)")
    db.execute(
        "CREATE STREAM c (id BIGINT, cat BIGINT, price BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH (changes = 'upsert')"
    )
    with duckdb.connect() as oracle:
        for name in "abc":
            oracle.execute(f"CREATE TABLE {name} (id BIGINT, cat BIGINT, price BIGINT)")

        def value(most: int) -> int | None:
            return None if rnd.random() < 0.1 else rnd.randrange(most)

        def advance(opened: penstock.Database, step: int) -> None:
            for number in range(8):
                add_row(opened, oracle, "a", COLUMNS, (step * 8 + number, value(4), value(4)))
            add_row(opened, oracle, "b", COLUMNS, (step, value(4), value(9)))
            for number in rnd.sample(range(9), 6):
                oracle.execute("DELETE FROM c WHERE id = ?", [number])
                if step and rnd.random() < 0.3:
                    opened.append("c", [{"id": number, "_op": "delete"}])
                else:
                    add_row(opened, oracle, "c", COLUMNS, (number, value(4), value(4)))

        hold_beside(db, oracle, QUERIES, advance)
