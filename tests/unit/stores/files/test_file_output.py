"""Files that are written: whole, once, and as they were asked for."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import RuntimeFailure
from penstock.failpoints import FailpointError, enabled
from penstock.stores.files.part_writer import PLACE, RECORD, Part, PartPlan, write_parts
from penstock.stores.files.plain_file import append_once
from penstock.stores.files.published import Publisher


def records(texts: list[str], places: list[str] | None = None) -> pa.RecordBatch:
    columns: dict[str, Any] = {RECORD: pa.array([text.encode() for text in texts], pa.binary())}
    if places is not None:
        columns[PLACE] = places
    return pa.RecordBatch.from_pydict(columns)


def content(directory: Path) -> dict[str, str]:
    """The files that a reader sees."""
    return {
        str(path.relative_to(directory)): path.read_text()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(directory).parts)
    }


def test_parts_end_where_they_are_full(tmp_path: Path) -> None:
    plan = PartPlan(str(tmp_path), ".csv", header=b"a\n", most_rows=3)
    parts = list(write_parts(plan, [records(["1", "2"]), records(["3", "4", "5", "6", "7"]), records([])]))
    assert [part.rows for part in parts] == [3, 3, 1]
    assert [(tmp_path / part.name).read_text() for part in parts] == ["a\n1\n2\n3\n", "a\n4\n5\n6\n", "a\n7\n"]
    assert [part.bytes for part in parts] == [8, 8, 4]
    sized = PartPlan(str(tmp_path), ".json", most_bytes=10)
    assert [part.rows for part in write_parts(sized, [records(["123456"])] * 5)] == [2, 2, 1]


def test_rows_go_to_their_directories(tmp_path: Path) -> None:
    plan = PartPlan(str(tmp_path), ".json.gz", codec="gzip")
    parts = list(write_parts(plan, [records(["1", "2", "3"], ["d=1", "d=1", "d=2"]), records(["4"], ["d=2"])]))
    assert [(part.place, part.rows) for part in parts] == [("d=1", 2), ("d=2", 2)]
    assert gzip.decompress((tmp_path / parts[1].name).read_bytes()) == b"3\n4\n"


def test_parquet_keeps_types_and_makes_row_groups(tmp_path: Path) -> None:
    plan = PartPlan(str(tmp_path), ".parquet", parquet="zstd", row_group_bytes=4_000)
    batches = pa.table({"a": range(2_000), "b": [f"{n}" for n in range(2_000)]}).to_batches(max_chunksize=100)
    (part,) = write_parts(plan, batches)
    file = pq.ParquetFile(tmp_path / part.name)
    assert file.read().to_pylist() == pa.Table.from_batches(batches).to_pylist()
    assert 2 < file.num_row_groups < 20


def test_a_failed_writer_leaves_nothing(tmp_path: Path) -> None:
    def broken() -> Any:
        yield records(["1"])
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        list(write_parts(PartPlan(str(tmp_path), ".json"), broken()))
    assert list(tmp_path.iterdir()) == []


def put(publisher: Publisher, texts: list[str]) -> list[Part]:
    plan = PartPlan(str(publisher.unpublished), ".json")
    return [part for text in texts for part in write_parts(plan, [records([text])])]


def test_a_batch_is_published_once(tmp_path: Path) -> None:
    one = Publisher(tmp_path / "out", "job@1")
    assert one.begin(0)
    parts = put(one, ["a", "b", "c"])
    assert content(tmp_path / "out") == {}
    with enabled("file_sink.before_rename", "error@2"), pytest.raises(FailpointError):
        one.publish(0, parts, "part", ".json")
    assert list(content(tmp_path / "out").values()) == ["a\n"]
    # The batch runs again, and its rows may be dealt to files in another way: those that are published count.
    again = Publisher(tmp_path / "out", "job@1")
    assert not again.begin(0)
    assert list(content(tmp_path / "out").values()) == ["a\n", "b\n", "c\n"]
    assert again.begin(1)
    put(again, ["lost"])
    assert again.begin(1)
    again.publish(1, put(again, ["d"]), "part", ".json")
    assert not again.begin(1)
    assert not again.begin(0)
    assert (again.rows_of(1), again.rows_of(0)) == (1, 0)
    mark = one.mark
    assert content(tmp_path / "out") == {
        f"part-{mark}-00000000-0000.json": "a\n",
        f"part-{mark}-00000000-0001.json": "b\n",
        f"part-{mark}-00000000-0002.json": "c\n",
        f"part-{mark}-00000001-0000.json": "d\n",
    }
    other = Publisher(tmp_path / "out", "job@2")  # the job was dropped and created again
    assert other.begin(0)
    other.publish(0, put(other, ["e"]), "part", ".json")
    for _ in range(2):  # rows that belong to no batch
        assert other.begin(None)
        other.publish(None, put(other, ["v"]), "part", ".json")
    assert sorted(content(tmp_path / "out").values()) == ["a\n", "b\n", "c\n", "d\n", "e\n", "v\n", "v\n"]
    assert not other.begin(0)


@pytest.mark.parametrize("point", ["file_sink.before_append", "file_sink.after_append"])
def test_one_plain_file_holds_each_batch_once(tmp_path: Path, point: str) -> None:
    path = tmp_path / "out" / "rows.csv"
    assert append_once(path, "job@1", 0, b"1\n2\n", b"a\n")
    with enabled(point, "error"), pytest.raises(FailpointError):
        append_once(path, "job@1", 1, b"3\n", b"a\n")
    # Another job comes first, and finds what the crash has left.
    assert append_once(path, "job@7", 5, b"4\n", b"a\n")
    assert append_once(path, "job@1", 1, b"3\n", b"a\n")
    assert not append_once(path, "job@1", 1, b"3\n", b"a\n")
    assert not append_once(path, "job@1", 0, b"1\n2\n", b"a\n")
    assert append_once(path, "insert", None, b"5\n")
    assert append_once(path, "insert", None, b"5\n")
    assert path.read_text() == "a\n1\n2\n4\n3\n5\n5\n"


@pytest.mark.parametrize("there", [b"old", b"old\n", b""])
def test_a_file_that_was_there_keeps_its_last_line(tmp_path: Path, there: bytes) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(there)
    with enabled("file_sink.after_append", "error"), pytest.raises(FailpointError):
        append_once(path, "job@1", 0, b"1\n", b"a\n")
    assert append_once(path, "job@1", 0, b"1\n", b"a\n")
    assert append_once(path, "job@1", 1, b"2\n", b"a\n")
    assert path.read_bytes() == (b"old\n" if there else b"a\n") + b"1\n2\n"
    packed = tmp_path / "rows.csv.gz"
    packed.write_bytes(gzip.compress(b"old\n"))
    append_once(packed, "job@1", 0, gzip.compress(b"1\n"), lines=False)
    assert gzip.decompress(packed.read_bytes()) == b"old\n1\n"


def test_databases_that_append_to_one_file_take_turns(tmp_path: Path) -> None:
    """Each in a process of its own: whoever finds the other one at work waits, and cuts nothing off."""
    program = (
        "import sys; from pathlib import Path; from penstock.stores.files.plain_file import append_once\n"
        "for n in range(150): append_once(Path(sys.argv[1]), sys.argv[2], n, f'{sys.argv[2]} {n}\\n'.encode() * 20)"
    )
    path = tmp_path / "rows.txt"
    running = [subprocess.Popen([sys.executable, "-c", program, str(path), name]) for name in ("one", "two")]
    assert [each.wait(120) for each in running] == [0, 0]
    lines = path.read_text().splitlines()
    for name in ("one", "two"):
        assert [line for line in lines if line.startswith(name)] == [
            f"{name} {n}" for n in range(150) for _ in range(20)
        ]
    assert len(lines) == 6_000


def test_a_plain_file_that_was_cut_is_told(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    append_once(path, "job@1", 0, b"12345\n")
    with enabled("file_sink.before_append", "error"), pytest.raises(FailpointError):
        append_once(path, "job@1", 1, b"6\n")
    path.write_bytes(b"1")
    with pytest.raises(RuntimeFailure) as raised:
        append_once(path, "job@1", 1, b"6\n")
    assert raised.value.condition == "SINK_DAMAGED"
    note = json.loads((tmp_path / ".rows.json.penstock").read_text())
    assert note == {"batches": {"job@1": "0:"}, "length": 6, "start": 6}


@pytest.mark.parametrize("left", [None, b"1\n", b"1\n2\nx"])
def test_nothing_is_appended_to_a_plain_file_that_somebody_else_has_changed(tmp_path: Path, left: bytes | None) -> None:
    path = tmp_path / "out.csv"
    append_once(path, "job@1", 0, b"1\n2\n")
    if left is None:
        path.unlink()
    else:
        path.write_bytes(left)
    with pytest.raises(RuntimeFailure, match="is not as the last batch left it") as caught:
        append_once(path, "job@1", 1, b"3\n")
    assert caught.value.condition == "SINK_DAMAGED"
    assert path.read_bytes() == (left or b"")
    path.write_bytes(b"1\n2\n")
    assert append_once(path, "job@1", 1, b"3\n")
    assert path.read_bytes() == b"1\n2\n3\n"


def test_batches_of_an_older_state_are_refused(tmp_path: Path) -> None:
    """A job that was put back counts up to the same numbers with other input: silence would lose those rows."""
    for number, mark in ((0, "aaaa"), (1, "bbbb"), (2, "cccc")):
        one = Publisher(tmp_path / "out", "job@1")
        assert one.begin(number, mark)
        one.publish(number, put(one, [mark]), "part", ".json", mark)
        assert append_once(tmp_path / "plain", "job@1", number, b"x\n", input_hash=mark)
    again = Publisher(tmp_path / "out", "job@1")
    assert not again.begin(1, "bbbb"), "run again as it was"
    assert not append_once(tmp_path / "plain", "job@1", 1, b"x\n", input_hash="bbbb")
    with pytest.raises(RuntimeFailure, match="has batches of this job up to 2, and batch 1 now has other input"):
        again.begin(1, "dddd")
    with pytest.raises(RuntimeFailure, match="SINK_REFUSED"):
        append_once(tmp_path / "plain", "job@1", 2, b"y\n", input_hash="dddd")
    assert again.begin(3, "eeee")
