"""`penstock kafka`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from penstock.interfaces.cli.messages import remark
from penstock.interfaces.cli.options import Command, Group, debug_option, json_option
from penstock.interfaces.cli.output import print_json

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
_PORT: Final = 9092


def _directory_option(command: Decorated) -> Decorated:
    return click.option(
        "--dir",
        "directory",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path("penstock-kafka"),
        show_default=True,
        envvar="PENSTOCK_KAFKA_DIR",
        help="The directory that the broker keeps everything in; for all of these commands also PENSTOCK_KAFKA_DIR.",
    )(command)


@click.group(cls=Group, short_help="A real Kafka broker on this machine, for development.")
def kafka() -> None:
    """A real Kafka broker of one node, on the loopback interface only, for development and tests.

    Nothing has to be installed: its jars are fetched once, and checked. It goes on after the command has ended, until
    `penstock kafka down`.
    """


@click.command(cls=Command, short_help="Start the broker.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=_PORT,
    show_default=True,
    help="The port to listen on; 0: any that is free.",
)
@_directory_option
@json_option("Print one JSON object.")
@debug_option
def up(*, port: int, directory: Path, json: bool) -> None:
    """Start the broker and wait until it answers. One that runs already stays as it is."""
    from penstock.runtime.kafka_broker import KafkaBroker

    _print(KafkaBroker(directory).start(port, remark), as_json=json)


@click.command(cls=Command, short_help="Stop the broker.")
@_directory_option
@click.option("--delete", is_flag=True, help="Throw its data away, too.")
@debug_option
def down(*, directory: Path, delete: bool) -> None:
    """Stop the broker and wait until it has ended. Its data is kept, unless --delete is given."""
    from penstock.runtime.kafka_broker import KafkaBroker

    broker = KafkaBroker(directory)
    if not broker.is_there:
        click.echo(f"it does not run; there is no broker in {directory}")
        return
    ran = broker.stop(delete=delete)
    kept = "its data is gone" if delete else f"its data is kept in {directory}"
    click.echo(f"stopped; {kept}" if ran else f"it does not run; {kept}")


@click.command(cls=Command, short_help="Tell whether the broker runs.")
@_directory_option
@json_option("Print one JSON object.")
@debug_option
@click.pass_context
def status(context: click.Context, *, directory: Path, json: bool) -> None:
    """Tell whether the broker runs, and where.

    \b
    Exit codes: 0 it runs, 1 it does not, 2 wrong usage.
    """
    from penstock.runtime.kafka_broker import KafkaBroker

    found = KafkaBroker(directory).state()
    _print(found, as_json=json)
    context.exit(0 if found.pid is not None else 1)


def _print(state: Any, *, as_json: bool) -> None:
    if as_json:
        print_json({"running": state.pid is not None, "address": state.address, "pid": state.pid})
    elif state.pid is None:
        click.echo("the broker does not run")
    else:
        click.echo(f"the broker runs at {state.address} (process {state.pid})")


for _command in (up, down, status):
    kafka.add_command(_command)
