"""Aggregates that collect values, over the frames of OVER, and rows of relations as values, beside DuckDB (A11, G4)."""

from __future__ import annotations

import random

import duckdb
import pytest

import penstock
from tests.engine.beside_duckdb import add_row, hold_beside

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

COLUMNS = ("id", "cat", "price", "name")
OVER = {
    "rows": "PARTITION BY cat ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
    "range": "PARTITION BY cat ORDER BY id RANGE BETWEEN 2 PRECEDING AND 2 FOLLOWING",
    "from_first": "PARTITION BY cat ORDER BY id",
}
MAP = (
    "list_transform([list({{'k': name, 'v': price}} ORDER BY name, price NULLS FIRST) FILTER (WHERE name IS NOT NULL) OVER ({0})], "
    "lambda s: coalesce(CASE WHEN len(s) > 0 THEN map_from_entries(list_filter(s, lambda e, i: i = len(s) OR s[i + 1].k <> e.k)) END, "
    "MAP {{}}))[1]"
)
LISTED = "coalesce(list(price ORDER BY id) FILTER (WHERE price IS NOT NULL) OVER ({0}), [])"
ROW = "{{'id': {0}.id, 'cat': {0}.cat, 'price': {0}.price, 'name': {0}.name}}"
QUERIES = {
    **{f"{name}_of_{rows}": (
        (f"SELECT id, ARRAY_AGG(price) OVER ({over}) AS l, JSON_AGG(price) OVER ({over}) AS j, STRING_AGG(name, '-') OVER ({over}) AS t, "
        f"MAP_AGG(name, price) OVER ({over}) AS m, JSON_OBJECT_AGG(name, price) OVER ({over}) AS o, "
        f"JSON_AGG(price) FILTER (WHERE price > 1) OVER ({over}) AS f FROM {rows}"),
        f"SELECT id, {LISTED}, to_json({LISTED})::VARCHAR, string_agg(name, '-' ORDER BY id) OVER ({{0}}), {MAP}, "
        f"to_json({MAP})::VARCHAR, to_json(coalesce(list(price ORDER BY id) FILTER (WHERE price > 1) OVER ({{0}}), []))::VARCHAR "
        f"FROM {rows}".format(over),
    ) for name, over in OVER.items() for rows in "ac"},
    "sorted": (
        "SELECT id, JSON_AGG(price ORDER BY price DESC, id) OVER (PARTITION BY cat) AS j FROM c",
        ("SELECT id, to_json(coalesce(list(price ORDER BY price DESC, id) FILTER (WHERE price IS NOT NULL) OVER (PARTITION BY cat), []))"
        "::VARCHAR FROM c"),
    ),
    "of_groups": (
        "SELECT cat, JSON_AGG(COUNT(*)) OVER (ORDER BY cat) AS j FROM c GROUP BY cat",
        ("SELECT cat, to_json(list(n ORDER BY cat NULLS FIRST) OVER (ORDER BY cat NULLS FIRST))::VARCHAR "
        "FROM (SELECT cat, count(*) AS n FROM c GROUP BY cat)"),
    ),
    "zero": (
        "SELECT id, SUM0(price) OVER (PARTITION BY cat) AS s FROM c",
        "SELECT id, coalesce(sum(price) OVER (PARTITION BY cat), 0)::BIGINT FROM c",
    ),
    # Maps of maps: of two maps of one key the one counts whose entries come last.
    **{f"maps_of_{rows}": (
        f"SELECT cat, MAP_AGG(name, MAP(id, price)) AS m, JSON_OBJECT_AGG(name, MAP(id, price)) AS j FROM {rows} GROUP BY cat",
        (f"SELECT cat, m, to_json(m)::VARCHAR FROM (SELECT cat, coalesce(map_from_entries(list({{'k': name, 'v': MAP {{id: price}}}} ORDER BY name) "
        "FILTER (WHERE name IS NOT NULL)), MAP {}) AS m FROM (SELECT cat, name, max(id) AS id, arg_max_null(price, id) AS price FROM "
        f"(SELECT cat, name, id, price FROM {rows} UNION ALL SELECT DISTINCT cat, NULL, -1, 0 FROM {rows}) GROUP BY ALL) GROUP BY cat)"),
    ) for rows in "ac"},
    "maps_over": (
        "SELECT id, MAP_AGG(id, MAP(id, price)) OVER (PARTITION BY cat ORDER BY id ROWS 1 PRECEDING) AS m FROM c",
        ("SELECT id, map_from_entries(list({'k': id, 'v': MAP {id: price}} ORDER BY id) OVER (PARTITION BY cat ORDER BY id ROWS 1 PRECEDING)) "
        "FROM c"),
    ),
    # Rows as values: with the fields that are NULL, and NULL where there is no partner.
    **{f"row_of_{rows}": (
        f"SELECT {rows}.id, ROW_TO_JSON({rows}) AS j, TO_JSON({rows}) AS k, {rows} FROM {rows}",
        f"SELECT id, to_json({ROW})::VARCHAR, to_json({ROW})::VARCHAR, {ROW} FROM {{0}}".format(rows),
    ) for rows in "ac"},
    **{f"rows_of_{rows}": (
        f"SELECT cat, JSON_AGG({rows} ORDER BY id) AS j FROM {rows} GROUP BY cat",
        f"SELECT cat, to_json(list({ROW} ORDER BY id))::VARCHAR FROM {{0}} GROUP BY cat".format(rows),
    ) for rows in "ac"},
    "rows_over": (
        "SELECT id, JSON_AGG(c) OVER (PARTITION BY cat ORDER BY id) AS j FROM c",
        f"SELECT id, to_json(list({ROW} ORDER BY id) OVER (PARTITION BY cat ORDER BY id))::VARCHAR FROM c".format("c"),
    ),
    "partner": (
        "SELECT a.id, ROW_TO_JSON(c) AS j FROM a LEFT JOIN c ON a.price = c.id",
        f"SELECT a.id, CASE WHEN c.id IS NOT NULL THEN to_json({ROW})::VARCHAR END FROM a LEFT JOIN c ON a.price = c.id".format("c"),
    ),
    "of_subquery": (
        "SELECT a.id, (SELECT JSON_AGG(c ORDER BY id) FROM c WHERE c.id = a.price) AS j FROM a",
        f"SELECT a.id, (SELECT to_json(coalesce(list({ROW} ORDER BY id), []))::VARCHAR FROM c WHERE c.id = a.price) FROM a".format("c"),
    ),
}  # fmt: skip


