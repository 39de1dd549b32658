"""Shapes of queries that came late: joins in brackets and more, each beside DuckDB after every batch (A11, G3, G9)."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any, Final

import duckdb
import pytest

import penstock
from tests.engine.answers import at
from tests.engine.beside_duckdb import add_row, hold_beside

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

TABLES: Final = {
    "a": "id BIGINT, cat BIGINT, price BIGINT, name {text}, cost DECIMAL(10, 2), ts TIMESTAMP",
    "b": "aid BIGINT, price BIGINT, share DOUBLE, ts TIMESTAMP",
    "c": "id BIGINT, cat BIGINT, label {text}, ts TIMESTAMP",
}
# Rows with the bounds of their session: those from which the gap is not reached to the next earlier one begin one.
SESSIONS: Final = (
    "SELECT x.*, (SELECT max(y.ts) FROM {0} AS y WHERE y.{1} IS NOT DISTINCT FROM x.{1} AND y.ts <= x.ts AND NOT EXISTS (FROM {0} AS z "
    "WHERE z.{1} IS NOT DISTINCT FROM y.{1} AND z.ts < y.ts AND z.ts >= y.ts - INTERVAL 3 SECOND)) AS s, "
    "(SELECT min(y.ts) FROM {0} AS y WHERE y.{1} IS NOT DISTINCT FROM x.{1} AND y.ts >= x.ts AND NOT EXISTS (FROM {0} AS z "
    "WHERE z.{1} IS NOT DISTINCT FROM y.{1} AND z.ts > y.ts AND z.ts <= y.ts + INTERVAL 3 SECOND)) + INTERVAL 3 SECOND AS e "
    "FROM {0} AS x"
)
MAPS: Final = (
    "SELECT cat, m, to_json(m)::VARCHAR FROM (SELECT cat, coalesce(map_from_entries(list({{'k': k, 'v': v}} ORDER BY k) "
    "FILTER (WHERE k IS NOT NULL)), MAP {{}}) AS m FROM (SELECT cat, {2} AS k, max({0}) AS v FROM {1} GROUP BY ALL) GROUP BY cat)"
)
# The answer changes as rows come, and is held against DuckDB's after each batch: same text, unless there are two.
CHANGING: Final[dict[str, str | tuple[str, str]]] = {
    "bracketed": "SELECT a.id, b.price, c.label FROM a LEFT JOIN (b JOIN c ON b.aid = c.cat) ON a.cat = b.aid",
    "in_brackets": (
        "SELECT a.id, b.price, c.label, c.id AS cid FROM a JOIN (b LEFT JOIN c ON b.price = c.cat) ON a.cat = b.aid"
    ),
    "all_of_both": (
        "SELECT a.cat, COUNT(c.label) AS n, COUNT(b.price) AS m "
        "FROM a FULL JOIN (b FULL JOIN c ON b.aid = c.cat) ON a.cat = b.aid GROUP BY a.cat"
    ),
    # Medians and lists over rows that replace each other, over a join, over an aggregate, and by Spark over rows alone.
    "medians": "SELECT c.label, MEDIAN(c.cat) AS m, MAX(c.id) AS x FROM c GROUP BY c.label",
    "lists": (
        (
            "SELECT cat, ARRAY_AGG(label ORDER BY id DESC) AS x, STRING_AGG(label, '-' ORDER BY id) AS y, "
            "ARRAY_AGG(id ORDER BY label DESC, id) FILTER (WHERE id > 2) AS z, ARRAY_AGG(DISTINCT label ORDER BY label) AS d "
            "FROM c GROUP BY cat"
        ),
        (
            "SELECT cat, coalesce(array_agg(label ORDER BY id DESC) FILTER (WHERE label IS NOT NULL), []), "
            "string_agg(label, '-' ORDER BY id), "
            "coalesce(array_agg(id ORDER BY label DESC NULLS LAST, id) FILTER (WHERE id > 2), []), "
            "coalesce(array_agg(DISTINCT label ORDER BY label) FILTER (WHERE label IS NOT NULL), []) FROM c GROUP BY cat"
        ),
    ),
    "lists_of_spark": (
        (
            "SELECT cat, ARRAY_AGG(id ORDER BY price DESC NULLS FIRST, name, id) AS z, PERCENTILE_DISC(0.3) WITHIN GROUP "
            "(ORDER BY price) AS d, ARRAY_AGG(DISTINCT name ORDER BY name DESC) AS n FROM a GROUP BY cat"
        ),
        (
            "SELECT cat, array_agg(id ORDER BY price DESC NULLS FIRST, name NULLS FIRST, id), "
            "quantile_disc(price, 0.3)::DOUBLE, "
            "coalesce(array_agg(DISTINCT name ORDER BY name DESC) FILTER (WHERE name IS NOT NULL), []) FROM a GROUP BY cat"
        ),
    ),
    "lists_of_both": (
        (
            "SELECT a.cat, MEDIAN(b.price) AS m, PERCENTILE_DISC(0.3) WITHIN GROUP (ORDER BY b.price DESC) AS d, "
            "ARRAY_AGG(b.price ORDER BY a.id DESC, b.price) AS l FROM a LEFT JOIN b ON a.cat = b.aid GROUP BY a.cat"
        ),
        (
            "SELECT a.cat, median(b.price), quantile_disc(-b.price, 0.3)::DOUBLE * -1, "
            "coalesce(array_agg(b.price ORDER BY a.id DESC, b.price) FILTER (WHERE b.price IS NOT NULL), []) "
            "FROM a LEFT JOIN b ON a.cat = b.aid GROUP BY a.cat"
        ),
    ),
    # Structs and lists of them: beside a LIMIT, and in lists that the store and Spark make.
    "first_structs": (
        "SELECT id, STRUCT(price, name) AS s FROM a ORDER BY price DESC LIMIT 4",
        "SELECT id, {'price': price, 'name': name} FROM a ORDER BY price DESC NULLS LAST, id, 2 NULLS FIRST LIMIT 4",
    ),
    "lists_of_structs": (
        (
            "SELECT cat, COLLECT_LIST(STRUCT(id, name)) AS x, ARRAY_AGG(STRUCT(id AS i, name AS n) ORDER BY id DESC) AS y, "
            "COUNT(DISTINCT price) AS d FROM a GROUP BY cat"
        ),
        (
            "SELECT cat, list_sort(list({'id': id, 'name': name})), list({'i': id, 'n': name} ORDER BY id DESC), "
            "count(DISTINCT price) FROM a GROUP BY cat"
        ),
    ),
    "structs_of_spark": (
        "SELECT cat, ARRAY_AGG(STRUCT(id AS i, name AS n) ORDER BY id) AS y, ARRAY_AGG(name ORDER BY id) AS x FROM a GROUP BY cat",
        (
            "SELECT cat, list({'i': id, 'n': name} ORDER BY id), "
            "coalesce(list(name ORDER BY id) FILTER (WHERE name IS NOT NULL), []) FROM a GROUP BY cat"
        ),
    ),
    "median_of_counts": "SELECT MEDIAN(n) AS m FROM (SELECT cat, COUNT(*) AS n FROM a GROUP BY cat) AS x",
    # What ties with the last one is there too.
    "first_three": (
        "SELECT id, price FROM a ORDER BY price DESC FETCH FIRST 3 ROWS WITH TIES",
        "SELECT id, price FROM a QUALIFY rank() OVER (ORDER BY price DESC NULLS LAST) <= 3",
    ),
    "most_often": (
        "SELECT cat, COUNT(*) AS n FROM a GROUP BY cat ORDER BY n DESC FETCH FIRST ROW WITH TIES",
        "SELECT cat, count(*) AS n FROM a GROUP BY cat QUALIFY rank() OVER (ORDER BY count(*) DESC) <= 1",
    ),
    # Numbers of different types in one column have the type that Spark gives them.
    "cost_or_price": (
        "SELECT cost FROM a UNION SELECT price FROM b",
        "SELECT cost::DECIMAL(22, 2) FROM a UNION SELECT price::DECIMAL(22, 2) FROM b",
    ),
    "cost_and_share": (
        "SELECT cost FROM a WHERE cost < 3 UNION SELECT share FROM b",
        "SELECT cost::DOUBLE FROM a WHERE cost < 3 UNION SELECT share FROM b",
    ),
    "price_not_cost": (
        "SELECT id FROM a EXCEPT SELECT cost FROM a",
        "SELECT id::DECIMAL(22, 2) FROM a EXCEPT SELECT cost::DECIMAL(22, 2) FROM a",
    ),
    "price_and_share": "SELECT price FROM a INTERSECT SELECT share FROM b",
    # The last of all rows before each; of two of the same moment the other columns say which.
    "last_of_all": (
        "SELECT a.id, b.price FROM a ASOF LEFT JOIN b ON a.ts >= b.ts",
        (
            "SELECT id, (SELECT price FROM b WHERE b.ts <= a.ts ORDER BY b.ts DESC, b.price NULLS FIRST LIMIT 1) AS price "
            "FROM a"
        ),
    ),
    # Of several values of a key a map has the largest; over rows that only come Spark makes it, over others the store.
    "maps": (
        "SELECT cat, MAP_AGG(label, id) AS m, JSON_OBJECTAGG(KEY label VALUE id) AS j FROM c GROUP BY cat",
        MAPS.format("id", "c", "label"),
    ),
    "maps_of_spark": (
        "SELECT cat, MAP_AGG(name, id) AS m, JSON_OBJECTAGG(name : id) AS j FROM a GROUP BY cat",
        MAPS.format("id", "a", "name"),
    ),
    "texts_of_spark": (
        "SELECT cat, GROUP_CONCAT(name ORDER BY id SEPARATOR ';') AS t, JSON_ARRAYAGG(name ORDER BY id) AS j FROM a GROUP BY cat",
        "SELECT cat, string_agg(name, ';' ORDER BY id), to_json(coalesce(array_agg(name ORDER BY id) FILTER (WHERE name IS NOT NULL), []))::VARCHAR FROM a GROUP BY cat",
    ),
    "texts": (
        "SELECT cat, GROUP_CONCAT(label ORDER BY id DESC) AS t, JSON_ARRAYAGG(id ORDER BY id) AS j FROM c GROUP BY cat",
        "SELECT cat, string_agg(label, ',' ORDER BY id DESC), to_json(array_agg(id ORDER BY id))::VARCHAR FROM c GROUP BY cat",
    ),
    # Windows over rows that change, and sessions before they close, which are not those of their groups.
    "tumbled": (
        "SELECT cat, TUMBLE_START(ts, INTERVAL '10' SECOND) AS s, COUNT(*) AS n FROM c GROUP BY cat, TUMBLE(ts, INTERVAL '10' SECOND)",
        "SELECT cat, time_bucket(INTERVAL 10 SECOND, ts) AS s, count(*) FROM c GROUP BY ALL",
    ),
    "hopped": (
        (
            "SELECT window_start, cat, COUNT(*) AS n FROM HOP(TABLE c, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '20' SECOND) "
            "GROUP BY window_start, window_end, cat"
        ),
        (
            "SELECT time_bucket(INTERVAL 10 SECOND, ts) - to_seconds(k) AS w, cat, count(*) FROM c, (VALUES (0), (10)) AS s(k) "
            "GROUP BY ALL"
        ),
    ),
    "cumulated": (
        (
            "SELECT window_start, window_end, MAX(id) AS m FROM CUMULATE(TABLE c, DESCRIPTOR(ts), INTERVAL '5' SECOND, "
            "INTERVAL '10' SECOND) GROUP BY window_start, window_end"
        ),
        (
            "SELECT w, w + to_seconds(k) AS e, max(id) FROM (SELECT *, time_bucket(INTERVAL 10 SECOND, ts) AS w FROM c), "
            "(VALUES (5), (10)) AS s(k) WHERE ts < w + to_seconds(k) GROUP BY ALL"
        ),
    ),
    "sessions_of_others": (
        (
            "SELECT cat, window_start, window_end, COUNT(*) AS n FROM SESSION(TABLE a PARTITION BY price, DESCRIPTOR(ts), "
            "INTERVAL '3' SECOND) GROUP BY cat, window_start, window_end EMIT CHANGES"
        ),
        f"SELECT cat, s, e, count(*) FROM ({SESSIONS.format('a', 'price')}) GROUP BY ALL",
    ),
    "sessions_in_order": (
        (
            "SELECT price, s, n, RANK() OVER (PARTITION BY price ORDER BY n DESC) AS r FROM (SELECT price, "
            "SESSION_START(ts, INTERVAL '3' SECOND) AS s, COUNT(*) AS n FROM a GROUP BY price, SESSION(ts, INTERVAL '3' SECOND)) "
            "EMIT CHANGES"
        ),
        (
            "SELECT price, s, n, rank() OVER (PARTITION BY price ORDER BY n DESC) FROM "
            f"(SELECT price, s, count(*) AS n FROM ({SESSIONS.format('a', 'price')}) GROUP BY ALL)"
        ),
    ),
    "rows_of_sessions": (
        (
            "SELECT id, window_start, window_time FROM SESSION(TABLE a PARTITION BY price, DESCRIPTOR(ts), INTERVAL '3' SECOND) "
            "WHERE cat > 1 EMIT CHANGES"
        ),
        f"SELECT id, s, e - INTERVAL 1 MILLISECOND FROM ({SESSIONS.format('a', 'price')}) WHERE cat > 1",
    ),
    "sessions_of_changes": (
        "SELECT cat, SESSION_END(ts, INTERVAL '3' SECOND) AS e, COUNT(*) AS n FROM c GROUP BY cat, SESSION(ts, INTERVAL '3' SECOND)",
        f"SELECT cat, e, count(*) FROM ({SESSIONS.format('c', 'cat')}) GROUP BY cat, s, e",
    ),
    # What a row was at a time that has passed, though later ones have taken its place.
    "valid_then": (
        "SELECT a.id, c.label FROM a LEFT JOIN c FOR SYSTEM_TIME AS OF a.ts ON a.cat = c.id",
        (
            "SELECT id, (SELECT label FROM versions AS v WHERE v.id = a.cat AND v.ts <= a.ts ORDER BY v.ts DESC LIMIT 1) AS l "
            "FROM a"
        ),
    ),
    # The version is found by key and time; what else is asked of it takes no earlier one in its place.
    "valid_then_or_not": (
        "SELECT a.id, c.label FROM a LEFT JOIN c FOR SYSTEM_TIME AS OF a.ts ON a.cat = c.id AND c.label <> 'q'",
        (
            "SELECT id, CASE WHEN l <> 'q' THEN l END FROM (SELECT id, (SELECT label FROM versions AS v "
            "WHERE v.id = a.cat AND v.ts <= a.ts ORDER BY v.ts DESC LIMIT 1) AS l FROM a)"
        ),
    ),
    "valid_then_alone": (
        "SELECT a.id, c.label FROM a JOIN c FOR SYSTEM_TIME AS OF a.ts ON a.cat = c.id AND c.label <> 'q'",
        (
            "SELECT id, l FROM (SELECT id, (SELECT label FROM versions AS v "
            "WHERE v.id = a.cat AND v.ts <= a.ts ORDER BY v.ts DESC LIMIT 1) AS l FROM a) WHERE l <> 'q'"
        ),
    ),
}  # fmt: skip


@pytest.mark.slow
def test_answers_that_change(db: penstock.Database) -> None:
    rnd = random.Random(21)  # noqa: S311
    with duckdb.connect() as oracle:
        _streams(db, oracle)
        hold_beside(db, oracle, CHANGING, lambda opened, step: _add_all(opened, oracle, rnd, step))


def _streams(db: penstock.Database, oracle: duckdb.DuckDBPyConnection) -> None:
    for name, columns in TABLES.items():
        changes = name == "c"  # rows of c replace each other
        clauses = ", WATERMARK FOR ts AS ts - INTERVAL '1' MINUTE" + (
            ", PRIMARY KEY (id) NOT ENFORCED" if changes else ""
        )
        options = " WITH (connector = 'topic', changes = 'upsert')" if changes else ""
        db.execute(f"CREATE STREAM {name} ({columns.format(text='STRING')}{clauses}){options}")
        oracle.execute(f"CREATE TABLE {name} ({columns.format(text='VARCHAR')})")
    oracle.execute("CREATE TABLE versions AS FROM c")


def _add_all(db: penstock.Database, oracle: duckdb.DuckDBPyConnection, rnd: random.Random, step: int) -> None:
    """Few values, so that many are equal, and now and then none; some rows of c are replaced or deleted."""

    def value(most: int) -> int | None:
        return None if rnd.random() < 0.15 else rnd.randrange(most)

    for place in range(12):
        moment = at(20 * step + rnd.randrange(20))
        name = None if rnd.random() < 0.1 else rnd.choice("uvwxyz")
        cost = None if rnd.random() < 0.1 else Decimal(rnd.randrange(500)) / 100
        _add(db, oracle, "a", (step * 12 + place, value(4), value(5), name, cost, moment))
        if rnd.random() < 0.6:
            _add(db, oracle, "b", (value(4), value(5), rnd.choice([None, 0.5, 1.0, 2.0]), moment))
    for number in rnd.sample(range(8), 5):
        oracle.execute("DELETE FROM c WHERE id = ?", [number])
        if step and rnd.random() < 0.3:
            db.append("c", [{"id": number, "_op": "delete"}])
        else:
            moment = at(20 * step + rnd.randrange(40))
            _add(db, oracle, "c", (number, value(4), rnd.choice(["p", "q", None]), moment))
            oracle.execute("DELETE FROM versions WHERE (id, ts) IN (SELECT id, ts FROM c WHERE id = ?)", [number])
            oracle.execute("INSERT INTO versions FROM c WHERE id = ?", [number])


def _add(db: penstock.Database, oracle: duckdb.DuckDBPyConnection, name: str, row: tuple[Any, ...]) -> None:
    columns = [column.split()[0] for column in TABLES[name].replace("(10, 2)", "").split(", ")]
    add_row(db, oracle, name, columns, row)
