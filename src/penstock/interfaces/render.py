"""Errors and reports as people and programs read them.

Everything shown of the user's text comes from `Source.masked`, so no message can give a secret away, and every control
character is replaced, so no script can write to the reader's terminal.
"""

from __future__ import annotations

import os
import re
import textwrap
import traceback
import unicodedata
from typing import IO, TYPE_CHECKING, Final, Literal, Protocol

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.errors import PenstockError, Span, Support
    from penstock.plan.script import StatementReport

# A longer line is cut around the caret: wide enough for a formatted statement, narrow enough for a split screen.
LINE_LIMIT: Final = 100
TAB: Final = 4
CUT: Final = "…"

SUPPORT_TEXT: Final[dict[Support, str]] = {
    "never": "this can never work here",
    "not_yet": "this is not there yet, a later version will run it",
}

Paint = Literal["error", "notice", "place", "caret", "label", "good"]
_PAINTS: Final[dict[Paint, dict[str, object]]] = {
    "error": {"fg": "red", "bold": True},
    "notice": {"fg": "yellow"},
    "place": {"fg": "bright_black"},
    "caret": {"fg": "red", "bold": True},
    "label": {"fg": "cyan"},
    "good": {"fg": "green", "bold": True},
}


class Masked(Protocol):
    """A text whose secrets are replaced by `*`, line by line and column by column where they stood."""

    @property
    def masked(self) -> str:
        """The text that may be shown."""


def wants_color(stream: IO[str] | None) -> bool:
    """Whether a stream shows colours: NO_COLOR turns them off, FORCE_COLOR on, else it takes a terminal."""
    if stream is None or os.environ.get("NO_COLOR"):  # Python has no stream where the shell closed it
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def paint(text: str, how: Paint, *, color: bool) -> str:
    """A text in one of the few styles of our output."""
    return click.style(text, **_PAINTS[how]) if color else text  # type: ignore[arg-type]


