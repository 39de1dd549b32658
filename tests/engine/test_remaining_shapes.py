"""Shapes of relational algebra over streams that came last, each beside DuckDB after every batch (G3, G9, G12)."""

from __future__ import annotations

import random
from typing import Final

import duckdb
import pytest

import penstock
from tests.engine.answers import at, read
from tests.engine.beside_duckdb import hold_beside
from tests.engine.test_more_shapes import SESSIONS
from tests.engine.test_quantified import BUCKET, add_both, make_streams

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
    # The largest values, as in ksqlDB.
    "largest_of_rows": (
        "SELECT cat, TOPK(price, 3) AS l, TOPKDISTINCT(price, 2) AS d FROM a GROUP BY cat",
        (
            "SELECT cat, coalesce(list(price ORDER BY price DESC) FILTER (WHERE price IS NOT NULL), [])[:3], "
            "coalesce(list(DISTINCT price ORDER BY price DESC) FILTER (WHERE price IS NOT NULL), [])[:2] FROM a GROUP BY cat"
        ),
    ),
    "largest_of_changes": (
        "SELECT cat, TOPK(label, 2) AS l, TOPKDISTINCT(label, 2) AS d FROM c GROUP BY cat",
        (
            "SELECT cat, coalesce(list(label ORDER BY label DESC) FILTER (WHERE label IS NOT NULL), [])[:2], "
            "coalesce(list(DISTINCT label ORDER BY label DESC) FILTER (WHERE label IS NOT NULL), [])[:2] FROM c GROUP BY cat"
        ),
    ),
    # Windows over a subquery of rows that replace each other, and more of them than are written out.
    "tumbled_below": (
        (
            "SELECT cat, TUMBLE_START(ts, INTERVAL '10' SECOND) AS s, COUNT(*) AS n "
            "FROM (SELECT id, cat, ts FROM c WHERE cat > 0) AS x GROUP BY cat, TUMBLE(ts, INTERVAL '10' SECOND)"
        ),
        f"SELECT cat, {BUCKET.format('c')}, count(*) FROM c WHERE cat > 0 GROUP BY ALL",
    ),
    "sessions_below": (
        (
            "SELECT cat, SESSION_START(ts, INTERVAL '3' SECOND) AS s, SESSION_END(ts, INTERVAL '3' SECOND) AS e, "
            "COUNT(*) AS n FROM (SELECT cat, ts FROM c WHERE id > 1) GROUP BY cat, SESSION(ts, INTERVAL '3' SECOND)"
        ),
        (
            f"SELECT cat, s, e, count(*) FROM ({SESSIONS.format('(SELECT cat, ts FROM c WHERE id > 1)', 'cat')}) AS z "
            "GROUP BY ALL"
        ),
    ),
    # Lists and structs have an order, in which a NULL inside of them is the smallest value.
    "ranked_lists": (
        "SELECT id, RANK() OVER (PARTITION BY cat ORDER BY tags DESC, STRUCT(label, id)) AS r FROM c",
        (
            "SELECT id, rank() OVER (PARTITION BY cat ORDER BY tags DESC NULLS LAST, label NULLS FIRST, id NULLS FIRST) "
            "FROM c"
        ),
    ),
    "last_lists": (
        "SELECT id, tags FROM c ORDER BY tags DESC, id LIMIT 3",
        "SELECT id, tags FROM c ORDER BY tags DESC NULLS LAST, id LIMIT 3",
    ),
    "ends_of_structs": (
        (
            "SELECT cat, MIN(STRUCT(label AS l, id AS i)) AS lo, MAX(STRUCT(label AS l, id AS i)) AS hi, MAX(tags) AS t, "
            "MAX_BY(id, STRUCT(label, id)) AS m, ARRAY_AGG(id ORDER BY STRUCT(label, id) DESC) AS s, "
            "ARRAY_AGG(DISTINCT STRUCT(label AS l) ORDER BY STRUCT(label AS l) DESC) AS d, COUNT(DISTINCT tags) AS n "
            "FROM c GROUP BY cat"
        ),
        (
            "SELECT cat, list({'l': label, 'i': id} ORDER BY label NULLS FIRST, id)[1], "
            "list({'l': label, 'i': id} ORDER BY label DESC NULLS LAST, id DESC)[1], "
            "list(tags ORDER BY tags DESC NULLS LAST)[1], list(id ORDER BY label DESC NULLS LAST, id DESC)[1], "
            "list(id ORDER BY label DESC NULLS LAST, id DESC), "
            "list_transform(list_sort(list(DISTINCT coalesce(label, '')), 'DESC'), lambda x: {'l': nullif(x, '')}), "
            "count(DISTINCT tags) FROM c GROUP BY cat"
        ),
    ),
    # Lists and structs are told apart like any other value; a length of time has seconds; NULLs take a type.
    "distinct_lists": (
        "SELECT DISTINCT tags, STRUCT(cat AS cat, label AS label) AS st FROM c",
        "SELECT DISTINCT tags, {'cat': cat, 'label': label} FROM c",
    ),
    "counted_lists": (
        "SELECT cat, COUNT(DISTINCT tags) AS n, COUNT(DISTINCT STRUCT(label, tags)) AS m FROM c GROUP BY cat",
        "SELECT cat, count(DISTINCT tags), count(DISTINCT {'l': label, 't': tags}) FROM c GROUP BY cat",
    ),
    "same_lists": "SELECT c.id, a.id AS other FROM c JOIN a ON c.tags = a.tags AND c.id <= a.id",
    "other_lists": "SELECT tags FROM c WHERE tags IN (SELECT tags FROM a) EXCEPT SELECT tags FROM c WHERE id > 4",
    "long": (
        "SELECT cat, CAST(EXTRACT(EPOCH FROM MAX(ts) - MIN(ts)) AS DOUBLE) AS s FROM c GROUP BY cat",
        "SELECT cat, epoch(max(ts) - min(ts))::DOUBLE FROM c GROUP BY cat",
    ),
    "gaps": (
        (
            "SELECT id, ts - LAG(ts) OVER (PARTITION BY cat ORDER BY ts, id) AS gap FROM c "
            "QUALIFY gap IS NULL OR gap > INTERVAL '2' SECOND"
        ),
        (
            "SELECT id, ts - lag(ts) OVER (PARTITION BY cat ORDER BY ts, id) AS gap FROM c "
            "QUALIFY gap IS NULL OR gap > INTERVAL 2 SECOND"
        ),
    ),
    "days": (
        (
            "SELECT id, COUNT(*) OVER (PARTITION BY cat ORDER BY CAST(ts AS DATE) RANGE BETWEEN INTERVAL '30' DAY PRECEDING "
            "AND CURRENT ROW) AS n FROM c"
        ),
        (
            "SELECT id, count(*) OVER (PARTITION BY cat ORDER BY ts::DATE NULLS FIRST RANGE BETWEEN INTERVAL 30 DAY "
            "PRECEDING AND CURRENT ROW) FROM c"
        ),
    ),
    "either": (
        "SELECT id AS x, NULL AS y FROM c UNION SELECT price, price FROM a EXCEPT SELECT id, id FROM c",
        "SELECT id, NULL::BIGINT FROM c UNION SELECT price, price FROM a EXCEPT SELECT id, id FROM c",
    ),
    "many_hops": (
        (
            "SELECT cat, window_start, window_end, COUNT(*) AS n FROM HOP(TABLE c, DESCRIPTOR(ts), INTERVAL '1' SECOND, "
            "INTERVAL '70' SECOND) GROUP BY cat, window_start, window_end"
        ),
        (
            "SELECT cat, w, w + INTERVAL 70 SECOND, count(*) FROM (SELECT cat, date_trunc('second', ts) - to_seconds(i) AS w "
            "FROM c, range(0, 70) AS r(i)) GROUP BY ALL"
        ),
    ),
}


