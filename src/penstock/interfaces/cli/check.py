"""`penstock check`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from penstock.interfaces.cli.messages import complain, print_error
from penstock.interfaces.cli.options import (
    Command,
    Invocation,
    debug_option,
    files_argument,
    json_option,
    lenient_option,
)
from penstock.interfaces.cli.output import print_json
from penstock.interfaces.cli.scripts import Script, read_scripts

if TYPE_CHECKING:
    from penstock.plan.script import StatementReport


@click.command(cls=Command, short_help="Say what is wrong with a script, without running it.")
@files_argument
@json_option("Print one JSON object a statement, one a line.")
@lenient_option
@click.option("-q", "--quiet", is_flag=True, help="Leave out the notices about statements that are accepted.")
@debug_option
@click.pass_context
def check(context: click.Context, *, files: tuple[str, ...], json: bool, lenient: bool, quiet: bool) -> None:
    """Parse, resolve and plan scripts against an empty catalog, and say what is wrong.

    Each FILE is a script of its own: what it creates can be used in its later statements. After an error the check
    goes on with the next statement. An empty file is an error, and the check goes on with the next file. `-` reads the
    standard input. Nothing is run and nothing is written.

    \b
    Exit codes: 0 nothing is wrong, 1 something is, 2 wrong usage.

    \b
    Examples:
      penstock check pipeline.sql
      penstock check --json pipeline.sql | jq 'select(.ok | not)'
      echo "SELECT count(*) FROM clicks" | penstock check --lenient -
    """
    from penstock.plan.script import analyze_script

    scripts = read_scripts(files)
    statements = errors = 0
    for script in scripts:
        if script.is_empty:
            complain(script.nothing)
            errors += 1
            continue
        reports = analyze_script(script.content, lenient=lenient, with_jobs=True)
        statements += len(reports)
        errors += sum(report.error is not None for report in reports)
        if json:
            _print_json(reports, script)
        else:
            _print_reports(reports, script, notices=not quiet, debug=context.ensure_object(Invocation).debug)
    if not json:
        from penstock.interfaces.render import render_summary, wants_color

        color = wants_color(sys.stdout)
        click.echo(render_summary(statements, errors, color=color), color=color)
    context.exit(1 if errors else 0)


def _print_json(reports: list[StatementReport], script: Script) -> None:
    from penstock.interfaces.render import report_json

    for report in reports:
        print_json(report_json(report, script.name))


def _print_reports(reports: list[StatementReport], script: Script, *, notices: bool, debug: bool) -> None:
    from penstock.interfaces.render import render_notice, wants_color

    color = wants_color(sys.stdout)
    for report in reports:
        for notice in report.notices if notices else ():
            click.echo(render_notice(notice, script.name, report.span, color=color), color=color)
        if report.error is not None:
            trace_of = report.error if debug else None
            print_error(report.error, report.source, script.name, to_stderr=False, trace_of=trace_of)
            click.echo()
