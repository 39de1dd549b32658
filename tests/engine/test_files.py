"""Files as sources and sinks: what is in them comes out, once, whatever format it is in and whatever happens."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock
from penstock import PenstockError
from tests.engine.answers import at, in_order, job, read, until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

ALL_TYPES = """id BIGINT, name STRING, price DECIMAL(10, 2), ratio DOUBLE, day DATE, ts TIMESTAMP, ok BOOLEAN, raw BINARY,
    tags ARRAY<STRING>, inner_ STRUCT<a INT, b STRING>"""
FULL = {
    "id": 1,
    "name": 'Łódź, "quoted"\nand two lines\r\n',
    "price": Decimal("12.30"),
    "ratio": 1.5e300,
    "day": date(2026, 2, 28),
    "ts": datetime(2026, 1, 1, 0, 0, 1, 5, tzinfo=UTC),
    "ok": True,
    "raw": b"\x00\xff",
    "tags": ["a", "b"],
    "inner_": {"a": 7, "b": "x"},
}
NULLS = {**dict.fromkeys(FULL), "id": 2}
EMPTY = {**NULLS, "id": 3, "name": ""}


def refused(call: Callable[[], object]) -> PenstockError:
    with pytest.raises(PenstockError) as raised:
        call()
    return raised.value


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def shown(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("part-*") if ".penstock" not in path.parts)


def test_files_that_end(opened: Callable[..., penstock.Database], tmp_path: Path) -> None:
    """J8, I15, I16, C3: JSON lines, CSV and Parquet, whole and in parts; a job over them ends by itself."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.json").write_text(
        lines({"id": 1, "v": 10}, {"id": 2, "extra": 1}) + "\n" + "{nonsense\n" + '{"id": 3, "v": 30}'
    )
    (data / "b.json.gz").write_bytes(gzip.compress(lines(*({"id": n, "v": n} for n in range(4, 1_000))).encode()))
    (data / "c.csv").write_text('id,v,note\n1,10,"two\nlines"\n2,,""\n3,x,bad\n')
    table = pa.table({"ID": range(5_000), "v": [float(n) for n in range(5_000)], "unused": ["x"] * 5_000})
    pq.write_table(table, data / "d.parquet", row_group_size=700)
    db = opened(allowed_paths=[data, tmp_path / "out"])
    db.execute(f"""
        CREATE TABLE js (id INT, v INT, file STRING METADATA FROM 'file.name') WITH (connector = 'file', path = '{data}/*.json*');
        CREATE TABLE cs (id INT, v INT, note STRING) WITH (connector = 'filesystem', path = 'file://{data}/c.csv', format = 'csv', csv.header = true);
        CREATE TABLE pa (id BIGINT, v BIGINT, more STRING) WITH (connector = 'file', path = '{data}', pattern = '*.parquet', format = 'parquet',
            max_rows_per_batch = 1500);
        CREATE MATERIALIZED VIEW ids AS SELECT file, COUNT(*) AS n, SUM(id) AS total, SUM(v) AS v FROM js GROUP BY file;
        CREATE MATERIALIZED VIEW fives AS SELECT id, v, more FROM pa WHERE id % 1000 = 5;
    """)
    until(lambda: {found.state for found in db.jobs()} == {"stopped"})
    assert read(db, "ids") == [("a.json", 3, 6, 40), ("b.json.gz", 996, sum(range(4, 1_000)), sum(range(4, 1_000)))]
    assert sorted(read(db, "fives")) == [(n, n, None) for n in range(5, 5_000, 1_000)]
    assert job(db, "fives").batch_id == 3  # 5000 rows in batches of 1500, across row groups of 700
    assert [(row[0], bytes(row[1])) for row in db.sql("SELECT job, raw FROM penstock.dead_letters").rows()] == [
        ("ids", b"{nonsense")
    ]
    offsets = in_order(db.sql("SELECT connector_id, partition, offset, job FROM penstock.connector_offsets").rows())
    assert offsets == [("js", 0, 1_000, "ids"), ("pa", 0, 4_999, "fives")]  # an empty line has a number too
    assert in_order(db.sql("SELECT * FROM cs").rows()) == [(1, 10, "two\nlines"), (2, None, "")]
    assert db.sql("SELECT COUNT(*), SUM(v) FROM pa WHERE id < 10").rows() == [(10, 45)]
    assert db.sql("SELECT COUNT(*) FROM js").rows() == [(999,)]
    (data / "c.csv").write_text("id,v,note\n7,8,x\n")  # a query reads what is there now
    assert db.sql("SELECT * FROM cs").rows() == [(7, 8, "x")]

    db.execute(f"CREATE TABLE strict (id INT) WITH (connector = 'file', path = '{data}/a.json', bad_data = 'fail')")
    assert refused(lambda: db.sql("SELECT * FROM strict")).condition == "BAD_RECORD"
    db.execute(f"CREATE TABLE gone (id INT) WITH (connector = 'file', path = '{data}/nope.json')")
    error = refused(lambda: db.execute("CREATE MATERIALIZED VIEW g AS SELECT id FROM gone"))
    assert (error.condition, "nope.json" in error.message) == ("FILE_NOT_FOUND", True)
    assert refused(lambda: db.sql("SELECT * FROM gone")).condition == "FILE_NOT_FOUND"
    passwords = "CREATE TABLE secrets (line STRING) WITH (connector = 'file', path = '/etc/passwd', format = 'raw')"
    beside = f"CREATE SINK secrets WITH (connector = 'file', path = '{data}/../elsewhere') AS SELECT id FROM js"
    assert refused(lambda: db.execute(passwords)).condition == "PATH_NOT_ALLOWED"
    assert refused(lambda: db.execute(beside)).condition == "PATH_NOT_ALLOWED"
    assert refused(lambda: db.execute("SET allowed_paths = '/'")).condition == "INVALID_SETTING"
    (data / "link.json").symlink_to("/etc/hostname")
    assert refused(lambda: db.sql("SELECT * FROM js")).condition == "PATH_NOT_ALLOWED"
    assert not (tmp_path / "elsewhere").exists()


