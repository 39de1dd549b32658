"""The list of what was found in files: append-only, on disk, with a number for every record.

A job keeps one for each of its scans. Files stand in it in the order they were found, in pieces; the records of all
pieces are numbered from 0 on, and these numbers are the offsets of the source. What stands there is never changed, so a
batch that runs again reads the same records of the same files, or fails. Both the engine and Spark's process for the
source look for files; they take turns by a lock on the list.

Each line is a JSON array: `["f", path, size, modified_ns]` a file, `["p", file, start, end, rows, check]` a piece of
it, `["b", line, …]` lines that are true together, `["l"]` all files of a source that ends are listed, `["e"]` all their
records are counted. A last line that is not whole was never written.
"""

from __future__ import annotations

import fcntl
import json
import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from threading import RLock
from typing import Any, Final

from penstock.frozen import frozen
from penstock.stores.files.faults import changed, unreadable
from penstock.stores.files.file_set import FileSet
from penstock.stores.files.listing import Found, look
from penstock.stores.files.pieces import NotReady, Piece, pieces_of, read_pieces

_NAME: Final = "found"
_AT_ONCE: Final = 64  # pieces that are looked for before they are written down


@frozen
class Numbered:
    """A piece with its file, and the number of its first record."""

    found: Found
    piece: Piece
    first: int

    @property
    def end(self) -> int:
        return self.first + self.piece.rows


def piece_values(one: Numbered) -> list[Any]:
    """A piece in values that JSON can hold."""
    found, piece = one.found, one.piece
    return [found.path, found.size, found.modified_ns, piece.start, piece.end, piece.rows, piece.check, one.first]


def read_piece(values: Sequence[Any]) -> Numbered:
    """What `piece_values` gave."""
    return Numbered(Found(*values[:3]), Piece(*values[3:7]), values[7])


