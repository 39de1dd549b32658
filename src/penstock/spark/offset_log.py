"""Spark's checkpoint on disk, read without Spark: which batches were planned and done, at which offsets and watermark.

    <checkpoint>/offsets/<batch>   written before a batch runs: where each source stands at its end, and the watermark
    <checkpoint>/commits/<batch>   written when it is done: the watermark of the next
    <checkpoint>/.../.<batch>.crc  Hadoop's checksum of the file

A batch in `offsets` and not in `commits` is run again, with the same offsets, at the next start. A damaged file is an
error that names it; nothing here guesses.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Final

from penstock.errors import RuntimeFailure
from penstock.frozen import frozen

_NO_OFFSET: Final = "-"  # Spark's mark for a source that has given nothing yet
_VERSIONS: Final = frozenset({"v1", "v2"})


@frozen
class BatchOffsets:
    """What the offset log says of a batch: `sources` hold each source's end as its JSON text, None before its first."""

    batch_id: int
    sources: tuple[str | None, ...]
    names: tuple[str, ...]  # of the sources, where the query names them; else empty
    watermark_ms: int
    timestamp_ms: int

    @property
    def clock_ms(self) -> int:
        """The processing time of its rows: when it was planned, and never before the watermark it runs under."""
        return max(self.timestamp_ms, self.watermark_ms)

    def of(self, name: str) -> str | None:
        """The end of the source of this name; None where it has given nothing yet, or is new to the query."""
        return dict(zip(self.names, self.sources, strict=True)).get(name)

    @property
    def hash(self) -> str:
        """A fingerprint of the offsets and the watermark: the same for a batch that is run again, and for no other."""
        content = {
            "sources": [_canonical(source) for source in self.sources],
            "names": list(self.names),
            "watermark": self.watermark_ms,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def planned_batches(checkpoint: Path) -> tuple[int, ...]:
    """The batches whose offsets are kept, in order."""
    return _numbers(checkpoint / "offsets")


def committed_batches(checkpoint: Path) -> tuple[int, ...]:
    """The batches that Spark has marked as done and still keeps, in order."""
    return _numbers(checkpoint / "commits")


def latest_batch(checkpoint: Path) -> int | None:
    """The last batch that was planned; None where there is none."""
    return max(planned_batches(checkpoint), default=None)


def committed(checkpoint: Path) -> int | None:
    """The last batch that Spark has marked as done; None where there is none."""
    return max(committed_batches(checkpoint), default=None)


def read_offsets(checkpoint: Path, batch_id: int) -> BatchOffsets:
    """What the offset log says of a batch; CHECKPOINT_DAMAGED where it cannot be read."""
    path = checkpoint / "offsets" / str(batch_id)
    lines = _lines(path)
    if len(lines) < 3:
        raise _damaged(path, "ends too early")
    try:
        head = json.loads(lines[1])
        watermark, timestamp = int(head["batchWatermarkMs"]), int(head["batchTimestampMs"])
        sources, names = _sources(lines[0], lines[2:])
    except (ValueError, TypeError, KeyError):
        raise _damaged(path, "is torn") from None
    return BatchOffsets(batch_id, sources, names, watermark, timestamp)


def previous_offsets(checkpoint: Path, batch_id: int) -> BatchOffsets | None:
    """What the log says of the batch before; None for the first one."""
    return None if batch_id == 0 else read_offsets(checkpoint, batch_id - 1)


def check_checkpoint(checkpoint: Path) -> None:
    """Look at what a start depends on, so that damage is named instead of met by Spark; CHECKPOINT_DAMAGED if any.

    A checkpoint without any batch is a new one. Of the batches, Spark reads the last two and whether the last was done.
    """
    planned, done = planned_batches(checkpoint), committed_batches(checkpoint)
    if not planned and not done:
        return
    metadata = checkpoint / "metadata"
    try:
        json.loads(metadata.read_text("utf-8"))
    except FileNotFoundError:
        raise _damaged(metadata, "is missing") from None
    except (OSError, ValueError):
        raise _damaged(metadata, "cannot be read") from None
    for number in planned[-2:]:
        read_offsets(checkpoint, number)
    for number in done[-2:]:
        _read_commit(checkpoint / "commits" / str(number))
    last_done = max(done, default=-1)
    if not planned or planned[-1] < last_done:
        raise _damaged(checkpoint / "offsets" / str(last_done), "is missing")
    if planned[-1] > last_done + 1:
        # Spark plans a batch only after the one before is done.
        raise _damaged(checkpoint / "commits" / str(planned[-1] - 1), "is missing")
    for before, after in pairwise(planned):
        if after != before + 1:
            raise _damaged(checkpoint / "offsets" / str(before + 1), "is missing")


def plan_ends(checkpoint: Path, batch_id: int, ends: Mapping[int, str]) -> None:
    """Say that the next batch ends so, by the places of sources; the others end where the last one did.

    `batch_id` is the number of that batch: the next one, or the last one, which was planned and has not run.
    """
    known = batch_id if batch_id in planned_batches(checkpoint) else batch_id - 1
    lines = _lines(checkpoint / "offsets" / str(known))
    named = lines[0] != "v1"
    for place, end in ends.items():
        name = f"{lines[place + 2].partition(':')[0]}:" if named else ""
        lines[place + 2] = name + end
    new = checkpoint / "offsets" / f".{batch_id}.new"
    with new.open("w", encoding="utf-8") as file:
        file.write("\n".join(lines))
        file.flush()
        os.fsync(file.fileno())
    # A file without its checksum is read; one that does not fit it is not.
    (checkpoint / "offsets" / f".{batch_id}.crc").unlink(missing_ok=True)
    new.replace(checkpoint / "offsets" / str(batch_id))


def drop_commit(checkpoint: Path, batch_id: int) -> None:
    """Forget that a batch was done, so that the next start runs it again with the same offsets."""
    _remove(checkpoint / "commits", batch_id)


def roll_back(checkpoint: Path, batch_id: int) -> tuple[int, ...]:
    """Forget every batch after `batch_id`; the next start plans from there. The batches forgotten, newest first.

    State of later batches may stay: Spark loads the version that belongs to the batch before the one it runs, and
    writes the later ones anew. Files go newest first, commits before offsets, so that a crash on the way leaves a
    checkpoint that is whole and only further ahead.
    """
    if batch_id not in committed_batches(checkpoint):
        kept = committed_batches(checkpoint)
        raise RuntimeFailure(
            "UNKNOWN_CHECKPOINT",
            f"there is no checkpoint {batch_id}",
            hint=f"kept are {kept[0]} to {kept[-1]}" if kept else "none is kept yet",
        )
    read_offsets(checkpoint, batch_id)
    later = tuple(sorted({*planned_batches(checkpoint), *committed_batches(checkpoint)}, reverse=True))
    forgotten = tuple(number for number in later if number > batch_id)
    for number in forgotten:
        _remove(checkpoint / "commits", number)
        _remove(checkpoint / "offsets", number)
    return forgotten


def _sources(version: str, lines: list[str]) -> tuple[tuple[str | None, ...], tuple[str, ...]]:
    if version == "v1":
        return tuple(None if line == _NO_OFFSET else _checked(line) for line in lines), ()
    # A named source is written `name:offset`; names have neither colons nor braces.
    named = [line.partition(":") for line in lines]
    return tuple(None if text == _NO_OFFSET else _checked(text) for _, _, text in named), tuple(
        name for name, _, _ in named
    )


def _checked(text: str) -> str:
    """An offset's text, unchanged; ValueError where it is torn."""
    json.loads(text)
    return text


def _canonical(source: str | None) -> object:
    return None if source is None else json.loads(source)


def _read_commit(path: Path) -> None:
    lines = _lines(path)
    try:
        json.loads(lines[1])
    except (ValueError, IndexError):
        raise _damaged(path, "is torn") from None


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise _damaged(path, "is missing") from None
    except (OSError, UnicodeDecodeError):
        raise _damaged(path, "cannot be read") from None
    if not text:
        raise _damaged(path, "is empty")
    lines = text.split("\n")
    if lines[0] not in _VERSIONS:
        raise _damaged(path, "is not what Spark writes")
    return lines


def _numbers(directory: Path) -> tuple[int, ...]:
    try:
        return tuple(sorted(int(entry.name) for entry in directory.iterdir() if entry.name.isdecimal()))
    except FileNotFoundError:
        return ()


def _remove(directory: Path, batch_id: int) -> None:
    # The checksum goes last: a file without one is read, a checksum without a file is not looked at.
    (directory / str(batch_id)).unlink(missing_ok=True)
    (directory / f".{batch_id}.crc").unlink(missing_ok=True)


def _damaged(path: Path, what: str) -> RuntimeFailure:
    return RuntimeFailure(
        "CHECKPOINT_DAMAGED",
        f"checkpoint file {path} {what}",
        hint="restore the checkpoint from a backup, or drop the job and create it again to read from the start",
    )
