"""The errors of embedded topics, each made in one place."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Final

from penstock.errors import PenstockError, RuntimeFailure
from penstock.stores.private_files import shown, unusable

_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def topic_damaged(file: Path, reason: str) -> RuntimeFailure:
    """TOPIC_DAMAGED for a file that does not hold what was written."""
    return RuntimeFailure(
        "TOPIC_DAMAGED",
        f"{shown(file)} is damaged: {reason}",
        hint="restore a copy of the topic's directory, or drop the stream and create it again",
    )


def topic_missing(directory: Path) -> RuntimeFailure:
    """SOURCE_DATA_LOST for a topic that was dropped, or never was."""
    return RuntimeFailure(
        "SOURCE_DATA_LOST",
        f"there is no topic in {shown(directory)}",
        hint="create the stream again; a job that reads it must be created again too",
    )


def rows_lost(topic: str, partition: int, start: int, end: int, reason: str) -> RuntimeFailure:
    """SOURCE_DATA_LOST for offsets that a reader asks for and the topic does not hold."""
    return RuntimeFailure(
        "SOURCE_DATA_LOST",
        f"topic {topic}, partition {partition}: rows from offset {start} to {end - 1} are gone ({reason})",
        hint="create the job again to read what is there, or keep rows longer with the option retention",
    )


def write_failed(path: Path, error: OSError) -> PenstockError:
    """STORAGE_FULL where there is no space, else STATE_PATH_UNUSABLE."""
    if error.errno in _NO_SPACE:
        return RuntimeFailure(
            "STORAGE_FULL", f"{shown(path)} cannot be written: no space left", hint="make space and try again"
        )
    return unusable(path, error)
