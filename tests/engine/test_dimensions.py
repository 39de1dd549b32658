"""Streams joined with dimension tables: results, updates at a batch boundary, plans, limits, restarts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import penstock
from penstock import DimensionBroadcastManager, JobFailed, PenstockError
from tests.engine.answers import at, check_change_log, job, ms, read, until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

SECURITIES = pa.table(
    {
        "instrumentId": ["AAPL", "MSFT", "PENNY"],
        "NAME": ["Apple", "Microsoft", "Penny"],
        "SECTOR": ["Tech", "Tech", "Mining"],
    }
)
STREAM = """
CREATE STREAM trades (id INT, symbol STRING, price DOUBLE, ts TIMESTAMP, WATERMARK FOR ts AS ts)
"""
ENRICHED = """
CREATE MATERIALIZED VIEW enriched AS
SELECT t.id, t.symbol, s.NAME AS name FROM trades AS t LEFT JOIN securities AS s ON t.symbol = s.instrumentId
"""
WINDOWS = """
CREATE MATERIALIZED VIEW windows AS
SELECT t.symbol, s.NAME, s.SECTOR, TUMBLE_START(t.ts, INTERVAL '1' MINUTE) AS w, AVG(t.price) AS avg_price, COUNT(*) AS n
FROM trades t LEFT JOIN securities s ON t.symbol = s.instrumentId
GROUP BY t.symbol, s.NAME, s.SECTOR, TUMBLE(t.ts, INTERVAL '1' MINUTE)
HAVING AVG(t.price) > 100
"""
TOTALS = """
CREATE MATERIALIZED VIEW totals AS
SELECT s.SECTOR AS sector, COUNT(*) AS n, SUM(t.price) AS total
FROM trades t JOIN securities FOR SYSTEM_TIME AS OF PROCTIME() AS s ON t.symbol = s.instrumentId GROUP BY s.SECTOR
"""

HOURLY = """
CREATE MATERIALIZED VIEW hourly AS
SELECT s.SECTOR AS sector, TUMBLE_START(t.ts, INTERVAL '1' HOUR) AS hour, COUNT(*) AS n, SUM(t.price) AS total
FROM trades t JOIN securities s ON t.symbol = s.instrumentId GROUP BY s.SECTOR, TUMBLE(t.ts, INTERVAL '1' HOUR)
"""


def put(db: penstock.Database, *rows: tuple[int, str, float, float]) -> None:
    db.append("trades", [{"id": i, "symbol": s, "price": p, "ts": ms(second)} for i, s, p, second in rows])


def plan(db: penstock.Database, query: str) -> str:
    return "\n".join(row[0] for row in db.sql(f"EXPLAIN PHYSICAL {query}").rows())


def started(db: penstock.Database) -> list[tuple[object, ...]]:
    return db.sql("SELECT name, started_at, restarts FROM penstock.jobs ORDER BY name").rows()


def test_dimensions_of_which_only_the_rows_count(db: penstock.Database) -> None:
    db.register_dimension("securities", SECURITIES)
    db.execute(f"{STREAM};")
    put(db, (1, "AAPL", 1, 1), (2, "MSFT", 2, 2))
    count = "(SELECT COUNT(*) FROM securities)"
    assert sorted(db.select_once(f"SELECT id, {count} AS n FROM trades").rows()) == [(1, 3), (2, 3)]
    assert len(db.select_once("SELECT id FROM trades WHERE EXISTS (SELECT 1 FROM securities)").rows()) == 2
    assert len(db.select_once("SELECT id FROM trades CROSS JOIN securities").rows()) == 6
    grouped = "SELECT symbol, COUNT(*) AS n FROM trades CROSS JOIN securities GROUP BY symbol"
    assert sorted(db.select_once(grouped).rows()) == [("AAPL", 3), ("MSFT", 3)]


def test_updates_take_effect_between_two_batches(opened: Callable[..., penstock.Database]) -> None:
    """G10, G21, L7, L13, L16, L17, L20, L21, SC10: all of a batch sees one version; nothing is restarted, lost or doubled."""
    db = opened()
    db.register_dimension("securities", SECURITIES)
    db.execute(f"{STREAM}; {ENRICHED}; {WINDOWS}; {TOTALS}; {HOURLY};")
    put(db, (1, "AAPL", 150, 1), (2, "UNKN", 200, 2), (3, "PENNY", 1, 3), (4, "MSFT", 300, 59))
    db.settle()
    assert read(db, "enriched") == [
        (1, "AAPL", "Apple"),
        (2, "UNKN", None),
        (3, "PENNY", "Penny"),
        (4, "MSFT", "Microsoft"),
    ]
    assert read(db, "totals") == [("Mining", 1, 1.0), ("Tech", 2, 450.0)]
    before = started(db)

    renamed = [{"instrumentId": "AAPL", "NAME": "Apple Inc.", "SECTOR": "Fruit"}]
    assert db.update_dimension("securities", renamed) == 2
    put(db, (5, "AAPL", 170, 30), (6, "MSFT", 300, 61), (7, "AAPL", 1, 200))
    db.settle()
    put(db, (8, "AAPL", 5, 4))  # its window has closed
    db.settle()
    assert read(db, "enriched")[4:] == [
        (5, "AAPL", "Apple Inc."),
        (6, "MSFT", None),
        (7, "AAPL", "Apple Inc."),
        (8, "AAPL", "Apple Inc."),
    ]
    assert read(db, "totals") == [("Fruit", 3, 176.0), ("Mining", 1, 1.0), ("Tech", 2, 450.0)]
    assert read(db, "windows") == [
        ("AAPL", "Apple", "Tech", at(0), 150.0, 1),
        ("AAPL", "Apple Inc.", "Fruit", at(0), 170.0, 1),
        ("MSFT", None, None, at(60), 300.0, 1),
        ("MSFT", "Microsoft", "Tech", at(0), 300.0, 1),
        ("UNKN", None, None, at(0), 200.0, 1),
    ], "rows keep the version of their batch, and a group below 100 is not there"
    late = db.sql("SELECT job, row FROM penstock.late_rows").rows()
    assert [(name, '"id":8' in str(row)) for name, row in late] == [("windows", True)]
    assert started(db) == before, "no job was started again for it"
    pins = db.sql("SELECT job, version, from_batch FROM penstock.dimension_versions ORDER BY job, version").rows()
    for name in ("enriched", "totals", "windows"):
        first = next(batch for job_name, version, batch in pins if (job_name, version) == (name, 2))
        assert first is not None
        assert (name, 1, 0) in pins
    for change in check_change_log(db, "enriched"):
        assert change.row is not None
        first = next(batch for job_name, version, batch in pins if (job_name, version) == ("enriched", 2))
        assert (change.batch_id >= first) == (change.row["id"] > 4), "from the batch that was told on, and not before"
    db.close()

    db = opened()
    put(db, (9, "AAPL", 1, 201))
    db.settle()
    assert read(db, "enriched")[-1] == (9, "AAPL", "Apple Inc."), "there again, at its last version"
    assert read(db, "totals")[0] == ("Fruit", 4, 177.0)
    status = DimensionBroadcastManager(db).broadcast_table("securities")
    assert status.version == 2
    assert set(status.jobs) == {"enriched", "windows", "totals", "hourly"}
    db.drain("hourly")
    assert read(db, "hourly") == [("Fruit", at(0), 4, 177.0), ("Mining", at(0), 1, 1.0), ("Tech", at(0), 2, 450.0)]
    with pytest.raises(penstock.PenstockError) as raised:
        db.execute("DROP TABLE securities")
    assert raised.value.condition == "DEPENDENT_OBJECTS"
    db.execute("DROP TABLE securities CASCADE")
    assert db.jobs() == []
    assert not (db.path / "dimensions" / "securities").exists()


@pytest.mark.slow
def test_plans_limits_and_keys(db: penstock.Database) -> None:
    """L8, L9, L12, L14, L18, L19, P3: broadcast without a shuffle; a shuffle join where it is asked for or too large."""
    query = "SELECT t.id, s.NAME FROM trades t LEFT JOIN {} s ON t.symbol = s.instrumentId"
    db.execute(STREAM)
    db.register_dimension("securities", SECURITIES)
    db.register_dimension("shuffled", SECURITIES, broadcast=False)
    found = plan(db, query.format("securities"))
    assert "BroadcastHashJoin" in found
    below = found[found.index("BroadcastHashJoin") : found.index("BroadcastExchange")]
    assert "StreamingRelation" in below
    assert "Exchange hash" not in found
    assert "BroadcastHashJoin" not in plan(db, query.format("shuffled"))
    assert "Exchange hashpartitioning" in plan(db, query.format("shuffled"))
    told = "\n".join(row[0] for row in db.sql(f"EXPLAIN {query.format('securities')}").rows())
    assert "securities: version 1, 3 rows, " in told
    assert "broadcast to every task, no shuffle" in told
    assert "broadcast = False" in "\n".join(row[0] for row in db.sql(f"EXPLAIN {query.format('shuffled')}").rows())

    # A subquery is a join too, and what a query over the dimension gives is sent as the dimension is.
    member = "SELECT t.id FROM trades t WHERE t.symbol IN (SELECT instrumentId FROM {} WHERE SECTOR = 'Tech')"
    found = plan(db, member.format("securities"))
    assert "BroadcastHashJoin" in found
    assert "LeftSemi" in found
    assert "Exchange hash" not in found
    sectors = (
        "SELECT t.id, c.n FROM trades t JOIN {0} s ON t.symbol = s.instrumentId "
        "JOIN (SELECT SECTOR, COUNT(*) AS n FROM {0} GROUP BY SECTOR) c ON c.SECTOR = s.SECTOR"
    )
    found = plan(db, sectors.format("securities"))
    assert found.count("BroadcastHashJoin") == 2
    assert found.count("Exchange hash") == 1, "of the dimension, for its groups"
    assert found.index("StreamingRelation") < found.index("Exchange hash")
    db.execute("CREATE MATERIALIZED VIEW of_tech AS " + member.format("securities"))
    db.execute("CREATE MATERIALIZED VIEW of_sectors AS " + sectors.format("securities"))
    db.execute("CREATE MATERIALIZED VIEW of_sectors_shuffled AS " + sectors.format("shuffled"))

    db.execute("CREATE MATERIALIZED VIEW by_broadcast AS " + query.format("securities"))
    db.execute("CREATE MATERIALIZED VIEW by_shuffle AS " + query.format("shuffled"))
    put(db, (1, "AAPL", 1, 1), (2, "UNKN", 1, 2), (3, "PENNY", 1, 3))
    db.settle()
    rows = [(1, "Apple"), (2, None), (3, "Penny")]
    assert read(db, "by_broadcast") == rows
    assert read(db, "by_shuffle") == rows
    assert read(db, "of_tech") == [(1,)]
    assert read(db, "of_sectors") == read(db, "of_sectors_shuffled") == [(1, 2), (3, 1)]
    assert db.sql(
        "SELECT name, broadcast, memory_bytes = bytes * copies FROM penstock.dimensions ORDER BY name"
    ).rows() == [
        ("securities", True, True),
        ("shuffled", False, True),
    ]
    assert not any("shuffle" in notice for notice in db.notices())

    # Over the limit from the next version on: the job goes on from the same batch, with another join.
    db.execute("SET broadcast_max_rows = 3")
    twice = pa.concat_tables([SECURITIES, SECURITIES.slice(0, 1)])
    assert db.update_dimension("securities", twice) == 2
    assert "BroadcastHashJoin" not in plan(db, query.format("securities"))
    put(db, (4, "MSFT", 1, 4), (5, "AAPL", 1, 5))
    db.settle()
    assert read(db, "by_broadcast") == [*rows, (4, "Microsoft"), (5, "Apple"), (5, "Apple")]
    notices = db.notices()
    assert any("4 rows are over broadcast_max_rows (3)" in notice for notice in notices), notices
    assert any("1 key stands in more than one row (instrumentId)" in notice for notice in notices), notices
    check_change_log(db, "by_broadcast")
    assert read(db, "of_tech") == [(1,), (4,), (5,)], "a key that stands twice is in the list all the same"
    assert read(db, "of_sectors") == [(1, 2), (3, 1), (4, 3), (5, 3), (5, 3)], "counted in the version of the batch"
    assert read(db, "of_sectors_shuffled") == [(1, 2), (3, 1), (4, 2), (5, 2)]

    # Queries that nobody keeps, and rows that are only tested.
    db.execute("RESET broadcast_max_rows")
    semi = "SELECT t.id FROM trades t LEFT {} JOIN shuffled s ON t.symbol = s.instrumentId"
    assert sorted(db.select_once(semi.format("SEMI")).rows()) == [(1,), (3,), (4,), (5,)]
    assert db.select_once(semi.format("ANTI")).rows() == [(2,)]
    db.execute(
        "CREATE TABLE ended (n BIGINT) WITH (connector = 'datagen', number_of_rows = 3, 'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '3')"
    )
    db.register_dimension("words", [{"n": 2, "word": "two"}])
    db.execute("CREATE MATERIALIZED VIEW named AS SELECT e.n, w.word FROM ended e LEFT JOIN words w ON w.n = e.n")
    until(lambda: job(db, "named").state == "stopped")
    assert read(db, "named") == [(1, None), (2, "two"), (3, None)]


def test_a_table_over_a_file_is_read_again(db: penstock.Database, tmp_path: Path) -> None:
    """L10, L13, L18: read once for each version; a file that cannot be used leaves the version there is in force."""
    path = tmp_path / "names.csv"
    path.write_text("id,name\nA,one\nB,two\n")
    db.execute(STREAM)
    db.execute(
        "CREATE TABLE names (id STRING PRIMARY KEY, name STRING) WITH "
        f"(connector = 'file', path = '{path}', format = 'csv', 'csv.header' = 'true', refresh = '1 second')"
    )
    db.execute(
        "CREATE MATERIALIZED VIEW named AS SELECT t.id, n.name FROM trades t LEFT JOIN names n ON t.symbol = n.id"
    )
    put(db, (1, "A", 1, 1), (2, "C", 1, 2))
    db.settle()
    assert read(db, "named") == [(1, "one"), (2, None)]

    def dimension() -> tuple[object, ...]:
        return db.sql("SELECT version, rows, source_reads, error FROM penstock.dimensions").rows()[0]

    until(lambda: int(str(dimension()[2])) >= 3)
    assert dimension()[:2] == (1, 2), "what has not changed is no new version"

    def replace(text: str) -> None:
        """At once: nobody reads it while it is empty or there in part."""
        (tmp_path / "next").write_text(text)
        (tmp_path / "next").rename(path)

    replace("id,name\nA,uno\nC,three\nC,four\n")
    until(lambda: "more than one row (id)" in str(dimension()[3]))
    assert dimension()[0] == 1
    replace("id,name\nA,uno\nC,three\n")
    until(lambda: dimension()[0] == 2)
    assert dimension()[3] is None
    put(db, (3, "A", 1, 3), (4, "C", 1, 4))
    db.settle()
    assert read(db, "named") == [(1, "one"), (2, None), (3, "uno"), (4, "three")]
    assert job(db, "named").restarts == 0


def test_views_of_tables_with_refresh_alone(db: penstock.Database, tmp_path: Path) -> None:
    """Nothing is joined with them: their rows are read once, as those of tables without."""
    path = tmp_path / "rows.csv"
    path.write_text("k,v\na,1\na,1\na,2\nb,3\nb,3\nc,4\n")
    for name, refresh in (("again", ", refresh = '1 minute'"), ("once", "")):
        db.execute(
            f"CREATE TABLE {name} (k STRING, v INT) WITH "
            f"(connector = 'file', path = '{path}', format = 'csv', 'csv.header' = 'true'{refresh})"
        )
    queries = {
        "distinct_values": "SELECT k, COUNT(DISTINCT v) AS q FROM {} GROUP BY k",
        "sizes": "SELECT n, COUNT(*) AS q FROM (SELECT k, COUNT(*) AS n FROM {} GROUP BY k) GROUP BY n",
        "pairs": "SELECT x.k AS a, y.k AS b FROM {} AS x JOIN {} AS y ON x.v = y.v + 1",
        "numbered": "SELECT k, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AS place FROM {}",
    }
    for name, query in queries.items():
        for table in ("again", "once"):
            db.execute(f"CREATE MATERIALIZED VIEW {name}_{table} AS {query.replace('{}', table)}")
    until(lambda: all(job(db, f"{name}_{table}").state == "stopped" for name in queries for table in ("again", "once")))
    assert read(db, "distinct_values_again") == [("a", 2), ("b", 1), ("c", 1)]
    assert read(db, "sizes_again") == [(1, 1), (2, 1), (3, 1)]
    for name in queries:
        assert read(db, f"{name}_again") == read(db, f"{name}_once") != []


@pytest.mark.slow
def test_a_large_dimension_is_asked_by_key(db: penstock.Database) -> None:
    """L10, L13: no join and nothing sent with a batch; the same rows as a join, over updates and repeated keys."""
    db._engine.dimensions.join_methods.lookup_rows = 3  # three rows are many here
    db.register_dimension("securities", SECURITIES)
    db.execute(f"{STREAM}; {ENRICHED}; {WINDOWS}; {TOTALS};")
    query = ENRICHED[ENRICHED.index("SELECT") :]
    found = plan(db, query)
    assert "ArrowEvalPython" in found
    assert "Join" not in found
    assert "Exchange" not in found
    assert "asked for by key in Python workers" in str(db.sql(f"EXPLAIN {query}").rows()[-1][0])
    put(db, (1, "AAPL", 150, 1), (2, "UNKN", 200, 2), (3, "PENNY", 1, 3), (4, "MSFT", 300, 59))
    db.settle()
    before = started(db)
    renamed = pa.table(
        {"instrumentId": [None, "MSFT", "AAPL"], "NAME": ["x", "Micro", "Apple Inc."], "SECTOR": ["x", None, "Fruit"]}
    )
    assert db.update_dimension("securities", renamed) == 2
    put(db, (5, "AAPL", 170, 30), (6, "PENNY", 300, 61), (7, "AAPL", 1, 200))
    db.settle()
    put(db, (8, "AAPL", 5, 4))
    db.settle()
    assert read(db, "enriched") == [
        (1, "AAPL", "Apple"),
        (2, "UNKN", None),
        (3, "PENNY", "Penny"),
        (4, "MSFT", "Microsoft"),
        (5, "AAPL", "Apple Inc."),
        (6, "PENNY", None),
        (7, "AAPL", "Apple Inc."),
        (8, "AAPL", "Apple Inc."),
    ]
    assert read(db, "totals") == [("Fruit", 3, 176.0), ("Mining", 1, 1.0), ("Tech", 2, 450.0)]
    assert read(db, "windows") == [
        ("AAPL", "Apple", "Tech", at(0), 150.0, 1),
        ("AAPL", "Apple Inc.", "Fruit", at(0), 170.0, 1),
        ("MSFT", "Microsoft", "Tech", at(0), 300.0, 1),
        ("PENNY", None, None, at(60), 300.0, 1),
        ("UNKN", None, None, at(0), 200.0, 1),
    ]
    assert len(db.sql("SELECT * FROM penstock.late_rows").rows()) == 1
    assert started(db) == before

    # A key that stands twice gives two rows, so the jobs join from this version on.
    db.update_dimension("securities", pa.concat_tables([renamed, renamed.slice(2)]))
    put(db, (9, "AAPL", 7, 201))
    db.settle()
    assert read(db, "enriched")[8:] == [(9, "AAPL", "Apple Inc."), (9, "AAPL", "Apple Inc.")]
    assert read(db, "totals")[0] == ("Fruit", 5, 190.0)
    check_change_log(db, "enriched")
    check_change_log(db, "totals", ("sector",))


@pytest.mark.soak
def test_ten_million_rows(db: penstock.Database) -> None:
    """L11, U6: a dimension of ten million rows, below the limits once they are set; rows are asked for by key."""
    import pyarrow.compute as pc

    many = 10_000_000
    ids = pa.array(range(many))
    db.register_dimension(
        "large", pa.table({"id": ids, "name": pc.binary_join_element_wise("n", ids.cast("string"), "")})
    )
    query = "SELECT t.id, d.name FROM trades t LEFT JOIN large d ON t.id = d.id"
    db.execute("CREATE STREAM trades (id BIGINT)")
    assert "over broadcast_max_bytes" in str(db.sql(f"EXPLAIN {query}").rows()[-1][0])
    db.execute("SET broadcast_max_bytes = '1 GB'")
    assert "asked for by key" in str(db.sql(f"EXPLAIN {query}").rows()[-1][0])
    db.execute(f"CREATE MATERIALIZED VIEW joined AS {query}")
    db.append("trades", [{"id": number} for number in (0, 7, many - 1, many, -1)])
    db.settle()
    assert read(db, "joined") == [(-1, None), (0, "n0"), (many, None), (7, "n7"), (many - 1, f"n{many - 1}")]


def test_hourly_sales_by_category(db: penstock.Database) -> None:
    """SC10: an hour of orders joined with the products, by category; an hour that goes on and products nobody knows."""
    db.execute(
        "CREATE STREAM orders (product STRING, quantity INT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1' MINUTE)"
    )
    products = {"id": ["p1", "p2", "p3"], "category": ["tea", "tea", "milk"], "cents": [250, 400, 120]}
    db.register_dimension("products", products)
    db.execute("""
        CREATE MATERIALIZED VIEW hourly AS
        SELECT TUMBLE_START(o.ts, INTERVAL '1' HOUR) AS hour, p.category, SUM(o.quantity * p.cents) AS revenue, COUNT(*) AS n
        FROM orders AS o JOIN products AS p ON o.product = p.id
        GROUP BY TUMBLE(o.ts, INTERVAL '1' HOUR), p.category;
        CREATE MATERIALIZED VIEW unknown AS
        SELECT TUMBLE_START(o.ts, INTERVAL '1' HOUR) AS hour, COUNT(*) AS n
        FROM orders AS o LEFT JOIN products AS p ON o.product = p.id WHERE p.id IS NULL
        GROUP BY TUMBLE(o.ts, INTERVAL '1' HOUR);
    """)

    def put_orders(*rows: tuple[str, int, int]) -> None:
        db.append("orders", [{"product": p, "quantity": q, "ts": ms(60 * minute)} for p, q, minute in rows])
        db.settle()

    put_orders(("p1", 2, 5), ("p3", 10, 30), ("p2", 1, 59), ("p9", 1, 40), ("p1", 1, 60), ("p3", 1, 90))
    assert read(db, "hourly") == [(at(0), "milk", 1200, 1), (at(0), "tea", 900, 2)]
    assert read(db, "unknown") == [(at(0), 1)]
    put_orders(("p3", 1, 119), ("p9", 1, 100), ("p1", 1, 181))
    assert read(db, "hourly")[2:] == [(at(3600), "milk", 240, 2), (at(3600), "tea", 250, 1)]
    assert read(db, "unknown") == [(at(0), 1), (at(3600), 1)]


def test_a_subquery_that_stands_for_a_value(db: penstock.Database) -> None:
    """With one row it is that row's value in each batch, with none NULL; with two the job says so."""
    db.execute("CREATE STREAM rows_in (k STRING, v INT)")
    db.register_dimension("chosen", [{"v": 3}])
    db.execute("CREATE MATERIALIZED VIEW same AS SELECT k FROM rows_in WHERE v = (SELECT v FROM chosen)")
    db.append("rows_in", [{"k": "a", "v": 3}, {"k": "b", "v": 4}])
    db.settle()
    assert read(db, "same") == [("a",)]
    db.update_dimension("chosen", [{"v": 3}, {"v": 4}])
    db.append("rows_in", [{"k": "c", "v": 4}])
    with pytest.raises(JobFailed) as failed:
        db.settle()
    assert "[DATA_ERROR] a subquery that stands for one value has more than one row" in failed.value.message
    assert "IN compares with all of them" in (failed.value.hint or "")
    with pytest.raises(PenstockError) as raised:
        db.execute("CREATE MATERIALIZED VIEW more AS SELECT k FROM rows_in WHERE v = (SELECT v FROM chosen)")
    assert raised.value.condition == "DATA_ERROR"
    assert raised.value.span is not None
    for query in ("SELECT (SELECT v FROM chosen) AS x", "SELECT k FROM same WHERE 3 = (SELECT v FROM chosen)"):
        with pytest.raises(PenstockError, match="has more than one row"):
            db.sql(query)
