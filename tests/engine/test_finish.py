"""Answers that change, as jobs: Spark hands rows over, the view store answers (contract G). The breadth of shapes is in
tests/unit/stores/views/test_finish.py, which needs no Spark."""

from __future__ import annotations

import random

import duckdb
import pytest

from tests.databases import Opened
from tests.engine.answers import check_change_log, in_order, read
from tests.unit.stores.views.finishing import NULLS, STREAMS, TABLES, add_rows, random_batch
from tests.unit.stores.views.test_finish import SHAPES

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

JOBS = (
    "top 2 of a key", "several distinct", "by a computed key", "aggregate of an aggregate", "full join",
    "three streams, one by another key",
)  # fmt: skip
COLUMNS = {"l": ("k", "id", "v", "s"), "r": ("k", "id", "w", "s"), "u": ("k", "x")}


def test_views_are_the_batch_answer_also_after_a_stop(opened: Opened) -> None:
    """G13, G16, G18: after every settled batch each view and its folded changes are DuckDB's answer over all rows; the
    jobs go on from kept rows when the database is opened again."""
    rnd = random.Random(7)  # noqa: S311
    with duckdb.connect() as oracle:
        oracle.execute(NULLS)
        oracle.execute(TABLES)
        number = 0
        for run in range(2):
            with opened() as db:
                if run == 0:
                    db.execute(STREAMS)
                    for place, shape in enumerate(JOBS):
                        db.execute(f"CREATE MATERIALIZED VIEW v{place} AS {SHAPES[shape][0]}")
                for _ in range(3):
                    batch = random_batch(rnd, 10 * number)
                    number += 1
                    for name, rows in batch.items():
                        add_rows(oracle, name, rows)
                        if rows:
                            db.append(name, [dict(zip(COLUMNS[name], row, strict=True)) for row in rows])
                    db.settle(180)
                    for place, shape in enumerate(JOBS):
                        expected = in_order(oracle.execute(SHAPES[shape][0]).fetchall())
                        assert read(db, f"v{place}") == expected, f"{shape} after {number} batches"
                for place in range(len(JOBS)):
                    check_change_log(db, f"v{place}", key=())
