"""Batch queries that Spark answers: the whole suite, functions, bounded sources."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import penstock
from penstock.plan.script import read_script, report_statement
from penstock.plan.store_text import store_sql
from penstock.runtime.queries import spark_answer
from tests.batch.answers import alike
from tests.batch.orders_data import tables
from tests.batch.orders_queries import QUERIES

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[penstock.Database]:
    with penstock.connect(tmp_path / "home", parallelism=2, driver_memory="1g") as found:
        yield found


LEFT_TO_SPARK = (
    "q4 order priority",
    "q9 product profit",
    "q16 supplier counts",
    "q17 small quantities",
)


@pytest.mark.parametrize("chosen", [LEFT_TO_SPARK, pytest.param(tuple(QUERIES), marks=pytest.mark.soak)])
def test_batch_suite_on_spark(db: penstock.Database, chosen: tuple[str, ...]) -> None:
    """O2: queries that the view store leaves to Spark, or all of them, are what DuckDB answers."""
    with duckdb.connect() as oracle:
        for name, table in tables().items():
            db.register_table(name, table)
            oracle.register(name, table)
        for name in chosen:
            sql = QUERIES[name]
            parsed, source = read_script(sql)
            report, _ = report_statement(parsed[0], source, db._engine.session)
            assert report.plan is not None, report.error
            assert name not in LEFT_TO_SPARK or store_sql(report.plan) is None
            found = penstock.Result(spark_answer(db._engine, report.plan).table)
            wanted = oracle.execute(sql).fetchall()
            assert wanted, name
            assert alike(found.rows()) == alike(wanted), name


def test_bounded_sources_functions_and_windows(db: penstock.Database, tmp_path: Path) -> None:
    """O1, O6, Q4: generated tables beside registered ones, also in subqueries; functions; every window in batch."""
    db.execute("""
        CREATE TABLE numbers (n BIGINT) WITH (connector = 'datagen', number_of_rows = 10, 'fields.n.kind' = 'sequence',
            'fields.n.start' = 0, 'fields.n.end' = 9)
    """)
    db.register_table("wanted", {"n": [3, 4, 50]})
    assert db.sql("SELECT n FROM wanted WHERE n IN (SELECT n FROM numbers) ORDER BY n").rows() == [(3,), (4,)]
    assert db.sql("SELECT SUM(a.n) AS s FROM numbers AS a JOIN wanted AS w ON a.n = w.n").rows() == [(7,)]

    (tmp_path / "names.csv").write_text("3,three\n50,fifty\n")
    db.execute(
        f"CREATE TABLE names (n BIGINT, name STRING) WITH (connector = 'file', path = '{tmp_path}/names.csv', format = 'csv')"
    )
    joined = "SELECT name FROM wanted JOIN names ON wanted.n = names.n WHERE wanted.n NOT IN (SELECT n FROM numbers)"
    assert db.sql(joined).rows() == [("fifty",)]

    # rows that replace each other: the latest of each key, by its place or by its version
    lines = [(1, "a", 5), (2, "b", 1), (1, "c", 4), (2, "d", None)]
    texts = [f'{{"id": {key}, "name": "{name}", "ver": {"null" if ver is None else ver}}}' for key, name, ver in lines]
    (tmp_path / "changes.json").write_text("\n".join(texts) + "\n")
    for name, more in (("last", ""), ("newest", ", version_column = 'ver'")):
        db.execute(
            f"CREATE TABLE {name}_rows (id INT, name STRING, ver INT, PRIMARY KEY (id) NOT ENFORCED) WITH "
            f"(connector = 'file', path = '{tmp_path}/changes.json', format = 'json', changes = 'upsert'{more})"
        )
    assert db.sql("SELECT name FROM last_rows ORDER BY name").rows() == [("c",), ("d",)]
    assert db.sql("SELECT id, name FROM newest_rows ORDER BY id").rows() == [(1, "a"), (2, "d")]
    assert db.sql("SELECT COUNT(*) AS n FROM newest_rows").rows() == [(2,)]

    def shifted(values: pa.Array) -> pa.Array:
        return pc.add(values, 1)

    db.register_function("shifted", shifted, ["BIGINT"], "BIGINT")
    db.register_function("middle", lambda values: sorted(values)[len(values) // 2], ["BIGINT"], int, aggregate=True)
    assert db.sql("SELECT shifted(n) AS m FROM wanted WHERE shifted(n) > 4 ORDER BY m").rows() == [(5,), (51,)]
    assert db.sql("SELECT COUNT(*) AS c, middle(n) AS m FROM wanted").rows() == [(3, 4)]

    seconds = [0, 59, 60, 130, 400]
    db.register_table("e", pa.table({"ts": pa.array([s * 1_000_000 for s in seconds], pa.timestamp("us", "UTC"))}))
    count = "COUNT(*) AS n"

    def answered(sql: str) -> list[tuple[int, int, int]]:
        return sorted((int(s.timestamp()), int(e.timestamp()), n) for s, e, n in db.sql(sql).rows())

    table = "SELECT window_start, window_end, {} FROM TABLE({}(TABLE e, DESCRIPTOR(ts), {})) GROUP BY window_start, window_end"
    minute, two = "INTERVAL '1' MINUTE", "INTERVAL '2' MINUTE"
    tumbled = [(0, 60, 2), (60, 120, 1), (120, 180, 1), (360, 420, 1)]
    assert answered(table.format(count, "TUMBLE", minute)) == tumbled
    grouped = f"SELECT TUMBLE_START(ts, {minute}) AS s, TUMBLE_END(ts, {minute}) AS e, {count} FROM e GROUP BY TUMBLE(ts, {minute})"
    assert answered(grouped) == tumbled
    assert answered(table.format(count, "HOP", f"{minute}, {two}")) == [
        (-60, 60, 2), (0, 120, 3), (60, 180, 2), (120, 240, 1), (300, 420, 1), (360, 480, 1),
    ]  # fmt: skip
    assert answered(table.format(count, "CUMULATE", f"{minute}, {two}")) == [
        (0, 60, 2), (0, 120, 3), (120, 180, 1), (120, 240, 1), (360, 420, 1), (360, 480, 1),
    ]  # fmt: skip
    session = f"SESSION_START(ts, {minute}) AS s, SESSION_END(ts, {minute}) AS e"
    assert answered(f"SELECT {session}, {count} FROM e GROUP BY SESSION(ts, {minute})") == [
        (0, 120, 3), (130, 190, 1), (400, 460, 1),
    ]  # fmt: skip
