"""`penstock doctor`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.interfaces.cli.options import Command, debug_option, json_option, state_option
from penstock.interfaces.cli.output import print_json

if TYPE_CHECKING:
    from penstock.interfaces.cli.checkup import Finding
    from penstock.interfaces.render import Paint


@click.command(cls=Command, short_help="Say what is missing on this machine, and the command that mends it.")
@state_option
@json_option("Print one JSON object a line of the report.")
@debug_option
@click.pass_context
def doctor(context: click.Context, *, state: Path, json: bool) -> None:
    """Look at Python, Java, Spark, the packages, the disk, the state path and the loopback interface.

    Nothing is started and nothing is left behind. Below each line that is not ok stands the command that mends it.

    \b
    Exit codes: 0 everything needed is there, 1 something is missing, 2 wrong usage.
    """
    from penstock.interfaces.cli.checkup import check_up

    findings = check_up(state)
    if json:
        for finding in findings:
            print_json(
                {
                    "name": finding.name,
                    "verdict": finding.verdict,
                    "message": finding.message,
                    "remedy": finding.remedy,
                }
            )
    else:
        _print(findings)
    context.exit(1 if any(finding.verdict == "fail" for finding in findings) else 0)


def _print(findings: list[Finding]) -> None:
    from penstock.interfaces.render import paint, plain, wants_color

    color = wants_color(sys.stdout)
    paints: dict[str, Paint] = {"ok": "good", "warn": "notice", "fail": "error"}
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        verdict = paint(f"{finding.verdict:<4}", paints[finding.verdict], color=color)
        click.echo(f"{verdict}  {finding.name:<{width}}  {plain(finding.message)}", color=color)
        if finding.remedy is not None:
            click.echo(
                f"      {'':<{width}}  {paint('try:', 'label', color=color)} {plain(finding.remedy)}", color=color
            )
