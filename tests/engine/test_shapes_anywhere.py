"""Functions that make rows and comparisons with all rows of a subquery, wherever they stand: beside DuckDB after every
batch, and stopped and resumed between them (G3, G9, G12, G14)."""

from __future__ import annotations

import random
from typing import Final

import duckdb
import pytest

from tests.databases import Opened
from tests.engine.beside_duckdb import Queries, hold_beside
from tests.engine.test_quantified import make_streams
from tests.engine.test_remaining_shapes import add_changing, make_changing

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

PLACES: Final = "SELECT {0}.id, (r.o - 1)::INTEGER, {0}.tags[r.o] FROM {0}, range(1, 9) AS r(o) WHERE r.o <= coalesce(len({0}.tags), 0)"
ROWS: Final[Queries] = {
    "placed": (
        "SELECT c.id, t.p, t.tag FROM c LATERAL VIEW posexplode(c.tags) t AS p, tag",
        PLACES.format("c"),
    ),
    "placed_of_pairs": (
        "SELECT a.id, p, tag, b.price FROM a LEFT JOIN b ON a.cat = b.aid LATERAL VIEW posexplode(a.tags) t AS p, tag",
        (
            "SELECT a.id, (r.o - 1)::INTEGER, a.tags[r.o], b.price FROM a LEFT JOIN b ON a.cat = b.aid, range(1, 9) AS r(o) "
            "WHERE r.o <= coalesce(len(a.tags), 0)"
        ),
    ),
    "placed_or_not": (
        "SELECT c.id, t.p, t.tag FROM c LATERAL VIEW posexplode_outer(c.tags) t AS p, tag WHERE c.id > 1",
        (
            "SELECT c.id, t.o, t.tag FROM c LEFT JOIN LATERAL (SELECT unnest(c.tags) AS tag, "
            "generate_subscripts(c.tags, 1)::INTEGER - 1 AS o) AS t ON TRUE WHERE c.id > 1"
        ),
    ),
    "listed": ("SELECT id, EXPLODE(tags) AS tag FROM c", "SELECT id, unnest(tags) FROM c"),
    "listed_outer": (
        "SELECT c.id, t.tag FROM c LEFT JOIN a ON a.id = c.id LATERAL VIEW explode_outer(c.tags) t AS tag",
        "SELECT c.id, t.tag FROM c LEFT JOIN LATERAL (SELECT unnest(c.tags) AS tag) AS t ON TRUE",
    ),
    "listed_places": ("SELECT id, POSEXPLODE(tags) AS (p, x) FROM a", PLACES.format("a")),
    "counted": (
        "SELECT UNNEST(tags) AS tag, COUNT(*) AS n FROM c GROUP BY tag",
        "SELECT tag, count(*) FROM (SELECT unnest(tags) AS tag FROM c) GROUP BY tag",
    ),
    "counted_distinct": (
        "SELECT t.tag, COUNT(DISTINCT a.cat) AS n FROM a LATERAL VIEW posexplode(a.tags) t AS p, tag GROUP BY t.tag",
        "SELECT tag, count(DISTINCT cat) FROM (SELECT cat, unnest(tags) AS tag FROM a) GROUP BY tag",
    ),
    "of_groups": (
        "SELECT cat, EXPLODE(ARRAY_AGG(id)) AS x FROM c GROUP BY cat",
        "SELECT cat, id FROM c",
    ),
    "of_numbers": (
        "SELECT g.n, COUNT(c.id) AS m FROM (SELECT EXPLODE(SEQUENCE(0, 3)) AS n) AS g LEFT JOIN c ON c.cat = g.n GROUP BY g.n",
        "SELECT g.n, count(c.id) FROM (SELECT unnest([0, 1, 2, 3]) AS n) AS g LEFT JOIN c ON c.cat = g.n GROUP BY g.n",
    ),
    "of_the_next": (
        "SELECT id, EXPLODE(SEQUENCE(id, LEAD(id) OVER (ORDER BY id))) AS m FROM c",
        (
            "SELECT id, unnest(generate_series(id, l)) FROM (SELECT id, lead(id) OVER (ORDER BY id) AS l FROM c) "
            "WHERE l IS NOT NULL"
        ),
    ),
    "stacked": (
        "SELECT c.id, t.k, t.v FROM c LATERAL VIEW stack(2, 'id', c.id, 'cat', c.cat) t AS k, v",
        "SELECT id, 'id', id FROM c UNION ALL SELECT id, 'cat', cat FROM c",
    ),
    "written": (
        (
            "SELECT a.id, l.k, l.v FROM a LEFT JOIN b ON a.cat = b.aid "
            "CROSS JOIN LATERAL (VALUES ('p', a.price), ('q', b.price), ('r', 7)) AS l(k, v)"
        ),
        (
            "WITH j AS (SELECT a.id, a.price AS p, b.price AS q FROM a LEFT JOIN b ON a.cat = b.aid) "
            "SELECT id, 'p', p FROM j UNION ALL SELECT id, 'q', q FROM j UNION ALL SELECT id, 'r', 7 FROM j"
        ),
    ),
    "written_of_rows": (
        "SELECT a.id, l.v FROM a CROSS JOIN LATERAL (VALUES (a.price), (1)) AS l(v)",
        "SELECT id, price FROM a UNION ALL SELECT id, 1 FROM a",
    ),
    "parsed": (
        "SELECT c.id, t.x, t.y FROM c LATERAL VIEW json_tuple(TO_JSON(NAMED_STRUCT('x', c.cat, 'y', c.label)), 'x', 'y') t AS x, y",
        "SELECT id, cat::VARCHAR, label FROM c",
    ),
    "series": (
        "SELECT c.id, g.n FROM c, generate_series(2, c.cat) AS g(n)",
        "SELECT c.id, g.n FROM c, LATERAL (SELECT unnest(generate_series(2, c.cat)) AS n) AS g",
    ),
    "cut": (
        "SELECT id, tags[cat:price] AS x FROM a WHERE tags IS NOT NULL",
        (
            "SELECT id, CASE WHEN cat IS NULL OR price IS NULL THEN NULL ELSE tags[greatest(cat, 1):price] END "
            "FROM a WHERE tags IS NOT NULL"
        ),
    ),
    "all_numbers": (
        "SELECT g.n, COUNT(a.id) AS m FROM generate_series(0, 5) AS g(n) LEFT JOIN a ON a.cat = g.n GROUP BY g.n",
        "SELECT g.n::INTEGER, count(a.id) FROM range(0, 6) AS g(n) LEFT JOIN a ON a.cat = g.n GROUP BY g.n",
    ),
}
VALUES: Final[Queries] = {
    "above_all": (
        "SELECT id, price > ALL (SELECT price FROM b WHERE b.aid = a.cat) AS x, "
        "price <= ANY (SELECT price FROM b WHERE b.aid = a.cat) AS y FROM a"
    ),
    "either": "SELECT id FROM a WHERE cat = 1 OR price > ALL (SELECT price FROM b WHERE b.price < 4)",
    "not_both": "SELECT id FROM a WHERE NOT (cat = 1 AND price >= ANY (SELECT price FROM b))",
    "sorted_out": (
        "SELECT id, CASE WHEN price < ANY (SELECT price FROM b WHERE b.aid = a.cat) THEN 'less' ELSE 'not' END AS x FROM a"
    ),
    "is_pair": (
        "SELECT id, (cat, price) IN (SELECT aid, price FROM b) AS x FROM a",
        (
            "SELECT id, CASE WHEN EXISTS (FROM b WHERE a.cat = aid AND a.price = b.price) THEN TRUE "
            "WHEN EXISTS (FROM b WHERE (a.cat = aid AND a.price = b.price) IS NULL) THEN NULL ELSE FALSE END FROM a"
        ),
    ),
    "pairs_above": (
        "SELECT id FROM a WHERE (cat, price) > ANY (SELECT aid, price FROM b WHERE b.price < 3)",
        (
            "SELECT id FROM a WHERE EXISTS "
            "(FROM b WHERE b.price < 3 AND (a.cat > aid OR (a.cat = aid AND a.price > b.price)))"
        ),
    ),
    "other_pairs": (
        "SELECT id FROM a WHERE (cat, price) <> ALL (SELECT aid, price FROM b WHERE aid > 0 AND price IS NOT NULL)",
        (
            "SELECT id FROM a WHERE NOT EXISTS (FROM b WHERE aid > 0 AND price IS NOT NULL "
            "AND NOT coalesce(a.cat <> aid OR a.price <> b.price, FALSE))"
        ),
    ),
    "ranked_groups": (
        (
            "SELECT cat, SUM(price) AS s, RANK() OVER (ORDER BY SUM(price) DESC) AS r FROM a GROUP BY cat "
            "HAVING SUM(price) > ANY (SELECT price FROM b)"
        ),
        (
            "SELECT cat, s, rank() OVER (ORDER BY s DESC NULLS LAST) FROM (SELECT cat, sum(price)::BIGINT AS s FROM a "
            "GROUP BY cat) WHERE s > ANY (SELECT price FROM b)"
        ),
    ),
    "best_group": (
        (
            "SELECT cat, COUNT(*) AS n FROM a GROUP BY cat HAVING COUNT(*) > 1 AND MAX(price) >= ALL (SELECT price FROM b "
            "WHERE b.aid = a.cat) QUALIFY ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC, cat) <= 2"
        ),
        (
            "SELECT cat, n FROM (SELECT cat, count(*) AS n, max(price) AS m FROM a GROUP BY cat) AS x WHERE n > 1 "
            "AND m >= ALL (SELECT price FROM b WHERE b.aid = x.cat) "
            "QUALIFY row_number() OVER (ORDER BY n DESC, cat NULLS FIRST) <= 2"
        ),
    ),
    "group_values": (
        "SELECT cat, MAX(price) >= ALL (SELECT price FROM b) AS x FROM a GROUP BY cat",
        "SELECT cat, m >= ALL (SELECT price FROM b) FROM (SELECT cat, max(price) AS m FROM a GROUP BY cat)",
    ),
    "counted_if": (
        "SELECT cat, COUNT(*) FILTER (WHERE price > ANY (SELECT price FROM b)) AS n FROM a GROUP BY cat",
        "SELECT cat, count(*) FILTER (WHERE x) FROM (SELECT cat, price > ANY (SELECT price FROM b) AS x FROM a) GROUP BY cat",
    ),
    "joined_if": (
        "SELECT a.id, b.price FROM a LEFT JOIN b ON a.cat = b.aid AND a.price > ALL (SELECT c.cat FROM c)",
        (
            "SELECT a.id, b.price FROM (SELECT *, a.price > ALL (SELECT c.cat FROM c) AS x FROM a) AS a "
            "LEFT JOIN b ON a.cat = b.aid AND a.x"
        ),
    ),
    "elements": (
        "SELECT id, price = ANY (ns) AS x, price > ALL (ns) AS y FROM a",
        (
            "SELECT id, CASE WHEN ns IS NULL THEN NULL ELSE price = ANY (SELECT unnest(ns)) END, "
            "CASE WHEN ns IS NULL THEN NULL ELSE price > ALL (SELECT unnest(ns)) END FROM a"
        ),
    ),
    "over_pairs": (
        "SELECT a.id, b.price, SUM(b.price) OVER (PARTITION BY a.price) AS s FROM a JOIN b ON a.cat = b.aid",
        "SELECT a.id, b.price, (sum(b.price) OVER (PARTITION BY a.price))::BIGINT FROM a JOIN b ON a.cat = b.aid",
    ),
}

