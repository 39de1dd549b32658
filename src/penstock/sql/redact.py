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
from penstock.sql.lexical import INVALID, MAX_STATEMENT, first_words
from penstock.sql.tokens import WORDS
from penstock.sql.typenames import nearest_type

# What a statement begins with, ours or one we refuse by name.
FIRST_WORDS: Final = (
    *("SELECT", "WITH", "VALUES", "CREATE", "DROP", "ALTER", "INSERT", "SET", "RESET", "SHOW", "DESCRIBE", "DESC"),
    *("EXPLAIN", "EXECUTE", "BEGIN", "END", "PAUSE", "RESUME", "RESTART", "STOP", "ADVANCE", "SUBSCRIBE", "DELETE"),
    *("UPDATE", "MERGE", "TRUNCATE", "GRANT", "REVOKE", "COMMIT", "ROLLBACK", "START", "CALL", "USE", "LOCK", "CACHE"),
    *("UNCACHE", "LOAD", "UNLOAD", "ADD", "ANALYZE", "VACUUM", "COPY", "REFRESH", "DECLARE", "FETCH", "CANCEL"),
    *("RETRY", "PLAN", "COMMENT", "FLUSH", "WAIT", "PREPARE", "TERMINATE", "PRINT", "LATENESS", "AUTO", "APPLY"),
    *("COMPILE", "TABLE"),
)

# Words that are no secret wherever they stand. More than the parser's keywords: what users read in our grammar.
_KNOWN: Final = WORDS.keys() | frozenset(
    "ADVANCE ALTER ALWAYS APPEND AT BEGIN BY CASCADE CHANGES COMMENT CREATE DRAIN DROP EMIT ENCODE ENFORCED EXECUTE "  # noqa: SIM905
    "EXPLAIN EXTENDED FINAL FORMAT FUNCTION GENERATED GROUP HEADER IF INCLUDE INSERT INTO JOB JSON KEY LANGUAGE "
    "MATERIALIZED METADATA ONLY OPTIONS ORDER PARTITION PARTITIONED PHYSICAL PLAN PRIMARY RENAME REPLACE RESET "
    "RESTRICT RETURNS REWRITE SECRET SET SHOW SINK SOURCE STATEMENT STREAM SYSTEM_TIME TABLE TEMPORARY TO TUMBLE HOP "
    "SESSION CUMULATE VIEW VIRTUAL WATERMARK CLOSE PRECEDING FOLLOWING "
    # types, units of time, and the commonest functions
    "ARRAY BIGINT BINARY BOOLEAN BYTES CHAR DATE DECIMAL DOUBLE FLOAT INT INTEGER MAP NUMERIC REAL ROW SMALLINT STRING "
    "STRUCT TIME TIMESTAMP TIMESTAMP_LTZ TIMESTAMP_NTZ TINYINT VARCHAR MICROSECOND MICROSECONDS MILLISECOND "
    "MILLISECONDS SECOND SECONDS MINUTE MINUTES HOUR HOURS DAY DAYS WEEK WEEKS MONTH MONTHS YEAR YEARS "
    "AVG COUNT MAX MIN SUM".split()
)

# Behind these a value may stand, whatever the statement is.
_ANNOUNCING: Final = frozenset(
    {"WITH", "OPTIONS", "ENCODE", "TBLPROPERTIES", "PROPERTIES", "SET", "PASSWORD", "IDENTIFIED", "SECRET"}
)
_QUERIES: Final = frozenset({"SELECT", "WITH", "VALUES"})
_LEADING: Final = _QUERIES | {"EXPLAIN", "SHOW", "INSERT", "EXECUTE"}  # what may stand in front of a query
_CHANGES: Final = frozenset({"CREATE", "ALTER", "GRANT"})  # in a query: the semicolon in front of it is missing

_STARS: Final = {code: "*" for code in range(128) if not chr(code).isspace()}

