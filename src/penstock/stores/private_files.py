"""Files that only their owner may read, written so that a crash leaves the old content or the new."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path
from typing import Final

from penstock.errors import CatalogError

PRIVATE_DIRECTORY: Final = 0o700
PRIVATE_FILE: Final = 0o600
RESTORE: Final = "restore a copy of the file, or choose another state_path"

# What SQLite says of the place or of other processes; every other error is about what the file holds.
_SURROUNDINGS: Final = ("BUSY", "LOCKED", "READONLY", "IOERR", "CANTOPEN", "FULL", "PERM", "NOMEM", "AUTH", "PROTOCOL")


def make_private_directory(path: Path) -> tuple[str, ...]:
    """Make the directory, for its owner only; what to warn of where one is there that others can write to.

    A directory that was there keeps its mode: it may be the user's own choice, and is not ours to change.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            path.mkdir(mode=PRIVATE_DIRECTORY)
        except FileExistsError:
            return _concerns(path)
        path.chmod(PRIVATE_DIRECTORY)
        sync_directory(path.parent)
    except (OSError, ValueError) as error:
        # ValueError: a NUL in the path, or a character that the file system cannot write.
        raise unusable(path, error) from None
    return ()


def _concerns(path: Path) -> tuple[str, ...]:
    if not path.is_dir():
        raise CatalogError(
            "STATE_PATH_UNUSABLE",
            f"{path} is not a directory",
            hint="choose another state_path, or move the file away",
        )
    found = path.stat()
    concerns: list[str] = []
    if hasattr(os, "geteuid") and found.st_uid not in (os.geteuid(), 0):
        concerns.append(f"{path} belongs to another user, who can change what is kept there")
    if stat.S_IMODE(found.st_mode) & (stat.S_IWGRP | stat.S_IWOTH):
        concerns.append(f"{path} can be written to by other users; make it private with chmod 700")
    return tuple(concerns)


def unusable(path: Path, error: Exception) -> CatalogError:
    """STATE_PATH_UNUSABLE for what the operating system or SQLite said."""
    if isinstance(error, sqlite3.Error) and not _about_surroundings(error):
        return damaged(path, str(error).lower())
    reason = (error.strerror or type(error).__name__) if isinstance(error, OSError) else str(error)
    return CatalogError(
        "STATE_PATH_UNUSABLE",
        f"{shown(path)} cannot be used: {reason.lower()}",
        hint="choose a state_path on a local disk that you can write to",
    )


def damaged(path: Path, reason: str) -> CatalogError:
    """STATE_PATH_UNUSABLE for a database that does not hold what we wrote."""
    return CatalogError(
        "STATE_PATH_UNUSABLE",
        f"{shown(path)} is damaged or not a Penstock catalog: {reason}",
        hint=RESTORE,
    )


def shown(path: Path) -> str:
    """A path as a message may hold it: what does not print is replaced."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in str(path))


def _about_surroundings(error: sqlite3.Error) -> bool:
    name = str(getattr(error, "sqlite_errorname", "")).removeprefix("SQLITE_")
    # A ProgrammingError is a call on a closed database.
    return isinstance(error, sqlite3.ProgrammingError) or name.startswith(_SURROUNDINGS)


def touch_private(path: Path) -> None:
    """Make an empty file for its owner only, or take others' rights away from the one that is there."""
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), PRIVATE_FILE)
    try:
        os.fchmod(descriptor, PRIVATE_FILE)
    finally:
        os.close(descriptor)


def write_private(path: Path, content: bytes) -> None:
    """Write a file so that it is whole and on disk when this returns, and never half there."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE_FILE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), PRIVATE_FILE)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Bring the entries of a directory to disk, so that a new name survives a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
