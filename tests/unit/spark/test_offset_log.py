"""Spark's offset and commit logs, read and mended without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.errors import RuntimeFailure
from penstock.spark.offset_log import (
    check_checkpoint,
    committed,
    committed_batches,
    drop_commit,
    latest_batch,
    plan_ends,
    planned_batches,
    previous_offsets,
    read_offsets,
    roll_back,
)


def make(checkpoint: Path, planned: int, done: int) -> Path:
    """A checkpoint as Spark leaves it after some batches."""
    for name in ("offsets", "commits"):
        (checkpoint / name).mkdir(parents=True)
    (checkpoint / "metadata").write_text('{"id":"89423567-28d7-4f50-8595-cfe6c391cf78"}')
    for batch in range(planned):
        head = json.dumps({"batchWatermarkMs": batch * 1000, "batchTimestampMs": 5 + batch, "conf": {}})
        write(checkpoint / "offsets" / str(batch), f'v1\n{head}\n{{"p": {{"0": {batch}}}}}\n-')
    for batch in range(done):
        write(checkpoint / "commits" / str(batch), f'v1\n{{"nextBatchWatermarkMs":{batch * 1000}}}')
    return checkpoint


def write(path: Path, text: str) -> None:
    path.write_text(text)
    (path.parent / f".{path.name}.crc").write_bytes(b"crc")


def test_reading(tmp_path: Path) -> None:
    checkpoint = make(tmp_path, planned=3, done=2)
    (checkpoint / "offsets" / ".3.e7.tmp").write_text("torn")  # Spark leaves these after a crash
    assert planned_batches(checkpoint) == (0, 1, 2)
    assert committed_batches(checkpoint) == (0, 1)
    assert latest_batch(checkpoint) == 2
    assert committed(checkpoint) == 1
    batch = read_offsets(checkpoint, 2)
    assert batch.sources == ('{"p": {"0": 2}}', None)
    assert (batch.watermark_ms, batch.timestamp_ms, batch.names) == (2000, 7, ())
    before = previous_offsets(checkpoint, 2)
    assert before is not None
    assert before.batch_id == 1
    assert previous_offsets(checkpoint, 0) is None
    check_checkpoint(checkpoint)


def test_a_new_checkpoint(tmp_path: Path) -> None:
    assert latest_batch(tmp_path / "none") is None
    assert committed(tmp_path / "none") is None
    check_checkpoint(tmp_path / "none")


def test_named_sources(tmp_path: Path) -> None:
    checkpoint = make(tmp_path, planned=1, done=0)
    head = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 5, "conf": {}})
    write(checkpoint / "offsets" / "0", f'v2\n{head}\nbids:{{"p": {{"0": 3}}}}\nother_5f2:-')
    batch = read_offsets(checkpoint, 0)
    assert batch.names == ("bids", "other_5f2")
    assert batch.of("bids") == '{"p": {"0": 3}}'
    assert batch.of("other_5f2") is None
    assert batch.of("new") is None


def test_the_hash_tells_offsets_and_watermark_apart_and_nothing_else(tmp_path: Path) -> None:
    path = make(tmp_path, planned=1, done=0) / "offsets" / "0"
    found = []
    for watermark, time, source in (
        (0, 5, '{"p": {"0": 1}, "run": 2}'),
        (0, 9, '{"run":2,"p":{"0":1}}'),  # the same, written differently at another time
        (1, 5, '{"p": {"0": 1}, "run": 2}'),
        (0, 5, '{"p": {"0": 2}, "run": 2}'),
    ):
        head = json.dumps({"batchWatermarkMs": watermark, "batchTimestampMs": time})
        write(path, f"v1\n{head}\n{source}")
        found.append(read_offsets(tmp_path, 0).hash)
    assert found[0] == found[1]
    assert len(set(found)) == 3


def damage(change: Callable[[Path], object], name: str, what: str) -> tuple[Callable[[Path], object], str, str]:
    return change, name, what


@pytest.mark.parametrize(
    ("change", "name", "what"),
    [
        damage(lambda at: (at / "offsets/2").write_text(""), "offsets/2", "is empty"),
        damage(lambda at: (at / "offsets/2").write_text("v1\n"), "offsets/2", "ends too early"),
        damage(lambda at: (at / "offsets/2").write_text('v1\n{"batchWat\n{}'), "offsets/2", "is torn"),
        damage(lambda at: cut(at / "offsets/2", 4), "offsets/2", "is torn"),
        damage(lambda at: (at / "offsets/2").write_bytes(b"\x00" * 300), "offsets/2", "is not what Spark writes"),
        damage(lambda at: (at / "commits/1").write_text(""), "commits/1", "is empty"),
        damage(lambda at: (at / "commits/1").write_text("v1"), "commits/1", "is torn"),
        damage(lambda at: (at / "offsets/1").unlink(), "offsets/1", "is missing"),
        damage(lambda at: (at / "commits/1").unlink(), "commits/1", "is missing"),
        damage(lambda at: (at / "metadata").unlink(), "metadata", "is missing"),
        damage(lambda at: (at / "metadata").write_text("{"), "metadata", "cannot be read"),
        damage(lambda at: remove(at / "offsets/1", at / "offsets/2"), "offsets/1", "is missing"),
    ],
)
def test_damage_is_named(tmp_path: Path, change: Callable[[Path], object], name: str, what: str) -> None:
    """RELIABILITY 3.3: torn, empty and missing files."""
    checkpoint = make(tmp_path, planned=3, done=2)
    change(checkpoint)
    with pytest.raises(RuntimeFailure) as raised:
        check_checkpoint(checkpoint)
    assert raised.value.condition == "CHECKPOINT_DAMAGED"
    assert raised.value.message == f"checkpoint file {tmp_path / name} {what}"
    assert raised.value.hint


def remove(*paths: Path) -> None:
    for path in paths:
        path.unlink()


def cut(path: Path, count: int) -> None:
    path.write_bytes(path.read_bytes()[: -len("\n-") - count])


def test_old_batches_that_were_cleared_away_are_no_damage(tmp_path: Path) -> None:
    checkpoint = make(tmp_path, planned=6, done=5)
    for name in ("offsets", "commits"):
        for batch in (0, 1):
            (checkpoint / name / str(batch)).unlink()
    check_checkpoint(checkpoint)


def test_dropping_a_commit(tmp_path: Path) -> None:
    checkpoint = make(tmp_path, planned=3, done=3)
    drop_commit(checkpoint, 2)
    assert (latest_batch(checkpoint), committed(checkpoint)) == (2, 1)
    assert not (checkpoint / "commits" / ".2.crc").exists()
    check_checkpoint(checkpoint)


@pytest.mark.parametrize("done", [3, 2])
def test_another_end_is_that_of_the_next_batch_or_of_one_that_has_not_run(tmp_path: Path, done: int) -> None:
    checkpoint = make(tmp_path, planned=3, done=done)
    last = read_offsets(checkpoint, 2)
    plan_ends(checkpoint, done, {1: '{"q": {"0": 7}}'})
    batch = read_offsets(checkpoint, done)
    assert latest_batch(checkpoint) == done
    assert batch.sources == ('{"p": {"0": 2}}', '{"q": {"0": 7}}')  # the other source stays where it was
    assert (batch.watermark_ms, batch.timestamp_ms) == (last.watermark_ms, last.timestamp_ms)
    assert not (checkpoint / "offsets" / f".{done}.crc").exists()  # it would not fit
    assert read_offsets(checkpoint, done - 1).sources[1] is None
    check_checkpoint(checkpoint)


def test_another_end_of_a_named_source(tmp_path: Path) -> None:
    checkpoint = make(tmp_path, planned=1, done=1)
    head = '{"batchWatermarkMs":1,"batchTimestampMs":2,"conf":{}}'
    write(checkpoint / "offsets" / "0", f'v2\n{head}\na:{{"p": {{"0": 1}}}}\nb:-')
    plan_ends(checkpoint, 1, {0: '{"p": {"0": 0}}'})
    assert (read_offsets(checkpoint, 1).of("a"), read_offsets(checkpoint, 1).of("b")) == ('{"p": {"0": 0}}', None)


def test_rolling_back(tmp_path: Path) -> None:
    """K7: go back to a batch that is kept; refuse any other."""
    checkpoint = make(tmp_path, planned=5, done=4)
    for batch in (7, 4):
        with pytest.raises(RuntimeFailure) as raised:
            roll_back(checkpoint, batch)
        assert raised.value.condition == "UNKNOWN_CHECKPOINT"
        assert raised.value.hint == "kept are 0 to 3"
    assert roll_back(checkpoint, 1) == (4, 3, 2)
    assert planned_batches(checkpoint) == committed_batches(checkpoint) == (0, 1)
    assert [entry.name for entry in (checkpoint / "offsets").iterdir() if "2" in entry.name] == []
    check_checkpoint(checkpoint)
