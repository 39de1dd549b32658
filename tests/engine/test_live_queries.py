"""Queries that run while somebody reads them: `db.stream`, `db.follow`, `db.select_once`."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

import penstock
from penstock import JobFailed
from tests.engine.answers import at, in_order, ms

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

STREAM = "CREATE STREAM s (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)"


def put(db: penstock.Database, *rows: tuple[str, int, float]) -> None:
    db.append("s", [{"k": k, "v": v, "ts": ms(second)} for k, v, second in rows])


def test_stream(db: penstock.Database) -> None:
    """Append queries come as they are, updating ones with _op, windows when they close; leaving the loop leaves no file."""
    db.execute(STREAM)
    put(db, ("a", 1, 1), ("b", 2, 2))

    async def rows(sql: str, enough: int, then: tuple[tuple[str, int, float], ...]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        told = False
        async for batch in db.stream(sql):
            assert len(list((db.path / "ephemeral").iterdir())) == 1
            found += batch.to_pylist()
            if not told:
                await asyncio.to_thread(put, db, *then)
                told = True
            if len(found) >= enough:
                break
        return found

    plain = asyncio.run(rows("SELECT k, v * 2 AS twice FROM s WHERE v <> 2", 2, (("c", 3, 3),)))
    assert plain == [{"k": "a", "twice": 2}, {"k": "c", "twice": 6}]

    updating = asyncio.run(rows("SELECT k, COUNT(*) AS n FROM s GROUP BY k", 5, (("a", 9, 4),)))
    assert list(updating[0]) == ["_op", "k", "n"]
    assert in_order((row["_op"], row["k"], row["n"]) for row in updating[:3]) == [
        ("insert", "a", 1), ("insert", "b", 1), ("insert", "c", 1),
    ]  # fmt: skip
    assert [(row["_op"], row["k"], row["n"]) for row in updating[3:]] == [("delete", "a", 1), ("insert", "a", 2)]

    put(db, ("z", 0, 20))
    windows = "SELECT TUMBLE_START(ts, INTERVAL '10' SECOND) AS s, COUNT(*) AS n FROM s GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)"
    assert asyncio.run(rows(windows, 2, (("z", 0, 35),))) == [{"s": at(0), "n": 4}, {"s": at(20), "n": 1}]
    assert in_order(db.select_once(windows).rows()) == [(at(0), 4), (at(20), 1), (at(30), 1)]
    assert list((db.path / "ephemeral").glob("*")) == []
    assert db.jobs() == []


def test_a_limit_ends_a_query(db: penstock.Database) -> None:
    """Followed, it hands out so many rows and has ended, over one batch or several; asked once, it gives no more of them."""
    db.execute(STREAM)
    put(db, ("a", 1, 1), ("b", 2, 2))
    found: list[dict[str, Any]] = []
    for batch in db.follow("SELECT k, v FROM s WHERE v <> 2 LIMIT 3"):
        found += batch.to_pylist()
        put(db, ("c", 3, 3), ("d", 4, 4), ("e", 5, 5))
    assert found == [{"k": "a", "v": 1}, {"k": "c", "v": 3}, {"k": "d", "v": 4}]
    assert len(db.select_once("SELECT k FROM s FETCH FIRST 2 ROWS ONLY").rows()) == 2
    windows = "SELECT COUNT(*) AS n FROM s GROUP BY k, TUMBLE(ts, INTERVAL '10' SECOND) LIMIT 4"
    assert len(db.select_once(windows).rows()) == 4
    assert list(db.follow("SELECT k FROM s LIMIT 0")) == []
    assert list((db.path / "ephemeral").glob("*")) == []


def test_an_answer_comes_in_the_order_that_is_asked_for(db: penstock.Database) -> None:
    """Asked once, by what is selected and by what is not, with NULLs where Spark has them."""
    db.execute(STREAM)
    given = [("d", 4, 1), ("a", None, 2), ("c", 1, 3), ("e", 9, 4), ("b", 4, 5), ("b", 7, 6)]
    db.append("s", [{"k": k, "v": v, "ts": ms(second)} for k, v, second in given])
    by_value = db.select_once("SELECT * FROM s ORDER BY v DESC, k DESC LIMIT 5")
    assert [row[:2] for row in by_value.rows()] == [("e", 9), ("b", 7), ("d", 4), ("b", 4), ("c", 1)]
    by_hidden = db.select_once("SELECT k FROM s ORDER BY -v, s.ts DESC LIMIT 4")
    assert by_hidden.columns == ["k"]
    assert by_hidden.rows() == [("a",), ("e",), ("b",), ("b",)]
    counts = db.select_once("SELECT k, COUNT(*) AS n FROM s GROUP BY k ORDER BY n DESC, MAX(ts) DESC LIMIT 3 OFFSET 1")
    assert counts.rows() == [("e", 1), ("c", 1), ("a", 1)]
    both = "SELECT k, v FROM s WHERE v > 4 UNION SELECT k, v FROM s WHERE v < 4 ORDER BY 2, 1 LIMIT 9"
    assert db.select_once(both).rows() == [("c", 1), ("b", 7), ("e", 9)]


def test_errors_reach_the_reader(db: penstock.Database) -> None:
    """N7: the error of the query is raised in the loop, with the job's name, and the files are gone."""
    db.execute(STREAM)
    put(db, ("a", 1, 1))

    async def broken() -> None:
        async for _ in db.stream("SELECT 1 / v AS r FROM s"):
            await asyncio.to_thread(put, db, ("b", 0, 2))

    with pytest.raises(JobFailed) as raised:
        asyncio.run(broken())
    assert raised.value.job.startswith("query_")
    assert list((db.path / "ephemeral").glob("*")) == []


def test_slow_reader_holds_the_query_back(db: penstock.Database) -> None:
    """C9, C10, N8, U5: what is queued for a slow reader is bounded, nothing is lost; Arrow batches have at most batch_size rows."""
    import pyarrow as pa

    db.execute("CREATE STREAM numbers (v INT) WITH (max_rows_per_batch = 10)")
    db.append("numbers", pa.table({"v": list(range(300))}))
    reader = db.follow("SELECT v FROM numbers")
    found: list[int] = next(reader).column(0).to_pylist()
    (directory,) = (db.path / "ephemeral").iterdir()

    def committed() -> int:
        return sum(1 for path in (directory / "checkpoint" / "commits").iterdir() if path.name.isdigit())

    before, ahead = -1, committed()
    while before != ahead:  # until it stands still
        time.sleep(1.0)
        before, ahead = ahead, committed()
    assert ahead <= 8, f"{ahead} of 30 batches were read for a reader of one"
    while len(found) < 300:
        found += next(reader).column(0).to_pylist()
    assert found == list(range(300))
    reader.close()  # type: ignore[attr-defined]  # it is a generator
    assert not directory.exists()

    db.execute("CREATE STREAM many (v INT)")
    db.append("many", pa.table({"v": list(range(25_000))}))
    sizes: list[int] = []
    for batch in db.follow("SELECT v FROM many"):
        sizes.append(batch.num_rows)
        if sum(sizes) == 25_000:
            break
    assert max(sizes) == 10_000
