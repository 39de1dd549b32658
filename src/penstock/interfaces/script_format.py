"""A whole script in canonical form, with its comments.

Comments between statements are kept where they stand. The canonical text of a statement is made from its meaning, so a
comment inside one has no place to go: it is left out and reported, and whoever would overwrite the file must refuse.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from penstock.frozen import frozen
from penstock.plan.canonical import canonical_statement
from penstock.plan.script import hidden_values
from penstock.secrets import MASK
from penstock.sql.format import format_statement
from penstock.sql.lexical import Lines, decode
from penstock.sql.redact import comments
from penstock.sql.script import Parsed, parse_script

if TYPE_CHECKING:
    from penstock.errors import Span
    from penstock.sql.statements import Statement

_COMMENT: Final = r"--[^\r\n]*|/\*.*?\*/"
_BETWEEN = re.compile(rf"(?:[\s;\ufeff]|{_COMMENT})*", re.DOTALL)
_COMMENTS = re.compile(_COMMENT, re.DOTALL)
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")


@frozen
class FormattedScript:
    """The canonical text, and what it leaves out: comments inside statements, and values that must not be shown."""

    text: str
    lost_comments: tuple[Span, ...]
    hides_values: bool


@frozen
class _Comment:
    text: str
    beside: bool  # on the line of the statement before it
    before_blank: bool  # a blank line follows


def format_script(content: bytes, parsed: list[Parsed]) -> FormattedScript:
    """The canonical text of a script whose statements were all read.

    >>> script = b"-- one\\nselect 1 as a -- beside\\n; select 2 as b"
    >>> print(format_script(script, parse_script(script)).text, end="")
    -- one
    SELECT
      1 AS a; -- beside
    <BLANKLINE>
    SELECT
      2 AS b;
    """
    text = decode(content)
    out = ""
    lost: list[Span] = []
    hides = False
    position = 0
    for statement, end in _statements(parsed):
        first = _end_of_gap(text, position)
        out = _append_comments(out, _comments_between(text, position, first, follows=bool(out)))
        inner, position = _inside(text, first, end)
        lost += inner
        canonical = format_statement(statement, hide=hidden_values(statement))
        hides = hides or MASK in canonical
        out += f"{canonical};"
    out = _append_comments(out, _comments_between(text, position, len(text), follows=bool(out)))
    return FormattedScript(out.rstrip("\n") + "\n" if out else "", tuple(lost), hides)


def says_the_same(formatted: FormattedScript, parsed: list[Parsed]) -> bool:
    """Whether the canonical text is read as the statements it was made from."""
    again = _statements(parse_script(formatted.text))
    return [statement for statement, _ in again] == [statement for statement, _ in _statements(parsed)]


def _statements(parsed: list[Parsed]) -> list[tuple[Statement, int]]:
    found = [(entry.statement, entry.span.end) for entry in parsed]
    return [(canonical_statement(statement), end) for statement, end in found if statement is not None]


def _end_of_gap(text: str, position: int) -> int:
    match = _BETWEEN.match(text, position)
    return match.end() if match is not None else position


def _inside(text: str, first: int, end: int) -> tuple[list[Span], int]:
    """The comments inside a statement, and where its last word ends; comments behind that are not inside."""
    found = [(start - 2, stop) for start, stop in comments(text, first, end)]
    end = first + len(text[first:end].rstrip())
    while found and found[-1][1] == end:
        start, _ = found.pop()
        end = first + len(text[first:start].rstrip())
    lines = Lines(text)
    return [lines.span(start, stop) for start, stop in found], end


def _comments_between(text: str, start: int, end: int, *, follows: bool) -> list[_Comment]:
    """The comments of a stretch that holds no statement; `follows` says that one stands before it."""
    found: list[_Comment] = []
    position = start
    beside = follows
    for match in _COMMENTS.finditer(text, start, end):
        before = text[position : match.start()]
        after = text[match.end() : end]
        beside = beside and "\n" not in before
        gap_after = after[: after_comment.start()] if (after_comment := _COMMENTS.search(after)) else after
        comment = match.group().rstrip().replace("\r\n", "\n")
        found.append(_Comment(comment, beside, _BLANK_LINE.search(gap_after) is not None))
        position = match.end()
    return found


def _append_comments(out: str, found: list[_Comment]) -> str:
    """The text with the comments, and ready for the next statement."""
    for comment in found:
        if comment.beside:
            out += f" {comment.text}"
    if out:
        out += "\n\n"
    for comment in found:
        if not comment.beside:
            out += comment.text + ("\n\n" if comment.before_blank else "\n")
    return out
