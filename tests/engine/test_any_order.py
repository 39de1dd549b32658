"""Rows that are numbered and compared without an order: in any, but always the same one, beside DuckDB after every
batch; and in windows that close (G14)."""

from __future__ import annotations

import random
from typing import Final

import duckdb
import pytest

from tests.databases import Opened
from tests.engine.answers import in_order, read
from tests.engine.beside_duckdb import Queries, answer_of, hold_beside
from tests.engine.test_quantified import make_streams
from tests.engine.test_remaining_shapes import add_changing, make_changing

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

# The first column that tells rows apart is the one that they are told apart by.
BY_ID: Final = "(PARTITION BY cat ORDER BY id)"
ANY: Final[Queries] = {
    "numbered": (
        "SELECT id, cat, ROW_NUMBER() OVER (PARTITION BY cat) AS n FROM a",
        f"SELECT id, cat, row_number() OVER {BY_ID} FROM a",
    ),
    "first": (
        "SELECT id, cat FROM c QUALIFY ROW_NUMBER() OVER (PARTITION BY cat) = 1",
        f"SELECT id, cat FROM c QUALIFY row_number() OVER {BY_ID} = 1",
    ),
    "compared": (
        "SELECT id, cat, LAG(id) OVER (PARTITION BY cat) AS p, LAG(id, -1) OVER (PARTITION BY cat) AS q FROM c",
        f"SELECT id, cat, lag(id) OVER {BY_ID}, lead(id) OVER {BY_ID} FROM c",
    ),
    "summed": (
        "SELECT id, SUM(id) OVER (PARTITION BY cat ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM c",
        "SELECT id, sum(id) OVER (PARTITION BY cat ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)::BIGINT FROM c",
    ),
}


def test_the_same_order_in_every_batch(opened: Opened) -> None:
    rnd = random.Random(53)  # noqa: S311
    db = opened()
    with duckdb.connect() as oracle:
        make_streams(db, oracle)
        make_changing(db, oracle)
        db.execute(
            "CREATE MATERIALIZED VIEW closed AS SELECT window_start, "
            "ROW_NUMBER() OVER (PARTITION BY window_start, window_end) AS n "
            "FROM TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '10' SECOND)"
        )
        hold_beside(db, oracle, ANY, lambda again, step: add_changing(again, oracle, rnd, 4 * step))
        early = "SELECT time_bucket(INTERVAL '10 seconds', ts) AS s FROM a WHERE ts < TIMESTAMP '1970-01-01 00:01:40'"
        closed = answer_of(oracle, f"SELECT s, row_number() OVER (PARTITION BY s) FROM ({early})")
        assert in_order(read(db, "closed")) == closed
        assert closed