def test_a_tailed_directory(opened: Callable[..., penstock.Database], tmp_path: Path) -> None:
    """I19, E10: new files and new lines are read as they come, over restarts; late rows and offsets are those of files."""
    data = tmp_path / "in"
    data.mkdir()
    (data / "one.json").write_text(lines({"k": "a", "ts": 1_000}, {"k": "a", "ts": 11_000}))
    script = f"""
        CREATE STREAM s (k STRING, ts TIMESTAMP, WATERMARK FOR ts AS ts)
        WITH (connector = 'file', path = '{data}', monitor_interval = '200 ms');
        CREATE MATERIALIZED VIEW w AS SELECT TUMBLE_START(ts, INTERVAL '10' SECOND) AS s, COUNT(*) AS n FROM s
        GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)"""
    db = opened()
    db.execute(script)
    db.settle(timeout=180)
    assert read(db, "w") == [(at(0), 1)]
    with (data / "one.json").open("a") as file:
        file.write(lines({"k": "a", "ts": 12_000}) + '{"k": "b", ')
    (data / "two.json").write_text(lines({"k": "c", "ts": 2_000}, {"k": "c", "ts": 21_000}))  # the first is late
    db.settle(timeout=180)
    assert read(db, "w") == [(at(0), 1), (at(10), 2)]
    late = db.sql("SELECT partition, offset, row FROM penstock.late_rows").rows()
    assert [(row[0], row[1], json.loads(str(row[2]))["k"]) for row in late] == [(0, 3, "c")]
    db.close()
    with (data / "one.json").open("a") as file:
        file.write('"ts": 22000}\n' + lines({"k": "b", "ts": 31_000}))
    (data / "two.json").unlink()  # it is read: nobody misses it
    db = opened()
    db.execute(script)
    db.settle(timeout=180)
    assert read(db, "w") == [(at(0), 1), (at(10), 2), (at(20), 2)]
    (data / ".three.json").write_text(lines({"k": "x", "ts": 32_000}, {"k": "x", "ts": 41_000}))
    (data / ".three.json").rename(data / "three.json")
    until(lambda: len(read(db, "w")) == 4)  # nobody asked for it
    assert read(db, "w")[-1] == (at(30), 2)
    with pytest.raises(PenstockError) as raised:
        db.sql("SELECT * FROM s")
    assert raised.value.condition == "UNBOUNDED_QUERY"
    os.truncate(data / "one.json", 10)
    until(lambda: job(db, "w").state == "failed")
    assert "SOURCE_DATA_LOST" in str(job(db, "w").error)
    assert "one.json" in str(job(db, "w").error)


