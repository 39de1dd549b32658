"""`penstock explain`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from penstock.errors import PenstockError, bugs_told
from penstock.interfaces.cli.messages import print_error
from penstock.interfaces.cli.options import Command, Invocation, debug_option, json_option, lenient_option
from penstock.interfaces.cli.output import print_json, print_text
from penstock.interfaces.cli.scripts import Script, read_scripts

if TYPE_CHECKING:
    from penstock.plan.script import StatementReport


@click.command(cls=Command, short_help="Show how the queries of a script would run.")
@click.argument("file", metavar="FILE")
@json_option("Print one JSON object a query, one a line.")
@click.option(
    "--rewrite", is_flag=True, help="Show the canonical statement and the Spark SQL instead, as SHOW REWRITE does."
)
@lenient_option
@debug_option
@click.pass_context
def explain(context: click.Context, *, file: str, json: bool, rewrite: bool, lenient: bool) -> None:
    """Show the plan of each query in a script: its schema, event time, keys, windows, change mode and state.

    `-` reads the standard input. Statements that hold no query, such as CREATE STREAM, are read and not shown.
    Errors go to the standard error; the plans of the other statements are shown all the same.

    \b
    Exit codes: 0 every statement is fine, 1 one is not, 2 wrong usage.

    \b
    Examples:
      penstock explain pipeline.sql
      penstock explain --json pipeline.sql | jq '.plans[].mode'
    """
    from penstock.plan.script import analyze_script

    (script,) = read_scripts((file,))
    if script.is_empty:
        raise click.ClickException(script.nothing)
    reports = analyze_script(script.content, lenient=lenient)
    unexplained = _print_plans(reports, script, json=json, rewrite=rewrite)
    debug = context.ensure_object(Invocation).debug
    failed = False
    for place, report in enumerate(reports):
        error = report.error or unexplained.get(place)
        if error is not None:
            failed = True
            print_error(error, report.source, script.name, trace_of=error if debug else None)
    context.exit(1 if failed else 0)


def _print_plans(
    reports: list[StatementReport], script: Script, *, json: bool, rewrite: bool
) -> dict[int, PenstockError]:
    """The plans; the errors of statements that are planned and cannot be explained, by their places in the script."""
    from penstock.interfaces.render import paint, wants_color
    from penstock.plan.answer import plan_answer
    from penstock.plan.explain import explain_json
    from penstock.plan.rewrite import rewrite_text

    color = wants_color(sys.stdout)
    gap = ""
    unexplained: dict[int, PenstockError] = {}
    for place, report in enumerate(reports):
        try:
            with bugs_told():
                realtime = _realtime(report)
                answer = rewrite_text(report) if rewrite and report.error is None else plan_answer(report, (), realtime)
                explained = explain_json(report) if json and answer is not None else {}
        except PenstockError as error:
            error.span = error.span or report.span
            unexplained[place] = error
            continue
        if answer is None:
            continue
        if json:
            at = {"file": script.name, "line": report.span.line, "column": report.span.column}
            print_json({**at, **explained, **({} if realtime is None else {"realtime": realtime})})
            continue
        title = f"{report.kind} (line {report.span.line})"
        click.echo(gap + paint(title, "label", color=color), color=color)
        print_text(answer)
        gap = "\n"
    return unexplained


def _realtime(report: StatementReport) -> str | None:
    """Whether a statement that asks for real-time mode can have it."""
    from penstock.runtime.realtime import explain_realtime
    from penstock.sql.statements import Explain

    asked = report.statement.statement if isinstance(report.statement, Explain) else report.statement
    if report.plan is None or report.session is None:
        return None
    return explain_realtime(asked, report.plan, report.session)
