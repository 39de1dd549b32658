"""Looking for files. Names that begin with `.` or `_` are not there yet: writers use them for what is unfinished."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from penstock.frozen import frozen
from penstock.stores.files.faults import not_found, outside
from penstock.stores.files.file_set import FileSet


@frozen
class Found:
    """A file as it was when it was found."""

    path: str
    size: int
    modified_ns: int


def look(files: FileSet) -> list[Found]:
    """The files there are now, the oldest first, those of one moment by their paths.

    FILE_NOT_FOUND where there is nothing under the path; an empty directory is something.
    """
    found = [one for one in map(_stat, _paths(files)) if one is not None]
    check_roots(files, [one.path for one in found])
    return sorted(found, key=lambda one: (one.modified_ns, one.path))


def check_roots(files: FileSet, paths: list[str]) -> None:
    """PATH_NOT_ALLOWED where a file lies outside the roots."""
    if files.roots is None:
        return
    for path in paths:
        if not within(path, files.roots):
            raise outside(files.relation, path)


def within(path: str, roots: tuple[str, ...]) -> bool:
    """Whether a path lies in or below one of the roots, symbolic links followed.

    >>> [within(path, ("/data/in",)) for path in ("/data/in/x.json", "/data/in/../out", "/data/inner")]
    [True, False, False]
    """
    real = Path(os.path.realpath(path))
    return any(real == root or root in real.parents for root in (Path(os.path.realpath(root)) for root in roots))


def is_glob(path: str) -> bool:
    """Whether a path is a pattern; one that is there as it is written is none."""
    return glob.has_magic(path) and not os.path.lexists(path)


def fixed_part(path: str) -> str:
    """The path itself, or of a pattern the directory before its first wildcard.

    >>> fixed_part("/data/2026-*/x.json"), fixed_part("/data/x.json")
    ('/data', '/data/x.json')
    """
    if not is_glob(path):
        return path
    parts = Path(path).parts
    first = next(place for place, part in enumerate(parts) if glob.has_magic(part))
    return str(Path(*parts[:first]))


def _paths(files: FileSet) -> Iterator[str]:
    if files.roots is not None and not within(fixed_part(files.path), files.roots):
        raise outside(files.relation, files.path)
    if is_glob(files.path):
        matches = glob.glob(files.path, recursive=True)  # noqa: PTH207  a path of any kind, absolute
        if not matches and not files.tail:
            raise not_found(files)
        for match in matches:
            yield from _below(match, files) if Path(match).is_dir() else _if_shown(match)
    elif Path(files.path).is_dir():
        yield from _below(files.path, files)
    elif Path(files.path).exists():
        yield files.path
    else:
        raise not_found(files)


def _below(directory: str, files: FileSet) -> Iterator[str]:
    for place, directories, names in os.walk(directory, followlinks=True):
        directories[:] = sorted(name for name in directories if _shown(name)) if files.recursive else []
        for name in names:
            path = os.path.join(place, name)  # noqa: PTH118  thousands of them, each look
            if _shown(name) and _wanted(path, name, directory, files):
                yield path


def _wanted(path: str, name: str, directory: str, files: FileSet) -> bool:
    """Whether a file fits by its name, by its path below the directory or, where a regex asks so, by its whole path."""
    if files.pattern is None and files.regex is None:
        return True
    below = os.path.relpath(path, directory)
    if files.pattern is not None and not any(fnmatch.fnmatch(each, files.pattern) for each in (name, below)):
        return False
    return files.regex is None or any(re.fullmatch(files.regex, each) for each in (name, below, path))


def _if_shown(path: str) -> Iterator[str]:
    if _shown(Path(path).name):
        yield path


def _shown(name: str) -> bool:
    return not name.startswith((".", "_"))


def _stat(path: str) -> Found | None:
    try:
        found = os.stat(path)  # noqa: PTH116
    except FileNotFoundError:  # taken away while we looked
        return None
    return Found(path, found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None
