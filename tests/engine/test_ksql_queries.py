"""ksqlDB's values by offset, and windows that wait for late rows as long as they say (G3, G5)."""

from __future__ import annotations

import pytest

import penstock
from tests.engine.answers import at, read

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]


def test_values_by_offset_and_windows_with_grace(db: penstock.Database) -> None:
    db.execute(
        "CREATE STREAM o (k BIGINT, v BIGINT, part INT METADATA FROM 'partition', place BIGINT METADATA FROM 'offset', "
        "ts TIMESTAMP, WATERMARK FOR ts AS ts)"
    )
    db.execute(
        "CREATE MATERIALIZED VIEW by_offset AS SELECT k, LATEST_BY_OFFSET(v) AS a, EARLIEST_BY_OFFSET(v) AS b, "
        "LATEST_BY_OFFSET(v, 2) AS c, EARLIEST_BY_OFFSET(v, 2) AS d, LATEST_BY_OFFSET(v, false) AS e FROM o GROUP BY k"
    )
    db.execute(
        "CREATE MATERIALIZED VIEW closed AS SELECT k, WINDOWSTART AS s, COUNT(*) AS n "
        "FROM o WINDOW TUMBLING (SIZE 10 SECONDS, RETENTION 1 DAY, GRACE PERIOD 20 SECONDS) GROUP BY k EMIT FINAL"
    )
    _add(db, (1, 10, 5), (1, 11, 3), (2, 20, 4))
    assert read(db, "by_offset") == [(1, 11, 10, [10, 11], [10, 11], 11), (2, 20, 20, [20], [20], 20)]
    _add(db, (1, 12, 15), (1, None, 29))
    assert read(db, "by_offset") == [(1, 12, 10, [11, 12], [10, 11], None), (2, 20, 20, [20], [20], 20)]
    assert read(db, "closed") == []
    _add(db, (2, 21, 6), (2, 22, 31))  # the first comes late, and in time
    assert read(db, "by_offset") == [(1, 12, 10, [11, 12], [10, 11], None), (2, 22, 20, [21, 22], [20, 21], 22)]
    assert read(db, "closed") == [(1, at(0), 2), (2, at(0), 2)]


def _add(db: penstock.Database, *rows: tuple[int, int | None, int]) -> None:
    for k, v, second in rows:
        db.append("o", [{"k": k, "v": v, "ts": at(second)}])
    db.settle(180)
