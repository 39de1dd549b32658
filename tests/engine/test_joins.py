"""Joins of streams as continuous jobs (contract G): what they keep, when they let go of it, and what is late for them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import duckdb
import pytest

import penstock
from penstock import PenstockError
from tests.engine.answers import at, check_change_log, in_order, job, ms, read
from tests.engine.beside_duckdb import Queries, add_row, hold_beside

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

STREAMS = """
    CREATE STREAM orders (id INT, customer STRING, amount INT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
    WITH (idle_timeout = '1 hour');
    CREATE STREAM payments (order_id INT, paid INT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
    WITH (idle_timeout = '1 hour');
"""
ON = "o.id = p.order_id AND p.ts BETWEEN o.ts AND o.ts + INTERVAL '10' SECOND"
VIEWS = {
    "paid": f"SELECT o.id, p.paid, o.ts AS ordered, p.ts AS at FROM orders AS o LEFT JOIN payments AS p ON {ON}",
    "hidden": (
        "SELECT customer, SUM(paid) AS total FROM (SELECT o.customer, p.paid FROM orders AS o JOIN payments AS p "
        f"ON {ON} WHERE o.amount > 0) AS j GROUP BY customer, tumble(interval '20 seconds')"
    ),
    "unpaid": f"SELECT o.id FROM orders AS o LEFT ANTI JOIN payments AS p ON {ON}",
    "totals": f"SELECT o.customer, COUNT(*) AS n, SUM(p.paid) AS total FROM orders AS o JOIN payments AS p ON {ON} GROUP BY o.customer",
    "known": "SELECT DISTINCT customer, ts FROM orders",
}


def order(number: int, second: float, customer: str | None = "ada", amount: int = 1) -> dict[str, object]:
    return {"id": number, "customer": customer, "amount": amount, "ts": ms(second)}


def payment(number: int | None, second: float, paid: int = 1) -> dict[str, object]:
    return {"order_id": number, "paid": paid, "ts": ms(second)}


def kept(db: penstock.Database, view: str) -> list[tuple[str, str, object, dict[str, object]]]:
    """The rows that the join of a view keeps."""
    rows = db.sql(f"SELECT side, key, ts, data FROM penstock.join_buffers WHERE job = '{view}'").rows()
    assert all(isinstance(data, bytes) for *_, data in rows)
    return in_order((side, key, ts, json.loads(data)) for side, key, ts, data in rows)


@pytest.mark.slow
def test_joins_wait_and_let_go(opened: Callable[..., penstock.Database]) -> None:
    """E17, E24, G11, H3, B13: two delays, the slower stream decides; the buffers, whose rows are bytes, fall with the
    watermark; a restart between."""
    db = opened()
    db.execute(STREAMS)
    for view, query in VIEWS.items():
        db.execute(f"CREATE MATERIALIZED VIEW {view} AS {query}")
    db.append(
        "orders",
        [
            order(0, 0),
            order(1, 10),
            order(2, 12, "bob"),
            order(3, 14, None),
            order(3, 14, None),
            order(4, 15, amount=0),
        ],
    )
    db.append("payments", [payment(1, 11, 5), payment(4, 16, 7), payment(None, 16), payment(2, 25)])
    db.settle(180)
    # orders stand at 15 - 5, payments at 25 - 1
    assert job(db, "paid").watermark == at(10)
    found = [(1, 5, at(10), at(11)), (4, 7, at(15), at(16))]
    assert read(db, "paid") == found, "a pair is shown when both are there; order 2 is paid for too late"
    assert read(db, "hidden") == read(db, "unpaid") == []
    assert read(db, "totals") == [("ada", 2, 12)]
    known = [("ada", at(10)), ("bob", at(12)), (None, at(14)), ("ada", at(15))]
    assert read(db, "known") == in_order(known), "the first of its kind is let through at once"
    assert db.sql("SELECT * FROM hidden").columns == ["customer", "total"]
    buffers = kept(db, "paid")
    assert [(side, key, ts) for side, key, ts, _ in buffers] == [
        ("left", "1", at(10)),
        ("left", "2", at(12)),
        ("left", "3", at(14)),
        ("left", "3", at(14)),
        ("left", "4", at(15)),
        ("right", "1", at(11)),
        ("right", "2", at(25)),
        ("right", "4", at(16)),
    ]
    assert next(data for side, key, _, data in buffers if (side, key) == ("right", "4"))["paid"] == 7

    db.close()
    db = opened()
    db.append("orders", [order(5, 40)])
    db.append("payments", [payment(5, 41, 9)])
    db.settle(180)
    assert job(db, "paid").watermark == at(35)
    # What no payment can reach any more: orders before 35 - 10.
    unpaid = [(2, None, at(12), None), (3, None, at(14), None), (3, None, at(14), None)]
    assert read(db, "paid") == in_order([*found, *unpaid, (5, 9, at(40), at(41))])
    assert read(db, "unpaid") == [(2,), (3,), (3,)]
    assert read(db, "hidden") == [("ada", 5)], "the order without an amount is filtered before the join"
    assert read(db, "totals") == [("ada", 3, 21)]
    assert read(db, "known") == in_order([*known, ("ada", at(40))])
    assert [(side, key) for side, key, _, _ in kept(db, "paid")] == [("left", "5"), ("right", "5")]

    # Behind the watermark: dropped by every join, and told of. A row at the watermark is too late for a join.
    db.append("orders", [order(6, 12), order(7, 35), order(8, 36)])
    db.settle(180)
    listed = "SELECT job, stream, event_time, watermark, row FROM penstock.late_rows ORDER BY job, event_time"
    late = [row for row in db.sql(listed).rows() if row[2] > at(0)]
    # Time begins with 1970, and what is not after the watermark is late.
    first = db.sql(
        "SELECT job FROM penstock.late_rows WHERE event_time = watermark AND event_time = TIMESTAMP '1970-01-01 00:00:00'"
    ).rows()
    assert in_order(first) == in_order((view,) for view in VIEWS)
    assert [(name, stream, json.loads(row)["id"]) for name, stream, _, _, row in late if name != "known"] == [
        (name, "orders", number) for name in ("hidden", "paid", "totals", "unpaid") for number in (6, 7)
    ]
    assert {watermark for _, _, _, watermark, _ in late} == {at(35)}
    assert db.metrics()["paid"]["late_rows"] == 3

    for view in VIEWS:
        db.drain(view, 180)
        check_change_log(db, view, ("customer",) if view == "totals" else None)
    assert read(db, "unpaid") == [(2,), (3,), (3,), (8,)]
    assert read(db, "hidden") == [("ada", 5), ("ada", 9)]
    for table in ("window_aggregates", "join_buffers"):
        assert db.sql(f"SELECT * FROM penstock.{table}").rows() == []


@pytest.mark.slow
def test_the_first_row_of_each_key(opened: Callable[..., penstock.Database]) -> None:
    """G13, G14: the first to arrive is let through at once, also over a restart; keys with a time are forgotten with it."""
    views = {
        "ever": "SELECT DISTINCT ON (customer) customer, id FROM orders",
        "flink": (
            "SELECT customer, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY PROCTIME()) AS rn "
            "FROM orders) WHERE rn = 1 AND amount > 0"
        ),
        "soon": "SELECT customer, id, ts FROM orders QUALIFY ROW_NUMBER() OVER (PARTITION BY customer, ts ORDER BY ts) = 1",
        "counted": (
            "SELECT customer, COUNT(*) AS n FROM (SELECT DISTINCT ON (customer, ts) customer, ts FROM orders) AS d "
            "GROUP BY customer, TUMBLE(ts, INTERVAL '10' SECOND)"
        ),
    }
    db = opened()
    db.execute(STREAMS)
    for view, query in views.items():
        db.execute(f"CREATE MATERIALIZED VIEW {view} AS {query}")
    assert any("every key for ever" in notice for notice in db.notices())
    db.append("orders", [order(1, 10)])
    db.settle(180)
    db.append("orders", [order(2, 10), order(3, 11, "bob", amount=0), order(4, 11, None)])
    db.settle(180)
    ever = [(None, 4), ("ada", 1), ("bob", 3)]
    soon = [(None, 4, at(11)), ("ada", 1, at(10)), ("bob", 3, at(11))]
    assert read(db, "ever") == ever
    assert read(db, "flink") == ever[:2], "the filter comes after the first row was chosen"
    assert read(db, "soon") == soon
    db.close()

    db = opened()
    db.append("orders", [order(5, 12), order(6, 11, "bob"), order(7, 40, None)])
    db.settle(180)
    assert read(db, "ever") == ever
    assert read(db, "soon") == in_order([*soon, ("ada", 5, at(12)), (None, 7, at(40))])
    assert read(db, "counted") == [(None, 1), ("ada", 2), ("bob", 1)]
    # Behind the watermark of 35: late where keys go with their time; where they are kept for ever it is a row as others.
    db.append("orders", [order(8, 10), order(9, 10, "eve")])
    db.settle(180)
    assert read(db, "ever") == [*ever, ("eve", 9)]
    assert len(read(db, "soon")) == 5
    late = db.sql("SELECT job, row FROM penstock.late_rows").rows()
    assert sorted((name, json.loads(row)["id"]) for name, row in late) == [
        (name, number) for name in ("counted", "soon") for number in (8, 9)
    ]
    for view in views:
        check_change_log(db, view)


@pytest.mark.slow
def test_windows_joined(db: penstock.Database) -> None:
    """G9, G12, G13: windows of two streams side by side; while they are open, both are shown; no row is told of twice."""
    side = "SELECT window_start, window_end, {0} AS id, COUNT(*) AS n FROM TUMBLE(TABLE {1}, DESCRIPTOR(ts), INTERVAL '10' SECOND) GROUP BY window_start, window_end, {0}"
    db.execute(STREAMS)
    db.execute(f"""
        CREATE MATERIALIZED VIEW both_sides AS
        SELECT COALESCE(o.window_start, p.window_start) AS s, o.id AS o, p.id AS p, o.n, p.n AS m
        FROM ({side.format("id", "orders")}) AS o FULL JOIN ({side.format("order_id", "payments")}) AS p
        ON o.id = p.id AND o.window_start = p.window_start AND o.window_end = p.window_end;
        CREATE MATERIALIZED VIEW twice AS
        SELECT a.id, b.id AS other FROM orders AS a JOIN orders AS b
        ON a.customer = b.customer AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '2' SECOND AND a.id < b.id;
    """)
    db.append("orders", [order(1, 1), order(1, 2), order(2, 3), order(9, 12), {"id": 0, "ts": None}])
    db.append("payments", [payment(1, 4), payment(7, 5), payment(9, 15)])
    db.settle(180)
    assert read(db, "both_sides") == []
    shown = db.sql("SELECT job, key, window_start, count FROM penstock.window_aggregates").rows()
    assert in_order(shown) == in_order(
        [
            ("both_sides", key, at(start), n)
            for key, start, n in (("1", 0, 2), ("2", 0, 1), ("9", 10, 1), ("1", 0, 1), ("7", 0, 1), ("9", 10, 1))
        ]
    )
    assert db.sql("SELECT job, stream, reason FROM penstock.dead_letters ORDER BY job").rows() == [
        ("both_sides", "orders", "null_time"),
        ("twice", "orders", "null_time"),
    ]
    db.append("orders", [order(3, 16)])
    db.settle(180)
    assert read(db, "both_sides") == in_order(
        [(at(0), 1, 1, 2, 1), (at(0), 2, None, 1, None), (at(0), None, 7, None, 1)]
    )
    assert read(db, "twice") == [(1, 2), (1, 2)]
    db.append("orders", [order(4, 1)])
    db.settle(180)
    assert db.sql("SELECT job, stream, offset FROM penstock.late_rows ORDER BY job").rows() == [
        ("both_sides", "orders", 6),
        ("twice", "orders", 6),
    ]
    for view in ("both_sides", "twice"):
        db.drain(view, 180)
        check_change_log(db, view)
    assert (at(10), 9, 9, 1, 1) in read(db, "both_sides")


def test_joins_without_a_bound(db: penstock.Database) -> None:
    """G13: an inner join keeps both streams for ever, late or not, and says so; an outer one is answered by the view
    store; what needs an end is refused by name."""
    db.execute(STREAMS)
    db.execute(
        "CREATE MATERIALIZED VIEW paid AS SELECT o.id, p.paid FROM orders AS o LEFT JOIN payments AS p ON o.id = p.order_id"
    )
    assert any("every row of payments (order_id, paid) is kept" in notice for notice in db.notices())
    db.execute(
        "CREATE MATERIALIZED VIEW pairs AS SELECT o.id, p.paid FROM orders AS o JOIN payments AS p ON o.id = p.order_id"
    )
    assert any("for ever" in notice for notice in db.notices())
    db.execute(
        "CREATE MATERIALIZED VIEW sparks WITH (state = 'spark') AS SELECT o.id, p.paid FROM orders AS o JOIN payments AS p "
        "ON o.id = p.order_id"
    )
    db.append("orders", [order(1, 1_000), {"id": 2, "customer": "x", "amount": 1, "ts": None}])
    db.append("payments", [payment(1, 2_000, 1), payment(2, 3_000, 2)])
    db.settle(180)
    db.append("payments", [payment(1, 1, 3)])
    db.settle(180)
    assert read(db, "pairs") == read(db, "sparks") == [(1, 1), (1, 3), (2, 2)]
    check_change_log(db, "pairs")
    db.append("orders", [order(3, 1_000)])
    db.settle(180)
    assert read(db, "paid") == [(1, 1), (1, 3), (2, 2), (3, None)]
    db.append("payments", [payment(3, 1, 9)])
    db.settle(180)
    assert read(db, "paid") == [(1, 1), (1, 3), (2, 2), (3, 9)]
    changes = check_change_log(db, "paid", key=())
    assert [(change.op, change.row or change.before) for change in changes][-2:] == [
        ("delete", {"id": 3, "paid": None}),
        ("insert", {"id": 3, "paid": 9}),
    ]
    refused = {
        "UNBOUNDED_CROSS_JOIN": "SELECT o.id FROM orders AS o JOIN payments AS p ON p.ts > CURRENT_TIMESTAMP",
        "QUERY_NOT_YET": (
            "SELECT COUNT(*) AS n FROM orders AS o JOIN payments AS p ON o.id = p.order_id "
            "GROUP BY SESSION(o.ts, INTERVAL '1' MINUTE) EMIT FINAL"
        ),
    }
    for condition, query in refused.items():
        with pytest.raises(PenstockError) as raised:
            db.execute(f"CREATE MATERIALIZED VIEW refused AS {query}")
        assert raised.value.condition == condition, query
    assert sorted(found.name for found in db.jobs()) == ["paid", "pairs", "sparks"]


def test_inner_joins_that_the_store_keeps(opened: Callable[..., penstock.Database]) -> None:
    """G11, H3: two relations and three, one with itself, more conditions, what only Spark computes, a view of one stream
    below; beside DuckDB after every batch, with a stop between. What stands on such a view follows it."""
    queries: Queries = {
        "two": "SELECT o.id, o.customer, p.paid FROM o JOIN p ON o.id = p.order_id WHERE p.paid > 1",
        "more": "SELECT o.id, p.paid - o.amount AS over FROM o JOIN p ON o.id = p.order_id AND p.paid > o.amount",
        "three": "SELECT o.id, p.paid, c.name FROM o JOIN p ON o.id = p.order_id JOIN c ON c.name = o.customer",
        "itself": "SELECT a.id, b.id AS other FROM o AS a JOIN o AS b ON a.customer = b.customer AND a.id < b.id",
        "computed": (
            "SELECT o.id, CONCAT_WS('-', o.customer, 'x') AS name, p.paid FROM large AS o JOIN p ON o.id = p.order_id",
            "SELECT id, concat_ws('-', customer, 'x'), paid FROM o JOIN p ON id = order_id WHERE amount > 1",
        ),
        "above": (
            "SELECT customer, COUNT(*) AS n FROM two GROUP BY customer",
            "SELECT o.customer, count(*) FROM o JOIN p ON o.id = p.order_id WHERE p.paid > 1 GROUP BY o.customer",
        ),
    }
    db = opened()
    db.execute("""
        CREATE STREAM o (id INT, customer STRING, amount INT) WITH (partitions = 2);
        CREATE STREAM p (order_id INT, paid INT);
        CREATE STREAM c (name STRING);
        CREATE VIEW large AS SELECT * FROM o WHERE amount > 1;
    """)
    oracle = duckdb.connect()
    oracle.execute("CREATE TABLE o (id INT, customer VARCHAR, amount INT); CREATE TABLE p (order_id INT, paid INT)")
    oracle.execute("CREATE TABLE c (name VARCHAR)")
    rnd = random.Random("pairs")  # noqa: S311

    def some(values: Sequence[Any]) -> Any:
        return None if rnd.random() < 0.1 else rnd.choice(values)

    def advance(db: penstock.Database, step: int) -> None:
        for n in range(12):
            add_row(db, oracle, "o", ("id", "customer", "amount"), (some(range(9)), some("abc"), some(range(5))))
            if step != 1:
                add_row(db, oracle, "p", ("order_id", "paid"), (some(range(9)), some(range(6))))
            if n % 8 == 0:
                add_row(db, oracle, "c", ("name",), (some("abcd"),))

    def reopened() -> penstock.Database:
        nonlocal db
        db = opened()
        return db

    hold_beside(db, oracle, queries, advance, reopened=reopened)
    for name in queries:
        if name != "above":
            check_change_log(db, name)


def test_a_condition_on_one_side_lets_rows_go(db: penstock.Database) -> None:
    """Rows without a partner come out, also where the condition looks at them alone."""
    db.execute("""
        CREATE STREAM s (id INT, k STRING, ts TIMESTAMP, WATERMARK FOR ts AS ts);
        CREATE STREAM r (id INT, k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts);
        CREATE MATERIALIZED VIEW kept AS SELECT a.id AS i, b.id AS j FROM s AS a RIGHT JOIN r AS b
        ON a.k = b.k AND b.v > 0 AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '5' SECOND;
        CREATE MATERIALIZED VIEW lonely AS SELECT b.id AS j FROM r AS b LEFT ANTI JOIN s AS a
        ON a.k = b.k AND b.v > 0 AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '5' SECOND;
    """)
    db.append("s", [{"id": 1, "k": "a", "ts": ms(10)}])
    rows = [("a", 1), ("b", 1), ("a", 0), (None, 1), ("a", None)]
    db.append("r", [{"id": n, "k": k, "v": v, "ts": ms(11)} for n, (k, v) in enumerate(rows)])
    db.drain("kept")
    db.drain("lonely")
    assert sorted(read(db, "kept"), key=lambda row: row[1]) == [(1, 0), (None, 1), (None, 2), (None, 3), (None, 4)]
    assert sorted(read(db, "lonely")) == [(1,), (2,), (3,), (4,)]
