"""Sessions as the frame of window functions: after every batch the view is what plain Python says (G13, G14)."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path

import pytest

from penstock.plan.spark_text import spark_sql
from tests.unit.plan.analysis import planned
from tests.unit.stores.views.finishing import TABLES, Finished, Row, row_text

STREAMS = """
CREATE STREAM l (k BIGINT, id BIGINT, v BIGINT, ts TIMESTAMP);
CREATE STREAM r (k BIGINT, id BIGINT, w BIGINT, s STRING);
CREATE STREAM u (k INT, x DOUBLE);
"""
HERE = TABLES.replace("v BIGINT, s VARCHAR", "v BIGINT, ts TIMESTAMP")
START = datetime(2026, 1, 1)  # noqa: DTZ001 as DuckDB takes it
GAP = timedelta(seconds=10)


def batch(rnd: random.Random, number: int) -> list[Row]:
    """Rows in any order of time, some exactly a gap behind others, of the same time, without a time or a key."""
    made: list[Row] = []
    for place in range(rnd.randrange(1, 7)):
        second = rnd.choice([rnd.randrange(120), 10 * rnd.randrange(12)])
        ts = None if rnd.random() < 0.15 else START + timedelta(seconds=second)
        made.append((rnd.choice([None, 1, 1, 2]), 10 * number + place, rnd.choice([None, 1, 2, 3]), ts))
    return made


def sessions(rows: list[Row]) -> Iterator[list[Row]]:
    """The rows of each session of each key; those of a key without a time are together."""
    by_key = sorted(rows, key=lambda row: repr(row[0]))
    for _, found in groupby(by_key, key=lambda row: repr(row[0])):
        of_key = list(found)
        session: list[Row] = [row for row in of_key if row[3] is None]
        before: datetime | None = None
        for row in sorted((row for row in of_key if row[3] is not None), key=lambda row: (row[3], row[1])):
            if session and (before is None or row[3] >= before + GAP):
                yield session
                session = []
            session.append(row)
            before = row[3]
        yield session


def answer(rows: list[Row]) -> Counter[str]:
    shown: list[Row] = []
    for session in sessions(rows):
        values = [row[2] for row in session if row[2] is not None]
        times = [row[3] for row in session]
        total = sum(values) if values else None
        shown += [(*row[:2], len(session), total, times[0], times[-1], len(session) - 1) for row in session]
    return Counter(map(row_text, shown))


def without_zone(found: Counter[str]) -> Counter[str]:
    return Counter(
        {re.sub(r", tzinfo=(zoneinfo[^)]*\)|datetime.timezone.utc)", "", text): count for text, count in found.items()}
    )


QUERY = (
    "SELECT k, id, COUNT(*) OVER w AS n, SUM(v) OVER w AS total, FIRST_VALUE(ts) OVER w AS begins, "
    "LAST_VALUE(ts) OVER w AS ends, COUNT(*) OVER (PARTITION BY k ORDER BY ts SESSION WITH GAP INTERVAL '10' SECOND "
    "EXCLUDE CURRENT ROW) AS others FROM l "
    "WINDOW w AS (PARTITION BY k ORDER BY ts SESSION WITH GAP INTERVAL '10 seconds')"
)


@pytest.mark.parametrize("seed", range(4))
def test_sessions_after_every_batch(seed: int, tmp_path: Path) -> None:
    """Late rows join sessions that were apart; a batch comes twice, the store is opened again, and an earlier batch is
    gone back to."""
    rnd = random.Random(f"sessions {seed}")  # noqa: S311
    found = Finished(QUERY, tmp_path / "views.duckdb", STREAMS, HERE, HERE)
    assert found.job.finish is not None
    assert found.job.finish.keys
    rows: list[Row] = []
    batches = [batch(rnd, number) for number in range(8)]
    for number, given in enumerate(batches):
        rows += given
        found.commit(number, {"l": given})
        if number == 3:
            found.commit(number, {"l": given})
            found.reopen()
        if number == 6:
            found.store.rollback("job", 2)
            for again in range(3, 7):
                found.commit(again, {"l": batches[again]})
            found.fold.clear()
            found.seq = 0
        found.follow()
        assert without_zone(found.view()) == answer(rows) == without_zone(+found.fold), f"after batch {number}"
    assert any(len(session) > 1 for session in sessions(rows))
    found.store.close()


def test_sessions_of_numbers_of_groups_and_in_qualify() -> None:
    """Over aggregates, by numbers, in a condition, and beside columns that stars stand for."""
    found = Finished(
        "SELECT *, v + 1 AS next FROM (SELECT k, v, MAX(id) AS last FROM l GROUP BY k, v) AS x "
        "QUALIFY COUNT(*) OVER (PARTITION BY k ORDER BY v SESSION WITH GAP 2) > 1",
        None,
        STREAMS,
        HERE,
        HERE,
    )
    found.commit(0, {"l": [(1, 1, 1, None), (1, 2, 3, None), (2, 3, 1, None), (2, 4, 2, None), (2, 5, 4, None)]})
    assert found.view() == Counter(map(row_text, [(2, 1, 3, 2), (2, 2, 4, 3)]))
    found.commit(1, {"l": [(1, 6, 2, None), (2, 7, 2, None)]})
    found.follow()
    expected = [(1, 1, 1, 2), (1, 2, 6, 3), (1, 3, 2, 4), (2, 1, 3, 2), (2, 2, 7, 3)]
    assert found.view() == Counter(map(row_text, expected)) == +found.fold
    found.store.close()


def test_columns_are_told_apart_by_their_places() -> None:
    """Two of them may have the same name until they are stored."""
    over = "OVER (PARTITION BY auction ORDER BY price SESSION WITH GAP 5)"
    query = f"SELECT COUNT(*) {over}, COUNT(price) {over}, auction, COUNT(*) OVER (PARTITION BY auction) FROM bids"
    stream = "CREATE TABLE bids (auction INT, price INT) WITH (connector = 'file', path = '/b', format = 'parquet');"
    text = spark_sql(planned(stream + query).spark, pretty=False)
    assert text.startswith("SELECT count(*) OVER (PARTITION BY")
    calls = [
        text.index(each)
        for each in ("count(*) OVER", "count(`__rows`.`__qualified_read", "`__rows`.`auction`", "`__rows`.`count`")
    ]
    assert calls == sorted(calls)