_COMMENT = re.compile(r"--[^\r\n]*|/\*.*?\*/", re.DOTALL)
_PARTS = re.compile(
    r"""(?P<comment>--[^\r\n]*|/\*.*?(?:\*/|\Z))
      | (?P<string>[eE]'(?:[^'\\]|\\.|'')*+(?:'|\Z)
                  |[xX]?'[^']*+(?:''[^']*+)*+(?:'|\Z)
                  |\$(?P<tag>(?:[^\W\d]\w*)?)\$.*?(?:\$(?P=tag)\$|\Z))
      | (?P<name>"[^"]*(?:"|\Z)|`[^`]*(?:`|\Z))
      | (?P<word>[\w$@\\{}!&?^~]+)
      | ::
      | (?P<equals>[=:])
      | (?P<mark>[()\[\]])""",
    re.VERBOSE | re.DOTALL,
)
# The text of an interval and of a time, where the word for it stands in front: nobody's password looks like that.
_UNIT: Final = r"(?:ms|us|s|m|min|h|d|(?:micro|milli)?seconds?|minutes?|hours?|days?|weeks?|months?|years?)"
_INTERVAL: Final = re.compile(
    rf"'\s*+(?:P[\dTYMWDHS.]{{1,20}}+|[-+]?\d[\d:.-]{{0,20}}+(?:\s*+{_UNIT}\b|\s++[-+]?\d[\d:.]{{0,20}}+)*+)\s*+'",
    re.IGNORECASE,
)
_MOMENT: Final = re.compile(
    r"'(?:\d{4}-\d{1,2}-\d{1,2})?[T ]?(?:\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?\s?(?:Z|UTC|[-+]\d{2}:?\d{2})?)?'",
    re.IGNORECASE,
)
_SPACE: Final = r"(?:\s++|--[^\r\n]*+|/\*.*?\*/)"
# A WITH that begins no options: of a query (WITH name AS (…), WITH name (a, b) AS (…)), of a type, of a relation.
_HARMLESS_WITH = re.compile(
    rf"""{_SPACE}++(?:
        (?:RECURSIVE{_SPACE}++)?+(?!(?:{"|".join(sorted(_ANNOUNCING))})\b)
            (?:[^\W\d]\w*+|"[^"]*+"|`[^`]*+`){_SPACE}*+(?:\([\w\s,"`]*+\){_SPACE}*+)?+
            AS{_SPACE}*+(?:(?:NOT{_SPACE}++)?+MATERIALIZED{_SPACE}*+)?+\(
      | (?:LOCAL{_SPACE}++)?+TIME{_SPACE}++ZONE\b
      | ORDINALITY\b)""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
# A view without options: behind its AS comes a query, and nothing before it is a value.
_VIEW_OF = re.compile(
    rf"""CREATE{_SPACE}++(?:OR{_SPACE}++REPLACE{_SPACE}++)?+(?:TEMPORARY{_SPACE}++)?+(?:MATERIALIZED{_SPACE}++)?+VIEW
        {_SPACE}++(?:IF{_SPACE}++NOT{_SPACE}++EXISTS{_SPACE}++)?+(?:[^\W\d]\w*+|"[^"]*+"|`[^`]*+`){_SPACE}*+
        (?:\([\w\s,"`]*+\){_SPACE}*+)?+AS{_SPACE}++(?=SELECT\b|VALUES\b|WITH\b)""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
# Behind EXECUTE STATEMENT SET come statements, not a setting.
_SET_BODY = re.compile(rf"{_SPACE}*+(?:;|BEGIN\b|INSERT\b|WITH\b|\Z)", re.DOTALL | re.IGNORECASE)


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
    clean = _printable(text)
    pieces: list[str] = []
    position = 0
    for first, end in sorted(spans):
        start = max(first, position)
        if start < end:
            pieces += (clean[position:start], _stars(clean[start:end]))
            position = end
    pieces.append(clean[position:])
    return Source(clean, "".join(pieces))


def _printable(text: str) -> str:
    """The text with a replacement character for each that cannot be printed.

    A text longer than any statement is refused and masked nearly whole, and replacing millions of characters one match
    at a time is slow: there a codec does it, whose replacement character is the question mark.
    """
    if len(text) <= MAX_STATEMENT:
        return INVALID.sub("\ufffd", text)
    clean = text.replace("\x00", "\ufffd")
    return clean if INVALID.search(clean) is None else clean.encode("utf-8", "replace").decode("utf-8")


def _stars(stretch: str) -> str:
    """As many stars, white space kept. By way of ASCII, which Python translates fast; each character stays one."""
    return stretch.encode("ascii", "replace").decode("ascii").translate(_STARS)


def comments(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The insides of the comments of a statement that was understood."""
    if text.find("--", start, end) < 0 and text.find("/*", start, end) < 0:
        return []
    return [
        (match.start() + 2, match.end())
        for match in _PARTS.finditer(text, start, end)
        if match.lastgroup == "comment" and not match.group().startswith("/*+")  # a hint, which was read
    ]


def comments_between(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The insides of the comments between statements, where there are no strings."""
    return [(match.start() + 2, match.end()) for match in _COMMENT.finditer(text, start, end)]


def suspects(
    text: str, start: int, end: int, *, torn: bool = False, after_failure: bool = False, type_at: int | None = None
) -> list[tuple[int, int]]:
    """What may be secret in a statement that was not understood.

    All strings but those of intervals and times; and every word and number that is no keyword behind a word that
    announces options or a secret (WITH, OPTIONS, SET, PASSWORD …) or, unless the statement is a query or a view of
    one, behind the first `=`, `:` or string. Of a torn script (a quote is missing somewhere, so that the inside of a
    string may look like code), and of what begins like no statement, every such word from the beginning. Behind a
    statement that failed, a piece may be the rest of a value with a semicolon in it: then its first word must be
    exactly one that begins a statement, and it must not close a bracket that it did not open.

    `type_at` is where a word begins that the grammar met in the place of a type: no secret, unless the script is torn,
    or the word stands behind `password` and the like and is not even like the name of a type.
    """
    torn = torn or not _begins_statement(text, start, end, exactly=after_failure)
    torn = torn or (after_failure and _closes_too_much(text, start, end))
    query = None if torn else _VIEW_OF.match(text, start, end)
    reads = not torn and (query is not None or _reads(text, start, end))
    everything = torn
    found: list[tuple[int, int]] = []
    previous = ""
    for match in _PARTS.finditer(text, start, end):
        kind = "string" if match.lastgroup == "tag" else match.lastgroup
        word = match.group().upper()
        if kind == "comment":
            found.append((match.start() + 2, match.end()))
            continue
        harmless = kind == "string" and not torn and _is_time(previous, match.group())
        if kind == "string" and not harmless:
            found.append(match.span())
        typed = match.start() == type_at and not torn and _is_type(previous, word)
        if kind in {"name", "word"} and everything and word not in _KNOWN and not typed:
            found.append(match.span())
        reads = reads and (word not in _CHANGES or (query is not None and match.start() < query.end()))
        everything = (
            everything
            or (not reads and not harmless and kind in {"string", "equals"})
            or _announces(text, match, previous, end)
        )
        previous = word if kind != "mark" else previous
    return found


def _is_type(previous: str, word: str) -> bool:
    return previous.strip('"`') not in _ANNOUNCING or nearest_type(word) is not None


def _is_time(previous: str, literal: str) -> bool:
    """Whether a string is the text of an interval, a date or a time, as the word in front of it says."""
    if previous == "INTERVAL":
        return _INTERVAL.fullmatch(literal) is not None
    typed = previous.startswith("TIMESTAMP") or previous in {"DATE", "TIME", "DATETIME", "ZONE"}
    return typed and _MOMENT.fullmatch(literal) is not None


def nearest_statement(word: str) -> str | None:
    """The first word of a statement most like this one.

    >>> nearest_statement("SELEC"), nearest_statement("hunter2")
    ('SELECT', None)
    """
    found = difflib.get_close_matches(word.upper()[:40], FIRST_WORDS, n=1, cutoff=0.75)
    return found[0] if found else None


def _begins_statement(text: str, start: int, end: int, *, exactly: bool) -> bool:
    words = first_words(text, start, end, 1)
    if not words:
        return text.startswith("(", start)
    return words[0] in FIRST_WORDS if exactly else nearest_statement(words[0]) is not None


def _closes_too_much(text: str, start: int, end: int) -> bool:
    depth = 0
    for match in _PARTS.finditer(text, start, end):
        if match.lastgroup == "mark":
            depth += 1 if match.group() in "([" else -1
            if depth < 0:
                return True
    return False


def _announces(text: str, match: re.Match[str], previous: str, end: int) -> bool:
    """Whether a value may stand anywhere behind this word, quoted or not."""
    word = match.group().strip('"`').upper()
    if word not in _ANNOUNCING:
        return False
    if word == "WITH":
        return _HARMLESS_WITH.match(text, match.end(), end) is None
    return word != "SET" or previous != "STATEMENT" or _SET_BODY.match(text, match.end(), end) is None


def _reads(text: str, start: int, end: int) -> bool:
    """Whether the statement is a query, or leads to one before anything that could be a value: EXPLAIN, INSERT."""
    first = first_words(text, start, end, 1)
    if first and first[0] not in _LEADING:
        return False
    for match in _PARTS.finditer(text, start, end):
        kind, word = match.lastgroup, match.group().upper()
        if kind in {"string", "tag", "equals"} or word in _CHANGES or _announces(text, match, "", end):
            return False
        if kind == "word" and word in {"SELECT", "VALUES", "WITH"}:
            return True
        if kind == "word" and first and first[0] in _QUERIES:
            return False
    return False
