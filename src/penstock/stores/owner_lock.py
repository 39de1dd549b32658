"""One process owns a state directory: an OS lock on the file `lock` in it.

The operating system lets go of the lock when its owner dies, however it dies, so a file that is left behind means
nothing. The file tells who the owner is, for the message that a second one gets.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from pathlib import Path
from typing import Final, Self

from penstock.clock import now_us
from penstock.errors import RuntimeFailure
from penstock.frozen import frozen
from penstock.stores.private_files import PRIVATE_FILE, make_private_directory, shown, unusable

NAME: Final = "lock"
_LONGEST: Final = 4_096


@frozen
class Owner:
    """Who holds a state directory, and since when (microseconds since 1970)."""

    pid: int
    host: str
    since_us: int


class OwnerLock:
    """The lock of a state directory, held from the moment this is made until `close` or the end of the process.

    A second one, in this process or another, is refused with ENGINE_ALREADY_RUNNING and changes nothing on disk.
    """

    def __init__(self, state_path: Path) -> None:
        make_private_directory(state_path)
        self.path = state_path / NAME
        # Python opens every file so that a program started from here (the JVM) does not get it (O_CLOEXEC), and so
        # no such program keeps the lock when we are gone. A forked copy of ourselves does share it: see `_forked`.
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            descriptor = os.open(self.path, flags, PRIVATE_FILE)
        except OSError as error:
            raise unusable(self.path, error) from None
        try:
            self._take(descriptor, state_path)
            self.owner = Owner(os.getpid(), socket.gethostname(), now_us())
            self._write(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor: int | None = descriptor
        _held.add(self)

    def _take(self, descriptor: int, state_path: Path) -> None:
        try:
            # flock belongs to the open file, not to the process: a second open in this process is refused too.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _already_running(state_path, _read(descriptor)) from None
        except OSError as error:
            raise unusable(self.path, error) from None

    def _write(self, descriptor: int) -> None:
        content = {"pid": self.owner.pid, "host": self.owner.host, "since_us": self.owner.since_us}
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps(content).encode() + b"\n", 0)
        except OSError as error:
            raise unusable(self.path, error) from None

    @property
    def held(self) -> bool:
        """Whether the directory is still ours."""
        return self._descriptor is not None

    def close(self) -> None:
        """Let another one have the directory. The file stays: removing it would let two owners hold two files."""
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            self._drop()

    def _drop(self) -> None:
        """Close our view of the file without unlocking it for others that share it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            _held.discard(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _read(descriptor: int) -> Owner | None:
    """What the file tells; None where it is empty, torn or of some other make."""
    try:
        content = json.loads(os.pread(descriptor, _LONGEST, 0))
        return Owner(int(content["pid"]), str(content["host"]), int(content["since_us"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _already_running(state_path: Path, owner: Owner | None) -> RuntimeFailure:
    if owner is None:
        who, hint = "another process", "close it, or use another state_path"
    elif (owner.pid, owner.host) == (os.getpid(), socket.gethostname()):
        who, hint = f"this process (pid {owner.pid} on {owner.host})", "use the database that is open, or close it"
    else:
        who = f"process {owner.pid} on {owner.host}"
        hint = f"stop process {owner.pid} on {owner.host}, or use another state_path"
    return RuntimeFailure("ENGINE_ALREADY_RUNNING", f"{shown(state_path)} is in use by {who}", hint=hint)


_held: set[OwnerLock] = set()


def _forked() -> None:
    # A forked copy shares the open file and would keep the lock alive after our death.
    for lock in tuple(_held):
        lock._drop()  # noqa: SLF001  the same module


os.register_at_fork(after_in_child=_forked)
