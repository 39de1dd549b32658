"""Expressions over joined, grouped and ranked rows that only Spark knows: the view store asks Spark for them. Each is
held against Spark's own answer to the same text over the same rows, after each batch and after a stop (G3, G9)."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pytest

import penstock
from tests.databases import Opened
from tests.engine.answers import at, check_change_log

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

A: Final = "id BIGINT, name STRING, d DECIMAL(10, 2), f DOUBLE, tags ARRAY<STRING>, ts TIMESTAMP"
B: Final = "id BIGINT, name STRING, e DECIMAL(12, 3), raw BINARY, ts TIMESTAMP"
TIME: Final = pa.timestamp("us", tz="UTC")
ARROW: Final = {
    "a": pa.schema(
        [("id", pa.int64()), ("name", pa.string()), ("d", pa.decimal128(10, 2)), ("f", pa.float64()),
         ("tags", pa.list_(pa.string())), ("ts", TIME)]
    ),
    "b": pa.schema(
        [("id", pa.int64()), ("name", pa.string()), ("e", pa.decimal128(12, 3)), ("raw", pa.binary()), ("ts", TIME)]
    ),
}  # fmt: skip
JOINED: Final = "a LEFT JOIN b ON a.id = b.id"
LATEST: Final = (
    "(SELECT id, MAX(name) AS name, MAX(d) AS d, MIN(ts) AS ts, COUNT(DISTINCT name) AS n FROM a GROUP BY id)"
)

QUERIES: Final = {
    "upper": f"SELECT a.id, UPPER(a.name || b.name) AS u, INITCAP(COALESCE(b.name, a.name)) AS i FROM {JOINED}",
    "matched": (
        f"SELECT a.id, REGEXP_REPLACE(a.name || COALESCE(b.name, '-'), '([a-zß])[a-z]*', '<$1>') AS r, "
        f"REGEXP_EXTRACT(CONCAT_WS('/', a.name, b.name), '^(.)', 1) AS x FROM {JOINED}"
    ),
    "divided": f"SELECT a.id, a.d / b.e AS q, ROUND(a.d * b.e, 1) AS r, ROUND(a.d / 3, 2) AS t FROM {JOINED}",
    "dates": f"SELECT a.id, DATE_FORMAT(GREATEST(a.ts, b.ts), 'EEE d MMM yyyy HH:mm:ss.SSS') AS t FROM {JOINED}",
    "nested": (
        f"SELECT a.id, CAST(TRANSFORM(a.tags, x -> UPPER(x || b.name)) AS ARRAY<STRING>) AS t, CAST(NAMED_STRUCT('at', "
        f"LAST_DAY(b.ts), 'm', SHA2(a.name || b.name, 256)) AS STRUCT<at: TIMESTAMP, m: STRING>) AS s, "
        f"UNHEX(HEX(a.name) || HEX(b.raw)) AS raw FROM {JOINED}"
    ),
    "filtered": (
        f"SELECT a.id, b.ts FROM {JOINED} WHERE LOWER(a.name || b.name) RLIKE '[a-m]' OR SOUNDEX(b.name) IS NULL"
    ),
    "grouped": (
        f"SELECT UPPER(a.name || b.name) AS u, COUNT(*) AS n, MAX(LEVENSHTEIN(a.name, b.name)) AS l, "
        f"COUNT(DISTINCT INITCAP(a.name || b.name)) AS m FROM {JOINED} GROUP BY UPPER(a.name || b.name)"
    ),
    "grouped_again": f"SELECT SOUNDEX(name) AS s, COUNT(*) AS n, SUM(ROUND(d / 7, 1)) AS t FROM {LATEST} GROUP BY SOUNDEX(name)",
    "of_all": f"SELECT DATE_FORMAT(MAX(ts), 'yyyy-MM') AS m, AVG(ROUND(d / n, 3)) AS x, SQRT(SUM(n)) AS r FROM {LATEST}",
    "ranked": (
        f"SELECT name, id, f, FORMAT_STRING('%5.2f|%s', f, name) AS t FROM (SELECT a.name || b.name AS name, a.id, a.f, "
        "ROW_NUMBER() OVER (PARTITION BY a.name ORDER BY UPPER(a.name || b.name) DESC, a.id, a.f, b.ts, b.e, a.d) AS r "
        f"FROM {JOINED}) AS x WHERE r <= 2"
    ),
    "first_ten": f"SELECT a.id, a.f, REVERSE(a.name || b.name) AS n FROM {JOINED} ORDER BY REVERSE(a.name || b.name) DESC, a.id, a.f LIMIT 10",
    "distinct_ones": f"SELECT DISTINCT SUBSTRING_INDEX(a.name || '.' || b.name, '.', 1) AS s FROM {JOINED}",
    "looked_up": "SELECT a.id, UPPER((SELECT MAX(name) FROM b WHERE b.id = a.id)) AS u FROM a",
    "many": "SELECT name, COUNT(DISTINCT id) AS n FROM a GROUP BY name HAVING ASCII(MAX(name)) + COUNT(DISTINCT id) > 60",
    "sets": f"SELECT LOWER(a.name || b.name) AS l FROM {JOINED} EXCEPT SELECT name FROM a",
}  # fmt: skip
# Over views, which Spark has no part in reading.
ON_VIEWS: Final = {
    "above": ("SELECT LOWER(u) AS l, id FROM upper WHERE u RLIKE '[A-Z]'", "upper"),
    "above_grouped": (
        "SELECT LENGTH(u) AS k, MAX(REVERSE(u)) AS r, SUM(n) AS n FROM grouped GROUP BY LENGTH(u)",
        "grouped",
    ),
    "above_by": ("SELECT SOUNDEX(u) AS k, COUNT(*) AS n FROM upper GROUP BY SOUNDEX(u)", "upper"),
}
NAMES: Final = ("anna", "Straße", "ǆ", "éa", "日本", "", " x ", "İi", "a.b", "o'b\\$1", None)


@pytest.mark.slow
def test_as_spark_answers(opened: Opened) -> None:
    db = opened()
    rnd = random.Random(7)  # noqa: S311
    rows: dict[str, list[dict[str, Any]]] = {"a": [], "b": []}
    for name, columns in (("a", A), ("b", B)):
        db.execute(f"CREATE STREAM {name} ({columns})")
    for name, query in QUERIES.items():
        db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        assert "asked of Spark: " in str(db.sql(f"EXPLAIN {query}").rows()), name
    for name, (query, _) in ON_VIEWS.items():
        db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    for step in range(3):
        _add(db, rows, rnd, step)
        db.settle(240)
        for name, answer in _answers(db, rows).items():
            assert answer, f"{name}: an answer without rows says nothing"
            assert _read(db, name) == answer, f"{name} after step {step}"
        if step == 0:  # stop, and go on from what is kept
            db.close()
            db = opened()
    for name in ("upper", "grouped", "of_all", "above", "above_by"):
        check_change_log(db, name, key=())


def _add(db: penstock.Database, rows: dict[str, list[dict[str, Any]]], rnd: random.Random, step: int) -> None:
    """Few keys, so that many rows meet; odd letters, and now and then no value at all."""

    def some(value: Any) -> Any:
        return None if rnd.random() < 0.12 else value

    added: dict[str, list[dict[str, Any]]] = {name: [] for name in rows}
    for place in range(12):
        moment = at(86_400 * (40 * step + place) + rnd.random())
        one = {
            "id": some(rnd.randrange(6)),
            "name": rnd.choice(NAMES),
            "d": some(Decimal(rnd.randrange(-9999, 9999)) / 100),
            "f": some(rnd.choice([0.5, -0.0, 1e300, 2.675])),
            "tags": some([rnd.choice(NAMES) for _ in range(rnd.randrange(3))]),
            "ts": some(moment),
        }
        other = {
            "id": some(rnd.randrange(6)),
            "name": rnd.choice(NAMES),
            "e": some(Decimal(rnd.randrange(1, 9999)) / 1000),
            "raw": some(bytes([rnd.randrange(256), 0, 255])),
            "ts": some(moment),
        }
        for name, row in (("a", one), ("b", other)):
            if name == "a" or place % 3:
                added[name].append(row)
    for half in (slice(None, 5), slice(5, None)):  # in turn, so that rows of both sides come first
        for name, new in added.items():
            db.append(name, new[half])
            rows[name] += new[half]


def _answers(db: penstock.Database, rows: dict[str, list[dict[str, Any]]]) -> dict[str, Counter[str]]:
    """Spark's own, of the same texts over tables of the same rows."""
    spark = db._engine.home.spark().newSession()
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    for name, kept in rows.items():
        spark.createDataFrame(pa.Table.from_pylist(kept, ARROW[name])).createOrReplaceTempView(name)
    found = {}
    for name, query in QUERIES.items():
        answer = spark.sql(query).toArrow()
        spark.createDataFrame(answer).createOrReplaceTempView(
            name
        )  # as it is kept: Spark takes LOWER(UPPER(x)) for LOWER(x)
        found[name] = _counted(answer.to_pylist())
    for name, (query, _) in ON_VIEWS.items():
        found[name] = _counted(spark.sql(query).toArrow().to_pylist())
    return found


