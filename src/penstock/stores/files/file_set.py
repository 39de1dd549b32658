"""Which files a relation reads, and how: worked out from its options once, and sent to its readers as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final, Literal

from penstock.frozen import frozen

FileKind = Literal["lines", "parquet"]
_SUFFIXES: Final = {".gz": "gzip", ".gzip": "gzip", ".zst": "zstd", ".zstd": "zstd", ".bz2": "bz2", ".lz4": "lz4"}


@frozen
class FileSet:
    """The files of a relation.

    path: absolute; a file, a directory or a glob.
    pattern: which files of a directory, as a glob over names or paths; regex: as a regular expression.
    tail: what is added later is read too; without it the files of the first look are all.
    compression: how files are compressed, None: as their names tell.
    header: the columns that the first line of each file has to name, None where it has no such line.
    quote, delimiter: what stands around and between values where a quoted value may hold a line break; None: nowhere.
    any_case: columns of Parquet files are found whatever the case of their letters.
    roots: where files may lie, symbolic links followed; None: anywhere.
    """

    relation: str
    path: str
    kind: FileKind = "lines"
    tail: bool = False
    pattern: str | None = None
    regex: str | None = None
    recursive: bool = True
    compression: str | None = None
    header: tuple[str, ...] | None = None
    quote: str | None = None
    delimiter: str = ","
    roots: tuple[str, ...] | None = None
    look_every_ms: int = 1_000
    any_case: bool = True

    def compression_of(self, path: str) -> str | None:
        """How a file is compressed, in Arrow's words; None where it is not."""
        if self.kind == "parquet" or self.compression == "none":
            return None
        if self.compression is not None:
            return self.compression
        return next((codec for suffix, codec in _SUFFIXES.items() if path.lower().endswith(suffix)), None)

    def may_grow(self, path: str) -> bool:
        """Whether records may be appended to a file after it was found: plain text that is tailed."""
        return self.tail and self.kind == "lines" and self.compression_of(path) is None

    def json(self) -> dict[str, Any]:
        """The files in values that JSON can hold."""
        return asdict(self)


def read_file_set(kept: Mapping[str, Any]) -> FileSet:
    """What `FileSet.json` gave, after its way through a text.

    >>> files = FileSet("t", "/data", header=("a", "b"), roots=("/data",))
    >>> read_file_set(files.json()) == files
    True
    """
    values = dict(kept)
    for name in ("header", "roots"):
        if values[name] is not None:
            values[name] = tuple(values[name])
    return FileSet(**values)
