"""`penstock fmt`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from penstock.interfaces.cli.messages import complain, print_error, remark
from penstock.interfaces.cli.options import Command, Invocation, debug_option, files_argument
from penstock.interfaces.cli.output import print_exactly
from penstock.interfaces.cli.scripts import Script, read_scripts

if TYPE_CHECKING:
    from penstock.interfaces.script_format import FormattedScript
    from penstock.sql.script import Parsed


@click.command(cls=Command, short_help="Print scripts in canonical form.")
@files_argument
@click.option("--check", is_flag=True, help="Print nothing; exit with 1 when a file is not in canonical form.")
@click.option("--write", is_flag=True, help="Write the canonical form back into the files.")
@debug_option
@click.pass_context
def fmt(context: click.Context, *, files: tuple[str, ...], check: bool, write: bool) -> None:
    """Print scripts in canonical form, whatever spelling they are written in.

    Comments between statements are kept, and printed as they are: keep passwords out of them. Comments inside a
    statement are left out, with a notice; --write refuses such files. Values that may be secret are printed as
    ********; --check and --write refuse files that hold any, because a password belongs in ${env:NAME}, ${file:PATH}
    or SECRET name. `-` reads the standard input.

    A terminal gets control characters replaced; a file or a pipe gets the script as it is, in UTF-8.

    \b
    Exit codes: 0 done, 1 a statement cannot be read or a file is not in canonical form, 2 wrong usage.

    \b
    Examples:
      penstock fmt pipeline.sql
      penstock fmt --check sql/*.sql
      penstock fmt --write pipeline.sql
    """
    if check and write:
        raise click.UsageError("--check and --write exclude each other")
    scripts = read_scripts(files)
    if write and any(script.path is None for script in scripts):
        raise click.UsageError("--write needs files, not the standard input")
    debug = context.ensure_object(Invocation).debug
    results = [_one(script, check=check, write=write, debug=debug) for script in scripts]
    context.exit(0 if all(results) else 1)


def _one(script: Script, *, check: bool, write: bool, debug: bool) -> bool:
    """Format one script; whether all is well with it."""
    from penstock.interfaces.script_format import format_script
    from penstock.sql.script import parse_script

    if script.is_empty:
        complain(script.nothing)
        return False
    parsed = parse_script(script.content)
    for entry in parsed:
        if entry.error is not None:
            print_error(entry.error, entry.source, script.name, trace_of=entry.error if debug else None)
    if any(entry.error is not None for entry in parsed):
        return False
    formatted = format_script(script.content, parsed)
    if check:
        return _compare(script, formatted)
    if write:
        return _write(script, formatted, parsed)
    for notice in _left_out(formatted):
        remark(f"notice {script.name}: {notice}")
    print_exactly(formatted.text)
    return True


def _left_out(formatted: FormattedScript) -> list[str]:
    found = []
    if formatted.lost_comments:
        lines = ", ".join(str(span.line) for span in formatted.lost_comments)
        found.append(f"comments inside statements are left out (line {lines})")
    if formatted.hides_values:
        found.append("values that may be secret are shown as ********")
    return found


def _compare(script: Script, formatted: FormattedScript) -> bool:
    if formatted.hides_values:
        complain(f"{script.name} holds values that may be secret, so its canonical form cannot be compared")
        return False
    if formatted.text.encode() != script.content:
        complain(f"{script.name} is not in canonical form")
        return False
    return True


def _write(script: Script, formatted: FormattedScript, parsed: list[Parsed]) -> bool:
    from penstock.errors import InternalError
    from penstock.interfaces.script_format import says_the_same

    if formatted.hides_values:
        complain(f"{script.name} is left as it is: values that may be secret would be overwritten with ********")
        return False
    if formatted.lost_comments:
        lines = ", ".join(str(span.line) for span in formatted.lost_comments)
        complain(f"{script.name} is left as it is: comments inside statements would be lost (line {lines})")
        return False
    if not says_the_same(formatted, parsed):
        raise InternalError("the canonical form of a statement is read differently from the statement")
    if script.path is not None and formatted.text.encode() != script.content:
        try:
            script.path.write_bytes(formatted.text.encode())
        except OSError as error:
            complain(f"cannot write {script.name!r}: {(error.strerror or type(error).__name__).lower()}")
            return False
        remark(f"formatted {script.name}")
    return True