def test_collected_values(db: penstock.Database) -> None:
    rnd = random.Random(11)  # noqa: S311
    columns = "id BIGINT, cat BIGINT, price BIGINT, name {}"
    db.execute(f"CREATE STREAM a ({columns.format('STRING')})")
    db.execute(f"CREATE STREAM c ({columns.format('STRING')}, PRIMARY KEY (id) NOT ENFORCED) WITH (changes = 'upsert')")
    with duckdb.connect() as oracle:
        for name in "ac":
            oracle.execute(f"CREATE TABLE {name} ({columns.format('VARCHAR')})")

        def row(number: int) -> tuple[int | str | None, ...]:
            def some(value: int | str) -> int | str | None:
                return None if rnd.random() < 0.15 else value

            return (number, some(rnd.randrange(3)), some(rnd.randrange(5)), some(rnd.choice("xyz")))

        def advance(opened: penstock.Database, step: int) -> None:
            for number in range(8):
                add_row(opened, oracle, "a", COLUMNS, row(step * 8 + number))
            for number in rnd.sample(range(6), 4):
                oracle.execute("DELETE FROM c WHERE id = ?", [number])
                if step and rnd.random() < 0.3:
                    opened.append("c", [{"id": number, "_op": "delete"}])
                else:
                    add_row(opened, oracle, "c", COLUMNS, row(number))

        hold_beside(db, oracle, QUERIES, advance)
