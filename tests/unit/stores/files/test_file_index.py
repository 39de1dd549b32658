"""The list of files: what is found, in which order, and that it never changes. I19."""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import PenstockError
from penstock.stores.files import pieces as pieces_module
from penstock.stores.files.file_set import FileSet
from penstock.stores.files.index import FileIndex, piece_values, read_piece
from penstock.stores.files.pieces import read_pieces
from penstock.stores.files.records import split_records


@pytest.fixture
def data(tmp_path: Path) -> Path:
    directory = tmp_path / "data"
    directory.mkdir()
    return directory


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces_module, "PIECE_BYTES", 10)


def files(path: Path, **values: Any) -> FileSet:
    return FileSet("t", str(path), **values)


def put(path: Path, text: str | bytes, age_s: int = 0) -> Path:
    """Write a file, so many seconds old."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    at = 1_700_000_000 - age_s
    os.utime(path, (at, at))
    return path


def records(index: FileIndex, asked: FileSet, first: int = 0, end: int | None = None) -> list[str]:
    """The records from one number to another, as the index and the files give them."""
    upto = index.rows if end is None else end
    found: list[str] = []
    numbered = index.between(first, upto)
    for one, data in zip(numbered, read_pieces(asked, [(one.found, one.piece) for one in numbered]), strict=True):
        values = [value.decode() for value in split_records(data, asked.quote, asked.delimiter).to_pylist()]
        assert len(values) == one.piece.rows
        found += values[max(0, first - one.first) : max(0, upto - one.first)]
    return found


def refused(call: Any) -> PenstockError:
    with pytest.raises(PenstockError) as raised:
        call()
    return raised.value


def test_oldest_first_hidden_ones_never(data: Path) -> None:
    put(data / "b.json", "1\n", age_s=30)
    put(data / "a.json", "2\n", age_s=20)
    put(data / "sub" / "c.json", "3\n", age_s=10)
    put(data / ".d.json", "x\n")
    put(data / "_e.json", "x\n")
    put(data / ".hidden" / "f.json", "x\n")
    put(data / "g.txt", "4\n")
    for asked, expected in (
        (files(data), ["1", "2", "3", "4"]),
        (files(data, pattern="*.json"), ["1", "2", "3"]),
        (files(data, pattern="sub/*"), ["3"]),
        (files(data, regex=r".*\.json"), ["1", "2", "3"]),
        (files(data, regex=r"sub/.*"), ["3"]),
        (files(data, regex=rf"{re.escape(str(data))}/sub/\w+\.json"), ["3"]),
        (files(data, regex="json"), []),
        (files(data, regex=r".*\.json", pattern="sub/*"), ["3"]),
        (files(data, recursive=False), ["1", "2", "4"]),
        (files(data / "?.json"), ["1", "2"]),
        (files(data / "**" / "c.json"), ["3"]),
        (files(data / "b.json"), ["1"]),
    ):
        index = FileIndex(asked, None)
        index.update()
        assert index.complete
        assert records(index, asked) == expected


def test_nothing_there(data: Path) -> None:
    for path in (data / "none.json", data / "*.json"):
        error = refused(lambda path=path: FileIndex(files(path), None).update())
        assert error.condition == "FILE_NOT_FOUND"
        assert str(path) in error.message
    empty = FileIndex(files(data), None)
    empty.update()
    assert (empty.rows, empty.complete) == (0, True)


@pytest.mark.usefixtures("small_pieces")
def test_a_large_file_is_split_and_every_range_is_itself(data: Path, tmp_path: Path) -> None:
    lines = [f"{number:03}" for number in range(100)]
    put(data / "a", "\n".join(lines[:60]), age_s=9)
    put(data / "b", "\n".join(lines[60:]) + "\n", age_s=8)
    asked = files(data)
    index = FileIndex(asked, tmp_path / "list")
    index.update(5)
    assert index.rows > 5
    index.update(index.rows)
    index.update(99)
    assert not index.complete or index.rows == 100
    index.update(100)
    assert (index.rows, index.complete) == (100, True)
    assert len(index.between(0, 100)) > 30
    for first, end in ((0, 100), (7, 8), (58, 63), (99, 100), (13, 77)):
        assert records(index, asked, first, end) == lines[first:end]
    again = FileIndex(asked, tmp_path / "list")
    again.refresh()
    assert records(again, asked) == lines
    one = index.between(3, 4)[0]
    assert read_piece(piece_values(one)) == one


@pytest.mark.usefixtures("small_pieces")
def test_a_source_that_ends_stays_as_it_was_found(data: Path, tmp_path: Path) -> None:
    put(data / "a", "1\n2\n", age_s=9)
    asked = files(data)
    index = FileIndex(asked, tmp_path / "list")
    index.update()
    put(data / "b", "3\n")
    with (data / "a").open("a") as file:
        file.write("4\n")
    index.update()
    assert records(index, asked) == ["1", "2"]
    put(data / "a", "9\n2\n")
    assert refused(lambda: records(index, asked)).condition == "SOURCE_DATA_LOST"
    (data / "a").unlink()
    error = refused(lambda: records(index, asked))
    assert (error.condition, "is gone" in error.message) == ("SOURCE_DATA_LOST", True)


@pytest.mark.usefixtures("small_pieces")
def test_a_tailed_file_grows_by_whole_lines(data: Path, tmp_path: Path) -> None:
    """I19: a line counts once it ends; what was read may not change, and a file may not shrink."""
    path = put(data / "log", "first line of it\nsec")
    asked = files(data, tail=True)
    index = FileIndex(asked, tmp_path / "list")
    index.update()
    assert records(index, asked) == ["first line of it"]
    with path.open("a") as file:
        file.write("ond\nthird\n")
    put(data / "later", "x\n")
    other = FileIndex(asked, tmp_path / "list")  # another process looks first
    other.update()
    index.refresh()
    assert sorted(records(index, asked)) == ["first line of it", "second", "third", "x"]
    assert records(other, asked) == records(index, asked)
    before = records(index, asked)
    (data / "later").unlink()  # it is read: nobody misses it
    index.update()
    assert index.rows == 4
    text = path.read_text()
    path.write_text(text.replace("third", "thirD") + "more\n")
    assert refused(index.update).condition == "SOURCE_DATA_LOST"
    path.write_text(text[:5])
    assert refused(index.update).condition == "SOURCE_DATA_LOST"
    path.write_text(text)
    index.update()
    assert index.rows == len(before)


def test_a_line_that_was_torn_was_never_written(data: Path, tmp_path: Path) -> None:
    put(data / "a", "1\n2\n")
    asked = files(data, tail=True)
    FileIndex(asked, tmp_path / "list").update()
    with (tmp_path / "list" / "found").open("ab") as file:
        file.write(b'["p", 0, 4, 9')
    index = FileIndex(asked, tmp_path / "list")
    index.refresh()
    assert index.rows == 2
    with (data / "a").open("a") as file:
        file.write("3\n")
    index.update()
    fresh = FileIndex(asked, tmp_path / "list")
    fresh.refresh()
    assert records(fresh, asked) == ["1", "2", "3"]


def test_another_list_of_the_same_name(data: Path, tmp_path: Path) -> None:
    put(data / "a", "1\n2\n")
    asked = files(data, tail=True)
    index = FileIndex(asked, tmp_path / "list")
    index.update()
    (tmp_path / "list" / "found").unlink()
    put(data / "a", "5\n")
    index.update()
    assert records(index, asked) == ["5"]


def test_headers(data: Path) -> None:
    put(data / "a.csv", b'\xef\xbb\xbfid, Name\r\n1,x\r\n2,"y\nz"\r\n', age_s=9)
    put(data / "b.csv", "id,name\n", age_s=8)
    put(data / "c.csv", "", age_s=7)
    put(data / "d.csv", "ID,NAME\n3,w", age_s=6)
    asked = files(data, header=("id", "name"), quote='"')
    index = FileIndex(asked, None)
    index.update()
    assert records(index, asked) == ["1,x", '2,"y\nz"', "3,w"]
    put(data / "e.csv", "name,id\nx,1\n")
    error = refused(lambda: FileIndex(asked, None).update())
    assert error.condition == "INVALID_ROWS"
    assert "e.csv" in error.message
    assert "name, id" in error.message
    tailed = files(data / "g.csv", header=("id", "name"), tail=True)
    path = put(data / "g.csv", "id,na")
    index = FileIndex(tailed, None)
    index.update()
    path.write_text("id,name\n7,q\n")
    index.update()
    assert records(index, tailed) == ["7,q"]


@pytest.mark.usefixtures("small_pieces")
def test_compressed_files(data: Path) -> None:
    lines = [f"line {number}" for number in range(50)]
    put(data / "a.json.gz", gzip.compress("\n".join(lines).encode()))
    asked = files(data)
    index = FileIndex(asked, None)
    index.update(3)
    index.update()
    assert (index.rows, len(index.between(0, 50)) > 5) == (50, True)
    assert records(index, asked, 17, 31) == lines[17:31]
    put(data / "b.json.gz", gzip.compress(b"x\n" * 100)[:-9])
    error = refused(lambda: FileIndex(asked, None).update())
    assert (error.condition, "b.json.gz" in error.message) == ("INVALID_ROWS", True)


def test_tailed_parquet_waits_for_whole_files_and_refuses_changes(data: Path) -> None:
    table = pa.table({"a": range(10)})
    pq.write_table(table, data / "one.parquet", row_group_size=4)
    whole = (data / "one.parquet").read_bytes()
    put(data / "two.parquet", whole[:-7])
    index = FileIndex(files(data, kind="parquet", tail=True), None)
    index.update()
    assert index.rows == 10
    assert [one.piece.rows for one in index.between(0, 10)] == [4, 4, 2]
    put(data / "two.parquet", whole)
    index.update()
    assert index.rows == 20
    put(data / "one.parquet", whole, age_s=100)
    assert refused(index.update).condition == "SOURCE_DATA_LOST"


def test_roots(data: Path, tmp_path: Path) -> None:
    put(data / "a", "1\n")
    put(tmp_path / "secret" / "b", "2\n")
    roots = (str(data),)
    FileIndex(files(data, roots=roots), None).update()
    for path in (tmp_path / "secret" / "b", data / ".." / "secret", tmp_path / "*"):
        assert refused(lambda path=path: FileIndex(files(path, roots=roots), None).update()).condition == (
            "PATH_NOT_ALLOWED"
        )
    (data / "link").symlink_to(tmp_path / "secret" / "b")
    error = refused(lambda: FileIndex(files(data, roots=roots), None).update())
    assert (error.condition, "link" in error.message) == ("PATH_NOT_ALLOWED", True)
