"""Cutting a script into statements, before any parser sees it.

One coarse pass over the text finds quotes, comments, brackets and semicolons and nothing else, so that a hostile or
huge text is refused in milliseconds: a statement longer than the limit, brackets nested too deep, a quote that never
ends, a character that no SQL text may hold. Everything later works on one statement at a time.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from penstock.errors import PenstockError, ScriptError, Span
from penstock.frozen import frozen

MAX_STATEMENT: Final = 1 << 20  # characters; a longer statement is data, not a query
MAX_DEPTH: Final = 100  # brackets in brackets; each level costs the parser some twenty Python frames
MAX_STATEMENTS: Final = 10_000  # of one script
MAX_MARKS: Final = 250_000  # quotes, brackets and comments of one statement; bounds the time of this pass

INVALID = re.compile("[\x00\ud800-\udfff]")

# The only characters that can end a statement, hide a semicolon or nest.
_MARK = re.compile(r"""['"`;()\[\]#]|--|/\*|\$(?:[^\W\d]\w*)?\$""")
_LINE_END = re.compile(r"[\r\n]")
# From anywhere outside a string to the next semicolon outside of strings and comments, at the speed of one match.
_SKIP = re.compile(
    r"""(?:[^;'"`$/\-]++|'[^']*+'|"[^"]*+"|`[^`]*+`|--[^\r\n]*+|/\*.*?\*/|\$\$.*?\$\$|[$/\-])*+""", re.DOTALL
)
# What may stand between words and between statements. Possessive, as all of it: a hostile text must not backtrack.
_BLANK = re.compile(r"(?:[\s\ufeff;]++|--[^\r\n]*+|/\*(?!\+).*?\*/)*+", re.DOTALL)
_WORDS = re.compile(r"(?:\s++|--[^\r\n]*+|/\*.*?\*/)*+([^\W\d]\w*+)", re.DOTALL)
_ESCAPED = re.compile(r"'(?:[^'\\]++|\\.|'')*+'", re.DOTALL)
_CLOSING: Final = {"(": ")", "[": "]"}


@frozen
class Piece:
    """One statement of a script: text[start:end], without the semicolon. `error` is set when it cannot be lexed;
    `torn` when a quote or comment never ends, so that what looks like code may be the inside of a string."""

    start: int
    end: int
    error: PenstockError | None = None
    torn: bool = False


class Lines:
    """Line and column of an offset. Lines end at a line feed; columns count characters."""

    def __init__(self, text: str) -> None:
        self._text = text

    def span(self, start: int, end: int) -> Span:
        """The span of text[start:end]."""
        line_start = self._text.rfind("\n", 0, start) + 1
        return Span(self._text.count("\n", 0, start) + 1, start - line_start + 1, max(end - start, 0), start)


def decode(script: str | bytes) -> str:
    """The script as text. Bytes that are no UTF-8 become lone surrogates, which `split` reports where they stand."""
    if isinstance(script, bytes):
        return script.decode("utf-8", "surrogateescape")
    return script


def split(text: str) -> list[Piece]:
    """The statements of a script, in order; empty ones are left out.

    >>> [(piece.start, piece.end) for piece in split("SELECT ';'; ; -- nothing;")]
    [(0, 10)]
    """
    pieces: list[Piece] = []
    position = _skip_blank(text, 0)
    while position < len(text):
        if len(pieces) == MAX_STATEMENTS:
            pieces.append(Piece(position, len(text), _too_many(text, position)))
            break
        piece, position = _Scan(text, position).run()
        pieces.append(_trim(text, piece))
        position = _skip_blank(text, position)
    return _join_sets(text, pieces)


def first_words(text: str, start: int, end: int, count: int = 4) -> list[str]:
    """The first words of a statement in upper case, comments skipped, up to the first thing that is no word.

    >>> first_words("create /* a */ stream s (a INT)", 0, 31)
    ['CREATE', 'STREAM', 'S']
    """
    words: list[str] = []
    while len(words) < count:
        match = _WORDS.match(text, start, end)
        if match is None:
            break
        words.append(match.group(1).upper())
        start = match.end()
    return words


def _skip_blank(text: str, position: int) -> int:
    match = _BLANK.match(text, position)
    return position if match is None else match.end()


def _too_many(text: str, position: int) -> PenstockError:
    return ScriptError(
        "STATEMENT_TOO_LONG",
        f"the script has more than {MAX_STATEMENTS} statements",
        hint="cut it into several files",
        span=Lines(text).span(position, position + 1),
    )


def _trim(text: str, piece: Piece) -> Piece:
    end = piece.start + len(text[piece.start : piece.end].rstrip())
    return replace(piece, end=end)


class _Scan:
    """The scan of one statement."""

    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.start = start
        self.open: list[tuple[str, int]] = []
        self.error: PenstockError | None = None

    def run(self) -> tuple[Piece, int]:
        """The statement that begins here, and where the next one begins."""
        text, position, marks = self.text, self.start, 0
        while True:
            match = _MARK.search(text, position)
            here = len(text) if match is None else match.start()
            if here - self.start > MAX_STATEMENT or marks > MAX_MARKS:
                return self._skip(self._too_long(), min(here, self.start + MAX_STATEMENT))
            if match is None:
                return self._piece(len(text))
            marks += 1
            mark = match.group()
            if mark == ";":
                return self._piece(here)
            if mark in "([":
                self.open.append((mark, here))
                if len(self.open) > MAX_DEPTH:
                    return self._skip(self._too_deep(here), here)
                position = here + 1
            elif mark in ")]":
                self._close(mark, here)
                position = here + 1
            elif mark == "#":
                self._hash(here)
                position = here + 1
            else:
                end = self._quoted(mark, here)
                if end < 0:
                    return self._torn(mark, here)
                position = end

    def _quoted(self, mark: str, here: int) -> int:
        """The end of the string, name or comment that begins here; -1 when it has none."""
        text = self.text
        if mark == "--":
            match = _LINE_END.search(text, here)
            return len(text) if match is None else match.start()
        if mark == "/*":
            end = text.find("*/", here + 2)
            return -1 if end < 0 else end + 2
        if mark == "'" and _escape_string(text, here):
            match = _ESCAPED.match(text, here)
            return -1 if match is None else match.end()
        end = text.find(mark, here + len(mark))
        return -1 if end < 0 else end + len(mark)

    def _piece(self, end: int) -> tuple[Piece, int]:
        error = self._invalid(end) or self.error
        if error is None and self.open:
            mark, at = self.open[-1]
            error = ScriptError(
                "SYNTAX_ERROR", f"{mark} is never closed", hint=f"add the missing {_CLOSING[mark]}", span=self._at(at)
            )
        return Piece(self.start, end, error), end + 1

    def _torn(self, mark: str, here: int) -> tuple[Piece, int]:
        what = {"'": "string", "/*": "comment", '"': "quoted name", "`": "quoted name"}.get(mark, "string")
        closing = {"/*": "*/"}.get(mark, mark if len(mark) == 1 else "the dollar signs it begins with")
        error = ScriptError(
            "SYNTAX_ERROR",
            f"the {what} that begins here never ends",
            hint=f"close it with {closing}",
            span=self._at(here, 1 if len(mark) == 1 else 2),
        )
        end = len(self.text)
        return Piece(self.start, end, self._invalid(end) or error, torn=True), end

    def _skip(self, error: PenstockError, here: int) -> tuple[Piece, int]:
        match = _SKIP.match(self.text, here)
        end = here if match is None else match.end()
        if end < len(self.text) and self.text[end] != ";":  # a quote that never ends
            end = len(self.text)
        return Piece(self.start, end, error), end + 1

    def _invalid(self, end: int) -> PenstockError | None:
        match = INVALID.search(self.text, self.start, end)
        if match is None:
            return None
        what = "a NUL character" if match.group() == "\x00" else "bytes that are not valid UTF-8"
        return ScriptError(
            "INVALID_CHARACTER",
            f"the statement holds {what}",
            hint="save the script as UTF-8 text",
            span=self._at(match.start()),
        )

    def _close(self, mark: str, here: int) -> None:
        if self.open and _CLOSING[self.open[-1][0]] == mark:
            self.open.pop()
        elif self.error is None:
            wanted = f"expected {_CLOSING[self.open[-1][0]]}, found {mark}" if self.open else f"{mark} closes nothing"
            self.error = ScriptError("SYNTAX_ERROR", wanted, span=self._at(here))

    def _hash(self, here: int) -> None:
        if self.error is None and not self.text.startswith(">", here + 1):
            self.error = ScriptError(
                "SYNTAX_ERROR", "# does not begin a comment", hint="use -- or /* */", span=self._at(here)
            )

    def _too_long(self) -> PenstockError:
        return ScriptError(
            "STATEMENT_TOO_LONG",
            f"the statement is longer than {MAX_STATEMENT >> 20} MiB",
            hint="load data from a file or a topic, not from the text of a statement",
            span=self._at(self.start),
        )

    def _too_deep(self, here: int) -> PenstockError:
        return too_deep(self._at(here))

    def _at(self, start: int, length: int = 1) -> Span:
        return Lines(self.text).span(start, start + length)


def too_deep(span: Span) -> PenstockError:
    """The error for a statement whose nesting would overrun the parser."""
    return ScriptError(
        "STATEMENT_TOO_DEEP",
        "the statement is nested too deep",
        hint="cut the query into views or WITH clauses, or a long chain of operators into a list",
        span=span,
    )


def _escape_string(text: str, quote: int) -> bool:
    """Whether the quote belongs to E'…', in which a backslash escapes the next character."""
    if quote == 0 or text[quote - 1] not in "eE":
        return False
    return quote == 1 or not (text[quote - 2].isalnum() or text[quote - 2] == "_")


_SET = re.compile(
    r"(?:(?:EXPLAIN |SHOW REWRITE )(?:(?:PHYSICAL|PLAN FOR) )*)?"
    r"(?:EXECUTE STATEMENT SET BEGIN\b|BEGIN STATEMENT SET$)|EXPLAIN (?:(?:PHYSICAL|PLAN FOR) )*STATEMENT SET BEGIN\b"
)
_FORMAT = re.compile(r"\s*+\(\s*+FORMAT\s++\w++\s*+\)", re.IGNORECASE)  # EXPLAIN (FORMAT JSON)
# The words CASE and END outside of strings, names and comments; behind a dot every word is a name.
_ENDS = re.compile(
    r"""E'(?:[^'\\]++|\\.|'')*+'|'[^']*+'|"[^"]*+"|`[^`]*+`|--[^\r\n]*+|/\*.*?\*/|\$(?P<tag>(?:[^\W\d]\w*+)?)\$.*?\$(?P=tag)\$
      |\.\s*+\w++|(?P<case>CASE\b)|(?P<end>END\b)|\w++""",
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)


def _join_sets(text: str, pieces: list[Piece]) -> list[Piece]:
    """Puts the statements of a statement set, which have semicolons inside, together again up to END.

    A set that has no END before the next set begins is broken: only its first statement is lost.
    """
    joined: list[Piece] = []
    index = 0
    while index < len(pieces):
        piece = pieces[index]
        index += 1
        if _begins_set(text, piece):
            last = _end_of_set(text, pieces, index - 1)
            if last is not None:
                error = next((p.error for p in pieces[index - 1 : last + 1] if p.error is not None), None)
                piece = Piece(piece.start, pieces[last].end, error)
                index = last + 1
        joined.append(piece)
    return joined


def _begins_set(text: str, piece: Piece) -> bool:
    words = first_words(text, piece.start, piece.end, 8)
    if words and words[0] == "EXPLAIN":
        form = _FORMAT.search(text, piece.start, min(piece.end, piece.start + 200))
        if form is not None:
            before = first_words(text, piece.start, form.start(), 8)
            words = before + first_words(text, form.end(), piece.end, 8)
    return _SET.match(" ".join(words)) is not None


def _end_of_set(text: str, pieces: list[Piece], first: int) -> int | None:
    """The piece that ends the set which begins with the piece `first`."""
    for index in range(first, len(pieces)):
        if index > first and _begins_set(text, pieces[index]):
            return None
        if _ends_set(text, pieces[index]):
            return index
    return None


def _ends_set(text: str, piece: Piece) -> bool:
    """Whether a piece ends with an END that belongs to no CASE."""
    open_cases = 0
    for match in _ENDS.finditer(text, piece.start, piece.end):
        if match["case"]:
            open_cases += 1
        elif match["end"]:
            if open_cases == 0:
                return _skip_blank(text, match.end()) >= piece.end
            open_cases -= 1
    return False
