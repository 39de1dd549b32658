"""`penstock connector`."""

from __future__ import annotations

import click

from penstock.interfaces.cli.messages import remark
from penstock.interfaces.cli.options import Command, Group, debug_option, json_option
from penstock.interfaces.cli.output import print_json


@click.group(cls=Group, short_help="The jars that connectors need beside Spark's own.")
def connector() -> None:
    """The jars that connectors need beside Spark's own: exact versions, checked by their SHA-256.

    They are kept for every project of the user, in $XDG_CACHE_HOME/penstock/jars (~/.cache without the variable), or
    where PENSTOCK_CONNECTOR_CACHE says.
    """


@click.command(cls=Command, short_help="Fetch and check the jars of connectors.")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@debug_option
def install(*, names: tuple[str, ...]) -> None:
    """Fetch the jars of connectors from the Maven repository that this machine asks, and check them.

    What is there already and whole is left alone, and then no network is needed. A file that is not the one that was
    tested is refused. `penstock connector list` shows the names.

    \b
    Example:
      penstock connector install kafka
    """
    from penstock.spark.jar_cache import JarCache

    cache = JarCache()
    fetched = cache.install(names, remark)
    for name in dict.fromkeys(names):
        files = len(cache.paths(name))
        state = "installed" if name in fetched else "is there already"
        click.echo(f"{name} {state}: {files} files, checked")


@click.command("list", cls=Command, short_help="Show the connectors and whether their jars are there.")
@json_option("Print one JSON object a connector.")
@debug_option
def list_(*, json: bool) -> None:
    """Show the connectors whose jars can be installed, and whether they are."""
    from penstock.spark.jar_cache import JarCache
    from penstock.spark.jar_pins import JAR_SETS

    cache = JarCache()
    for one in JAR_SETS:
        there = cache.installed(one.name)
        if json:
            jars = [f"{jar.organisation}:{jar.module}:{jar.version}" for jar in one.jars]
            print_json({"name": one.name, "installed": there, "summary": one.summary, "jars": jars})
        else:
            click.echo(f"{one.name:<13} {'installed' if there else 'not installed':<14} {one.summary}")


for _command in (install, list_):
    connector.add_command(_command)
