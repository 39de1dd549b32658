"""`penstock run`."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.interfaces.cli.options import Command, Invocation, debug_option, state_option
from penstock.interfaces.cli.scripts import read_scripts

if TYPE_CHECKING:
    from penstock.interfaces.cli.engine_port import EnginePort
    from penstock.interfaces.cli.progress import Progress
    from penstock.interfaces.table_output import OutputFormat
    from penstock.plan.session import Session


@click.command(cls=Command, short_help="Run a script.")
@click.argument("file", metavar="FILE")
@state_option
@click.option("--once", is_flag=True, help="Read all input there is, close every window, print the answers, end.")
@click.option("--follow", is_flag=True, help="Go on and show results as they come, until Ctrl-C.")
@click.option(
    "--format",
    "output",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    envvar="PENSTOCK_RUN_FORMAT",
    help="How rows are printed: for people, one JSON object a row, or CSV.",
)
@click.option("--full", is_flag=True, help="Print long values whole in tables.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing about statements that went well.")
@debug_option
@click.pass_context
def run(
    context: click.Context,
    *,
    file: str,
    state: Path,
    once: bool,
    follow: bool,
    output: OutputFormat,
    full: bool,
    quiet: bool,
) -> None:
    """Run the statements of a script in order, and print the answers of its queries.

    With --once, the default when every source comes to an end, all input is read, every window is closed and the jobs
    of the script are stopped. A query sees everything that was inserted before it. With --follow, the default
    otherwise, queries show their rows as they come; Ctrl-C stops at the end of a batch.

    Everything is kept under the state path: the same script again goes on where it was. Only one process works with a
    state path at a time. `-` reads the standard input. A statement that fails ends the script.

    \b
    Exit codes: 0 done, 1 a statement or a job failed, 2 wrong usage, 130 Ctrl-C.

    \b
    Examples:
      penstock run pipeline.sql
      penstock run --once --format json pipeline.sql | jq .total
      echo "SELECT * FROM prices" | penstock run --state ./prod -
    """
    if once and follow:
        raise click.UsageError("--once and --follow exclude each other")
    (script,) = read_scripts((file,))
    if script.is_empty:
        raise click.ClickException(script.nothing)

    from penstock.interfaces.cli.answers import Answers
    from penstock.interfaces.cli.progress import Progress
    from penstock.interfaces.cli.script_run import ScriptRun
    from penstock.plan.script import read_script

    statements, source = read_script(script.content)
    if not statements:
        raise click.ClickException(script.nothing)
    progress = Progress(quiet=quiet)
    with opened(state, progress) as engine:
        goes_on = follow or (not once and never_ends(script.content, engine.session))
        script_run = ScriptRun(
            engine,
            script.name,
            Answers(output, full=full),
            progress,
            mode="follow" if goes_on else "once",
            quiet=quiet,
            debug=context.ensure_object(Invocation).debug,
        )
        fine = script_run.run(statements, source)
    context.exit(0 if fine else 1)


@contextmanager
def opened(state: Path, progress: Progress) -> Iterator[EnginePort]:
    """The engine of a state path, closed at the end of a batch whatever happens; SIGTERM ends it as Ctrl-C does."""
    from penstock.interfaces.cli.engine_port import connect

    with _terminated_like_interrupted():
        with progress.during("starting"):
            engine = connect(state)
        try:
            yield engine
        finally:
            with progress.during("stopping at the end of a batch"):
                engine.close()


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def never_ends(text: bytes, session: Session) -> bool:
    """Whether a query or a job of a script reads input that does not come to an end."""
    from penstock.plan.script import read_script, report_statement
    from penstock.plan.shown_changes import unbounded_scans
    from penstock.sql import statements as s

    statements, source = read_script(text)
    for parsed in statements:
        report, session = report_statement(parsed, source, session)
        if isinstance(report.statement, s.Subscribe | s.SubscribeQuery):
            return True
        runs = isinstance(
            report.statement, s.Select | s.CreateMaterializedView | s.CreateSink | s.Insert | s.StatementSet
        )
        plans = report.analysis.plans if runs and report.analysis is not None else ()
        if any(plan.streams() or unbounded_scans(plan) for plan in plans):
            return True
    return False
