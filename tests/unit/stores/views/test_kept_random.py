"""Values that differ each time, in answers that change: computed once for each row, and kept with it."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from penstock.plan.job_plan import plan_job
from tests.unit.plan.analysis import TRADES, last, planned
from tests.unit.stores.views.finishing import STREAMS, VIEW, Finished

CHANGED = (
    STREAMS
    + """
CREATE TABLE up (id BIGINT, v BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH (connector = 'topic', changes = 'upsert');
CREATE TABLE cdc (id BIGINT, v BIGINT) WITH (connector = 'kafka', topic = 't', format = 'debezium-json');
CREATE MATERIALIZED VIEW rows AS SELECT k, v FROM l;
"""
)


@pytest.mark.parametrize(
    ("query", "width"),
    [
        ("SELECT id, rand() AS x FROM l QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) <= 2", 2),
        ("SELECT id, rand() AS x, rand() AS y FROM l ORDER BY v, id LIMIT 3", 3),
        ("SELECT id, LAG(v) OVER (PARTITION BY k ORDER BY id) AS before, 10 + rand() AS x FROM l", 3),
        ("SELECT DISTINCT id, rand() AS x FROM l", 2),
        ("SELECT id, rand() AS x FROM l WHERE k NOT IN (SELECT k FROM r)", 2),
    ],
)
def test_a_value_stays_that_of_its_row(query: str, width: int, tmp_path: Path) -> None:
    """Whatever comes later, after the store is opened again and after a way back; two calls are two values."""
    found = Finished(query, tmp_path)
    seen: dict[int, set[tuple[float, ...]]] = defaultdict(set)

    def look() -> None:
        rows = found.store.read(f"SELECT * FROM {VIEW}").table.to_pylist()
        assert rows
        for row in rows:
            assert len(row) == width
            values = tuple(row[name] for name in ("x", "y") if name in row)
            assert len(set(values)) == len(values)
            seen[row["id"]].add(values)

    for number in range(4):
        batch = {"l": [(place, 10 * number + place, number, "a") for place in range(3)], "r": [(7, 1, 1, "a")]}
        found.commit(number, batch)
        look()
    found.store.rollback("job", 2)
    found.reopen()
    look()
    assert all(len(values) == 1 for values in seen.values()), seen
    told = [value for values in seen.values() for value in values]
    assert len(set(told)) == len(told), "each row has a value of its own"
    found.store.close()


def test_a_row_that_is_replaced_has_a_new_one() -> None:
    job = plan_job(planned(f"{CHANGED} CREATE MATERIALIZED VIEW x AS SELECT id, rand() AS a, uuid() AS b FROM up;"))
    assert job.finish is not None
    (rows,) = job.finish.rows
    assert rows.shown == ("id", "rand()", "uuid()")
    assert (job.core.count("rand()"), job.key) == (1, ("id",))


@pytest.mark.parametrize(
    ("query", "condition"),
    [
        ("SELECT l.id, rand() AS x FROM l LEFT JOIN r ON l.k = r.k", "UPDATING_JOIN"),
        ("SELECT k, rand() AS x FROM (SELECT DISTINCT k FROM l) AS d", "UPDATING_DISTINCT"),
        ("SELECT id, rand() AS x FROM cdc", "UPDATING_INPUT"),
        ("SELECT k, rand() AS x FROM rows", "QUERY_NOT_YET"),
        ("SELECT id FROM l ORDER BY rand() LIMIT 3", "UPDATING_TOP_N"),
        ("SELECT id, v FROM up WHERE rand() > 0.5", "UPDATING_INPUT"),
    ],
)
def test_a_value_of_no_one_row_is_refused(query: str, condition: str) -> None:
    script = f"{CHANGED} CREATE MATERIALIZED VIEW x AS {query};"
    error = last(script).error
    assert error is not None
    assert error.condition == condition
    assert "differs each time it is computed" in error.message
    assert error.span is not None
    assert f"{TRADES}{script}"[error.span.start :].startswith("rand()")
    assert "FROM (SELECT *, rand() AS x FROM …)" in (error.hint or "")


@pytest.mark.parametrize(
    "over", ["ROW_NUMBER() OVER (PARTITION BY uuid() ORDER BY v)", "COUNT(*) OVER (PARTITION BY uuid())"]
)
def test_a_value_that_differs_is_no_key(over: str) -> None:
    error = last(f"{CHANGED} CREATE MATERIALIZED VIEW x AS SELECT id FROM l QUALIFY {over} < 2;").error
    assert error is not None
    assert error.condition == "NONDETERMINISTIC_KEY"
