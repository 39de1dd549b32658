"""Aggregates with and without windows (contract G), and where their state is kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import penstock
from penstock import PenstockError
from tests.engine.answers import Rows, at, check_change_log, in_order, ms, read

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

PAYMENTS = (
    "CREATE STREAM payments (k STRING, v BIGINT, x DOUBLE, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (partitions = 2)"
)
TOTALS = "SELECT k, COUNT(*) AS n, COUNT(v) AS given, SUM(v) AS total, MIN(v) AS least, MAX(v) AS most, AVG(v) AS mean FROM payments GROUP BY k"


def totals(rows: list[tuple[str | None, int | None]]) -> Rows:
    """What TOTALS answers, computed here."""
    found: dict[str | None, list[int | None]] = {}
    for k, v in rows:
        found.setdefault(k, []).append(v)
    result: list[tuple[Any, ...]] = []
    for k, values in found.items():
        given = [v for v in values if v is not None]
        numbers = (sum(given), min(given), max(given), sum(given) / len(given)) if given else (None,) * 4
        result.append((k, len(values), len(given), *numbers))
    return in_order(result)


def test_running_totals_in_every_state(db: penstock.Database) -> None:
    """G1, G3, G4, G18, SC33, H7, H12: totals across batches, the same from the store, from RocksDB and from memory."""
    db.execute(f"""
        {PAYMENTS};
        CREATE MATERIALIZED VIEW in_store WITH (state = 'store') AS {TOTALS};
        CREATE MATERIALIZED VIEW in_spark WITH (state = 'spark') AS {TOTALS};
        CREATE MATERIALIZED VIEW in_memory WITH (state = 'spark', state_backend = 'memory') AS {TOTALS};
        CREATE MATERIALIZED VIEW large AS SELECT k, SUM(v) AS total FROM payments GROUP BY k HAVING SUM(v) > 10;
        CREATE MATERIALIZED VIEW whole AS SELECT COUNT(*) AS n, SUM(v) AS total FROM payments;
    """)
    batches: list[list[tuple[str | None, int | None]]] = [
        [("a", 1), ("b", None), (None, -5)],
        [("ü", 20), ("b", None), ("c", 11)],
        [("a", -7), (None, None), ("a", 3), ("c", -4), ("", 0)],
        [("c", 40)],
    ]
    seen: list[tuple[str | None, int | None]] = []
    for number, batch in enumerate(batches):
        db.append("payments", [{"k": k, "v": v} for k, v in batch], partition=number % 2)
        seen += batch
        db.settle()
        for view in ("in_store", "in_spark", "in_memory"):
            assert read(db, view) == totals(seen), view
        assert read(db, "large") == [(row[0], row[3]) for row in totals(seen) if (row[3] or 0) > 10]
        assert read(db, "whole") == [(len(seen), sum(v for _, v in seen if v is not None))]
    for view in ("in_store", "in_spark", "in_memory"):
        changes = check_change_log(db, view, ("k",))
        assert {change.op for change in changes} == {"insert", "update"}
    gone = [change for change in check_change_log(db, "large", ("k",)) if change.op == "delete"]
    assert [change.before for change in gone] == [{"k": "c", "total": 11}], "it fell below, and came back later"


SETS = """SELECT k, COUNT(DISTINCT v) AS kinds, COUNT(DISTINCT v) FILTER (WHERE v > 0) AS above, COUNT(DISTINCT x) AS xs,
    SUM(DISTINCT v) AS total, AVG(DISTINCT v) AS mean, COUNT(*) AS n FROM payments GROUP BY k"""
DIFFERENT = {
    "rows": "SELECT DISTINCT k, v FROM payments WHERE v IS NULL OR v <> 3",
    "groups": "SELECT k, v FROM payments GROUP BY k, v HAVING COUNT(DISTINCT x) > 0",
    "all": "SELECT COUNT(DISTINCT k) AS ks, COUNT(DISTINCT v) AS vs, SUM(DISTINCT v) AS total FROM payments",
}


def test_sets_of_values_in_every_state(db: penstock.Database) -> None:
    """G3, G4: DISTINCT aggregates and DISTINCT rows are the same from the store and from Spark, after every batch, and are
    what DuckDB answers over all rows so far."""
    queries = {"sets": SETS, **DIFFERENT}
    db.execute(PAYMENTS)
    for name, query in queries.items():
        for state in ("store", "spark"):
            db.execute(f"CREATE MATERIALIZED VIEW {name}_{state} WITH (state = '{state}') AS {query}")
    batches: list[list[tuple[str | None, int | None, float | None]]] = [
        [("a", 1, 1.5), ("a", 1, 1.5), ("b", None, None), (None, -5, 0.0)],
        [("a", 2, 1.5), ("b", None, 2.0), (None, -5, -1.0), ("a", -1, None), ("b", 3, 2.0)],
        [("a", 1, 1.5), (None, None, 0.0), ("c", 3, 9.0), ("b", None, 2.0)],
        [("a", 2, 7.0), ("c", 3, 9.0), ("", 0, None)],
    ]
    seen: list[tuple[str | None, int | None, float | None]] = []
    for number, batch in enumerate(batches):
        db.append("payments", [{"k": k, "v": v, "x": x} for k, v, x in batch], partition=number % 2)
        seen += batch
        db.settle()
        with duckdb.connect() as reference:
            reference.execute("CREATE TABLE payments (k VARCHAR, v BIGINT, x DOUBLE)")
            reference.executemany("INSERT INTO payments VALUES (?, ?, ?)", seen)
            for name, query in queries.items():
                expected = in_order(reference.execute(query).fetchall())
                assert read(db, f"{name}_store") == expected, name
                assert read(db, f"{name}_spark") == expected, name
    for name, key in (("sets", ("k",)), ("rows", ("k", "v")), ("groups", ("k", "v")), ("all", ())):
        assert check_change_log(db, f"{name}_spark", key)


def test_window_aggregates(db: penstock.Database) -> None:
    """G2, G7, G8, G17, DEC2: the numbers of the texts, HAVING, FILTER, CASE, COUNT(DISTINCT), first and last time."""
    db.execute(f"""
        {PAYMENTS};
        CREATE MATERIALIZED VIEW minutes AS
        SELECT k, TUMBLE_START(ts, INTERVAL '1' MINUTE) AS s, COUNT(*) AS n, SUM(x) AS total, MIN(x) AS low, MAX(x) AS high,
               AVG(x) AS mean, MIN(ts) AS first_at, MAX(ts) AS last_at
        FROM payments GROUP BY k, TUMBLE(ts, INTERVAL '1' MINUTE);
        CREATE MATERIALIZED VIEW dear AS
        SELECT k, TUMBLE_START(ts, INTERVAL '1' MINUTE) AS s, COUNT(DISTINCT x) AS prices,
               COUNT(*) FILTER (WHERE x > 150) AS above, SUM(CASE WHEN x < 150 THEN 1 ELSE 0 END) AS below
        FROM payments GROUP BY k, TUMBLE(ts, INTERVAL '1' MINUTE) HAVING AVG(x) > 100;
    """)
    start = 100020  # 1-minute windows begin at whole minutes: 100000 is in none of the text's own
    prices = [149.0, 152.0, *[150.0] * 46, 149.0, 150.0]
    rows = [{"k": "AAPL", "x": price, "ts": ms(start + n)} for n, price in enumerate(prices)]
    rows += [{"k": "MSFT", "x": 100.0, "ts": ms(start)}, {"k": "AAPL", "x": 7.0, "ts": ms(start + 60)}]
    rows += [{"k": "MSFT", "x": 101.0, "ts": ms(start + 60)}]
    db.append("payments", rows, partition=0)
    db.append("payments", [{"k": "AAPL", "x": None, "ts": ms(start + 50)}], partition=1)
    db.drain("minutes")
    db.drain("dear")
    assert read(db, "minutes") == in_order([
        ("AAPL", at(start), 51, 7500.0, 149.0, 152.0, 150.0, at(start), at(start + 50)),
        ("AAPL", at(start + 60), 1, 7.0, 7.0, 7.0, 7.0, at(start + 60), at(start + 60)),
        ("MSFT", at(start), 1, 100.0, 100.0, 100.0, 100.0, at(start), at(start)),
        ("MSFT", at(start + 60), 1, 101.0, 101.0, 101.0, 101.0, at(start + 60), at(start + 60)),
    ])  # fmt: skip
    assert read(db, "dear") == [("AAPL", at(start), 3, 1, 2), ("MSFT", at(start + 60), 1, 0, 1)]


def test_requests_in_three_windows(db: penstock.Database) -> None:
    """SC26: sliding 20 s / 10 s, each endpoint by itself, and sessions, over one stream of requests."""
    db.execute("""
        CREATE STREAM requests (endpoint STRING, status INT, ms INT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
        CREATE MATERIALIZED VIEW sliding AS
        SELECT HOP_START(ts, INTERVAL '10' SECOND, INTERVAL '20' SECOND) AS s, COUNT(*) AS n,
               SUM(CASE WHEN status >= 400 THEN 1 ELSE 0 END) / COUNT(*) AS errors
        FROM requests GROUP BY HOP(ts, INTERVAL '10' SECOND, INTERVAL '20' SECOND);
        CREATE MATERIALIZED VIEW endpoints AS
        SELECT endpoint, TUMBLE_START(ts, INTERVAL '20' SECOND) AS s, COUNT(*) AS n, AVG(ms) AS mean
        FROM requests WHERE status < 400 GROUP BY endpoint, TUMBLE(ts, INTERVAL '20' SECOND);
        CREATE MATERIALIZED VIEW sessions AS
        SELECT endpoint, SESSION_START(ts, INTERVAL '15' SECOND) AS s, SESSION_END(ts, INTERVAL '15' SECOND) AS e, COUNT(*) AS n
        FROM requests GROUP BY endpoint, SESSION(ts, INTERVAL '15' SECOND);
    """)
    rows = [("/a", 200, 10, 100), ("/a", 500, 90, 105), ("/b", 200, 30, 112), ("/a", 200, 20, 119), ("/b", 404, 5, 140)]
    db.append("requests", [{"endpoint": e, "status": s, "ms": took, "ts": ms(t)} for e, s, took, t in rows])
    for view in ("sliding", "endpoints", "sessions"):
        db.drain(view)
    assert read(db, "sliding") == [
        (at(90), 2, 0.5), (at(100), 4, 0.25), (at(110), 2, 0.0), (at(130), 1, 1.0), (at(140), 1, 1.0),
    ]  # fmt: skip
    assert read(db, "endpoints") == [("/a", at(100), 2, 15.0), ("/b", at(100), 1, 30.0)]
    assert read(db, "sessions") == [
        ("/a", at(100), at(134), 3), ("/b", at(112), at(127), 1), ("/b", at(140), at(155), 1),
    ]  # fmt: skip


def test_many_keys(db: penstock.Database) -> None:
    """SC37, G6, I22: 5,000 keys from Arrow, pandas and Polars; the same answers from each state."""
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    query = "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM payments GROUP BY k"
    db.execute(f"""
        {PAYMENTS};
        CREATE MATERIALIZED VIEW in_store AS {query};
        CREATE MATERIALIZED VIEW in_memory WITH (state = 'spark', state_backend = 'memory') AS {query};
    """)
    keys = [f"key {n % 5000}" for n in range(20_000)]
    values = list(range(20_000))
    db.append("payments", pa.table({"k": keys[:8000], "v": values[:8000]}), key="k")
    db.append("payments", pl.DataFrame({"k": keys[8000:12000], "v": values[8000:12000]}), key="k")
    db.append("payments", pd.DataFrame({"k": keys[12000:], "v": values[12000:]}), key="k")
    db.settle()
    expected = in_order((f"key {n}", 4, 4 * n + 30_000) for n in range(5000))
    assert read(db, "in_store") == expected
    assert read(db, "in_memory") == expected
    partitions = db.sql("SELECT partition, offset FROM penstock.connector_offsets WHERE job = 'in_store'").rows()
    assert sum(offset + 1 for _, offset in partitions) == 20_000
    assert all(offset > 5_000 for _, offset in partitions), "the key spreads over both partitions"


def test_state_survives_and_unknown_backends_are_refused(opened: Callable[..., penstock.Database]) -> None:
    """H7, H8, H9, H13: names of backends are mapped, recorded and checked; running totals go on after a restart."""
    for setting in ("state_backend", "timer_backend"):
        with pytest.raises(PenstockError, match="banana"):
            opened("never", **{setting: "banana"})
    db = opened(state_backend="tonbo", timer_backend="rocksdb")
    db.execute(PAYMENTS)
    with pytest.raises(PenstockError, match="banana"):
        db.execute(f"CREATE MATERIALIZED VIEW v WITH (state_backend = 'banana') AS {TOTALS}")
    db.execute(f"CREATE MATERIALIZED VIEW v WITH (state_backend = 'marbledb', state = 'spark') AS {TOTALS}")
    db.execute(f"CREATE MATERIALIZED VIEW w AS {TOTALS}")
    options = db.sql("SELECT relation, value FROM penstock.options WHERE name = 'state_backend' ORDER BY 1").rows()
    assert options == [("v", "rocksdb"), ("w", "rocksdb")]
    db.append("payments", [{"k": "a", "v": 1}, {"k": "b", "v": 5}])
    db.settle()
    db.close()
    db = opened()
    db.append("payments", [{"k": "a", "v": 10}])
    db.settle()
    for view in ("v", "w"):
        assert [row[:4] for row in read(db, view)] == [("a", 2, 2, 11), ("b", 1, 1, 5)], view
        assert len(check_change_log(db, view, ("k",))) == 3


def test_a_correlation_with_a_constant_is_null(db: penstock.Database, tmp_path: Path) -> None:
    """In windows, without, from Spark's state, OVER, and in batch over windows: what DuckDB answers over a table."""
    rows = [("a", 1, 1.0), ("a", 1, 2.0), ("b", 1, 2.0), ("c", 1, 2.0), ("c", 2, 3.0), ("d", None, 3.0), ("e", 2, 7.0),
            ("e", 3, 5.0), ("e", 7, 6.0)]  # fmt: skip
    db.execute(PAYMENTS)
    db.append("payments", [{"k": k, "v": v, "x": x, "ts": ms(1)} for k, v, x in rows])
    db.register_table("plain", [{"k": k, "v": v, "x": x} for k, v, x in rows])
    wanted = in_order(db.sql("SELECT k, ROUND(CORR(v, x), 9) AS c FROM plain GROUP BY k").rows())
    assert [(k, c is None) for k, c in wanted] == [("a", True), ("b", True), ("c", False), ("d", True), ("e", False)]
    asked = "SELECT k, ROUND(CORR(v, x), 9) AS c FROM payments GROUP BY k"
    window = "TUMBLE(ts, INTERVAL '1' MINUTE)"
    assert in_order(db.select_once(f"{asked}, {window}").rows()) == wanted
    assert in_order(db.select_once(asked).rows()) == wanted
    db.execute(f"CREATE MATERIALIZED VIEW kept WITH (state = 'spark') AS {asked}")
    db.settle()
    assert read(db, "kept") == wanted
    path = tmp_path / "rows.json"
    path.write_text("".join(json.dumps({"k": k, "v": v, "x": x, "ts": ms(1)}) + "\n" for k, v, x in rows))
    bounded = PAYMENTS.replace("STREAM payments", "TABLE bounded").partition(" WITH (")[0]
    db.execute(f"{bounded} WITH (connector = 'file', path = '{path}', format = 'json')")
    of_table = asked.replace("payments", "bounded")
    assert in_order(db.sql(f"{of_table}, {window}").rows()) == wanted
    over = "SELECT DISTINCT k, ROUND(CORR(v, x) OVER (PARTITION BY k), 9) AS c FROM bounded"
    assert in_order(db.sql(over).rows()) == wanted
    filtered = f"SELECT CORR(v, x) FILTER (WHERE k = 'a') AS a, CORR(v, x) FILTER (WHERE k = 'c') AS c FROM payments GROUP BY {window}"
    assert db.select_once(filtered).rows() == [(None, 1.0)]


def test_a_distinct_list_in_the_order_of_its_values(db: penstock.Database) -> None:
    db.execute(PAYMENTS)
    rows = [("b", 1), ("a", 2), ("b", 3), (None, 4), ("c", 5)]
    db.append("payments", [{"k": k, "v": v, "x": 0.5, "ts": ms(70)} for k, v in rows])
    window = "HOP(ts, INTERVAL '1' MINUTE, INTERVAL '2' MINUTES)"
    found = db.select_once(f"""
        SELECT LISTAGG(DISTINCT k, '|') WITHIN GROUP (ORDER BY k) AS up,
          LISTAGG(DISTINCT k, '|') WITHIN GROUP (ORDER BY k DESC) FILTER (WHERE v < 5) AS down,
          STRING_AGG(DISTINCT k, '+' ORDER BY k DESC) AS inside,
          LISTAGG(DISTINCT k, '|') WITHIN GROUP (ORDER BY k) FILTER (WHERE v > 9) AS empty
        FROM payments GROUP BY {window}""").rows()
    assert found == [("a|b|c", "b|a", "c+b+a", None)] * 2
    asked = f"SELECT LISTAGG(DISTINCT k, '|') WITHIN GROUP (ORDER BY v) AS l FROM payments GROUP BY {window}"
    with pytest.raises(PenstockError, match="INVALID_ARGUMENT") as refused:
        db.select_once(asked)
    assert refused.value.span is not None