PAIRS: Final = "FROM a LEFT JOIN b ON a.cat = b.aid"
NESTED: Final[Queries] = {
    "structs": (
        f"SELECT a.id, STRUCT(a.price, b.price AS other, a.id + 1) AS x {PAIRS}",
        f"SELECT a.id, {{'price': a.price, 'other': b.price, 'col3': a.id + 1}} {PAIRS}",
    ),
    "named": (
        f"SELECT a.id, NAMED_STRUCT('u', b.price, 'v', a.tags).v AS x, NAMED_STRUCT('u', b.price, 'v', a.cat).u AS y {PAIRS}",
        f"SELECT a.id, a.tags, b.price {PAIRS}",
    ),
    "lists_of_structs": (
        f"SELECT a.id, ARRAY(STRUCT(a.cat AS i), STRUCT(b.price AS i)) AS x {PAIRS}",
        f"SELECT a.id, [{{'i': a.cat}}, {{'i': b.price}}] {PAIRS}",
    ),
    "maps": (
        f"SELECT a.id, MAP_KEYS(MAP('k', b.price)) AS x, MAP('k', a.cat, 'l', b.price)['l'] AS y {PAIRS}",
        f"SELECT a.id, ['k'], b.price {PAIRS}",
    ),
    "transformed": (
        f"SELECT a.id, TRANSFORM(a.tags, (t, i) -> t || i || COALESCE(b.price, 0)) AS x {PAIRS}",
        f"SELECT a.id, list_transform(a.tags, lambda t, i: t || (i - 1) || coalesce(b.price, 0)) {PAIRS}",
    ),
    "summed": (
        f"SELECT a.id, AGGREGATE(a.tags, COALESCE(b.price, 0), (s, t) -> s + LENGTH(t)) AS x {PAIRS}",
        f"SELECT a.id, coalesce(b.price, 0) + len(a.tags) {PAIRS}",
    ),
    "read_from_text": (
        f"SELECT a.id, FROM_JSON(CONCAT('{{\"p\": ', b.price, '}}'), 'p BIGINT').p AS x {PAIRS}",
        f"SELECT a.id, b.price {PAIRS}",
    ),
    "of_groups": (
        f"SELECT a.cat, STRUCT(COUNT(DISTINCT a.id) AS n, MAX(b.price) AS m) AS x {PAIRS} GROUP BY a.cat",
        f"SELECT a.cat, {{'n': count(DISTINCT a.id), 'm': max(b.price)}} {PAIRS} GROUP BY a.cat",
    ),
}

