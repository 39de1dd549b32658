"""Tables that a program registers: every kind of data goes in, and comes out as it was."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import penstock
from penstock import PenstockError
from penstock.plan.script import read_script, report_statement
from penstock.plan.store_text import store_sql
from tests.batch.answers import alike
from tests.batch.orders_data import tables
from tests.batch.orders_queries import QUERIES

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
ROWS = [{"k": "a", "v": 1, "x": 1.5, "ts": NOON}, {"k": None, "v": 2, "x": None, "ts": NOON}]
ARROW = pa.Table.from_pylist(
    ROWS,
    schema=pa.schema([("k", pa.string()), ("v", pa.int64()), ("x", pa.float64()), ("ts", pa.timestamp("us", "UTC"))]),
)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[penstock.Database]:
    with penstock.connect(tmp_path / "home") as found:
        yield found
        assert not found._engine.home.spark_started, "these queries need no Spark"


@pytest.mark.parametrize(
    "data",
    [
        ARROW,
        ARROW.to_batches()[0],
        ROWS,
        ARROW.to_pydict(),
        pl.from_arrow(ARROW),
        pd.DataFrame({name: pd.array(ARROW.column(name).to_pylist()) for name in ("k", "v", "x", "ts")}),
        pa.table(
            {
                "k": ARROW["k"].dictionary_encode(),
                "v": ARROW["v"],
                "x": ARROW["x"],
                "ts": ARROW["ts"].cast("timestamp[ns]"),
            }
        ),
    ],
    ids=["arrow", "batch", "rows", "columns", "polars", "pandas", "other types"],
)
def test_what_goes_in_comes_out(db: penstock.Database, data: Any) -> None:
    """O1."""
    db.register_table("t", data)
    assert db.sql("SELECT * FROM t ORDER BY v").arrow().equals(ARROW)


def test_types_of_columns(db: penstock.Database) -> None:
    """O1: what Arrow has and SQL has not is refused by name; NULLs, nested values and large types are not."""
    given = pa.table(
        {
            "money": pa.array([Decimal("1.50")], pa.decimal128(10, 2)),
            "day": pa.array([dt.date(2026, 1, 2)], pa.date64()),
            "words": pa.array([["x", None]], pa.large_list(pa.large_string())),
            "pair": pa.array([{"a": 1, "b": None}], pa.struct([("a", pa.int32()), ("b", pa.binary())])),
            "nothing": pa.nulls(1),
        }
    )
    db.register_table("t", given)
    assert db.sql("SELECT * FROM t").arrow().to_pylist() == [
        {"money": Decimal("1.50"), "day": dt.date(2026, 1, 2), "words": ["x", None], "pair": {"a": 1, "b": None}, "nothing": None}
    ]  # fmt: skip
    types = {row[0]: row[1] for row in db.sql("DESCRIBE t").rows()}
    assert types["words"] == "ARRAY<STRING>"
    with pytest.raises(PenstockError, match="column clock has the Arrow type"):
        db.register_table("u", pa.table({"clock": pa.array([1], pa.time32("s"))}))


def test_polars_there_and_back(db: penstock.Database) -> None:
    """R1: a result as a Polars frame, changed there, back as a table; nothing is lost on the way."""
    db.register_table("t", ARROW)
    frame = db.sql("SELECT * FROM t ORDER BY v").polars()
    db.register_table("again", frame)
    assert db.sql("SELECT * FROM again ORDER BY v").arrow().equals(ARROW)
    db.register_table("doubled", frame.with_columns((pl.col("v") * 2).alias("v")))
    assert db.sql("SELECT t.v, d.v AS twice FROM t JOIN doubled AS d ON d.v = 2 * t.v ORDER BY t.v").rows() == [
        (1, 2),
        (2, 4),
    ]
    assert db.sql("SELECT * FROM again").polars().equals(frame)


def test_a_table_is_kept_replaced_and_dropped(tmp_path: Path) -> None:
    """O1: it outlives the connection, other rows under the same name take its place, DROP TABLE removes it."""
    with penstock.connect(tmp_path / "home") as db:
        db.register_table("t", ARROW)
        db.register_table("t", ROWS[:1])
        db.execute("CREATE VIEW w AS SELECT v FROM t")
    with penstock.connect(tmp_path / "home") as db:
        assert db.sql("SELECT * FROM w").rows() == [(1,)]
        db.execute("DROP TABLE t CASCADE")
        with pytest.raises(PenstockError) as gone:
            db.sql("SELECT * FROM t")
        assert gone.value.condition == "UNKNOWN_RELATION"


def test_a_batch_call_on_what_never_ends(db: penstock.Database) -> None:
    """O5: also below a view, and beside a table that ends."""
    db.register_table("t", ARROW)
    db.execute("CREATE STREAM s (k STRING, v BIGINT); CREATE VIEW w AS SELECT v FROM s")
    for sql in (
        "SELECT * FROM s",
        "SELECT v FROM w",
        "SELECT COUNT(*) FROM s",
        "SELECT t.v FROM s JOIN t ON s.k = t.k",
    ):
        with pytest.raises(PenstockError) as refused:
            db.sql(sql)
        assert refused.value.condition == "UNBOUNDED_QUERY", sql
        assert "db.stream" in (refused.value.hint or "")


def test_the_bridge_of_the_texts() -> None:
    """M7, M8: the calls as the guide writes them; Arrow under the name it uses."""
    from penstock import create_sabot_sql_bridge
    from penstock import cyarrow as ca

    bridge = create_sabot_sql_bridge()
    bridge.register_table("trades", ca.Table.from_pydict({"symbol": ["A", "B"], "price": [1.0, 2.0]}))
    result = bridge.execute_sql("SELECT * FROM trades")
    assert isinstance(result, ca.Table)
    assert result.to_pydict() == {"symbol": ["A", "B"], "price": [1.0, 2.0]}
    bridge.close()


@pytest.fixture(scope="module")
def shop(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[penstock.Database, Callable[[str], list[tuple[Any, ...]]]]]:
    """The tables in a database of ours and in DuckDB."""
    with penstock.connect(tmp_path_factory.mktemp("shop")) as found, duckdb.connect() as oracle:
        for name, table in tables().items():
            found.register_table(name, table)
            oracle.register(name, table)
        yield found, lambda sql: oracle.execute(sql).fetchall()


# The others need Spark: tests/batch/test_spark.py has them all.
ANSWERED_HERE = (
    "q2 minimum cost supplier", "q3 shipping priority", "q5 local supplier volume", "q6 forecast revenue",
    "q10 returned items", "q12 shipping modes", "q13 customer distribution", "q15 top supplier", "q18 large orders",
    "q21 waiting suppliers", "ranks",
)  # fmt: skip


@pytest.mark.parametrize("name", ANSWERED_HERE)
def test_batch_suite(shop: tuple[penstock.Database, Callable[[str], list[tuple[Any, ...]]]], name: str) -> None:
    """O2: what the view store answers without Spark."""
    db, oracle = shop
    session = db._engine.session
    parsed, source = read_script(QUERIES[name])
    report, _ = report_statement(parsed[0], source, session)
    assert report.plan is not None, report.error
    assert store_sql(report.plan) is not None, "it needs Spark now"
    assert alike(db.sql(QUERIES[name]).rows()) == alike(oracle(QUERIES[name]))


def test_a_pipeline_of_batch_sql(db: penstock.Database) -> None:
    """SC36: tables are listed and described, CTEs build on each other and on joins, and the plan tells how."""
    db.register_table("orders", {"id": [1, 2, 3, 4], "customer": ["a", "b", "a", "c"], "cents": [500, 250, 750, 100]})
    db.register_table("customers", {"id": ["a", "b"], "region": ["north", "south"]})
    assert [row[0] for row in db.sql("SHOW TABLES").rows()] == ["orders", "customers"]
    assert [row[:2] for row in db.sql("DESCRIBE orders").rows()] == [
        ("id", "BIGINT"), ("customer", "STRING"), ("cents", "BIGINT"),
    ]  # fmt: skip
    columns = "SELECT name, type FROM penstock.columns WHERE relation = 'customers' ORDER BY position"
    assert db.sql(columns).rows() == [("id", "STRING"), ("region", "STRING")]
    pipeline = """
        WITH spent AS (SELECT customer, SUM(cents) AS cents, COUNT(*) AS orders FROM orders GROUP BY customer),
             placed AS (SELECT s.*, c.region FROM spent AS s LEFT JOIN customers AS c ON s.customer = c.id),
             best AS (SELECT MAX(cents) AS most FROM placed)
        SELECT p.customer, COALESCE(p.region, 'nowhere') AS region, p.orders, p.cents = b.most AS best
        FROM placed AS p CROSS JOIN best AS b ORDER BY p.cents DESC
    """
    answer = db.sql(pipeline)
    assert answer.columns == ["customer", "region", "orders", "best"]
    assert answer.rows() == [("a", "north", 2, True), ("b", "south", 1, False), ("c", "nowhere", 1, False)]
    plan = "\n".join(str(row[0]) for row in db.sql(f"EXPLAIN {pipeline}").rows())
    for part in ("orders", "customers", "Aggregate", "Join"):
        assert part.lower() in plan.lower(), plan
    with pytest.raises(PenstockError, match="customer_id"):
        db.sql("WITH s AS (SELECT customer_id FROM orders) SELECT * FROM s")
