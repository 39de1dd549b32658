"""What workers of Spark read of a dimension: the version of the batch, as rows and by key (L10, L13)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql.datasource import InputPartition

from penstock.connectors.dimension_reader import DimensionReader, DimensionReading, read_reading
from penstock.errors import PenstockError
from penstock.spark.dimension_lookup import DimensionLookup
from penstock.stores.dimension_pins import pin
from penstock.stores.dimensions import BATCH_ROWS, DimensionStore, version_file

FIRST = pa.table({"id": ["b", "a"], "name": ["bee", "ant"]})
SECOND = pa.table({"id": ["a", "c", None], "name": ["ape", "cat", "nobody"]})


class Task:
    """A task of a batch, as Spark shows it to a worker."""

    def __init__(self, batch: int | None) -> None:
        self.batch = batch

    def getLocalProperty(self, name: str) -> str | None:  # noqa: N802
        return str(self.batch) if self.batch is not None and name == "streaming.sql.batchId" else None


def in_batch(monkeypatch: pytest.MonkeyPatch, batch: int | None) -> None:
    monkeypatch.setattr(TaskContext, "get", classmethod(lambda _: Task(batch)))


@pytest.fixture
def reading(tmp_path: Path) -> DimensionReading:
    """Two versions; from batch 5 on the second one is seen."""
    store = DimensionStore(tmp_path / "dimensions")
    store.add("d", FIRST, 0)
    store.add("d", SECOND, 0)
    pins = tmp_path / "dimensions.json"
    pin(pins, "d", 0, 1)
    pin(pins, "d", 5, 2)
    return DimensionReading("d", str(store.directory("d")), str(pins), 2)


def test_the_batch_decides(monkeypatch: pytest.MonkeyPatch, reading: DimensionReading) -> None:
    find = DimensionLookup(reading, "id", ("name", "id"))
    keys = pa.array(["a", "x", None, "b"])
    reader = DimensionReader(read_reading(reading.text()), pa.schema([("name", pa.string())]))
    for batch, names, whole in (
        (0, ["ant", None, None, "bee"], ["bee", "ant"]),
        (4, ["ant", None, None, "bee"], ["bee", "ant"]),
        (5, ["ape", None, None, None], ["ape", "cat", "nobody"]),
        (4, ["ant", None, None, "bee"], ["bee", "ant"]),
        (None, ["ape", None, None, None], ["ape", "cat", "nobody"]),
    ):
        in_batch(monkeypatch, batch)
        assert [row and row["name"] for row in find(keys).to_pylist()] == names
        rows = pa.Table.from_batches(reader.read(reader.partitions()[0]))
        assert rows.column("name").to_pylist() == whole
        assert rows.column_names == ["name"]


def test_an_index_on_disk_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    in_batch(monkeypatch, None)
    store = DimensionStore(tmp_path)
    store.add("d", FIRST, 0)
    store.index("d", 1, "id")
    version_file(store.directory("d"), 1).unlink()  # the index has all there is to know
    reading = DimensionReading("d", str(store.directory("d")), None, 1)
    assert DimensionLookup(reading, "id", ("name",))(pa.array(["b"])).to_pylist() == [{"name": "bee"}]


def test_readers_share_the_rows_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    in_batch(monkeypatch, None)
    store = DimensionStore(tmp_path)
    store.add("d", pa.table({"id": pa.array(range(2 * BATCH_ROWS + 1))}), 0)
    reading = DimensionReading("d", str(store.directory("d")), None, 1, readers=2)
    reader = DimensionReader(reading, pa.schema([("id", pa.int64())]))
    parts = [pa.Table.from_batches(reader.read(part)).column("id").to_pylist() for part in reader.partitions()]
    assert sorted(parts[0] + parts[1]) == list(range(2 * BATCH_ROWS + 1))
    assert min(map(len, parts)) > 0


def test_what_is_not_there(monkeypatch: pytest.MonkeyPatch, reading: DimensionReading) -> None:
    in_batch(monkeypatch, 7)
    version_file(Path(reading.directory), 2).unlink()
    with pytest.raises(PenstockError) as raised:
        list(DimensionReader(reading, FIRST.schema).read(InputPartition(0)))
    assert raised.value.condition == "DIMENSION_MISSING"
    with pytest.raises(PenstockError) as raised:
        DimensionLookup(reading, "id", ("name",))(pa.array(["a"]))
    assert raised.value.condition == "DIMENSION_MISSING"
    other = DimensionReading("e", reading.directory, reading.pins, None)
    for batch in (7, None):
        in_batch(monkeypatch, batch)
        with pytest.raises(PenstockError) as raised:
            other.version()
        assert raised.value.condition == "INTERNAL_ERROR"
