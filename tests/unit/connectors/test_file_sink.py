"""The file sink as the engine calls it, without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.connectors.registry import sink_of
from penstock.connectors.sink import CheckedSink, FrameSink, SinkContext
from penstock.errors import NotYetError, PenstockError
from penstock.formats import encode_rows
from penstock.stores.topics import TopicStore
from tests.unit.connectors.declared import sink

ROWS = pa.table({"id": [1, 2, 3], "city": ["Łódź", None, "a/b"], "n": [1.5, None, 2.0]})


def context(statement: str, tmp_path: Path, roots: tuple[str, ...] | None = None) -> SinkContext:
    definition = sink(statement)
    topics = TopicStore(tmp_path / "topics")
    topics.close()
    options = definition.options
    return SinkContext(
        "j", "j@1", definition, topics, lambda rows: encode_rows(rows, options.format or "json", options.values), None,
        roots=roots,
    )  # fmt: skip


def declared(path: Path, options: str) -> str:
    return f"CREATE TABLE t (id BIGINT, city STRING, n DOUBLE) WITH (type = 'sink', connector = 'filesystem', path = '{path}', {options})"


def files(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory).parent): path.read_text()
        for path in sorted(directory.rglob("part*"))
        if ".penstock" not in path.parts
    }


def test_batches_and_loose_rows_in_directories(tmp_path: Path) -> None:
    asked = context(declared(tmp_path / "out", "format = 'csv', csv.header = true, partition_by = 'CITY'"), tmp_path)
    writer = sink_of("file")
    writer.write(ROWS, asked, 0)
    writer.write(ROWS, asked, 0)
    writer.write(ROWS.slice(0, 0), asked, 1)
    assert files(tmp_path / "out") == {
        "city=%C5%81%C3%B3d%C5%BA": "id,city,n\n1,Łódź,1.5\n",
        "city=__HIVE_DEFAULT_PARTITION__": "id,city,n\n2,,\n",
        "city=a%2Fb": "id,city,n\n3,a/b,2.0\n",
    }
    writer.write(ROWS.slice(0, 1), asked, None)
    assert len(list((tmp_path / "out").rglob("part*.csv"))) == 4


def test_parquet_and_names(tmp_path: Path) -> None:
    options = "format = 'parquet', filename_prefix = 'day', filename_suffix = '-x', compression = 'gzip'"
    asked = context(declared(tmp_path / "out", options), tmp_path)
    sink_of("file").write(ROWS, asked, 3)
    (path,) = (tmp_path / "out").glob("day-*-00000003-0000-x.parquet")
    assert pq.read_table(path).to_pylist() == ROWS.to_pylist()
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).compression == "GZIP"


@pytest.mark.parametrize("connector", ["single_file", "file"])
def test_one_plain_file(tmp_path: Path, connector: str) -> None:
    statement = declared(tmp_path / "rows.json", "single_file = true").replace("filesystem", connector)
    asked = context(statement, tmp_path)
    writer = sink_of("file")
    assert isinstance(writer, FrameSink)
    assert not writer.stages(asked.definition)
    for batch in (0, 0, 1):
        writer.write(ROWS.slice(batch, 1), asked, batch)
    assert (tmp_path / "rows.json").read_text() == '{"id":1,"city":"Łódź","n":1.5}\n{"id":2,"city":null,"n":null}\n'


def test_what_is_refused(tmp_path: Path) -> None:
    writer = sink_of("file")
    for options, word in (
        ("single_file = true, format = 'parquet'", "Parquet"),
        ("format = 'avro'", "avro"),
    ):
        asked = context(declared(tmp_path / "x", options), tmp_path)
        with pytest.raises(NotYetError, match=word):
            writer.prepare(asked.definition, tmp_path, asked.topics)
    (tmp_path / "file").write_text("mine")
    for path, options, roots, condition in (
        (tmp_path / "file", "format = 'json'", None, "INVALID_OPTION"),
        (tmp_path, "single_file = true", None, "INVALID_OPTION"),
        (tmp_path / "out" / ".." / "y", "format = 'json'", (str(tmp_path / "out"),), "PATH_NOT_ALLOWED"),
    ):
        asked = context(declared(path, options), tmp_path, roots)
        assert isinstance(writer, CheckedSink)
        with pytest.raises(PenstockError) as raised:
            writer.check(asked)
        with pytest.raises(PenstockError) as raised:
            writer.write(ROWS, asked, 0)
        assert raised.value.condition == condition
    assert (tmp_path / "file").read_text() == "mine"
