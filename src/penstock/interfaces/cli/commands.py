"""The commands in one group, and what becomes of the errors they raise."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Sequence

import click

from penstock import __version__
from penstock.errors import InternalError, PenstockError
from penstock.interfaces.cli.check import check
from penstock.interfaces.cli.connector import connector
from penstock.interfaces.cli.doctor import doctor
from penstock.interfaces.cli.explain import explain
from penstock.interfaces.cli.fmt import fmt
from penstock.interfaces.cli.kafka import kafka
from penstock.interfaces.cli.main import INTERRUPTED
from penstock.interfaces.cli.messages import complain, print_error
from penstock.interfaces.cli.nexmark import nexmark
from penstock.interfaces.cli.options import Group, Invocation, debug_option
from penstock.interfaces.cli.run import run
from penstock.interfaces.cli.sql import sql
from penstock.interfaces.cli.version import version
from penstock.interfaces.installation import missing_package

# What writing to a stream can fail with. Files are read and written where their names are known, so an error that
# comes as far as this group is about the standard output.
_WRITING = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF, errno.ENXIO})


@click.group(
    cls=Group,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "auto_envvar_prefix": "PENSTOCK",
        "max_content_width": 100,
    },
    epilog="Every option is also an environment variable: PENSTOCK_CHECK_LENIENT=1 means `penstock check --lenient`.",
)
# PENSTOCK_VERSION is what a build script may well call the version it wants: it is no option of ours.
@click.version_option(__version__, prog_name="penstock", message="%(prog)s %(version)s", allow_from_autoenv=False)
@debug_option
def cli() -> None:
    """Streaming SQL for Apache Spark.

    Write the SQL you know from Flink, Arroyo or RisingWave, and run it on Structured Streaming: streams in, views that
    are kept up to date out.
    """


for command in (check, connector, doctor, explain, fmt, kafka, nexmark, run, sql, version):
    cli.add_command(command)


def run_commands(arguments: Sequence[str] | None) -> int:
    """Run the command line and return its exit code."""
    from penstock.interfaces.render import plain_lines

    invocation = Invocation()
    given = None if arguments is None else list(arguments)
    try:
        code = cli.main(args=given, prog_name="penstock", standalone_mode=False, obj=invocation)
    except click.UsageError as error:
        said = error.format_message()
        (error if said == plain_lines(said) else click.UsageError(plain_lines(said), error.ctx)).show()
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
        return _unexpected(error, debug=invocation.debug)
    return code if isinstance(code, int) else 0


def _unexpected(error: Exception, *, debug: bool) -> int:
    """An output that cannot be written and a package that is missing are nobody's bug; anything else here is ours."""
    if isinstance(error, OSError) and error.errno in _WRITING:
        # The standard error may be the same full disk: then there is nobody left to tell.
        with contextlib.suppress(OSError):
            complain(f"cannot write the output: {(error.strerror or type(error).__name__).lower()}")
        return 1
    missing = missing_package(error) if isinstance(error, ImportError) else None
    print_error(missing or InternalError(f"an unexpected {type(error).__name__}"), trace_of=error if debug else None)
    return 1
