"""Printing what holds the user's own text.

A terminal acts on control characters, so it gets them replaced. A file or a pipe gets the text as it is: what is read
back must be what was meant.
"""

from __future__ import annotations

import json
import sys

import click


def print_text(text: str) -> None:
    """A text of several lines for a reader, with a line end after it."""
    if sys.stdout is None:
        return
    # With color=True click strips nothing; what looks like a colour is part of the text.
    click.echo(_shown(text), color=True)


def print_exactly(text: str) -> None:
    """A script: where it does not go to a terminal, its UTF-8 bytes and no other, whatever the stream's encoding."""
    if sys.stdout is None:
        return
    if sys.stdout.isatty():
        click.echo(_shown(text), nl=False, color=True)
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()


def print_json(value: object) -> None:
    r"""A value as JSON on one line, readable, but with every character escaped that a terminal would act on.

    >>> print_json({"name": "caf" + chr(0xE9) + chr(0x9B) + "31m"})
    {"name": "café\u009b31m"}
    """
    from penstock.interfaces.row_text import escape_active

    click.echo(escape_active(json.dumps(value, ensure_ascii=False)), color=True)


def _shown(text: str) -> str:
    from penstock.interfaces.render import plain_lines

    return plain_lines(text) if sys.stdout.isatty() else text


def write_rows(text: str) -> None:
    """Rows of an answer, with their line ends: exact bytes in UTF-8 into a file or a pipe, tame on a terminal."""
    print_exactly(text)
