"""Statement sets on Spark: INSERTs that share one reading of a stream, over failures and restarts (SC22)."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

import penstock
from penstock.failpoints import enabled
from tests.databases import Opened
from tests.engine.answers import job

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

SCRIPT = """
CREATE STREAM trades (symbol STRING, price DOUBLE, note STRING) WITH (format = 'json', partitions = 2);
CREATE STREAM cheap (symbol STRING, price DOUBLE);
CREATE STREAM dear (symbol STRING, twice DOUBLE);
CREATE STREAM lines (symbol STRING, note STRING)
  WITH (connector = 'file', type = 'sink', path = '{0}', format = 'json');
CREATE STREAM counted (symbol STRING, n BIGINT, PRIMARY KEY (symbol)) WITH (changes = 'upsert', type = 'sink');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO cheap SELECT symbol, price FROM trades WHERE price < 10;
  INSERT INTO counted SELECT symbol, COUNT(*) FROM trades GROUP BY symbol;
  INSERT INTO dear (twice, symbol) SELECT price * 2, UPPER(symbol) FROM trades WHERE price >= 10;
  INSERT INTO lines SELECT symbol, note FROM trades WHERE note IS NOT NULL;
END;
CREATE MATERIALIZED VIEW cheap_rows AS SELECT * FROM cheap;
CREATE MATERIALIZED VIEW dear_rows AS SELECT * FROM dear;
"""
SHARED = "insert_cheap_dear_lines"


def records(first: int, count: int) -> list[str]:
    return [
        json.dumps({"symbol": f"s{n % 5}", "price": n % 23 - 1, "note": None if n % 3 else f"n{n}"})
        for n in range(first, first + count)
    ]


@pytest.mark.slow
def test_one_reading_for_several_sinks(opened: Opened, tmp_path: Path) -> None:
    """Each sink has its rows once, and each record is read once for all of them."""
    out = tmp_path / "out"
    sent: list[str] = []

    def send(db: penstock.Database, first: int, count: int) -> None:
        rows = records(first, count)
        sent.extend(rows)
        db.append("trades", [*rows, "not json"], partition=first % 2)

    def check(db: penstock.Database) -> None:
        with duckdb.connect() as oracle:
            values = [(r["symbol"], r["price"], r["note"]) for r in map(json.loads, sent)]
            oracle.execute("CREATE TABLE t (symbol VARCHAR, price DOUBLE, note VARCHAR)")
            oracle.executemany("INSERT INTO t VALUES (?, ?, ?)", values)
            cheap = oracle.execute("SELECT symbol, price FROM t WHERE price < 10").fetchall()
            dear = oracle.execute("SELECT upper(symbol), price * 2 FROM t WHERE price >= 10").fetchall()
            lines = oracle.execute("SELECT symbol, note FROM t WHERE note IS NOT NULL").fetchall()
        assert sorted(db.sql("SELECT symbol, price FROM cheap_rows").rows()) == sorted(cheap)
        assert sorted(db.sql("SELECT symbol, twice FROM dear_rows").rows()) == sorted(dear)
        with duckdb.connect() as reader:
            written = reader.execute(f"SELECT symbol, note FROM read_json('{out}/*.json*')").fetchall()
        assert sorted(written) == sorted(lines)

    db = opened()
    db.execute(SCRIPT.format(out))
    names = {each.name for each in db.jobs()}
    assert names == {"cheap_rows", "dear_rows", SHARED, "insert_counted"}
    assert job(db, SHARED).writes == "cheap, dear, lines"
    assert job(db, SHARED).reads == ("trades",)
    send(db, 0, 40)
    db.settle()
    check(db)
    # A batch that breaks off behind the first sink is run again for all of them.
    with enabled("sink.after_write", "error@1"):
        send(db, 40, 60)
        db.settle(120)
    db.settle()
    check(db)
    db.execute(f"PAUSE JOB {SHARED}")
    send(db, 100, 30)
    db.close()

    db = opened()
    assert job(db, SHARED).state == "paused"
    db.execute(f"RESUME JOB {SHARED}")
    send(db, 130, 30)
    db.settle(120)
    check(db)
    assert job(db, SHARED).input_rows == len(sent) + 4
    bad = db.sql(f"SELECT COUNT(*) FROM penstock.dead_letters WHERE job = '{SHARED}'").rows()
    assert bad == [(4,)]
    # The others go on where one target is dropped, also after a restart.
    db.execute("DROP STREAM lines")
    assert job(db, SHARED).writes == "cheap, dear"
    shown = len(sent)
    db.close()

    db = opened()
    send(db, 160, 20)
    db.settle(120)
    assert job(db, SHARED).writes == "cheap, dear"
    cheap, dear = (db.sql(f"SELECT COUNT(*) FROM {name}").rows()[0][0] for name in ("cheap_rows", "dear_rows"))
    assert cheap + dear == len(sent) == shown + 20
    with pytest.raises(penstock.PenstockError, match="goes with it"):
        db.execute("DROP JOB cheap_rows")
    db.execute(f"DROP JOB {SHARED}; DROP JOB IF EXISTS {SHARED}")
    assert {each.name for each in db.jobs()} == {"cheap_rows", "dear_rows", "insert_counted"}
