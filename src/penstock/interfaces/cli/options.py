"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(slots=True)
class Invocation:
    """What the whole command line says, whichever command it names; click hands it down as the context's object."""

    debug: bool = False


def _remember_debug(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        context.ensure_object(Invocation).debug = True


def debug_option(command: Command) -> Command:
    """Add --debug, which may stand before or after the command's name."""
    return click.option(
        "--debug",
        is_flag=True,
        envvar="PENSTOCK_DEBUG",
        expose_value=False,
        is_eager=True,
        callback=_remember_debug,
        help="Show where in Penstock an error was raised.",
    )(command)


def json_option(help_text: str) -> Callable[[Command], Command]:
    """Add --json."""
    return click.option("--json", is_flag=True, help=help_text)


def lenient_option(command: Command) -> Command:
    """Add --lenient."""
    return click.option(
        "--lenient",
        is_flag=True,
        help="Accept queries over relations the script does not define, to look at single pasted statements.",
    )(command)


def files_argument(command: Command) -> Command:
    """Add FILE…, where `-` is the standard input."""
    return click.argument("files", metavar="FILE...", nargs=-1, required=True)(command)
