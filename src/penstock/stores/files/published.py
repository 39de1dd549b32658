"""Publishing the files of a batch once, however often the batch is written.

Files are written under `.penstock` in the target directory, where no reader looks. When all of a batch are there, one
file that lists them with their final names takes the place of the list before: from then on the batch is published.
Renaming them follows, and is finished by whoever comes next if it was cut off. A batch that is on the list is not
written again; so a published file never changes, and none is there twice.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from penstock.failpoints import hit
from penstock.stores.files.part_writer import Part
from penstock.stores.private_files import sync_directory, write_private
from penstock.stores.written_batches import WrittenBatches, read_written

_HIDDEN: Final = ".penstock"


class Publisher:
    """What one writer has published in a directory. `producer` tells writers apart, also two of one name."""

    def __init__(self, target: Path, producer: str) -> None:
        self.target = target
        self.mark = hashlib.sha256(producer.encode()).hexdigest()[:8]
        self._list = target / _HIDDEN / f"{self.mark}.json"
        self.unpublished = target / _HIDDEN / self.mark

    def begin(self, batch_id: int | None, input_hash: str = "") -> bool:
        """Get ready for the files of a batch; False where they are published already, SINK_REFUSED where those of
        another one with its number are."""
        known = self._finish()
        if batch_id is not None and known.has(batch_id, input_hash, f"directory {self.target}"):
            return False
        shutil.rmtree(self.unpublished, ignore_errors=True)
        self.unpublished.mkdir(parents=True)
        return True

    def rows_of(self, batch_id: int) -> int:
        """How many rows the last published batch has, if it is this one; of older ones it is not known, and 0."""
        kept = self._kept()
        return int(kept["rows"]) if kept.get("batch") == batch_id else 0

    def publish(
        self, batch_id: int | None, parts: Sequence[Part], prefix: str, suffix: str, input_hash: str = ""
    ) -> None:
        """Make the files of a batch visible, under names that tell the writer and the batch."""
        kept = self._kept()
        number = kept.get("loose", 0) + 1 if batch_id is None else batch_id
        label = f"{'v' if batch_id is None else ''}{number:08d}"
        files = []
        for place, part in enumerate(parts):
            name = f"{prefix}-{self.mark}-{label}-{place:04d}{suffix}"
            files.append([part.name, str(Path(part.place) / name)])
        entry = {**kept, "files": files}
        if batch_id is None:
            entry["loose"] = number
        else:
            batches = read_written(kept.get("batches", "")).with_batch(batch_id, input_hash)
            entry |= {"batch": batch_id, "rows": sum(part.rows for part in parts), "batches": batches.text()}
        sync_directory(self.unpublished)
        write_private(self._list, json.dumps(entry).encode())
        self._finish()
        shutil.rmtree(self.unpublished, ignore_errors=True)

    def _finish(self) -> WrittenBatches:
        """Rename what is on the list and not in place yet; the batches that are published."""
        kept = self._kept()
        places: set[Path] = set()
        for name, final in kept.get("files", ()):
            source, target = self.unpublished / name, self.target / final
            if source.exists():
                hit("file_sink.before_rename")
                target.parent.mkdir(parents=True, exist_ok=True)
                source.rename(target)
                places.add(target.parent)
        for place in places:
            sync_directory(place)
        return read_written(kept.get("batches", ""))

    def _kept(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self._list.read_bytes())
        except FileNotFoundError:
            return {}
        return found
