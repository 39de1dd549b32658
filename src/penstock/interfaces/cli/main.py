"""The command `penstock`: the group, and the exit codes.

0 done, 1 an error of the user's, 2 wrong usage, 130 Ctrl-C.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence

import click

from penstock import __version__
from penstock.errors import InternalError, PenstockError
from penstock.interfaces.cli.check import check
from penstock.interfaces.cli.explain import explain
from penstock.interfaces.cli.fmt import fmt
from penstock.interfaces.cli.messages import complain, print_error
from penstock.interfaces.cli.options import Invocation, debug_option
from penstock.interfaces.cli.version import version

INTERRUPTED = 130


@click.group(
    context_settings={
        "help_option_names": ["-h", "--help"],
        "auto_envvar_prefix": "PENSTOCK",
        "max_content_width": 100,
    },
    epilog="Every option is also an environment variable: PENSTOCK_CHECK_LENIENT=1 means `penstock check --lenient`.",
)
@click.version_option(__version__, prog_name="penstock", message="%(prog)s %(version)s")
@debug_option
def cli() -> None:
    """Streaming SQL for Apache Spark.

    Write the SQL you know from Flink, Arroyo or RisingWave. This version reads, checks, explains and formats it;
    running it on Spark comes next.
    """


for command in (check, explain, fmt, version):
    cli.add_command(command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave the process with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a character gets its number, not an error of ours.
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    invocation = Invocation()
    given = None if arguments is None else list(arguments)
    try:
        code = cli.main(args=given, prog_name="penstock", standalone_mode=False, obj=invocation)
    except click.UsageError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        complain(error.format_message())
        return error.exit_code
    except click.Abort:
        return INTERRUPTED
    except PenstockError as error:
        print_error(error, trace_of=error if invocation.debug else None)
        return 1
    except Exception as error:  # noqa: BLE001 - the outermost boundary: a bug is reported, never a bare traceback
        bug = InternalError(f"an unexpected {type(error).__name__}")
        print_error(bug, trace_of=error if invocation.debug else None)
        return 1
    return code if isinstance(code, int) else 0
