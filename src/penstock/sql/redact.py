"""The text of a script as it may be shown: every character that may be secret is a `*`.

Error snippets and quoted words are cut from `Source.masked` and from nothing else, so that there is one place to get
right. Of a statement that was understood, the values of its options are masked (the options layer then reveals those
it knows to be public). Of a statement that was not understood nobody knows what is a value, so everything that could
be one is masked. Comments are masked always: people comment out lines with passwords in them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import field
from typing import Final

from penstock.errors import Span
from penstock.frozen import frozen
from penstock.sql.lexical import INVALID, first_words
from penstock.sql.tokens import WORDS

# A statement that begins with one of these has no options of its own.
_OPEN: Final = frozenset({"SELECT", "WITH", "VALUES", "DESCRIBE", "DESC", "DROP", "SHOW", "EXPLAIN", "("})

# What a statement begins with, ours or one we refuse by name.
FIRST_WORDS: Final = (
    *("SELECT", "WITH", "VALUES", "CREATE", "DROP", "ALTER", "INSERT", "SET", "RESET", "SHOW", "DESCRIBE", "DESC"),
    *("EXPLAIN", "EXECUTE", "BEGIN", "END", "PAUSE", "RESUME", "RESTART", "STOP", "ADVANCE", "SUBSCRIBE", "DELETE"),
    *("UPDATE", "MERGE", "TRUNCATE", "GRANT", "REVOKE", "COMMIT", "ROLLBACK", "START", "CALL", "USE", "LOCK", "CACHE"),
    *("UNCACHE", "LOAD", "UNLOAD", "ADD", "ANALYZE", "VACUUM", "COPY", "REFRESH", "DECLARE", "FETCH", "CANCEL"),
    *("RETRY", "PLAN", "COMMENT", "FLUSH", "WAIT", "PREPARE", "TERMINATE", "PRINT", "LATENESS", "AUTO", "APPLY"),
    "COMPILE",
)

# Words that are no secret wherever they stand. More than the parser's keywords: what users read in our grammar.
_KNOWN: Final = WORDS.keys() | frozenset(
    "ADVANCE ALTER ALWAYS APPEND AT BEGIN BY CASCADE CHANGES COMMENT CREATE DRAIN DROP EMIT ENCODE ENFORCED EXECUTE "  # noqa: SIM905
    "EXPLAIN EXTENDED FINAL FORMAT FUNCTION GENERATED GROUP HEADER IF INCLUDE INSERT INTO JOB JSON KEY LANGUAGE "
    "MATERIALIZED METADATA ONLY OPTIONS ORDER PARTITION PARTITIONED PHYSICAL PLAN PRIMARY RENAME REPLACE RESET "
    "RESTRICT RETURNS REWRITE SECRET SET SHOW SINK SOURCE STATEMENT STREAM SYSTEM_TIME TABLE TEMPORARY TO TUMBLE HOP "
    "SESSION CUMULATE VIEW VIRTUAL WATERMARK".split()
)

_STARS: Final = {code: "*" for code in range(128) if not chr(code).isspace()}

_COMMENT = re.compile(r"--[^\r\n]*|/\*.*?\*/", re.DOTALL)
_PARTS = re.compile(
    r"""(?P<comment>--[^\r\n]*|/\*.*?(?:\*/|\Z))
      | (?P<string>[eE]'(?:[^'\\]|\\.|'')*+(?:'|\Z)
                  |[xX]?'[^']*+(?:''[^']*+)*+(?:'|\Z)
                  |\$(?P<tag>(?:[^\W\d]\w*)?)\$.*?(?:\$(?P=tag)\$|\Z))
      | (?P<name>"[^"]*(?:"|\Z)|`[^`]*(?:`|\Z))
      | (?P<word>[\w$@\\{}!&?^~]+)
      | (?P<equals>=)""",
    re.VERBOSE | re.DOTALL,
)


@frozen
class Source:
    """A script and how it may be shown. `masked` has the length of `text`, with the same line breaks."""

    text: str = field(repr=False)
    masked: str

    def revealing(self, spans: Iterable[Span]) -> Source:
        """The same source with the given stretches shown."""
        shown = list(self.masked)
        for span in spans:
            shown[span.start : span.end] = self.text[span.start : span.end]
        return Source(self.text, "".join(shown))

    def shows(self, span: Span) -> str | None:
        """The text of a stretch, or None when any of it is masked."""
        cut = self.masked[span.start : span.end]
        return cut if cut == self.text[span.start : span.end] else None

    def line(self, number: int) -> str:
        """A line of the masked text, counted from 1, without its line break."""
        lines = self.masked.split("\n")
        return lines[number - 1].rstrip("\r") if 0 < number <= len(lines) else ""


def mask(text: str, spans: Iterable[tuple[int, int]]) -> Source:
    """A source with the given stretches (start, end) masked."""
    clean = INVALID.sub("\ufffd", text)
    pieces: list[str] = []
    position = 0
    for first, end in sorted(spans):
        start = max(first, position)
        if start < end:
            pieces += (clean[position:start], _stars(clean[start:end]))
            position = end
    pieces.append(clean[position:])
    return Source(clean, "".join(pieces))


def _stars(stretch: str) -> str:
    """As many stars, white space kept. By way of ASCII, which Python translates fast; each character stays one."""
    return stretch.encode("ascii", "replace").decode("ascii").translate(_STARS)


def comments(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The insides of the comments of a statement that was understood."""
    if text.find("--", start, end) < 0 and text.find("/*", start, end) < 0:
        return []
    return [
        (match.start() + 2, match.end()) for match in _PARTS.finditer(text, start, end) if match.lastgroup == "comment"
    ]


def comments_between(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The insides of the comments between statements, where there are no strings."""
    return [(match.start() + 2, match.end()) for match in _COMMENT.finditer(text, start, end)]


def suspects(text: str, start: int, end: int, *, torn: bool = False) -> list[tuple[int, int]]:
    """What may be secret in a statement that was not understood.

    All strings but those of intervals; and, where the statement may have options, every word and number behind the
    first `=` or string that is no keyword. Of SET and CREATE SECRET every such word behind the first, because what
    should be a string there may have lost its quotes. Of a torn script (a quote is missing somewhere, so that the
    inside of a string may look like code), and of what begins like no statement, every such word from the beginning.
    """
    torn = torn or not _begins_statement(text, start, end)
    reads = not torn and _reads(text, start, end)
    everything = torn
    secret_word = None if reads else _secret_word(text, start, end)
    in_options = False
    found: list[tuple[int, int]] = []
    previous = ""
    for match in _PARTS.finditer(text, start, end):
        kind = "string" if match.lastgroup == "tag" else match.lastgroup
        word = match.group().upper()
        if kind == "comment":
            found.append((match.start() + 2, match.end()))
            continue
        if reads and kind == "word" and previous == "WITH":
            in_options = text[max(match.start() - 20, start) : match.start()].rstrip().endswith("(")
        if kind == "string":
            if torn or previous != "INTERVAL":
                found.append(match.span())
        elif kind != "equals" and (everything or in_options) and word not in _KNOWN:
            found.append(match.span())
        everything = everything or (not reads and kind in {"string", "equals"}) or word == secret_word
        previous = word
    return found


def nearest_statement(word: str) -> str | None:
    """The first word of a statement most like this one.

    >>> nearest_statement("SELEC"), nearest_statement("hunter2")
    ('SELECT', None)
    """
    found = difflib.get_close_matches(word.upper()[:40], FIRST_WORDS, n=1, cutoff=0.75)
    return found[0] if found else None


def _begins_statement(text: str, start: int, end: int) -> bool:
    words = first_words(text, start, end, 1)
    return nearest_statement(words[0]) is not None if words else text.startswith("(", start)


def _secret_word(text: str, start: int, end: int) -> str | None:
    """The word behind which everything may be a value: the SECRET of CREATE SECRET, the key of SET."""
    words = first_words(text, start, end, 6)
    if words[:1] == ["SET"]:
        return words[1] if len(words) > 1 else "SET"
    return "SECRET" if words[:1] == ["CREATE"] and "SECRET" in words else None


def _reads(text: str, start: int, end: int) -> bool:
    """Whether the statement only reads, so that its words are names and not values."""
    words = first_words(text, start, end, 3)
    if {"SET", "CREATE", "ALTER"} & set(words[1:]) and words[0] not in {"EXPLAIN", "SHOW"}:
        return False  # two statements run together: the second may have values
    words[:1] = [nearest_statement(word) or word for word in words[:1]]
    while words and words[0] in {"EXPLAIN", "SHOW"} and len(words) > 1:
        if words[0] == "SHOW" and words[1] != "REWRITE":
            return True
        words = words[1:] if words[0] == "EXPLAIN" else words[2:]
        if words and words[0] == "PHYSICAL":
            words = words[1:]
    if words and words[0] == "INSERT":
        return _selects_before_value(text, start, end)
    return bool(words) and words[0] in _OPEN


def _selects_before_value(text: str, start: int, end: int) -> bool:
    """Whether an INSERT comes to its query before anything that could be the value of an option."""
    for match in _PARTS.finditer(text, start, end):
        if match.lastgroup in {"string", "tag", "equals"}:
            return False
        if match.lastgroup == "word" and match.group().upper() in {"SELECT", "VALUES"}:
            return True
    return False
