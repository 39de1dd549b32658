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

    from penstock import __version__
    from penstock.interfaces.installation import installed_version
    from penstock.spark.java import JavaFound, find_java

    java = find_java()
    versions: dict[str, str | None] = {
        "penstock": __version__,
        "python": platform.python_version(),
        "java": str(java.version) if isinstance(java, JavaFound) else None,
        **{package: installed_version(package) for package in ("pyspark", "duckdb", "pyarrow", "sqlglot")},
    }
    if json:
        print_json(versions)
        return
    for name, number in versions.items():
        click.echo(f"{name:<9} {number or 'not found: penstock doctor says more'}")