SPREAD: Final = (
    "CASE WHEN min({0}) = max({0}) THEN NULL WHEN count({0}) = 2 THEN 0.0 "
    "ELSE skewness({0}) * (count({0}) - 2) / sqrt(count({0}) * (count({0}) - 1)) END"
)
OF_MANY: Final[Queries] = {
    "rolled_up": (
        "SELECT cat, price, COUNT(*) AS n FROM a GROUP BY cat, price WITH ROLLUP",
        "SELECT cat, price, count(*) FROM a GROUP BY ROLLUP (cat, price)",
    ),
    "cubed": (
        "SELECT c.cat, b.price, COUNT(*) AS n FROM c JOIN b ON c.id = b.aid GROUP BY c.cat, b.price WITH CUBE",
        "SELECT c.cat, b.price, count(*) FROM c JOIN b ON c.id = b.aid GROUP BY CUBE (c.cat, b.price)",
    ),
    "numbered": (
        "SELECT a.id, r.id AS n, s.m FROM a, range(2) AS r, LATERAL range(1, a.cat) AS s(m)",
        "SELECT a.id, r.n, s.m FROM a, range(2) AS r(n), LATERAL (SELECT unnest(range(1, a.cat)) AS m) AS s",
    ),
    "numbered_pairs": (
        "SELECT a.id, b.price, r.n FROM a JOIN b ON a.cat = b.aid, range(b.price) AS r(n)",
        "SELECT a.id, b.price, r.n FROM a JOIN b ON a.cat = b.aid, LATERAL (SELECT unnest(range(b.price)) AS n) AS r",
    ),
    "texts_so_far": (
        "SELECT id, STRING_AGG(label, '-') OVER (PARTITION BY cat ORDER BY id) AS x FROM c",
        "SELECT id, string_agg(label, '-' ORDER BY id) OVER (PARTITION BY cat ORDER BY id) FROM c",
    ),
    "texts_if": (
        "SELECT id, LISTAGG(label, '-') FILTER (WHERE id > 2) OVER (PARTITION BY cat ORDER BY id DESC) AS x FROM c",
        "SELECT id, string_agg(label, '-' ORDER BY id DESC) FILTER (WHERE id > 2) OVER (PARTITION BY cat ORDER BY id DESC) FROM c",
    ),
    "sets_so_far": (
        "SELECT id, COLLECT_SET(label) OVER (PARTITION BY cat ORDER BY id) AS x FROM c",
        (
            "SELECT id, coalesce(list_sort(list(DISTINCT label) FILTER (WHERE label IS NOT NULL) "
            "OVER (PARTITION BY cat ORDER BY id)), []) FROM c"
        ),
    ),
    "moments": (
        (
            "SELECT c.cat, ROUND(SKEWNESS(b.price), 6) AS s, ROUND(KURTOSIS(b.price), 6) AS k "
            "FROM c JOIN b ON c.id = b.aid GROUP BY c.cat"
        ),
        (
            f"SELECT c.cat, round({SPREAD.format('b.price')}, 6), round(CASE WHEN min(b.price) < max(b.price) THEN "
            "kurtosis_pop(b.price) END, 6) FROM c JOIN b ON c.id = b.aid GROUP BY c.cat"
        ),
    ),
    "any_of_them": (
        "SELECT cat, FIRST(label) AS f, LAST(label, TRUE) AS l, FIRST_VALUE(id) AS g FROM c GROUP BY cat",
        "SELECT cat, min(label), max(label), min(id) FROM c GROUP BY cat",
    ),
    "pivoted": (
        "SELECT * FROM (SELECT cat, label, id FROM c) PIVOT (SUM(id) AS s, COUNT(*) AS n FOR label IN ('p', NULL AS none))",
        (
            "SELECT cat, (sum(id) FILTER (WHERE label = 'p'))::BIGINT, count(*) FILTER (WHERE label = 'p'), "
            "(sum(id) FILTER (WHERE label IS NULL))::BIGINT, count(*) FILTER (WHERE label IS NULL) FROM c GROUP BY cat"
        ),
    ),
    "unpivoted": (
        "SELECT * FROM (SELECT id AS key, cat, price FROM a) UNPIVOT (v FOR k IN (cat, price AS 'paid'))",
        (
            "SELECT id, 'cat', cat FROM a WHERE cat IS NOT NULL UNION ALL "
            "SELECT id, 'paid', price FROM a WHERE price IS NOT NULL"
        ),
    ),
    "unpivoted_changes": (
        "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM c UNPIVOT (v FOR k IN (id, cat)) AS u GROUP BY k",
        (
            "SELECT k, count(*), sum(v)::BIGINT FROM (SELECT 'id' AS k, id AS v FROM c UNION ALL SELECT 'cat', cat FROM c) "
            "WHERE v IS NOT NULL GROUP BY k"
        ),
    ),
    "first_so_far": (
        "SELECT id, FIRST(label) OVER (PARTITION BY cat ORDER BY id) AS f, LAST(id) OVER (PARTITION BY cat ORDER BY id) AS l FROM c",
        "SELECT id, first_value(label) OVER (PARTITION BY cat ORDER BY id), id FROM c",
    ),
}


@pytest.mark.parametrize("queries", [ROWS, VALUES, NESTED, OF_MANY], ids=["rows", "values", "nested", "of_many"])
def test_answers_that_change(opened: Opened, queries: Queries) -> None:
    rnd = random.Random(31)  # noqa: S311
    db = opened()
    with duckdb.connect() as oracle:
        make_streams(db, oracle)
        make_changing(db, oracle)
        hold_beside(db, oracle, queries, lambda again, step: add_changing(again, oracle, rnd, step), reopened=opened)