@pytest.mark.slow
def test_sinks_of_files(opened: Callable[..., penstock.Database], tmp_path: Path) -> None:
    """A7, I15: what a job writes is read back as it was, in every format; a restart adds nothing twice."""
    out = tmp_path / "out"
    script = f"CREATE STREAM s ({ALL_TYPES}, WATERMARK FOR ts AS ts);" + "".join(
        f"CREATE TABLE to_{name} ({ALL_TYPES}) WITH (type = 'sink', connector = 'file', path = '{out}/{name}', {options});"
        f"INSERT INTO to_{name} SELECT * FROM s;"
        for name, options in (
            ("json", "format = 'json', partition_by = 'ok', compression = 'gzip'"),
            ("csv", "format = 'csv', csv.header = true, rollover_rows = 2"),
            ("parquet", "format = 'parquet'"),
        )
    )
    script += f"""
        CREATE SINK plain WITH (connector = 'single_file', path = '{out}/lines.csv', format = 'csv', csv.header = true)
        AS SELECT TUMBLE_START(ts, INTERVAL '1' SECOND) AS s, COUNT(*) AS n FROM s GROUP BY TUMBLE(ts, INTERVAL '1' SECOND);"""
    db = opened()
    db.execute(script)
    db.append("s", [FULL, NULLS, EMPTY])
    db.settle(timeout=180)
    db.close()
    db = opened()
    db.execute(script)
    db.append(
        "s",
        [
            {**NULLS, "id": 4, "ts": at(5)},
            {**NULLS, "id": 5, "ts": at(datetime(2026, 1, 1, 0, 0, 3, tzinfo=UTC).timestamp())},
        ],
    )
    db.settle(timeout=180)
    wanted = [FULL, NULLS, EMPTY, {**NULLS, "id": 4, "ts": at(5)}]
    for name, options in (
        ("json", ""),
        ("csv", ", csv.header = true"),
        ("parquet", ""),
    ):
        db.execute(
            f"CREATE TABLE from_{name} ({ALL_TYPES}) WITH (connector = 'file', path = '{out}/{name}', format = '{name}'{options})"
        )
        rows = db.sql(f"SELECT * FROM from_{name} WHERE id < 5 ORDER BY id").arrow().to_pylist()
        assert rows == wanted, name
    assert {path.parent.name for path in shown(out / "json")} == {"ok=true", "ok=__HIVE_DEFAULT_PARTITION__"}
    assert all(path.name.endswith(".json.gz") for path in shown(out / "json"))
    assert len(shown(out / "csv")) == 3  # of the first batch two, of two rows and one
    assert (out / "lines.csv").read_text().splitlines() == ["s,n", "2026-01-01T00:00:01.000000Z,1"]
    db.execute("INSERT INTO to_parquet (id, name) VALUES (9, 'loose')")
    assert db.sql("SELECT name FROM from_parquet WHERE id = 9").rows() == [("loose",)]
    assert [path.name for path in out.glob("*/.penstock/*") if path.is_dir()] == []


def test_a_large_file_in_many_batches(opened: Callable[..., penstock.Database], tmp_path: Path) -> None:
    """O4: the answer of a job over a file in many batches is that of one query over it; directory to directory."""
    source, out = tmp_path / "in.json", tmp_path / "out"
    with source.open("w") as file:
        for number in range(200_000):
            file.write(f'{{"k": "key {number % 7}", "n": {number}}}\n')
    db = opened()
    db.execute(f"""
        CREATE TABLE b (k STRING, n BIGINT) WITH (connector = 'file', path = '{source}', max_rows_per_batch = 60000);
        CREATE MATERIALIZED VIEW v AS SELECT k, COUNT(*) AS c, SUM(n) AS total, MIN(n) AS least FROM b GROUP BY k;
        CREATE SINK copied WITH (connector = 'file', path = '{out}', format = 'parquet') AS SELECT n, k FROM b WHERE n % 2 = 0;
    """)
    until(lambda: {found.state for found in db.jobs()} == {"stopped"})
    assert job(db, "v").batch_id == 3
    written = db.sql("SELECT SUM(value) FROM penstock.metrics WHERE job = 'copied' AND name = 'output_rows'").rows()
    assert written == [(100_000,)]
    assert read(db, "v") == in_order(db.sql("SELECT k, COUNT(*), SUM(n), MIN(n) FROM b GROUP BY k").rows())
    copied = [number for path in shown(out) for number in pq.read_table(path).column("n").to_pylist()]
    assert sorted(copied) == list(range(0, 200_000, 2))


def test_a_quote_that_is_never_closed_costs_its_line(db: penstock.Database, tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text('1,x\n4,"un\n5,b\n6,c')
    db.execute(f"CREATE TABLE q (a INT, b STRING) WITH (connector = 'file', path = '{tmp_path}/q.csv', format = 'csv')")
    good = [(1, "x"), (5, "b"), (6, "c")]
    assert in_order(db.sql("SELECT * FROM q").rows()) == good
    db.execute("CREATE MATERIALIZED VIEW read_q AS SELECT a, b FROM q")
    db.settle()
    assert read(db, "read_q") == good
    assert [bytes(row[0]) for row in db.sql("SELECT raw FROM penstock.dead_letters").rows()] == [b'4,"un']
