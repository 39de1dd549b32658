"""`penstock version`."""

from __future__ import annotations

import click

from penstock.interfaces.cli.options import Command, debug_option, json_option
from penstock.interfaces.cli.output import print_json


@click.command(cls=Command)
@json_option("Print one JSON object.")
@debug_option
def version(*, json: bool) -> None:
    """Print the versions of Penstock and of what it stands on."""
    import platform
    from importlib.metadata import version as installed

    from penstock import __version__

    versions = {"penstock": __version__, "python": platform.python_version(), "sqlglot": installed("sqlglot")}
    if json:
        print_json(versions)
        return
    for name, number in versions.items():
        click.echo(f"{name:<9} {number}")
