"""Dimension tables on disk: every version an Arrow file that is never changed.

    dimensions/<name>/v1.arrow, v2.arrow, …   the rows of a version
    dimensions/<name>/versions.json           the versions there are, the newest last

A version counts when it is in the list, which is written after its file. What a job has read stays readable until no
batch that could run again needs it.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from penstock.errors import RuntimeFailure
from penstock.frozen import frozen
from penstock.stores.key_index import sorted_by
from penstock.stores.private_files import sync_directory, write_private

if TYPE_CHECKING:
    from collections.abc import Collection

    import pyarrow as pa

# Rows of one record batch of a file: small enough to be shared out among readers, large enough to be read quickly.
BATCH_ROWS: Final = 65_536
_LIST: Final = "versions.json"


@frozen
class DimensionVersion:
    """One version of a dimension.

    bytes: the size of its columns in memory, texts included.
    text: the definition that the version was written under.
    given: the schema of the data as it was handed over, where it differs from ours; see `as_given`.
    """

    number: int
    rows: int
    bytes: int
    created_at_us: int
    text: str = ""
    given: str | None = None


class DimensionStore:
    """The versions of all dimensions of a state directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = RLock()
        self._known: dict[str, tuple[DimensionVersion, ...]] = {}

    def directory(self, name: str) -> Path:
        return self.root / quote(name, safe="")

    def versions(self, name: str) -> tuple[DimensionVersion, ...]:
        """The versions that are kept, the newest last; none where there is no such dimension."""
        with self._lock:
            if name not in self._known:
                self._known[name] = read_versions(self.directory(name))
            return self._known[name]

    def latest(self, name: str) -> DimensionVersion:
        """The newest version; DIMENSION_MISSING where nothing was ever written, or it is gone."""
        found = self.versions(name)
        if not found:
            raise missing(name)
        return found[-1]

    def add(
        self, name: str, table: pa.Table, created_at_us: int, *, text: str = "", given: pa.Schema | None = None
    ) -> DimensionVersion:
        """Write a new version; it is on disk and counts when this returns."""
        with self._lock:
            before = self.versions(name)
            directory = self.directory(name)
            directory.mkdir(parents=True, exist_ok=True)
            version = DimensionVersion(
                number=before[-1].number + 1 if before else 1,
                rows=table.num_rows,
                bytes=table.nbytes,
                created_at_us=created_at_us,
                text=text,
                given=None if given is None or given.equals(table.schema) else _schema_text(given),
            )
            _write_table(version_file(directory, version.number), table)
            self._list(name, (*before, version))
            return version

    def read(self, name: str, number: int | None = None) -> pa.Table:
        """The rows of a version, of the newest where none is named. They are mapped, not copied into memory."""
        return read_version(name, self.directory(name), self.latest(name).number if number is None else number)

    def index(self, name: str, number: int, key: str) -> None:
        """Write a copy of a version in the order of a key, for `KeyIndex`; done again, it changes nothing."""
        path = index_file(self.directory(name), number, key)
        if not path.exists():
            _write_table(path, sorted_by(self.read(name, number), key), whole=True)

    def keep_only(self, name: str, numbers: Collection[int]) -> None:
        """Remove the versions that are neither among `numbers` nor the newest."""
        with self._lock:
            before = self.versions(name)
            kept = tuple(version for version in before if version.number in numbers or version is before[-1])
            if len(kept) == len(before):
                return
            self._list(name, kept)
            for version in before:
                if version not in kept:
                    for path in self.directory(name).glob(f"v{version.number}.*"):
                        path.unlink(missing_ok=True)

    def names(self) -> tuple[str, ...]:
        """The directories there are, by the names of their dimensions."""
        from urllib.parse import unquote

        if not self.root.is_dir():
            return ()
        return tuple(sorted(unquote(entry.name) for entry in self.root.iterdir() if entry.is_dir()))

    def forget(self, name: str) -> None:
        """Remove a dimension with all its versions."""
        with self._lock:
            self._known.pop(name, None)
            shutil.rmtree(self.directory(name), ignore_errors=True)

    def _list(self, name: str, versions: tuple[DimensionVersion, ...]) -> None:
        text = json.dumps([asdict(version) for version in versions], ensure_ascii=False)
        write_private(self.directory(name) / _LIST, text.encode())
        self._known[name] = versions


def read_versions(directory: Path) -> tuple[DimensionVersion, ...]:
    """The versions that a directory lists."""
    try:
        listed = json.loads((directory / _LIST).read_text("utf-8"))
        return tuple(DimensionVersion(**entry) for entry in listed)
    except FileNotFoundError:
        return ()
    except (ValueError, TypeError):
        raise RuntimeFailure(
            "DIMENSION_MISSING",
            f"the versions of the dimension in {directory} cannot be read",
            hint="restore the file versions.json, or register the dimension again",
        ) from None


def read_version(name: str, directory: Path, number: int) -> pa.Table:
    """The rows of a version, mapped. DIMENSION_MISSING where it is not there."""
    import pyarrow as pa

    try:
        with pa.memory_map(str(version_file(directory, number))) as source:
            return pa.ipc.open_file(source).read_all()
    except (FileNotFoundError, pa.ArrowInvalid):
        raise missing(name, number) from None


def version_file(directory: Path, number: int) -> Path:
    """The file of a version."""
    return directory / f"v{number}.arrow"


def index_file(directory: Path, number: int, key: str) -> Path:
    """The file of a version in the order of a key."""
    return directory / f"v{number}.by.{quote(key, safe='')}.arrow"


def as_given(table: pa.Table, version: DimensionVersion) -> pa.Table:
    """The rows of a version in the types in which they were handed over."""
    import pyarrow as pa

    if version.given is None:
        return table
    return table.cast(pa.ipc.read_schema(pa.py_buffer(base64.b64decode(version.given))))


def missing(name: str, number: int | None = None) -> RuntimeFailure:
    """DIMENSION_MISSING for a dimension whose rows are not there."""
    what = f"version {number} of dimension {name}" if number is not None else f"the rows of dimension {name}"
    return RuntimeFailure(
        "DIMENSION_MISSING", f"{what} cannot be found", hint=f'register it again: db.register_dimension("{name}", …)'
    )


def _schema_text(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def _write_table(path: Path, table: pa.Table, *, whole: bool = False) -> None:
    """`whole`: in one record batch, so that a column is one array when it is mapped."""
    import pyarrow as pa

    partial = path.with_name(f"{path.name}.partial")
    with pa.OSFile(str(partial), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks(), max_chunksize=max(table.num_rows, 1) if whole else BATCH_ROWS)
    with partial.open("rb+") as file:
        os.fsync(file.fileno())
    partial.replace(path)
    sync_directory(path.parent)
