"""Printing what went wrong."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from penstock.errors import PenstockError
    from penstock.interfaces.render import Masked


def print_error(
    error: PenstockError,
    source: Masked | None = None,
    file: str | None = None,
    *,
    to_stderr: bool = True,
    trace_of: BaseException | None = None,
) -> None:
    """An error with its place in the source; with `trace_of`, also where in Penstock that was raised."""
    from penstock.interfaces.render import render_error, render_trace, wants_color

    color = wants_color(sys.stderr if to_stderr else sys.stdout)
    click.echo(render_error(error, source, file, color=color), err=to_stderr, color=color)
    if trace_of is not None:
        click.echo(render_trace(trace_of), err=True)


def remark(text: str) -> None:
    """A line beside the output, about a file."""
    from penstock.interfaces.render import plain

    click.echo(plain(text), err=True)


def complain(text: str) -> None:
    """A plain error that has no condition: about a file or about the command line."""
    from penstock.interfaces.render import paint, plain, wants_color

    color = wants_color(sys.stderr)
    click.echo(paint(f"error: {plain(text)}", "error", color=color), err=True, color=color)