def plain(text: str) -> str:
    """A text without anything a terminal would act on: control characters and the marks that turn the direction round.

    >>> plain("a" + chr(27) + "[31mb")
    'a�[31mb'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join("\N{REPLACEMENT CHARACTER}" if _acts_on_terminal(char) else char for char in text)


def plain_lines(text: str) -> str:
    """A text of several lines as `plain` shows it, with its line ends and tabs, which only move on.

    >>> plain_lines("a\\n\\tb" + chr(27))
    'a\\n\\tb�'
    """
    return re.sub(r"[^\n\t]+", lambda match: plain(match.group()), text)


def _acts_on_terminal(char: str) -> bool:
    return unicodedata.category(char) in {"Cc", "Zl", "Zp", "Cs"} or unicodedata.bidirectional(char) in _TURNS


_TURNS: Final = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})


def render_error(error: PenstockError, source: Masked | None, file: str | None, *, color: bool = False) -> str:
    """One red line, the line of SQL with a caret under the place, the hint, and whether it can ever work."""
    place = f" {_place(file, error.span)}" if file is not None else ""
    lines = [paint(f"error[{error.condition}]{place}: {plain(error.message)}", "error", color=color)]
    if error.span is not None and source is not None:
        lines += _snippet_lines(source.masked, error.span, color=color)
    if error.detail:
        # A list of all known options is long; a hint is short, and kept in one piece for copying.
        lines.append(_labelled("detail", "\n    ".join(_wrapped(error.detail)), color=color))
    if error.hint:
        lines.append(_labelled("hint", plain(error.hint), color=color))
    if error.support is not None:
        lines.append(_labelled("support", SUPPORT_TEXT[error.support], color=color))
    return "\n".join(lines)


def _wrapped(text: str) -> Iterator[str]:
    for line in plain_lines(text).splitlines():
        yield from textwrap.wrap(line, LINE_LIMIT, break_long_words=False, break_on_hyphens=False)


def _labelled(label: str, text: str, *, color: bool) -> str:
    return f"  {paint(label + ':', 'label', color=color)} {text}"


def render_notice(text: str, file: str, span: Span | None, *, color: bool = False) -> str:
    """A remark about a statement that is accepted."""
    head = paint("notice", "notice", color=color)
    return f"{head} {paint(_place(file, span) + ':', 'place', color=color)} {plain(text)}"


def render_trace(error: BaseException) -> str:
    """Where in Penstock an error was raised. Only our own code is shown: what other libraries say of an error may quote
    the statement, and with it a secret."""
    lines = ["trace (without the texts of inner errors, which may quote your SQL):"]
    inner: BaseException | None = error
    while inner is not None:
        lines += [line.rstrip("\n") for line in traceback.format_tb(inner.__traceback__)]
        lines.append(f"  {type(inner).__module__}.{type(inner).__qualname__}")
        inner = inner.__cause__ or inner.__context__
    return "\n".join(lines)


def render_summary(statements: int, errors: int, *, color: bool = False) -> str:
    """The last line of a check.

    >>> render_summary(12, 2)
    '12 statements, 2 errors'
    """
    text = f"{_count(statements, 'statement')}, {_count(errors, 'error')}"
    return paint(text, "error" if errors else "good", color=color)


def report_json(report: StatementReport, file: str) -> dict[str, object]:
    """A statement's report as `penstock check --json` prints it; the place is the error's where there is one."""
    error = report.error
    span = error.span if error is not None and error.span is not None else report.span
    return {
        "line": span.line,
        "column": span.column,
        "kind": report.kind,
        "ok": error is None,
        "condition": error.condition if error else None,
        "message": error.message if error else None,
        "hint": error.hint if error else None,
        "support": error.support if error else None,
        "canonical": report.canonical,
        "mode": report.mode or getattr(error, "mode", None),
        "file": file,
        "length": span.length,
        "statement_line": report.span.line,
        "statement_column": report.span.column,
        "sqlstate": error.sqlstate if error else None,
        "detail": error.detail if error else None,
        "notices": list(report.notices),
    }


def snippet(masked: str, span: Span) -> tuple[str, str]:
    """The line a span begins on and the carets below it, of equal columns whatever the line holds.

    >>> from penstock.errors import Span
    >>> snippet("SELECT prise FROM t", Span(1, 8, 5))
    ('SELECT prise FROM t', '       ^^^^^')
    """
    lines = masked.split("\n")
    line = lines[span.line - 1].removesuffix("\r") if span.line <= len(lines) else ""
    first = min(span.column - 1, len(line))
    last = min(first + max(span.length, 1), len(line))
    # A line can be as long as a statement may be: look at no more of it than can be shown.
    left, right = max(first - LINE_LIMIT, 0), min(first + LINE_LIMIT, len(line))
    last = min(last, right)
    before, marked, after = (plain(part) for part in _expand(line[left:first], line[first:last], line[last:right]))
    before, after = _fit(before, marked, after, cut_left=left > 0, cut_right=right < len(line))
    carets = "^" * max(_width(marked), 1)
    return f"{before}{marked}{after}", " " * _width(before) + carets


def _snippet_lines(masked: str, span: Span, *, color: bool) -> list[str]:
    line, carets = snippet(masked, span)
    number = str(span.line)
    bar = paint("|", "place", color=color)
    return [
        f"  {paint(number, 'place', color=color)} {bar} {line}",
        f"  {' ' * len(number)} {bar} {paint(carets, 'caret', color=color)}",
    ]


def _expand(*parts: str) -> list[str]:
    """The parts of one line with each tab replaced by the blanks up to the next tab stop."""
    done: list[str] = []
    column = 0
    for part in parts:
        text = ""
        for char in part:
            blanks = TAB - column % TAB
            text += " " * blanks if char == "\t" else char
            column += blanks if char == "\t" else _width(char)
        done.append(text)
    return done


def _fit(before: str, marked: str, after: str, *, cut_left: bool, cut_right: bool) -> tuple[str, str]:
    """What is shown left and right of the marked stretch: half the line at most on the left, the rest on the right."""
    room = max(LINE_LIMIT - _width(marked), 0)
    left_room = max(room - _width(after), room // 2)
    if cut_left or _width(before) > left_room:
        while before and _width(before) > left_room - 1:
            before = before[1:]
        before = CUT + before
    right_room = max(room - _width(before), 0)
    if cut_right or _width(after) > right_room:
        while after and _width(after) > right_room - 1:
            after = after[:-1]
        after += CUT
    return before, after


def _width(text: str) -> int:
    """How many columns a terminal gives a text."""
    if text.isascii():
        return len(text)
    # Only texts beyond ASCII pay for the width tables.
    from rich.cells import cell_len

    return cell_len(text)


def _place(file: str, span: Span | None) -> str:
    name = plain(file)
    return f"{name}:{span.line}:{span.column}" if span is not None else name


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
