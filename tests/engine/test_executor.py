"""The API of the texts over running queries: the executor's loops, the window operator, tailing a view."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import AsyncIterable, Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock
from penstock import JobFailed, StreamingSQLExecutor, WindowOperator
from penstock.connectors.file_source import FileSource
from penstock.connectors.source import ScanRequest
from tests.engine.answers import at, in_order, ms, read, until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

TRADES = """
    CREATE TABLE trades (
        symbol STRING,
        price DOUBLE,
        volume INT,
        ts TIMESTAMP,
        WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
    ) WITH ('connector' = 'topic', 'batch-size' = '3', 'max-parallelism' = '16')
"""
MINUTES = """
    SELECT symbol, TUMBLE_START(ts, INTERVAL '1' MINUTE) as window_start, AVG(price) as avg_price,
           SUM(volume) as total_volume, COUNT(*) as trade_count
    FROM trades GROUP BY symbol, TUMBLE(ts, INTERVAL '1' MINUTE) HAVING AVG(price) > 100
"""
START = 100_020  # a whole minute


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[StreamingSQLExecutor]:
    with StreamingSQLExecutor(
        state_backend="tonbo",
        timer_backend="rocksdb",
        state_path=tmp_path / "state",
        checkpoint_interval_seconds=60,
        max_parallelism=16,
    ) as found:
        yield found


def put(executor: StreamingSQLExecutor, *rows: tuple[str, float, float]) -> None:
    executor.database.append(
        "trades", [{"symbol": symbol, "price": price, "volume": 10, "ts": ms(second)} for symbol, price, second in rows]
    )


def left_behind(executor: StreamingSQLExecutor) -> list[str]:
    """What queries that have ended still hold: files, Spark queries, threads of their own."""
    files = [str(path) for path in (executor.database.path / "ephemeral").glob("*")]
    active = executor.database._engine.home.spark().streams.active
    threads = [thread.name for thread in threading.enumerate() if thread.name.startswith("penstock-stream")]
    return [*files, *(str(query.name) for query in active), *threads]


async def closed_windows(executor: StreamingSQLExecutor, enough: int) -> list[dict[str, Any]]:
    """The first rows of the windowed query; its query is gone when the loop is, though the stream is in a variable."""
    found: list[dict[str, Any]] = []
    stream = executor.execute_streaming_sql(MINUTES)
    async for batch in stream:
        assert isinstance(batch, pa.RecordBatch)
        assert batch.schema.names == ["symbol", "window_start", "avg_price", "total_volume", "trade_count"]
        assert 0 < batch.num_rows <= 3
        found += batch.to_pylist()
        if len(found) >= enough:
            break
    await asyncio.to_thread(until, lambda: not executor.database._engine._watched)
    assert isinstance(stream, AsyncIterable)
    return found


async def sizes_of(executor: StreamingSQLExecutor, then: Callable[[], None]) -> list[int]:
    """The sizes of the batches of a query without windows; after its first five rows something else happens."""
    sizes: list[int] = []
    async for batch in executor.execute_streaming_sql("SELECT symbol, price FROM trades WHERE price > 1"):
        sizes.append(batch.num_rows)
        if sum(sizes) == 5:
            await asyncio.to_thread(then)
        if sum(sizes) == 7:
            break
    await asyncio.to_thread(until, lambda: len(executor.database._engine._watched) < 2)
    return sizes


async def monitor(executor: StreamingSQLExecutor, seen: list[str]) -> None:
    """Looks after everything while the loops run."""
    while True:
        seen.append((await asyncio.to_thread(executor.database.health))["status"])
        await asyncio.sleep(0.2)


async def cancelled(executor: StreamingSQLExecutor) -> None:
    """A loop that waits for rows, cancelled from outside."""

    async def wait_for_ever() -> None:
        async for _ in executor.execute_streaming_sql("SELECT price FROM trades WHERE price > 1000"):
            raise AssertionError("there is no such row")

    task = asyncio.create_task(wait_for_ever())
    await asyncio.to_thread(until, lambda: bool(executor.database._engine._watched))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_loops_over_streaming_sql(executor: StreamingSQLExecutor) -> None:
    """M5, M6, M14, C9, C10, E23, N2, N3, N6, SC7: loops at once and a monitor, closed windows only, batch sizes, nothing left behind."""
    executor.execute_ddl(TRADES)
    put(executor, *[("AAPL", 150.0, START + n) for n in range(4)], ("PENNY", 1.0, START), ("MSFT", 300.0, START + 1))

    def later() -> None:  # both minutes close while the other loop runs
        put(executor, ("AAPL", 151.0, START + 70))
        put(executor, ("MSFT", 301.0, START + 140))

    async def all_at_once() -> tuple[list[dict[str, Any]], list[int], list[str]]:
        health: list[str] = []
        watching = asyncio.create_task(monitor(executor, health))
        rows, sizes = await asyncio.gather(closed_windows(executor, 3), sizes_of(executor, later))
        watching.cancel()
        return rows, sizes, health

    rows, sizes, health = asyncio.run(all_at_once())
    assert set(health) == {"ok"}
    assert in_order(tuple(row.values()) for row in rows) == in_order([
        ("AAPL", at(START), 150.0, 40, 4), ("MSFT", at(START), 300.0, 10, 1), ("AAPL", at(START + 60), 151.0, 10, 1),
    ])  # fmt: skip
    assert max(sizes) <= 3
    until(lambda: left_behind(executor) == [])

    async def one_at_a_time() -> None:
        async with executor.execute_streaming_sql("SELECT price FROM trades") as stream:
            assert (await anext(stream)).num_rows == 3
            assert (await anext(stream)).num_rows <= 3

    asyncio.run(one_at_a_time())
    asyncio.run(cancelled(executor))
    until(lambda: left_behind(executor) == [])


@pytest.mark.parametrize("loops", [2, 4])
def test_loops_over_what_ends_end(executor: StreamingSQLExecutor, loops: int) -> None:
    """Each by itself, begun at once: one whose rows are taken slowly, or not before another has ended, holds up none."""
    executor.execute_ddl(
        "CREATE TABLE numbers (n BIGINT) WITH (connector = 'datagen', number_of_rows = 500, 'batch-size' = '10', "
        "'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '500')"
    )
    ended = [asyncio.Event() for _ in range(loops)]

    async def read_all(place: int) -> int:
        total = 0
        async for batch in executor.execute_streaming_sql(f"SELECT n FROM numbers WHERE n % {loops} = {place}"):
            if place + 1 < loops:
                await ended[place + 1].wait()  # with its queue full
            total += sum(batch.column(0).to_pylist())
        ended[place].set()
        return total

    async def at_once() -> list[int]:
        return await asyncio.wait_for(asyncio.gather(*map(read_all, range(loops))), 300)

    assert asyncio.run(at_once()) == [sum(n for n in range(1, 501) if n % loops == place) for place in range(loops)]
    until(lambda: left_behind(executor) == [])


def test_the_plan_of_a_windowed_query(executor: StreamingSQLExecutor) -> None:
    """G15, M12, W10, P4: partial aggregates before the exchange, no Python on the way, only the columns that are read."""
    executor.execute_ddl(TRADES)
    found = executor.database.execute(f"EXPLAIN PHYSICAL {MINUTES.replace('SUM(volume)', 'MAX(1)')}")
    assert found is not None
    plan = "\n".join(row[0] for row in found.rows())
    final, exchange, partial = plan.find("avg("), plan.find("Exchange hashpartitioning"), plan.rfind("partial_avg(")
    assert -1 < final < exchange < partial
    assert "EvalPython" not in plan
    assert "volume" not in plan


def test_errors_and_the_end_reach_the_loop(executor: StreamingSQLExecutor) -> None:
    """N7, M14: an error of the query names its job inside the loop; closing the executor ends a loop that waits."""
    executor.execute_ddl(TRADES)
    put(executor, ("AAPL", 150.0, START))

    async def broken() -> None:
        async for _ in executor.execute_streaming_sql("SELECT CAST(symbol AS INT) AS n FROM trades"):
            raise AssertionError("no row can come")

    with pytest.raises(JobFailed) as failed:
        asyncio.run(broken())
    assert failed.value.job.startswith("query_")
    assert failed.value.job in str(failed.value)

    async def wrong() -> None:
        async for _ in executor.execute_streaming_sql("SELECT prize FROM trades"):
            raise AssertionError("there is no such column")

    with pytest.raises(penstock.PenstockError) as refused:
        asyncio.run(wrong())
    assert refused.value.condition == "UNKNOWN_COLUMN"

    async def closed_meanwhile() -> int:
        rows = 0
        async for batch in executor.execute_streaming_sql("SELECT price FROM trades"):
            rows += batch.num_rows
            threading.Thread(target=executor.shutdown).start()
        return rows

    assert asyncio.run(closed_meanwhile()) == 1


def at_ms(milliseconds: int) -> datetime:
    """A time as Arrow gives it back from milliseconds without a zone."""
    return datetime(1970, 1, 1) + timedelta(milliseconds=milliseconds)  # noqa: DTZ001


def test_window_operator(db: penstock.Database) -> None:
    """N1, N4, B11, G8, G9, SC13, V4: four rows make four windows; at 5000 three are out, GOOGL stays; 50 rows give 150.0."""
    db.execute(
        "CREATE STREAM ticks (symbol STRING, price DOUBLE, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)"
    )
    rows = [("AAPL", 150.0, 1000), ("MSFT", 300.0, 2000), ("AAPL", 151.0, 3000), ("GOOGL", 2800.0, 4000)]
    names: dict[str, Any] = {"key_column": "symbol", "value_column": "price", "timestamp_column": "ts"}
    with WindowOperator(db, "ticks", size=timedelta(seconds=2), **names) as operator:
        operator.process_batch([{"symbol": symbol, "price": price, "ts": moment} for symbol, price, moment in rows])
        # The watermark is at 3000: the window up to 2000 has closed with the batch itself.
        first = operator.get_triggered_windows()
        assert first.num_rows + operator.active_windows() == 4
        operator.process_watermark(3500)
        assert operator.get_triggered_windows().num_rows == 0
        operator.process_watermark(5000)
        emitted = pa.concat_tables([first, operator.get_triggered_windows()])
        assert operator.active_windows() == 1
        assert in_order(tuple(row.values()) for row in emitted.to_pylist()) == in_order([
            ("AAPL", at_ms(0), at_ms(2000), 1, 150.0, 150.0, 150.0, 150.0, at_ms(1000), at_ms(1000)),
            ("AAPL", at_ms(2000), at_ms(4000), 1, 151.0, 151.0, 151.0, 151.0, at_ms(3000), at_ms(3000)),
            ("MSFT", at_ms(2000), at_ms(4000), 1, 300.0, 300.0, 300.0, 300.0, at_ms(2000), at_ms(2000)),
        ])  # fmt: skip
        assert emitted.schema == operator.results().schema
        assert [str(kind) for kind in emitted.schema.types] == [
            "string", "timestamp[ms]", "timestamp[ms]", "int64", "double", "double", "double", "double",
            "timestamp[ms]", "timestamp[ms]",
        ]  # fmt: skip
        assert operator.get_triggered_windows().num_rows == 0, "each window comes once"
    assert db.jobs() == []

    # The life of one window, in a minute that is one (DEC2), and the two other kinds of window over the same rows.
    kinds: dict[str, dict[str, Any]] = {
        "minutes": {"size": timedelta(minutes=1)},
        "hops": {"window_type": "HOP", "slide": timedelta(seconds=30), "size": timedelta(minutes=1)},
        "sessions": {"window_type": "SESSION", "gap": timedelta(seconds=5)},
    }
    prices = [150.0, 149.0, 152.0, *[150.0] * 45, 149.0, 150.0]
    lives = [{"symbol": "AAPL", "price": price, "ts": ms(START + n)} for n, price in enumerate(prices)]
    operators = {name: WindowOperator(db, "ticks", **names, **kind) for name, kind in kinds.items()}
    db.append("ticks", [*lives, {"symbol": "LAST", "price": 0.0, "ts": ms(START + 66)}])
    db.settle()
    found = {
        name: [row for row in operator.results().to_pylist() if row["key"] == "AAPL" and row["count"] > 4]
        for name, operator in operators.items()
    }
    (minute,) = found["minutes"]
    assert (minute["window_start"], minute["avg"], minute["count"]) == (at_ms(ms(START)), 150.0, 50)
    assert (minute["sum"], minute["min"], minute["max"]) == (7500.0, 149.0, 152.0)
    assert (minute["first_timestamp"], minute["last_timestamp"]) == (at_ms(ms(START)), at_ms(ms(START + 49)))
    assert sorted((row["window_start"], row["count"]) for row in found["hops"]) == [
        (at_ms(ms(START - 30)), 30), (at_ms(ms(START)), 50),
    ]  # fmt: skip
    assert [(row["window_start"], row["window_end"], row["count"]) for row in found["sessions"]] == [
        (at_ms(ms(START)), at_ms(ms(START + 54)), 50)
    ]
    for operator in operators.values():
        operator.close()


def test_tailing_a_view(db: penstock.Database) -> None:
    """S1, S3, S5: asked again on an event, the view kept up to date is at every step what a whole query answers."""
    db.execute("""
        CREATE STREAM sales (category STRING, value DOUBLE);
        CREATE MATERIALIZED VIEW realtime AS
        SELECT category, COUNT(*) AS cnt, AVG(value) AS avg_val FROM sales GROUP BY category;
    """)
    event, steps, seen = threading.Event(), 4, []
    rows: list[tuple[str, float]] = []
    for number, answer in enumerate(db.tail_query("SELECT * FROM realtime", event=event, iterations=steps)):
        counts = {key: [value for name, value in rows if name == key] for key in {name for name, _ in rows}}
        assert in_order(answer) == in_order((key, len(found), sum(found) / len(found)) for key, found in counts.items())
        seen.append(len(answer))
        new = [("a", float(number)), (f"k{number}", 1.0)]
        rows += new
        db.append("sales", [{"category": category, "value": value} for category, value in new])
        db.settle()
        event.set()
    assert seen == [0, 2, 3, 4]
    whole = db.select_once("SELECT category, COUNT(*) AS cnt, AVG(value) AS avg_val FROM sales GROUP BY category")
    (last,) = db.tail_query("SELECT * FROM realtime", every=0.1, iterations=1)
    assert in_order(whole) == in_order(last)
    with pytest.raises(penstock.PenstockError) as refused:
        next(db.tail_query("SELECT * FROM sales"))
    assert refused.value.condition == "UNBOUNDED_QUERY"


def test_scenarios(db: penstock.Database) -> None:
    """SC8, SC9, SC22, SC25: filters before aggregates, sensors, a pinned clock, requests in three windows."""
    db.execute("""
        CREATE STREAM events (k STRING, who STRING, status INT, x DOUBLE, y DOUBLE, ts TIMESTAMP,
            WATERMARK FOR ts AS ts - INTERVAL '10' SECOND) WITH ('batch-size' = '5000', 'max-parallelism' = '4');
        CREATE MATERIALIZED VIEW dear AS
        SELECT k, TUMBLE_START(ts, INTERVAL '1' MINUTE) AS s, COUNT(*) AS n, AVG(x) AS mean
        FROM events WHERE x > 100 GROUP BY k, TUMBLE(ts, INTERVAL '1' MINUTE) HAVING COUNT(*) > 5;
        CREATE MATERIALIZED VIEW sensors AS
        SELECT k, TUMBLE_START(ts, INTERVAL '5' MINUTE) AS s, AVG(x) AS temperature, AVG(y) AS humidity
        FROM events GROUP BY k, TUMBLE(ts, INTERVAL '5' MINUTE);
        CREATE MATERIALIZED VIEW past AS
        SELECT who, TUMBLE_START(ts, INTERVAL '1' HOUR) AS s, COUNT(*) AS n
        FROM events WHERE CURRENT_TIMESTAMP > ts GROUP BY who, TUMBLE(ts, INTERVAL '1' HOUR);
        CREATE MATERIALIZED VIEW good AS
        SELECT TUMBLE_START(ts, INTERVAL '10' SECOND) AS s, COUNT(*) AS n
        FROM events WHERE status < 400 GROUP BY TUMBLE(ts, INTERVAL '10' SECOND);
        CREATE MATERIALIZED VIEW sliding AS
        SELECT HOP_START(ts, INTERVAL '10' SECOND, INTERVAL '30' SECOND) AS s, COUNT(DISTINCT who) AS users,
               SUM(CASE WHEN status >= 400 THEN 1 ELSE 0 END) / COUNT(*) AS errors
        FROM events GROUP BY HOP(ts, INTERVAL '10' SECOND, INTERVAL '30' SECOND);
    """)
    base = 1_500_000_000 // 3600 * 3600  # a whole hour, long ago
    rows = [
        {"k": "abc"[n % 3], "who": f"u{n % 4}", "status": 500 if n % 5 == 0 else 200, "x": 90.0 + n, "y": 0.5 * n, "ts": ms(base + n)}
        for n in range(60)
    ]  # fmt: skip
    db.append("events", rows)
    db.settle()
    for name in ("dear", "sensors", "past", "good", "sliding"):
        db.drain(name, 120)
    dear = {key: [90.0 + n for n in range(11, 60) if "abc"[n % 3] == key] for key in "abc"}
    assert read(db, "dear") == [(key, at(base), len(found), sum(found) / len(found)) for key, found in dear.items()]
    ns = {key: [n for n in range(60) if "abc"[n % 3] == key] for key in "abc"}
    assert read(db, "sensors") == [
        (key, at(base), 90.0 + sum(found) / 20, 0.5 * sum(found) / 20) for key, found in ns.items()
    ]
    assert read(db, "past") == [(f"u{number}", at(base), 15) for number in range(4)]
    assert read(db, "good") == [(at(base + ten), 8) for ten in range(0, 60, 10)]
    windows = {start: [n for n in range(60) if start <= n < start + 30] for start in range(-20, 60, 10)}
    assert read(db, "sliding") == in_order(
        (at(base + start), len({n % 4 for n in found}), sum(n % 5 == 0 for n in found) / len(found))
        for start, found in windows.items()
    )


def test_tailing_files(db: penstock.Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S1, S2, S6, I19: files are added, and replaced in the middle of a reading; each answer is of one moment."""
    directory = tmp_path / "continuous_data"
    directory.mkdir()

    def write(name: str, rows: int, value: float) -> None:
        pq.write_table(pa.table({"category": ["a"] * rows, "value": [value] * rows}), directory / f".{name}")
        (directory / f".{name}").rename(directory / f"{name}.parquet")

    write("kept", 1000, 0.0)
    write("other", 1000, 1.0)
    db.execute(
        f"CREATE TABLE realtime (category STRING, value DOUBLE) WITH (connector = 'file', path = '{directory}', format = 'parquet')"
    )
    query = "SELECT category, COUNT(*) as cnt, AVG(value) as avg_val FROM realtime GROUP BY category"
    found = []
    for answer in db.tail_query(query, every=0.05, iterations=3):
        found += answer.rows()
        write(f"more{len(found)}", 500, 1.0)
    assert found == [("a", 2000, 0.5), ("a", 2500, 0.6), ("a", 3000, 2 / 3)]

    # Whoever lists the files finds them replaced before they are read, three times.
    listed = FileSource.end_offset
    versions = iter([(3000, 3.0), (1000, 1.0), (3000, 3.0)])

    def replaced(source: FileSource, request: ScanRequest) -> str:
        end = listed(source, request)
        for rows, value in itertools.islice(versions, 1):
            write("other", rows, value)
        return end

    monkeypatch.setattr(FileSource, "end_offset", replaced)
    (answer,) = db.tail_query(query, iterations=1)
    assert answer.rows() == [("a", 5500, (3000 * 3.0 + 1500) / 5500)]
    assert list(versions) == []
    (directory / "other.parquet").write_bytes(b"PAR1 and then nothing that makes sense")
    with pytest.raises(penstock.PenstockError) as refused:
        list(db.tail_query(query, iterations=1))
    assert "other.parquet" in str(refused.value)
