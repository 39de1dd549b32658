"""Which version of each dimension a job's batches see: a small file beside the checkpoint.

    {"securities": [[0, 1], [17, 2]]}      batches 0 to 16 see version 1, from 17 on they see version 2

An entry is only ever made for batches that are not planned yet, so what a planned batch sees never changes: not while
it runs, and not when it runs again after a crash. The workers of Spark read the file in every batch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from penstock.errors import RuntimeFailure
from penstock.stores.private_files import write_private

Pins = Mapping[str, tuple[tuple[int, int], ...]]  # by dimension: from which batch on which version, in order

_FILE: Final = "dimensions.json"


def pins_file(checkpoint: Path) -> Path:
    """Where the versions of a job stand."""
    return checkpoint.parent / _FILE


def read_pins(path: Path) -> Pins:
    """The versions that a job's batches see; none where nothing was pinned yet."""
    try:
        kept = json.loads(path.read_text("utf-8"))
        return {name: tuple((int(first), int(number)) for first, number in entries) for name, entries in kept.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, AttributeError):
        raise RuntimeFailure(
            "CHECKPOINT_DAMAGED",
            f"{path} cannot be read",
            hint="restore it from a backup, or drop the job and create it again to read from the start",
        ) from None


def pin(path: Path, name: str, first_batch: int, number: int) -> None:
    """From `first_batch`, which is not planned yet, the job sees a version; what was said of later batches is void."""
    before = read_pins(path)
    entries = tuple(entry for entry in before.get(name, ()) if entry[0] < first_batch)
    if not entries or entries[-1][1] != number:
        # A job that begins sees its first version from the beginning.
        entries = (*entries, (first_batch if entries else 0, number))
    if entries != before.get(name):
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, {**before, name: entries})


def trim(path: Path, oldest_batch: int) -> None:
    """Forget what batches before `oldest_batch`, which never run again, have seen."""
    before = read_pins(path)
    after = {name: _since(entries, oldest_batch) for name, entries in before.items()}
    if after != before:
        _write(path, after)


def pinned(pins: Pins, name: str, batch: int) -> int | None:
    """The version of a dimension that a batch sees.

    >>> pins = {"d": ((0, 1), (17, 2))}
    >>> pinned(pins, "d", 16), pinned(pins, "d", 17), pinned(pins, "e", 0)
    (1, 2, None)
    """
    found = [number for first, number in pins.get(name, ()) if first <= batch]
    return found[-1] if found else None


def _since(entries: tuple[tuple[int, int], ...], batch: int) -> tuple[tuple[int, int], ...]:
    """The entries that say what `batch` and later ones see."""
    current = [entry for entry in entries if entry[0] <= batch][-1:]
    return (*current, *(entry for entry in entries if entry[0] > batch))


def _write(path: Path, pins: Pins) -> None:
    write_private(path, json.dumps(pins, ensure_ascii=False).encode())
