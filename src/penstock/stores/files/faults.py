"""What can be wrong with files, in words."""

from __future__ import annotations

from penstock.errors import RuntimeFailure
from penstock.stores.files.file_set import FileSet


def not_found(files: FileSet) -> RuntimeFailure:
    """FILE_NOT_FOUND for a path under which there is nothing."""
    return RuntimeFailure(
        "FILE_NOT_FOUND",
        f'there is no file {files.path}, which "{files.relation}" reads',
        hint="a relative path counts from the directory that the program was started in",
    )


def outside(relation: str, path: str) -> RuntimeFailure:
    """PATH_NOT_ALLOWED for a path that is not under one of the directories that may be used."""
    return RuntimeFailure(
        "PATH_NOT_ALLOWED",
        f'"{relation}" may not use {path}: it lies outside the allowed paths',
        hint="use a path below one of those in the setting allowed_paths, symbolic links followed",
    )


def gone(files: FileSet, path: str) -> RuntimeFailure:
    """SOURCE_DATA_LOST for a file that was there."""
    return RuntimeFailure(
        "SOURCE_DATA_LOST",
        f'file {path} of "{files.relation}" is gone before all of it was read',
        hint="put it back as it was, or create the job again to read what is there",
    )


def changed(files: FileSet, path: str) -> RuntimeFailure:
    """SOURCE_DATA_LOST for a file that is not what it was."""
    rule = "a tailed text file may only grow at its end" if files.may_grow(path) else "a file may not change"
    return RuntimeFailure(
        "SOURCE_DATA_LOST",
        f'file {path} of "{files.relation}" has been changed since it was found: {rule}',
        hint="write new files under new names; create the job again to read what is there",
    )


def unreadable(files: FileSet, path: str, reason: str) -> RuntimeFailure:
    """INVALID_ROWS for a file that is not in the format of its relation."""
    return RuntimeFailure(
        "INVALID_ROWS",
        f'file {path} of "{files.relation}" cannot be read: {reason}',
        hint="take it out of the directory, or mend it",
    )
