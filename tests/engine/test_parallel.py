"""Many partitions at work: the same answers for any number, state that is kept by key, readers that do not wait."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

import penstock
from tests.engine.answers import in_order, ms, read

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

STREAMS = """
CREATE STREAM orders (id BIGINT, customer STRING, cents BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH (partitions = 4);
CREATE STREAM visits (customer STRING, page STRING, at TIMESTAMP, WATERMARK FOR at) WITH (partitions = 4);
"""
JOINED = """
SELECT o.id, o.customer, v.page, o.cents FROM orders AS o JOIN visits AS v
ON o.customer = v.customer AND v.at BETWEEN o.ts - INTERVAL '5' SECOND AND o.ts WHERE o.cents > 100 AND v.page <> '/admin'
"""
WINDOWED = """
SELECT customer, TUMBLE_START(ts, INTERVAL '10' SECOND) AS start, COUNT(*) AS n FROM orders
GROUP BY customer, TUMBLE(ts, INTERVAL '10' SECOND)
"""
WIDTHS = (1, 2, 4, 8)
ROWS = 5_000  # so many that workers read them, and not the process that plans the batch


def explained(db: penstock.Database, query: str) -> str:
    """Spark's plan of a query."""
    return "\n".join(str(row[0]) for row in db.sql(f"EXPLAIN PHYSICAL {query}").rows())


@pytest.mark.soak
def test_any_number_of_partitions(db: penstock.Database) -> None:
    """T1, N9, H11, K17: rows are filtered, dealt out by key, joined and brought together; 1, 2, 4 or 8 partitions give
    the same rows, in no order that is promised. The state of each is kept apart, by key, as changes of each batch."""
    db.execute(STREAMS)
    orders = [(n, f"c{n % 13}", 90 + n % 40, 100 + n // 4) for n in range(200)]
    visits = [(f"c{n % 13}", "/admin" if n % 5 == 0 else f"/{n % 3}", 100 + n // 2) for n in range(100)]
    db.append("orders", [{"id": i, "customer": c, "cents": p, "ts": ms(t)} for i, c, p, t in orders], key="customer")
    db.append("visits", [{"customer": c, "page": p, "at": ms(t)} for c, p, t in visits], key="customer")
    for width in WIDTHS:
        options = f"parallelism = {width}, state_backend = 'memory'"
        db.execute(f"CREATE MATERIALIZED VIEW joined_{width} WITH ({options}) AS {JOINED}")
    db.execute(f"CREATE MATERIALIZED VIEW windows WITH (parallelism = 4) AS {WINDOWED}")
    db.settle(240)
    expected = in_order(
        (i, c, page, cents)
        for i, c, cents, t in orders
        for visitor, page, at_ in visits
        if c == visitor and t - 5 <= at_ <= t and cents > 100 and page != "/admin"
    )
    assert expected
    for width in WIDTHS:
        assert read(db, f"joined_{width}") == expected, width

    # One directory of state for each partition and no copy of it; every batch adds its changes, none writes it whole.
    state = db.path / "jobs" / "windows" / "checkpoint" / "state" / "0"
    assert sorted(path.name for path in state.iterdir() if path.name.isdigit()) == ["0", "1", "2", "3"]
    written = {path.suffix for path in state.rglob("*") if path.is_file() and path.name[0].isdigit()}
    assert ".changelog" in written
    reader = db._engine.home.spark().read.format("statestore")
    kept = reader.load(str(state.parent.parent)).selectExpr("to_json(key) AS key", "partition_id").collect()
    assert len({row.partition_id for row in kept}) > 1, "groups are spread over the partitions"
    assert len(kept) == len({row.key for row in kept}), "and each is in one of them"


def test_a_slow_partition_holds_no_other_up(db: penstock.Database, tmp_path: Path) -> None:
    """T3: inside one batch the rows of one partition wait until those of the other have been read."""
    db.execute("CREATE STREAM s (k STRING, n BIGINT) WITH (partitions = 2)")
    marker = tmp_path / "other partition was read"

    def patient(key: str, number: int) -> str:
        if key == "quick" and number == ROWS - 1:
            marker.touch()
        end = time.monotonic() + 120
        while key == "slow" and not marker.exists():
            if time.monotonic() > end:
                return "waited in vain"
            time.sleep(0.01)
        return key

    db.register_function("patient", patient)
    for partition, key in enumerate(("slow", "quick")):
        db.append("s", [{"k": key, "n": n} for n in range(ROWS)], partition=partition)
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT patient(k, n) AS k, COUNT(*) AS n FROM s GROUP BY patient(k, n)")
    db.settle(200)
    assert read(db, "v") == [("quick", ROWS), ("slow", ROWS)]


def test_plans_of_joins(db: penstock.Database) -> None:
    """P5: no cost decides: of two dimension tables the one that is written first is joined first, large or small.
    T1: streams are filtered, dealt out by key to as many partitions as are set, and joined there."""
    db.execute("CREATE STREAM s (a BIGINT, b BIGINT)")
    db.register_dimension("large", {"a": list(range(5_000)), "x": list(range(5_000))})
    db.register_dimension("small", {"b": [1], "y": [2]})
    large, small = "JOIN large ON s.a = large.a", "JOIN small ON s.b = small.b"
    for written, first in ((f"{large} {small}", "a"), (f"{small} {large}", "b")):
        plan = explained(db, f"SELECT x, y FROM s {written}")
        joins = [line for line in plan.splitlines() if "HashJoin" in line]
        assert len(joins) == 2, plan
        # The inner one stands below; its key is the last that is told.
        assert f"[{first}#" in joins[1], plan

    db.execute(f"{STREAMS}; SET parallelism = 4")
    plan = explained(db, JOINED)
    join, *sides = plan.split("- Exchange ")
    assert "StreamingSymmetricHashJoin" in join, plan
    assert len(sides) == 2, plan
    for side, filtered in zip(sides, ("> 100)", "/admin"), strict=True):
        assert re.match(r"hashpartitioning\(customer#\d+, 4\)", side), plan
        assert filtered in side, plan
