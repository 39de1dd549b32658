"""The clock in answers that change: the time at which a row came, kept with it (G3)."""

from __future__ import annotations

import pytest

from penstock.plan.job_plan import plan_job
from penstock.plan.spark_text import spark_sql
from tests.unit.plan.analysis import last, planned
from tests.unit.plan.test_quantified import STREAMS

MORE = f"""{STREAMS}
CREATE STREAM c (id BIGINT, cat BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH (connector = 'topic', changes = 'upsert');
CREATE MATERIALIZED VIEW m AS SELECT id, cat FROM a;
"""
JOINED = "FROM a LEFT JOIN b ON a.cat = b.aid"


def answer(query: str) -> str:
    """The text of the last stage."""
    finish = plan_job(planned(f"{MORE} CREATE MATERIALIZED VIEW v AS {query}")).finish
    assert finish is not None
    return finish.view.text


@pytest.mark.parametrize(
    ("query", "written"),
    [
        (f"SELECT a.id, NOW() AS t {JOINED}", 'greatest("a"."__qualified_now_0", "b"."__qualified_now_0") AS "t"'),
        ("SELECT cat, COUNT(DISTINCT id) AS n, CURRENT_DATE AS d FROM a GROUP BY cat", 'max("a"."__qualified_now_0") AS "d"'),
        ("SELECT cat, COUNT(DISTINCT id) AS n, MIN(NOW()) AS d FROM a GROUP BY cat", 'min("a"."__qualified_now_0") AS "d"'),
        ("SELECT cat, COUNT(*) AS n FROM c GROUP BY cat HAVING NOW() > DATE '2026-01-01'", 'max("c"."__qualified_now_0")'),
        ("SELECT id, CURRENT_TIMESTAMP AS t FROM c", '"c"."__value1" AS "t"'),
        ("SELECT id, NOW() AS t FROM (SELECT DISTINCT id FROM a) AS x", 'max("__came"."__qualified_now_0") AS "__qualified_now_0"'),
        ("SELECT id, NOW() AS t FROM (SELECT id FROM a ORDER BY ts LIMIT 2) AS x", '"a"."__value0" AS "__qualified_now_0"'),
        (
            "SELECT id, NOW() AS t FROM (SELECT id, RANK() OVER (PARTITION BY cat ORDER BY ts) AS r FROM a) WHERE r < 3",
            '"__qualified_now_0" AS "t"',
        ),
        ("SELECT id, NOW() AS t FROM (SELECT id FROM a UNION SELECT aid FROM b) AS x", 'max("__came"."__qualified_now_0")'),
        ("SELECT id, NOW() AS t FROM (SELECT id FROM a EXCEPT SELECT aid FROM b) AS x", 'max("__came"."__qualified_side") = CAST(1'),
        ("SELECT id, NOW() AS t FROM (SELECT id FROM a INTERSECT SELECT aid FROM b) AS x", 'max("__came"."__qualified_side") = CAST(2'),
        ("SELECT id, NOW() AS t FROM m", '"m"."__value0" AS "t"'),
        ("SELECT b.price, m.id, NOW() AS t FROM b LEFT JOIN m ON b.aid = m.cat", '"m"."__value0" AS "__qualified_now_0"'),
        (f"SELECT a.id, x, NOW() AS t {JOINED} CROSS JOIN UNNEST(a.tags) AS u(x)", 'greatest("a"."__qualified_now_0", '),
    ],
)  # fmt: skip
def test_what_is_made_of_rows_has_the_time_of_the_newest(query: str, written: str) -> None:
    assert written in answer(query)


@pytest.mark.parametrize("query", ["SELECT id, {} AS t FROM a", "SELECT cat, MAX({}) AS t FROM a GROUP BY cat"])
def test_in_a_select_list_the_moving_clock_is_the_time_of_the_batch(query: str) -> None:
    """In conditions alone it moves on."""
    moving, plain = (
        planned(f"{MORE} CREATE MATERIALIZED VIEW v AS {query.format(each)}") for each in ("mz_now()", "NOW()")
    )
    assert spark_sql(moving.spark, pretty=False).casefold() == spark_sql(plain.spark, pretty=False).casefold()
    assert not moving.kept


def test_a_filter_is_of_the_row_also_below_groups() -> None:
    plan = planned(
        f"{MORE} CREATE MATERIALIZED VIEW v AS SELECT cat, COUNT(DISTINCT id) AS n FROM a WHERE ts < NOW() GROUP BY cat"
    )
    assert any("time of the batch" in text for text in plan.warnings)
    assert "max(" not in spark_sql(plan.spark, pretty=False)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT b.price, m.id, RAND() AS t FROM b LEFT JOIN m ON b.aid = m.cat",
        "SELECT x.id, b.price, NOW() AS t FROM (SELECT DISTINCT * FROM a) AS x LEFT JOIN b ON x.id = b.aid",
        "SELECT x.id, NOW() AS t FROM (SELECT id FROM a EXCEPT ALL SELECT aid FROM b) AS x",
        "SELECT x.id, mz_now() AS t FROM (SELECT DISTINCT id FROM a) AS x",
        f"SELECT a.id, RAND() AS t {JOINED}",
        f"SELECT a.id, RAND() * a.id AS t {JOINED}",
        "SELECT CURRENT_DATE AS d, COUNT(DISTINCT id) AS n FROM a GROUP BY CURRENT_DATE",
    ],
)
def test_rows_that_do_not_tell_when_they_came(query: str) -> None:
    assert last(f"{MORE} CREATE MATERIALIZED VIEW v AS {query}").error is not None


def test_temporal_filters_of_risingwave_mean_something_else() -> None:
    filtered = f"CREATE MATERIALIZED VIEW v AS SELECT a.id {JOINED} WHERE a.ts > NOW() - INTERVAL '1 hour'"
    for dialect, moves in (("penstock", False), ("flink", False), ("risingwave", True)):
        finish = plan_job(planned(f"{MORE} SET dialect = '{dialect}'; {filtered}")).finish
        assert finish is not None
        assert finish.moves is moves


def test_now_is_written_down_with_the_batch() -> None:
    """Spark has another one for NOW when a batch runs again."""
    plan = planned(f"{MORE} CREATE MATERIALIZED VIEW v AS SELECT id, NOW() AS t FROM a")
    assert "CURRENT_TIMESTAMP() AS `t`" in spark_sql(plan.spark, pretty=False)
