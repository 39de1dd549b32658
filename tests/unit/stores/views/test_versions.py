"""Joins as of an event time with views: all versions of the rows that a view shows the latest of."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from penstock.plan.relation import Mode
from penstock.stores.views.model import BatchCommit
from tests.unit.plan.analysis import last, planned
from tests.unit.stores.views.finishing import VIEW, Finished

STREAMS = """
CREATE STREAM l (k BIGINT, id BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'topic');
CREATE STREAM r (k BIGINT, w BIGINT, ts TIMESTAMP) WITH (connector = 'topic');
CREATE STREAM u (k INT, x DOUBLE);
CREATE STREAM timed (k BIGINT, w BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'topic');
CREATE TABLE now_of (k BIGINT, w BIGINT, ts TIMESTAMP, PRIMARY KEY (k) NOT ENFORCED, WATERMARK FOR ts AS ts)
WITH (connector = 'topic', changes = 'upsert');
CREATE VIEW latest AS SELECT k, w, ts
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS rn FROM r) WHERE rn = 1;
CREATE VIEW renamed (key_of, value_of, since, one) AS SELECT *
FROM (SELECT k, w, ts, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS rn FROM r WHERE w > 1) AS x WHERE 1 >= rn;
CREATE VIEW sums AS SELECT k, SUM(w) AS w FROM r GROUP BY k;
CREATE VIEW of_changes AS SELECT k, w, ts FROM now_of WHERE w > 0;
CREATE VIEW as_they_come AS SELECT k, w FROM r;
CREATE MATERIALIZED VIEW kept AS SELECT k, SUM(w) AS w FROM r GROUP BY k;
CREATE MATERIALIZED VIEW added AS SELECT k, w, ts AS since FROM timed;
CREATE MATERIALIZED VIEW timeless AS SELECT k, w FROM timed;
"""
TABLES = """
CREATE TABLE l (k BIGINT, id BIGINT, ts TIMESTAMP);
CREATE TABLE r (k BIGINT, w BIGINT, ts TIMESTAMP);
CREATE TABLE u (k INTEGER, x DOUBLE);
"""
CASES = {
    "the latest of each key": (
        "SELECT l.id, v.w FROM l JOIN latest FOR SYSTEM_TIME AS OF l.ts AS v ON l.k = v.k",
        "SELECT l.id, v.w FROM l ASOF JOIN r AS v ON l.k = v.k AND l.ts >= v.ts",
    ),
    "all rows in front, and a view with names of its own": (
        "SELECT l.id, v.value_of, v.one FROM l LEFT JOIN renamed FOR SYSTEM_TIME AS OF l.ts AS v ON v.key_of = l.k",
        (
            "SELECT l.id, v.w, CASE WHEN v.w IS NOT NULL THEN 1 END FROM l "
            "ASOF LEFT JOIN (FROM r WHERE w > 1) AS v ON l.k = v.k AND l.ts >= v.ts"
        ),
    ),
    "what is asked of the version, once it is found": (
        "SELECT l.id, v.w FROM l JOIN latest FOR SYSTEM_TIME AS OF l.ts AS v ON l.k = v.k AND l.id % 3 = v.w",
        "SELECT l.id, v.w FROM l ASOF JOIN r AS v ON l.k = v.k AND l.ts >= v.ts WHERE l.id % 3 = v.w",
    ),
    "all rows in front, whatever is asked of the version": (
        (
            "SELECT l.id, v.w, v.k IS NULL AS unmet FROM l "
            "LEFT JOIN latest FOR SYSTEM_TIME AS OF l.ts AS v ON l.k = v.k AND l.id % 3 < v.w AND v.w <> 2"
        ),
        (
            "SELECT l.id, CASE WHEN l.id % 3 < v.w AND v.w <> 2 THEN v.w END, "
            "NOT coalesce(l.id % 3 < v.w AND v.w <> 2, false) FROM l ASOF LEFT JOIN r AS v ON l.k = v.k AND l.ts >= v.ts"
        ),
    ),
    "what is asked of a version, in front of another join": (
        (
            "SELECT l.id, v.w, x.value_of AS other FROM l LEFT JOIN latest FOR SYSTEM_TIME AS OF l.ts AS v ON l.k = v.k "
            "AND v.w <> 1 LEFT JOIN renamed FOR SYSTEM_TIME AS OF l.ts AS x ON l.k = x.key_of AND x.value_of <> v.w"
        ),
        (
            "SELECT l.id, CASE WHEN v.w <> 1 THEN v.w END, CASE WHEN v.w <> 1 AND x.w <> v.w THEN x.w END "
            "FROM l ASOF LEFT JOIN r AS v ON l.k = v.k AND l.ts >= v.ts "
            "ASOF LEFT JOIN (FROM r WHERE w > 1) AS x ON l.k = x.k AND l.ts >= x.ts"
        ),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_row_meets_the_version_of_its_time(case: str, tmp_path: Path) -> None:
    """Also of versions and rows that come late, after every batch, and over a way back."""
    query, oracle = CASES[case]
    rnd = random.Random(case)  # noqa: S311
    found = Finished(query, tmp_path, STREAMS, TABLES, TABLES)
    found.oracle = oracle
    batches = [_batch(rnd, number) for number in range(7)]
    for number, batch in enumerate(batches):
        found.add(number, batch)
        found.follow()
        assert found.view() == found.answer() == +found.fold
    before = found.view()
    assert before, "an empty answer tells nothing"
    found.store.rollback("job", 3)
    found.reopen()
    for number in range(4, 7):
        found.commit(number, batches[number])
    assert found.view() == before
    found.store.close()


def _batch(rnd: random.Random, number: int) -> dict[str, list[Any]]:
    """No two versions of a key are of the same moment: which of those is met, nobody says."""
    start = datetime(2026, 1, 1)  # noqa: DTZ001
    rows = [(rnd.choice([None, 0, 1, 2]), 10 * number + place, start + timedelta(seconds=rnd.randrange(200)))
            for place in range(6)]  # fmt: skip
    versions = [
        (rnd.randrange(3), rnd.randrange(4), start + timedelta(seconds=rnd.randrange(20) * 10, microseconds=each))
        for each in rnd.sample(range(number * 100, number * 100 + 100), 5)
    ]
    return {"l": rows, "r": versions}


def test_what_a_row_has_met_stays_as_long_as_it_is_shown() -> None:
    """A condition on the clock lets the row go; until then it shows what it met, whatever has become of that."""
    query = (
        "SELECT l.id, v.w FROM l JOIN sums FOR SYSTEM_TIME AS OF PROCTIME() AS v ON l.k = v.k "
        "WHERE l.id > 0 AND l.ts > mz_now() - INTERVAL '1' MINUTE"
    )
    found = Finished(query, None, STREAMS, TABLES, TABLES)
    start = datetime(2026, 1, 1, tzinfo=UTC)
    batches: list[dict[str, list[Any]]] = [
        {"r": [(0, 1, start)], "l": [(0, 1, start), (0, 0, start), (1, 2, start)]},
        {"r": [(0, 5, start)], "l": [(0, 3, start + timedelta(seconds=90))]},
        {},
    ]
    expected = [[{"id": 1, "w": 1}], [{"id": 1, "w": 1}, {"id": 3, "w": 6}], [{"id": 3, "w": 6}]]
    for number, (batch, rows) in enumerate(zip(batches, expected, strict=True)):
        now = start + timedelta(seconds=40 * number)
        found.store.commit(
            BatchCommit("job", number, str(number), view=VIEW, rows=found.core(batch),
                        clock_us=round(now.timestamp() * 1_000_000))
        )  # fmt: skip
        assert found.store.read(f"SELECT id, w FROM {VIEW} ORDER BY id").table.to_pylist() == rows
    found.store.close()


@pytest.mark.parametrize(
    ("join", "condition", "told"),
    [
        ("JOIN latest FOR SYSTEM_TIME AS OF l.ts AS v ON l.id = v.w", "INVALID_ARGUMENT", "compared with k"),
        ("JOIN kept FOR SYSTEM_TIME AS OF l.ts AS v ON l.k = v.k", "MISSING_EVENT_TIME", "the latest version"),
        ("JOIN timeless FOR SYSTEM_TIME AS OF l.ts AS v ON l.k = v.k", "MISSING_EVENT_TIME", "no event time"),
        ("JOIN of_changes FOR SYSTEM_TIME AS OF l.ts AS v ON l.k = v.k", "MISSING_EVENT_TIME", 'stands on "now_of"'),
        ("JOIN sums FOR SYSTEM_TIME AS OF l.ts AS v ON l.k = v.k", "MISSING_EVENT_TIME", "no event time"),
        ("JOIN as_they_come FOR SYSTEM_TIME AS OF PROCTIME() AS v ON l.k = v.k", "VERSIONED_JOIN", "only added"),
        ("RIGHT JOIN kept FOR SYSTEM_TIME AS OF PROCTIME() AS v ON l.k = v.k", "UNSUPPORTED_CLAUSE", "no meaning"),
        ("FULL JOIN latest FOR SYSTEM_TIME AS OF l.ts AS v ON l.k = v.k", "UNSUPPORTED_CLAUSE", "no meaning"),
    ],
)
def test_what_has_no_version_is_told_by_name(join: str, condition: str, told: str) -> None:
    error = last(f"{STREAMS} CREATE MATERIALIZED VIEW x AS SELECT l.id, v.w FROM l {join};").error
    assert error is not None
    assert error.condition == condition
    assert told in error.message
    assert error.hint is not None


@pytest.mark.parametrize(
    ("query", "mode"),
    [
        ("SELECT l.id, v.w FROM l JOIN latest FOR SYSTEM_TIME AS OF PROCTIME() AS v ON l.k = v.k", Mode.APPEND),
        ("SELECT l.id, v.w FROM l LEFT JOIN sums FOR SYSTEM_TIME AS OF PROCTIME() AS v ON l.k = v.k", Mode.APPEND),
        ("SELECT l.id, v.w FROM l JOIN added FOR SYSTEM_TIME AS OF l.ts AS v ON l.k = v.k", Mode.RETRACT),
        (
            (
                "SELECT l.id, v.w FROM l JOIN latest FOR SYSTEM_TIME AS OF l.ts AS x ON l.k = x.k "
                "JOIN kept FOR SYSTEM_TIME AS OF PROCTIME() AS v ON l.k = v.k"
            ),
            Mode.RETRACT,
        ),
        (
            (
                "SELECT l.id, v.w FROM l JOIN kept FOR SYSTEM_TIME AS OF PROCTIME() AS v ON l.k = v.k "
                "WHERE l.ts > mz_now() - INTERVAL '1' HOUR"
            ),
            Mode.RETRACT,
        ),
        (
            (
                "SELECT l.id, v.w FROM l JOIN kept FOR SYSTEM_TIME AS OF PROCTIME() AS v ON l.k = v.k "
                "JOIN latest FOR SYSTEM_TIME AS OF l.ts AS x ON l.k = x.k"
            ),
            Mode.RETRACT,
        ),
    ],
)
def test_views_as_of_a_time_run(query: str, mode: Mode) -> None:
    assert planned(f"{STREAMS} CREATE MATERIALIZED VIEW x AS {query};").mode is mode