class FileIndex:
    """The list of one scan; without a directory it is kept in memory only. Any thread may use it."""

    def __init__(self, files: FileSet, directory: Path | None) -> None:
        self._files = files
        self._path = None if directory is None else directory / _NAME
        self._turn = RLock()
        self._forget()

    def _forget(self) -> None:
        self._read_to = 0
        self._inode: int | None = None
        self._found: list[Found] = []
        self._places: dict[str, int] = {}
        self._reached: list[int] = []  # by file, behind its last piece
        self._last: list[Piece | None] = []  # by file
        self._pieces: list[tuple[int, Piece]] = []
        self._ends: list[int] = []  # by piece, the number behind its last record
        self._sizes: dict[int, int] = {}  # files that have more than was looked at, with their size
        self._broken: dict[str, Found] = {}  # files that make no sense yet, as they were when we tried
        self._next = 0  # the first file of a source that ends that is not counted yet
        self._listed = False
        self.complete = False

    @property
    def rows(self) -> int:
        """How many records are known."""
        with self._turn:
            return self._ends[-1] if self._ends else 0

    def refresh(self) -> None:
        """Take in what others have added to the list."""
        with self._turn:
            self._take_in()

    def update(self, rows: int | None = None, *, look_again: bool = True) -> None:
        """Look for files, and at what is in them, until more than so many records are known; None: all there are.

        So a source that ends is known to be complete before the batch that reads its last record begins.
        """
        with self._turn:
            if self.complete and not self._path:
                return
            self._take_in()
            if self.complete:
                return
        with self._turn, self._writing():
            if self._files.tail:
                if look_again:
                    self._look_tailed()
                self._count_growth(rows)
            else:
                self._list_once()
                self._count(rows)

    def between(self, first: int, end: int) -> list[Numbered]:
        """The pieces that hold the records from one number up to another."""
        with self._turn:
            place = bisect_right(self._ends, first)
            wanted: list[Numbered] = []
            while place < len(self._pieces) and (begin := self._ends[place] - self._pieces[place][1].rows) < end:
                file, piece = self._pieces[place]
                wanted.append(Numbered(self._found[file], piece, begin))
                place += 1
            return wanted

    # a source that ends

    def _list_once(self) -> None:
        if self._listed:
            return
        known = set(self._places)
        lines = [_file_line(one) for one in look(self._files) if one.path not in known]
        self._write([*lines, ["l"]])

    def _count(self, rows: int | None) -> None:
        while not self.complete and (rows is None or self.rows <= rows):
            if self._next >= len(self._found):
                self._write([["e"]])
                return
            place = self._next
            if self._count_file(place, self._found[place].size, rows, final=True):
                self._next += 1

    # a source that goes on

    def _look_tailed(self) -> None:
        self._sizes = {}
        for one in look(self._files):
            place = self._places.get(one.path)
            if place is None:
                self._take_new(one)
            elif self._files.may_grow(one.path):
                if one.size < self._reached[place]:
                    raise changed(self._files, one.path)
                if one.size > self._reached[place]:
                    self._sizes[place] = one.size
            elif one != self._found[place]:
                raise changed(self._files, one.path)

    def _take_new(self, one: Found) -> None:
        if self._files.may_grow(one.path):
            self._sizes[len(self._found)] = one.size
            self._write([_file_line(one)])
            return
        if self._broken.get(one.path) == one:
            return
        try:
            pieces = list(pieces_of(self._files, one, 0, size=one.size, final=True))
        except NotReady:
            self._broken[one.path] = one  # somebody writes it; it is tried again when it is another
            return
        place = len(self._found)
        self._write([["b", _file_line(one), *(_piece_line(place, piece) for piece in pieces)]])

    def _count_growth(self, rows: int | None) -> None:
        for place in sorted(self._sizes):
            if rows is not None and self.rows > rows:
                return
            self._check_last(place)
            if self._count_file(place, self._sizes[place], rows, final=False):
                del self._sizes[place]

    def _check_last(self, place: int) -> None:
        """What was read last has to be there still, before what stands behind it is taken for its continuation."""
        last = self._last[place]
        if last is not None:
            for _ in read_pieces(self._files, [(self._found[place], last)]):
                pass

    # both

    def _count_file(self, place: int, size: int, rows: int | None, *, final: bool) -> bool:
        """Look at what a file holds behind its last piece; whether all of it is known now."""
        one = self._found[place]
        pieces = pieces_of(self._files, one, self._reached[place], size=size, final=final)
        try:
            while some := list(islice(pieces, _AT_ONCE)):
                self._write([_piece_line(place, piece) for piece in some])
                if rows is not None and self.rows > rows and len(some) == _AT_ONCE:
                    return False
        except NotReady as error:
            raise unreadable(self._files, one.path, str(error)) from error
        return True

    # the list on disk

    @contextmanager
    def _writing(self) -> Iterator[None]:
        if self._path is None:
            yield
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self._take_in()
            if os.fstat(file.fileno()).st_size > self._read_to:
                file.truncate(self._read_to)
            yield

    def _write(self, lines: list[list[Any]]) -> None:
        if self._path is not None:
            data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
            with self._path.open("ab", buffering=0) as file:
                file.write(data)
                os.fsync(file.fileno())
            self._read_to += len(data)
        for line in lines:
            self._apply(line)

    def _take_in(self) -> None:
        if self._path is None:
            return
        try:
            with self._path.open("rb") as file:
                found = os.fstat(file.fileno())
                if found.st_ino != self._inode or found.st_size < self._read_to:
                    self._forget()  # another list of this name: the job was dropped and created again
                    self._inode = found.st_ino
                file.seek(self._read_to)
                data = file.read()
        except FileNotFoundError:
            self._forget()
            return
        whole = data[: data.rfind(b"\n") + 1]
        for line in whole.splitlines():
            self._apply(json.loads(line))
        self._read_to += len(whole)

    def _apply(self, line: list[Any]) -> None:
        kind, *values = line
        if kind == "f":
            one = Found(*values)
            self._places[one.path] = len(self._found)
            self._found.append(one)
            self._reached.append(0)
            self._last.append(None)
        elif kind == "p":
            file, piece = values[0], Piece(*values[1:])
            self._reached[file] = piece.end
            self._last[file] = piece
            self._pieces.append((file, piece))
            self._ends.append((self._ends[-1] if self._ends else 0) + piece.rows)
            self._next = file
        elif kind == "b":
            for inner in values:
                self._apply(inner)
        elif kind == "l":
            self._listed = True
        else:
            self.complete = True


def _file_line(one: Found) -> list[Any]:
    return ["f", one.path, one.size, one.modified_ns]


def _piece_line(file: int, piece: Piece) -> list[Any]:
    return ["p", file, piece.start, piece.end, piece.rows, piece.check]
