"""Rows of files as Spark's processes read them: any range, in any division, is the same rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.connectors.file_plan import file_set
from penstock.connectors.file_reader import FileDataSource, FileRows
from penstock.connectors.offsets import Offset, Range
from penstock.connectors.range_reader import dealt
from penstock.connectors.reading import Reading, Scan
from penstock.connectors.registry import source_of
from penstock.errors import NotYetError, OptionError, RuntimeFailure
from penstock.stores.files import pieces as pieces_module
from tests.unit.connectors.declared import request, source

PLACE = [pa.field("__partition", pa.int32()), pa.field("__offset", pa.int64())]
LINES = pa.schema([pa.field("__value", pa.binary()), *PLACE, pa.field("__file_name", pa.string())])


def rows_of(statement: str, tmp_path: Path, schema: pa.Schema, **reading: Any) -> FileRows:
    asked = request(source(statement), tmp_path, keep=tmp_path / "job")
    place = {"files": file_set(asked).json(), "directory": str(tmp_path / "list")}
    found = FileDataSource.rows(Scan(place, Reading(run=1, **reading)), schema)
    assert isinstance(found, FileRows)
    return found


def read(rows: FileRows, one: Range, batch_size: int = 7) -> list[dict[str, Any]]:
    batches = list(rows.read(one, Offset(1, {0: one.end}), batch_size))
    assert all(0 < batch.num_rows <= batch_size for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(pieces_module, "PIECE_BYTES", 20)
    directory = tmp_path / "data"
    directory.mkdir()
    return directory


def test_lines_in_every_division(data: Path, tmp_path: Path) -> None:
    (data / "a.txt").write_text("".join(f"line {number}\n" if number % 10 else "\n" for number in range(100)))
    statement = (
        f"CREATE STREAM t (value STRING) WITH (connector = 'file', path = '{data}', format = 'raw', tail = true)"
    )
    rows = rows_of(statement, tmp_path, LINES, max_rows=30)
    reached = rows.reachable(Offset(1, {0: 0}))
    assert reached.position(0) > 30
    while (after := rows.reachable(reached)) != reached:
        reached = after
    assert reached.position(0) == 100
    everything = read(rows, Range(0, 0, 100))
    assert [row["__offset"] for row in everything] == [number for number in range(100) if number % 10]
    assert everything[0] == {"__value": b"line 1", "__partition": 0, "__offset": 1, "__file_name": "a.txt"}
    for first, end, tasks in ((0, 100, 16), (0, 100, 1), (3, 57, 2), (99, 100, 4)):
        parts = dealt(rows, (Range(0, first, end),), tasks)
        assert 1 <= len(parts) <= max(tasks, 1)
        found = [row for task in parts for part in task for row in read(rows, part)]
        assert found == [row for row in everything if first <= row["__offset"] < end]
    with pytest.raises(RuntimeFailure) as raised:
        rows.reachable(Offset(1, {0: 101}))
    assert raised.value.condition == "SOURCE_DATA_LOST"


def test_a_reader_looks_as_often_as_it_is_told(data: Path, tmp_path: Path) -> None:
    statement = f"CREATE STREAM t (v INT) WITH (connector = 'file', path = '{data}', monitor_interval = '1 h')"
    rows = rows_of(statement, tmp_path, LINES)
    assert rows.reachable(Offset(1, {0: 0})).position(0) == 0
    (data / "a.json").write_text('{"v": 1}\n')
    assert rows.reachable(Offset(1, {0: 0})).position(0) == 0
    other = rows_of(statement, tmp_path, LINES)  # somebody else looks, and writes it down
    assert other.reachable(Offset(1, {0: 0})).position(0) == 1
    assert rows.reachable(Offset(1, {0: 0})).position(0) == 1


def test_parquet_columns_by_name_and_type(data: Path, tmp_path: Path) -> None:
    table = pa.table({"ID": pa.array(range(10), pa.int32()), "n": pa.array(range(10), pa.int64()), "other": ["x"] * 10})
    pq.write_table(table, data / "a.parquet", row_group_size=4)
    statement = (
        f"CREATE TABLE t (id BIGINT, n INT, none STRING) WITH (connector = 'file', path = '{data}', format = 'parquet')"
    )
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("n", pa.int32()), pa.field("none", pa.string()), *PLACE])
    rows = rows_of(statement, tmp_path, schema)
    assert rows.reachable(Offset(1, {0: 0})).position(0) == 10
    assert read(rows, Range(0, 3, 9), batch_size=3) == [
        {"id": n, "n": n, "none": None, "__partition": 0, "__offset": n} for n in range(3, 9)
    ]
    bare = rows_of(statement, tmp_path, pa.schema(PLACE))
    assert [row["__offset"] for row in read(bare, Range(0, 0, 10))] == list(range(10))
    narrow = rows_of(statement, tmp_path, pa.schema([pa.field("other", pa.int32()), *PLACE]))
    with pytest.raises(RuntimeFailure) as raised:
        read(narrow, Range(0, 0, 10))
    assert (raised.value.condition, "column other" in raised.value.message) == ("INVALID_ROWS", True)


def test_the_source_in_the_engine(data: Path, tmp_path: Path) -> None:
    (data / "a.json").write_text('{"v": 1}\n{"v": 2}\n')
    ends = source(f"CREATE TABLE t (v INT) WITH (connector = 'file', path = '{data}')")
    goes_on = source(f"CREATE STREAM t (v INT) WITH (connector = 'file', path = '{data}', tail = true)")
    files = source_of("file")
    asked = request(ends, tmp_path, keep=tmp_path / "one")
    assert files.partitions(asked) == 1
    assert files.latest(asked) == {0: 2}
    assert files.end(asked) == {0: 2}
    tailed = request(goes_on, tmp_path, keep=tmp_path / "two")
    assert files.partitions(tailed) == 1
    assert files.end(tailed) is None
    (data / "b.json").write_text('{"v": 3}\n')
    assert (files.latest(asked), files.latest(tailed)) == ({0: 2}, {0: 3})
    (data / "a.json").unlink()
    assert files.latest(tailed) == {0: 3}
    offset = json.loads(files.end_offset(request(ends, tmp_path)))
    assert (offset["p"], len(offset["pieces"])) == ({"0": 1}, 1)


def test_what_cannot_be_read(tmp_path: Path) -> None:
    for options, error in (
        ("path = 's3://bucket/x'", NotYetError),
        ("path = 'x', format = 'avro'", NotYetError),
        ("path = 'x', compression = 'snappy'", OptionError),
    ):
        with pytest.raises(error):
            file_set(request(source(f"CREATE TABLE t (v INT) WITH (connector = 'file', {options})"), tmp_path))
    for path in ("file:///data/x%20y", "/data/x y"):
        asked = request(source(f"CREATE TABLE t (v INT) WITH (connector = 'file', path = '{path}')"), tmp_path)
        assert file_set(asked).path == "/data/x y"
