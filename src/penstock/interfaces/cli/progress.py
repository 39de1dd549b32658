"""One line on a terminal's standard error that says what is going on, once it has taken a second.

Nothing is written where the standard error is no terminal: a log needs no animation.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Final

_PATIENCE: Final = 1.0
_FRAME: Final = 0.1
_FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PLAIN_FRAMES: Final = "|/-\\"
_CLEAR: Final = "\r\x1b[2K"

Label = str | Callable[[], str]


class Progress:
    """The line. `during` draws it from a thread of its own while something blocks; `status` draws it once."""

    def __init__(self, stream: IO[str] | None = None, *, quiet: bool = False) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._shows = not quiet and _is_terminal(self._stream)
        self._frames = _FRAMES if _can_write(self._stream, _FRAMES) else _PLAIN_FRAMES
        self._drawn = False
        self._lock = threading.Lock()

    @contextmanager
    def during(self, label: Label) -> Iterator[None]:
        """Show a label, with the seconds it has taken, from the first second until the block ends."""
        if not self._shows:
            yield
            return
        done = threading.Event()
        drawing = threading.Thread(target=self._draw, args=(label, done), name="progress", daemon=True)
        drawing.start()
        try:
            yield
        finally:
            done.set()
            drawing.join()
            self.clear()

    def status(self, text: str) -> None:
        """Show a text until the next one or `clear`."""
        if self._shows:
            self._put(text)

    def clear(self) -> None:
        """Take the line away, before anything else is printed."""
        with self._lock:
            if self._drawn and self._stream is not None:
                self._stream.write(_CLEAR)
                self._stream.flush()
                self._drawn = False

    def _draw(self, label: Label, done: threading.Event) -> None:
        began = time.monotonic()
        frame = 0
        wait = _PATIENCE
        while not done.wait(wait):
            wait = _FRAME
            text = label if isinstance(label, str) else label()
            seconds = int(time.monotonic() - began)
            self._put(f"{self._frames[frame % len(self._frames)]} {text} … {seconds} s")
            frame += 1

    def _put(self, text: str) -> None:
        from penstock.interfaces.render import plain

        with self._lock:
            if self._stream is not None:
                # A line that wraps cannot be taken away again.
                self._stream.write(_CLEAR + plain(text)[: _width(self._stream) - 1])
                self._stream.flush()
                self._drawn = True


def _is_terminal(stream: IO[str] | None) -> bool:
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


def _can_write(stream: IO[str] | None, text: str) -> bool:
    try:
        text.encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeError, LookupError):
        return False
    return True


def _width(stream: IO[str]) -> int:
    try:
        return max(os.get_terminal_size(stream.fileno()).columns, 20)
    except (OSError, ValueError):
        return 80
