"""Asking the query of a job for one more batch, with or without rows.

A file in the job's directory grows by a byte each time, and the offsets of its first scan have the length of the file
added to the number of the run. So each ask is an offset that Spark has not seen, and the next start of the job must
have a number beyond all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def nudge_file(checkpoint: Path) -> Path:
    """The file of a job."""
    return checkpoint.parent / "nudges"


def nudge(checkpoint: Path) -> None:
    """Ask the query that runs for one more batch."""
    with nudge_file(checkpoint).open("ab") as file:
        file.write(b".")


def nudges(checkpoint: Path) -> int:
    """How many batches the last run of a job was asked for."""
    try:
        return nudge_file(checkpoint).stat().st_size
    except FileNotFoundError:
        return 0
