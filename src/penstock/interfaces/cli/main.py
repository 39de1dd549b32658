"""Where the command `penstock` begins, and its exit codes.

0 done, 1 an error of the user's, 2 wrong usage, 130 Ctrl-C.

This module imports nothing but the standard library: whatever takes time is imported inside `run`, where Ctrl-C is
already an ordinary way to leave.
"""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Sequence

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave the process with its exit code."""
    # Imports make many objects and no garbage: by default Python would look through them some hundred times.
    gc.set_threshold(100_000)
    try:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                # A terminal that cannot show a character gets its number, not an error of ours.
                stream.reconfigure(errors="backslashreplace")
        code = run(arguments)
        _give_up_what_cannot_be_written()
    except KeyboardInterrupt:
        code = INTERRUPTED
    sys.exit(code)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        from penstock.interfaces.cli.commands import run_commands

        return run_commands(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    except ModuleNotFoundError as error:
        return _missing(error)


def _missing(error: ModuleNotFoundError) -> int:
    """A package without which there is no command line at all, so that it is said in plain text."""
    from penstock.interfaces.installation import missing_package

    found = missing_package(error)
    if found is None:
        raise error
    sys.stderr.write(f"error[{found.condition}]: {found.message}\n  hint: {found.hint}\n")
    return 1


def _give_up_what_cannot_be_written() -> None:
    """Text that a full disk has refused stays in the stream, and Python would try again, loudly, while it ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
