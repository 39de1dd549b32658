"""Many partitions at work: readers that do not wait for each other, and joins in the order they are written in."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import penstock
from tests.engine.answers import read

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

ROWS = 5_000  # so many that workers read them, and not the process that plans the batch


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


def test_joins_stay_in_the_order_they_are_written_in(db: penstock.Database) -> None:
    """P5: no cost decides: of two dimension tables the one that is written first is joined first, large or small."""
    db.execute("CREATE STREAM s (a BIGINT, b BIGINT)")
    db.register_dimension("large", {"a": list(range(5_000)), "x": list(range(5_000))})
    db.register_dimension("small", {"b": [1], "y": [2]})
    large, small = "JOIN large ON s.a = large.a", "JOIN small ON s.b = small.b"
    for written, first in ((f"{large} {small}", "a"), (f"{small} {large}", "b")):
        plan = "\n".join(str(row[0]) for row in db.sql(f"EXPLAIN PHYSICAL SELECT x, y FROM s {written}").rows())
        joins = [line for line in plan.splitlines() if "HashJoin" in line]
        assert len(joins) == 2, plan
        # The inner one stands below; its key is the last that is told.
        assert f"[{first}#" in joins[1], plan
