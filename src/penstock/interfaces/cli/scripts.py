"""Reading the scripts that a command line names."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from penstock.frozen import frozen


class UnreadableFile(click.ClickException):
    """A file of the command line cannot be read: wrong usage, though no help page would help."""

    exit_code = 2


@frozen
class Script:
    """A script as it was read: bytes, because what is no valid text is for the front end to say."""

    name: str
    content: bytes
    path: Path | None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in it but blanks: refused by every command, lest a slip look like success."""
        return not self.content.strip()

    @property
    def nothing(self) -> str:
        """What to say of an empty script."""
        return f"{self.name} is empty: there is no statement in it"


def read_scripts(names: tuple[str, ...]) -> list[Script]:
    """All scripts, before anything is done with the first."""
    if names.count("-") > 1:
        raise click.UsageError("the standard input ('-') can be read only once")
    return [_read(name) for name in names]


def _read(name: str) -> Script:
    if name == "-":
        return _read_standard_input()
    path = Path(name)
    try:
        if path.is_dir():
            raise UnreadableFile(f"{name!r} is a directory; name the files in it, such as {name.rstrip('/')}/*.sql")
        return Script(name, path.read_bytes(), path)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise UnreadableFile(f"cannot read {name!r}: {reason}") from error
    except ValueError as error:
        raise UnreadableFile(f"cannot read {name!r}: not a file name") from error


def _read_standard_input() -> Script:
    if sys.stdin is None:
        raise UnreadableFile("cannot read the standard input: it is closed")
    try:
        return Script("<stdin>", sys.stdin.buffer.read(), None)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise UnreadableFile(f"cannot read the standard input: {reason}") from error