def _read(db: penstock.Database, name: str) -> Counter[str]:
    return _counted(db.sql(f"SELECT * FROM {name}").arrow().to_pylist())


def _counted(rows: list[dict[str, Any]]) -> Counter[str]:
    def plain(value: Any) -> Any:
        if isinstance(value, datetime):
            return value.isoformat()
        if isinstance(value, dict):
            return {key: plain(inner) for key, inner in value.items()}
        return value

    return Counter(repr([plain(value) for value in row.values()]) for row in rows)


def test_an_error_names_job_and_expression(db: penstock.Database) -> None:
    """What Spark cannot compute fails the job as it would below the join, and nothing of the batch is kept."""
    db.execute("CREATE STREAM a (id BIGINT, d DECIMAL(10, 2))")
    db.execute("CREATE STREAM b (id BIGINT, e DECIMAL(10, 2))")
    db.execute("CREATE MATERIALIZED VIEW q AS SELECT a.id, a.d / b.e AS q FROM a LEFT JOIN b ON a.id = b.id")
    db.append("a", [{"id": 1, "d": Decimal("1.50")}, {"id": 2, "d": Decimal("2.50")}])
    db.append("b", [{"id": 1, "e": Decimal("0.50")}])
    db.settle(120)
    assert db.sql("SELECT * FROM q ORDER BY id").rows() == [(1, Decimal(3)), (2, None)]
    db.append("b", [{"id": 2, "e": Decimal(0)}])
    with pytest.raises(penstock.PenstockError) as raised:
        db.settle(120)
    assert "division by zero (in a.d / b.e)" in str(raised.value)
    assert "job q" in str(raised.value)
    assert db.sql("SELECT * FROM q ORDER BY id").rows() == [(1, Decimal(3)), (2, None)]


def _shouted(text: str | None) -> str | None:
    return None if text is None else f"{text}!"


def test_functions_in_python(db: penstock.Database) -> None:
    db.register_function("shout", _shouted, ["STRING"], "STRING")
    db.execute("CREATE STREAM a (id BIGINT, name STRING)")
    db.execute("CREATE STREAM b (id BIGINT, name STRING)")
    db.execute(
        "CREATE MATERIALIZED VIEW q AS SELECT a.id, shout(a.name || b.name) AS s FROM a LEFT JOIN b ON a.id = b.id"
    )
    db.append("a", [{"id": 1, "name": "x"}, {"id": 2, "name": "y"}])
    db.append("b", [{"id": 1, "name": "z"}])
    db.settle(120)
    assert db.sql("SELECT * FROM q ORDER BY id").rows() == [(1, "xz!"), (2, None)]
