"""`penstock version`."""

from __future__ import annotations

from json import dumps

import click

from penstock.interfaces.cli.options import debug_option, json_option


@click.command()
@json_option("Print one JSON object.")
@debug_option
def version(*, json: bool) -> None:
    """Print the versions of Penstock and of what it stands on."""
    import platform
    from importlib.metadata import version as installed

    from penstock import __version__

    versions = {"penstock": __version__, "python": platform.python_version(), "sqlglot": installed("sqlglot")}
    if json:
        click.echo(dumps(versions))
        return
    for name, number in versions.items():
        click.echo(f"{name:<9} {number}")
