"""Asking the query of a job for one more batch, with or without rows.

A file in the job's directory grows by a byte each time, and the offsets of its first scan have the length of the file
added to the number of the run. So each ask is an offset that Spark has not seen, and the next start of the job must
have a number beyond all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Nudges:
    """How often the query of a run was asked. Readers in other processes look at the file, those here are called."""

    def __init__(self, checkpoint: Path) -> None:
        self.file = checkpoint.parent / "nudges"
        self._listeners: list[Callable[[], None]] = []

    def begin(self) -> None:
        """A run begins: nobody has asked it for anything yet."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.unlink(missing_ok=True)

    def add(self) -> None:
        """Ask for one more batch."""
        with self.file.open("ab") as file:
            file.write(b".")
        for tell in self._listeners:
            tell()

    def count(self) -> int:
        """How many batches the last run was asked for."""
        try:
            return self.file.stat().st_size
        except FileNotFoundError:
            return 0

    def call(self, listener: Callable[[], None]) -> None:
        """Call someone after each ask."""
        self._listeners.append(listener)
