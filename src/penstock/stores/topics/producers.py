"""Which batches of which producers a partition holds, so that a batch that is sent again is not kept twice.

The frames say it; a snapshot beside the segments, written when one begins and when the topic is closed, saves reading
them all at the next start. The name of the snapshot is the offset up to which it tells everything.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Final

from penstock.stores.private_files import write_private
from penstock.stores.topics.frames import Frame

SNAPSHOT: Final = ".producers"

# A job goes back by a few batches after a crash, by at most as many as it keeps checkpoints when it is rolled back.
_BATCHES_KEPT: Final = 1_000
_PRODUCERS_KEPT: Final = 1_000


def producer_digest(producer: str) -> bytes:
    """The name of a producer as a frame keeps it."""
    return hashlib.blake2b(producer.encode(), digest_size=16).digest()


class Producers:
    """The batches of each producer: batch number to first offset and count."""

    def __init__(self) -> None:
        self._batches: dict[bytes, dict[int, tuple[int, int]]] = {}

    def place(self, producer: bytes, batch: int) -> tuple[int, int] | None:
        """The first offset and the count of a batch that is there."""
        return self._batches.get(producer, {}).get(batch)

    def note(self, producer: bytes, batch: int, first_offset: int, count: int) -> None:
        """Remember a batch, or that it goes on."""
        # Taken out and put back, so that the producers stand in the order of their last append.
        batches = self._batches.pop(producer, {})
        known = batches.get(batch)
        batches[batch] = (first_offset, count) if known is None else (known[0], known[1] + count)
        while len(batches) > _BATCHES_KEPT:
            del batches[next(iter(batches))]
        self._batches[producer] = batches
        while len(self._batches) > _PRODUCERS_KEPT:
            del self._batches[next(iter(self._batches))]

    def note_frame(self, frame: Frame) -> None:
        if frame.producer is not None:
            self.note(frame.producer, frame.batch, frame.first_offset, frame.rows)

    def write(self, directory: Path, offset: int) -> None:
        """Write the snapshot for everything before an offset, and remove older ones."""
        content = {
            producer.hex(): [[batch, *place] for batch, place in batches.items()]
            for producer, batches in self._batches.items()
        }
        path = directory / f"{offset:020d}{SNAPSHOT}"
        write_private(path, json.dumps(content).encode())
        old = [other for other in directory.glob(f"*{SNAPSHOT}") if other != path]
        for other in old:
            other.unlink(missing_ok=True)

    @classmethod
    def read(cls, directory: Path, next_offset: int) -> tuple[Producers, int]:
        """The newest snapshot that can be read, and the offset from which the frames tell the rest."""
        for path in sorted(directory.glob(f"*{SNAPSHOT}"), reverse=True):
            if int(path.stem) > next_offset:
                continue
            try:
                content = json.loads(path.read_bytes())
                found = cls()
                for producer, batches in content.items():
                    found._batches[bytes.fromhex(producer)] = {batch: (first, count) for batch, first, count in batches}
                return found, int(path.stem)
            except (ValueError, TypeError, AttributeError):
                continue
        return cls(), 0