@pytest.mark.slow
def test_answers_that_change(db: penstock.Database) -> None:
    rnd = random.Random(21)  # noqa: S311
    with duckdb.connect() as oracle:
        make_streams(db, oracle)
        make_changing(db, oracle)
        hold_beside(db, oracle, CHANGING, lambda opened, step: add_changing(opened, oracle, rnd, step))


def test_the_clock_of_rows(db: penstock.Database) -> None:
    """G3: what is made of several rows has the time at which the newest of them came; later batches change nothing."""
    db.execute("CREATE STREAM p (k BIGINT, seen AS PROCTIME())")
    db.execute("CREATE STREAM q (k BIGINT, v BIGINT, seen AS PROCTIME())")
    views = {
        "pairs": (
            "SELECT p.k, q.v, p.seen AS one, q.seen AS two, NOW() AS t, CURRENT_DATE AS d FROM p LEFT JOIN q ON p.k = q.k"
        ),
        "groups": (
            "SELECT k, COUNT(DISTINCT v) AS n, MAX(seen) AS last, CURRENT_TIMESTAMP AS t, MIN(CURRENT_TIMESTAMP) AS f, "
            "MIN(seen) AS first FROM q WHERE seen <= NOW() GROUP BY k"
        ),
        "none": "SELECT k, COUNT(DISTINCT v) AS n FROM q WHERE seen > NOW() GROUP BY k",
        "ranked": (
            "SELECT k, COUNT(*) AS n, RANK() OVER (PARTITION BY window_start ORDER BY COUNT(*) DESC) AS r "
            "FROM TUMBLE(TABLE q, DESCRIPTOR(seen), INTERVAL '30000' DAY) GROUP BY k, window_start, window_end"
        ),
        "largest": (
            "SELECT MAX(n) AS n FROM "
            "(SELECT k, COUNT(*) AS n FROM q GROUP BY k, TUMBLE(PROCTIME(), INTERVAL '30000' DAY))"
        ),
    }
    db.execute("CREATE MATERIALIZED VIEW newest AS SELECT k, MAX(v) AS v FROM q GROUP BY k")
    db.execute("CREATE MATERIALIZED VIEW copied AS SELECT k, v FROM q")
    for below in ("newest", "copied"):
        session = "SESSION(PROCTIME(), INTERVAL '30000' DAY)"
        views[f"visits_{below}"] = f"SELECT k, COUNT(*) AS n, MAX(v) AS v FROM {below} GROUP BY k, {session}"
    of_several = {
        "once": "SELECT DISTINCT k, seen FROM q",
        "either": "SELECT k, seen FROM p UNION SELECT k, seen FROM q",
        "last": "SELECT k, seen FROM q ORDER BY seen DESC, k LIMIT 2",
        "less": "SELECT k FROM q EXCEPT SELECT v + 1 FROM q",
        "both": "SELECT k FROM q INTERSECT SELECT v + 1 FROM q",
    }
    for name, query in of_several.items():
        alias = "" if name in ("last", "less") else " AS x"
        views[name] = f"SELECT *, NOW() AS t, NOW() > TIMESTAMP '2026-01-01 00:00:00' AS now FROM ({query}){alias}"
    for name, query in views.items():
        db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    before: dict[int, object] = {}
    for step in range(3):
        db.append("p", [{"k": step}])
        db.append("q", [{"k": k, "v": step} for k in range(step + 1)])
        db.settle(180)
        pairs = read(db, "pairs")
        assert [(k, v) for k, v, *_ in pairs] == [(k, v) for k in range(step + 1) for v in range(k, step + 1)]
        for k, v, one, two, t, d in pairs:
            assert t == max(one, two), (k, v)
            assert d == t.date()
        assert read(db, "visits_newest") == [(k, 1, step) for k in range(step + 1)]
        assert read(db, "visits_copied") == [(k, step + 1 - k, step) for k in range(step + 1)]
        groups = read(db, "groups")
        assert [(k, n) for k, n, *_ in groups] == [(k, step + 1 - k) for k in range(step + 1)]
        for k, _, last, t, f, first in groups:
            assert (t, f) == (last, first)
            assert before.setdefault(k, first) == first
        assert read(db, "none") == []
        for name in ("once", "either", "last"):
            rows = read(db, name)
            assert {k for k, *_ in rows} == set(range(min(step + 1, 2) if name == "last" else step + 1))
            assert all(t == seen and now for _, seen, t, now in rows)
        assert [(k, now) for k, _, now in read(db, "less")] == [(0, True)]
        assert [(k, now) for k, _, now in read(db, "both")] == [(k + 1, True) for k in range(step)]
        assert read(db, "ranked") == [(k, step + 1 - k, k + 1) for k in range(step + 1)]
        assert read(db, "largest") == [(step + 1,)]


def make_changing(db: penstock.Database, oracle: duckdb.DuckDBPyConnection) -> None:
    """A stream whose rows replace each other, and a table of the same columns beside it."""
    db.execute(f"CREATE STREAM c ({C.format('STRING')}, PRIMARY KEY (id) NOT ENFORCED) WITH (changes = 'upsert')")
    oracle.execute(f"CREATE TABLE c ({C.format('VARCHAR').replace('ARRAY<VARCHAR>', 'VARCHAR[]')})")


def add_changing(db: penstock.Database, oracle: duckdb.DuckDBPyConnection, rnd: random.Random, step: int) -> None:
    """More rows of every stream, and some in the place of others."""
    add_both(db, oracle, rnd, step, count=14)
    for _ in range(10):
        _change(db, oracle, rnd, step)


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
