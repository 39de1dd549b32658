"""`penstock sql`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.interfaces.cli.options import Command, Invocation, debug_option, state_option
from penstock.interfaces.cli.run import opened
from penstock.interfaces.cli.scripts import read_scripts

if TYPE_CHECKING:
    from penstock.interfaces.cli.answers import Answers
    from penstock.interfaces.cli.progress import Progress
    from penstock.interfaces.table_output import OutputFormat


@click.command(cls=Command, short_help="Type SQL and see what it does.")
@state_option
@click.option(
    "--format",
    "output",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    envvar="PENSTOCK_SQL_FORMAT",
    help="How rows are printed: for people, one JSON object a row, or CSV.",
)
@click.option("--full", is_flag=True, help="Print long values whole in tables.")
@click.option("--history", type=click.Path(dir_okay=False, path_type=Path), help="The file that keeps what was typed.")
@debug_option
@click.pass_context
def sql(context: click.Context, *, state: Path, output: OutputFormat, full: bool, history: Path | None) -> None:
    """A prompt for statements over several lines, with completion and a history.

    A query over a view is answered at once. A query over a stream shows rows as they come until Ctrl-C, which comes
    back to the prompt. Values that may be secret are never kept in the history.

    Where the standard input is no terminal it is read as a script: answers wait for the input that is there, and jobs
    are left as they are.

    \b
    Exit codes: 0 done, 1 a statement of a script failed, 2 wrong usage, 130 Ctrl-C in a script.

    \b
    Examples:
      penstock sql
      penstock sql --state ./prod
      echo "SHOW JOBS" | penstock sql --format json
    """
    from penstock.interfaces.cli.answers import Answers
    from penstock.interfaces.cli.progress import Progress

    answers, progress = Answers(output, full=full), Progress()
    debug = context.ensure_object(Invocation).debug
    if sys.stdin is not None and sys.stdin.isatty():
        from penstock.interfaces.cli.repl import Repl, history_path

        with opened(state, progress) as engine:
            Repl(engine, answers, progress, history or history_path(), debug=debug).run()
        return
    context.exit(0 if _script(state, answers, progress, debug=debug) else 1)


def _script(state: Path, answers: Answers, progress: Progress, *, debug: bool) -> bool:
    (script,) = read_scripts(("-",))
    if script.is_empty:
        raise click.ClickException(script.nothing)

    from penstock.interfaces.cli.script_run import ScriptRun
    from penstock.plan.script import read_script

    statements, source = read_script(script.content)
    with opened(state, progress) as engine:
        run = ScriptRun(engine, script.name, answers, progress, mode="asked", quiet=True, debug=debug)
        return run.run(statements, source)
