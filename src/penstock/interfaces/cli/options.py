"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class Command(click.Command):
    """A command whose --help is asked for on the command line only, never by an environment variable."""

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        return _without_variable(super().get_help_option(ctx))


class Group(click.Group):
    """A group of commands, with --help as the commands have it."""

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        return _without_variable(super().get_help_option(ctx))


def _without_variable(option: click.Option | None) -> click.Option | None:
    if option is not None:
        option.allow_from_autoenv = False
    return option


@dataclass(slots=True)
class Invocation:
    """What the whole command line says, whichever command it names; click hands it down as the context's object."""

    debug: bool = False


def _remember_debug(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        context.ensure_object(Invocation).debug = True


def debug_option(command: Decorated) -> Decorated:
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


def json_option(help_text: str) -> Callable[[Decorated], Decorated]:
    """Add --json."""
    return click.option("--json", is_flag=True, help=help_text)


def lenient_option(command: Decorated) -> Decorated:
    """Add --lenient."""
    return click.option(
        "--lenient",
        is_flag=True,
        help="Accept queries over relations the script does not define, to look at single pasted statements.",
    )(command)


def files_argument(command: Decorated) -> Decorated:
    """Add FILE…, where `-` is the standard input."""
    return click.argument("files", metavar="FILE...", nargs=-1, required=True)(command)


class _StatePath(click.Path):
    """A directory. An empty text would be the one we are in: most often a variable of a shell that is not set."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the path is empty; name a directory, such as ./penstock", param, ctx)
        if isinstance(value, str) and any(not character.isprintable() for character in value):
            self.fail(f"the path {value!r} has a character in it that cannot be shown", param, ctx)
        return super().convert(value, param, ctx)


def state_option(command: Decorated) -> Decorated:
    """Add --state, the directory that an engine keeps everything in."""
    return click.option(
        "--state",
        type=_StatePath(file_okay=False, path_type=Path),
        default=Path("penstock"),
        show_default=True,
        envvar="PENSTOCK_STATE",
        help="The directory that everything is kept in.",
    )(command)
