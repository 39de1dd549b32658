"""Every operator of plain SQL over tables, held against DuckDB; and which of them a stream has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import penstock
from penstock.plan.job_plan import plan_job
from penstock.plan.script import analyze_script
from tests.batch.answers import alike
from tests.batch.stream_operators import STREAMS as WINDOWED_STREAMS
from tests.batch.stream_operators import WINDOWED

ORDERS = pa.table(
    {"id": [1, 2, 3, 4, 5, 6], "who": ["a", "b", "a", "c", None, "b"], "cents": [500, 250, 750, 100, 100, None]}
)
PEOPLE = pa.table({"who": ["a", "b", "d", None], "region": ["north", "south", "west", "nowhere"]})

# The operator, its SQL over tables, and the condition with which a stream refuses it; None where it runs.
OPERATORS = {
    "filter": ("SELECT id FROM orders WHERE cents > 100 ORDER BY id", None),
    "projection": ("SELECT id * 2 AS twice, UPPER(who) AS w FROM orders ORDER BY id", None),
    "aggregate": ("SELECT who, COUNT(*) AS n, SUM(cents) AS c, AVG(cents) AS m FROM orders GROUP BY who ORDER BY who NULLS FIRST", None),
    "aggregate of everything": ("SELECT COUNT(*) AS n, MIN(cents) AS low, MAX(cents) AS high FROM orders", None),
    "having": ("SELECT who, COUNT(*) AS n FROM orders GROUP BY who HAVING COUNT(*) > 1 ORDER BY who", None),
    "inner join": ("SELECT o.id, p.region FROM orders o JOIN people p ON o.who = p.who ORDER BY o.id", None),
    "left join": ("SELECT o.id, p.region FROM orders o LEFT JOIN people p ON o.who = p.who ORDER BY o.id", None),
    "right join": ("SELECT o.id, p.region FROM orders o RIGHT JOIN people p ON o.who = p.who ORDER BY o.id NULLS FIRST, p.region", None),
    "full join": ("SELECT o.id, p.region FROM orders o FULL JOIN people p ON o.who = p.who ORDER BY o.id NULLS FIRST, p.region", None),
    "semi join": ("SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM people p WHERE p.who = o.who) ORDER BY id", None),
    "anti join": ("SELECT id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM people p WHERE p.who = o.who) ORDER BY id", None),
    "cross join": ("SELECT o.id, p.region FROM orders o CROSS JOIN people p ORDER BY o.id, p.region", None),
    "sort": ("SELECT id FROM orders ORDER BY cents DESC NULLS LAST, id", None),
    "lateral limit": (
        ("SELECT p.region, t.id FROM people p LEFT JOIN LATERAL (SELECT o.id FROM orders o WHERE o.who = p.who "
        "ORDER BY o.cents DESC NULLS LAST, o.id LIMIT 1) t ON true ORDER BY p.region"), None,
    ),
    "lateral aggregate": (
        ("SELECT p.region, t.n FROM people p, LATERAL (SELECT COUNT(*) AS n FROM orders o WHERE o.who <= p.who) t "
        "ORDER BY p.region"), None,
    ),
    "join by inequality": ("SELECT o.id, p.region FROM orders o JOIN people p ON o.who < p.who ORDER BY o.id, p.region", None),
    "top n": ("SELECT id, cents FROM orders WHERE cents IS NOT NULL ORDER BY cents DESC, id LIMIT 3", None),
    "limit and offset": ("SELECT id FROM orders ORDER BY id LIMIT 2 OFFSET 3", None),
    "distinct": ("SELECT DISTINCT who FROM orders ORDER BY who NULLS FIRST", None),
    "union all": ("SELECT who FROM orders UNION ALL SELECT who FROM people ORDER BY who NULLS FIRST", None),
    "union": ("SELECT who FROM orders UNION SELECT who FROM people ORDER BY who NULLS FIRST", None),
    "intersect": ("SELECT who FROM orders INTERSECT SELECT who FROM people ORDER BY who NULLS FIRST", None),
    "except": ("SELECT who FROM orders EXCEPT SELECT who FROM people ORDER BY who NULLS FIRST", None),
    "over": ("SELECT id, SUM(cents) OVER (PARTITION BY who ORDER BY id) AS running FROM orders ORDER BY id", None),
    "subquery": ("SELECT id FROM orders WHERE cents > (SELECT AVG(cents) FROM orders) ORDER BY id", None),
    "in": ("SELECT id FROM orders WHERE who IN (SELECT who FROM people) ORDER BY id", None),
    "not in": ("SELECT id FROM orders WHERE who NOT IN (SELECT who FROM people WHERE who IS NOT NULL) ORDER BY id", None),
    "aggregate of an aggregate": (
        ("SELECT n, COUNT(*) AS c FROM (SELECT who, COUNT(*) AS n FROM orders GROUP BY who) AS x "
        "GROUP BY n ORDER BY n"), None,
    ),
    "cube": (
        ("SELECT who, cents, COUNT(*) AS n FROM orders GROUP BY CUBE (who, cents) "
        "ORDER BY who NULLS FIRST, cents NULLS FIRST, n"), None,
    ),
    "ranks of everything": (
        "SELECT id, RANK() OVER (ORDER BY cents DESC NULLS LAST) AS place FROM orders ORDER BY id", None,
    ),
    "the row before": ("SELECT id, LAG(cents) OVER (PARTITION BY who ORDER BY id) AS before FROM orders ORDER BY id", None),
    "frame of a range": (
        ("SELECT id, SUM(cents) OVER (ORDER BY id RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS near FROM orders "
        "ORDER BY id"), None,
    ),
}  # fmt: skip
STREAMS = """
CREATE STREAM orders (id BIGINT, who STRING, cents BIGINT);
CREATE TABLE people (who STRING, region STRING) WITH (connector = 'file', path = 'people.csv', format = 'csv');
"""


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[penstock.Database]:
    path: Path = tmp_path_factory.mktemp("operators")
    with penstock.connect(path / "home", parallelism=2, driver_memory="1g") as found:
        found.register_table("orders", ORDERS)
        found.register_table("people", PEOPLE)
        yield found


@pytest.mark.spark
@pytest.mark.parametrize("sql", [sql for sql, _ in OPERATORS.values()], ids=OPERATORS)
def test_over_tables(db: penstock.Database, sql: str) -> None:
    """SC35: filters, aggregates, joins of every kind, sorting, top n, set operations, limits, distinct."""
    with duckdb.connect() as oracle:
        oracle.register("orders", ORDERS)
        oracle.register("people", PEOPLE)
        wanted = oracle.execute(sql).fetchall()
    assert wanted
    assert alike(db.sql(sql).rows()) == alike(wanted)


def over_a_stream(sql: str) -> str:
    """The query as a view asks it: in no order, unless the order chooses rows or is all that is asked for."""
    return sql if " NULLS LAST, id" in sql or " LIMIT " in sql else sql.rpartition(" ORDER BY ")[0] or sql


@pytest.mark.parametrize(("sql", "condition"), OPERATORS.values(), ids=OPERATORS)
def test_over_a_stream(sql: str, condition: str | None) -> None:
    """SC35: the same as a view over a stream: it runs, or is refused by name."""
    error = analyze_script(f"{STREAMS} CREATE MATERIALIZED VIEW v AS {over_a_stream(sql)}")[-1].error
    assert (None if error is None else error.condition) == condition


@pytest.mark.parametrize(("sql", "condition"), WINDOWED.values(), ids=WINDOWED)
def test_windows_of_streams(sql: str, condition: str | None) -> None:
    """SC35, G13: windows of every kind, and joins of streams."""
    report = analyze_script(f"{WINDOWED_STREAMS} CREATE MATERIALIZED VIEW v AS {sql}")[-1]
    assert (None if report.error is None else report.error.condition) == condition
    if condition is None:
        assert report.analysis is not None
        assert report.analysis.plan is not None
        assert plan_job(report.analysis.plan).how


def test_the_table_of_what_streams_have() -> None:
    """SC35: `python -m tests.batch.streams_page` brings it up to date."""
    from tests.batch.streams_page import PAGE, page

    assert PAGE.read_text(encoding="utf-8") == page()
