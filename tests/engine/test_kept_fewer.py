"""What Spark takes out of a batch before the view store keeps it, held against DuckDB (contract G13). What the store keeps
is in tests/unit/stores/views/test_kept_fewer.py, which needs no Spark."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from penstock.runtime import targets
from tests.databases import Opened
from tests.engine.answers import check_change_log
from tests.unit.stores.views.finishing import NULLS, add_rows

if TYPE_CHECKING:
    import pyarrow as pa

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

COLUMNS = ("k", "id", "x", "d", "s")
TABLE = "CREATE TABLE l (k BIGINT, id BIGINT, x DOUBLE, d DECIMAL(12, 3), s VARCHAR)"
QUERIES = {
    "pairs": "SELECT DISTINCT k, s FROM l",
    "variety": "SELECT k, COUNT(DISTINCT x) AS n, COUNT(DISTINCT d) FILTER (WHERE s > 'a') AS m, MIN(s) AS least FROM l GROUP BY k",
    "by_number": "SELECT k, id, x FROM l QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY x DESC, id, d, s) <= 2",
    "by_text": "SELECT s, id FROM l QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY s, d NULLS LAST, id, x) <= 3",
    "by_decimal": "SELECT DISTINCT ON (x) x, d, id FROM l ORDER BY x, d DESC NULLS FIRST, id",
    "smallest": "SELECT x, d, k, id FROM l ORDER BY x NULLS LAST, d DESC NULLS FIRST, k, id LIMIT 40",
    "largest": "SELECT s, x, id FROM l ORDER BY s DESC, x, id LIMIT 5",
}
TEXTS = ["", "a", "A", "ab", "ä", "a\u0308", "z", "\uffee", "\U0001f600", "ß", "ss", "a ", "\x00", None]
NUMBERS = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.5, -2.25, None]
EXACT = [Decimal("0.000"), Decimal("-0.001"), Decimal("999999999.999"), Decimal(10), Decimal("9.9"), None]


def _batch(rnd: random.Random, first: int) -> list[tuple[Any, ...]]:
    rows = [
        (rnd.choice([None, *range(6)]), first + place // 2, rnd.choice(NUMBERS), rnd.choice(EXACT), rnd.choice(TEXTS))
        for place in range(60)
    ]
    return [*rows, *rows[::5]]


def _told_apart(rows: list[Any]) -> Counter[str]:
    """Rows as text: 0.0 and -0.0 are one value, of which either may be shown."""
    return Counter(repr([value + 0 if value == 0 else value for value in row]) for row in rows)


def test_spark_leaves_out_what_the_store_would_not_keep(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every batch counts as a large one. NaN, -0.0, decimals, texts of all planes and NULLs have the same place in both
    engines; a job that is opened again goes on."""
    monkeypatch.setattr(targets, "_SMALL", 0)
    monkeypatch.setattr(targets, "_PAYS", 1.0)
    asked: list[str] = []
    handed_over = targets.ViewTarget._kept

    def kept(target: targets.ViewTarget, frame: Any, input_rows: int, batch: str) -> pa.Table:
        rows = handed_over(target, frame, input_rows, batch)
        if rows.num_rows < input_rows:
            asked.append(target.view or "")
        return rows

    monkeypatch.setattr(targets.ViewTarget, "_kept", kept)
    rnd = random.Random(11)  # noqa: S311
    with duckdb.connect() as oracle:
        oracle.execute(NULLS)
        oracle.execute(TABLE)
        for run in range(2):
            with opened() as db:
                if run == 0:
                    db.execute("CREATE STREAM l (k BIGINT, id BIGINT, x DOUBLE, d DECIMAL(12, 3), s STRING)")
                    for name, query in QUERIES.items():
                        db.execute(f"CREATE MATERIALIZED VIEW {name} WITH (parallelism = 2) AS {query}")
                for number in range(2):
                    batch = _batch(rnd, 100 * (2 * run + number))
                    add_rows(oracle, "l", batch)
                    db.append("l", [dict(zip(COLUMNS, row, strict=True)) for row in batch])
                    db.settle(180)
                    for name, query in QUERIES.items():
                        found = _told_apart(db.sql(f"SELECT * FROM {name}").rows())
                        expected = _told_apart(oracle.execute(query).fetchall())
                        assert found == expected, f"{name}, run {run}, batch {number}"
                if run == 1:
                    for name in ("pairs", "variety"):
                        check_change_log(db, name, key=())
    assert Counter(asked) == dict.fromkeys(("pairs", "variety", "largest", "smallest"), 4)
