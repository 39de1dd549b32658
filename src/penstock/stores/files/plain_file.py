"""One plain file that grows by a batch at a time, each batch once.

Beside it lies a small hidden file that says which batches it holds, how long the file is with them, and, while one is
appended, where it began. Whoever appends next finds that note after a crash and cuts the file back to it first; a file
that is not as long as the note says was changed by somebody else, and nothing is appended to it. A file of somebody
else's that is there before is appended to, from a line of our own on.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, Final

from penstock.errors import RuntimeFailure
from penstock.failpoints import hit
from penstock.stores.private_files import sync_directory, write_private
from penstock.stores.written_batches import read_written

_turn: Final = Lock()  # one append at a time in this process; a lock on the file keeps those of other databases out


def append_once(
    path: Path,
    producer: str,
    batch_id: int | None,
    content: bytes,
    header: bytes = b"",
    *,
    lines: bool = True,
    input_hash: str = "",
) -> bool:
    """Append the content of a batch; False where the file has it already, SINK_REFUSED where it has another one of its
    number. The header stands at its very beginning.

    `lines`: the content begins a line of its own, also behind one that somebody has not ended.
    """
    note = path.with_name(f".{path.name}.penstock")
    with _turn:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file:
            _lock(file)
            kept = _read(note)
            length = _cut_back(path, file, kept)
            batches = kept.setdefault("batches", {})
            known = read_written(batches.get(producer, ""))
            if batch_id is not None and known.has(batch_id, input_hash, f"file {path}"):
                return False
            write_private(note, json.dumps({**kept, "start": length}).encode())
            sync_directory(path.parent)
            hit("file_sink.before_append")
            file.write((header if length == 0 else b"\n" if lines and _open_line(file, length) else b"") + content)
            file.flush()
            os.fsync(file.fileno())
            kept["length"] = os.fstat(file.fileno()).st_size
            hit("file_sink.after_append")
            if batch_id is not None:
                batches[producer] = known.with_batch(batch_id, input_hash).text()
            kept.pop("start", None)
            write_private(note, json.dumps(kept).encode())
    return True


def _lock(file: Any) -> None:
    """Keep the file from others that append to it, until it is closed."""
    with suppress(OSError):  # a file system without locks
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)


def _open_line(file: Any, length: int) -> bool:
    """Whether the last line of the file has no end."""
    return os.pread(file.fileno(), 1, length - 1) != b"\n"


def _cut_back(path: Path, file: Any, kept: dict[str, Any]) -> int:
    """Take away what an append left that was cut off; the length of the file."""
    length = os.fstat(file.fileno()).st_size
    start = kept.get("start")
    had = kept.get("length", length) if start is None else start
    if length < had or (length > had and start is None):
        raise RuntimeFailure(
            "SINK_DAMAGED",
            f"file {path} is not as the last batch left it: it has {length} bytes and had {had}",
            hint=f"put it back, or remove it and .{path.name}.penstock beside it to begin anew",
        )
    if start is None or start == length:
        return length
    os.ftruncate(file.fileno(), start)
    file.seek(0, os.SEEK_END)
    return int(start)


def _read(note: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(note.read_bytes())
    except FileNotFoundError:
        return {}
    return found
