"""Scripts: text in, statements or errors out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from penstock.errors import PenstockError, ScriptError, Span
from penstock.frozen import frozen
from penstock.sql import redact
from penstock.sql.dialect import Penstock
from penstock.sql.grammar.kinds import kind_of
from penstock.sql.grammar.statement import statement
from penstock.sql.lexical import MAX_STATEMENT, Lines, Piece, decode, split, too_deep
from penstock.sql.parser import PenstockParser, finish
from penstock.sql.reading import describe_token
from penstock.sql.redact import Source
from penstock.sql.spans import token_span
from penstock.sql.statements import Statement
from penstock.sql.tokens import longest_chain, tokenize

# Operators in a row without a comma. A tree may be far less deep; this one only bounds the time until that is seen.
MAX_CHAIN: Final = 2_000

_HOPELESS: Final = frozenset({"STATEMENT_TOO_LONG", "STATEMENT_TOO_DEEP"})


@frozen
class Parsed:
    """One statement of a script: what it says, or why it cannot be read.

    `kind` is its name ('CREATE STREAM', 'SELECT' …), as far as the first words tell, also for one that failed.
    `source` is the whole script, as it may be shown; spans count in it.
    """

    statement: Statement | None
    error: PenstockError | None
    kind: str
    span: Span
    source: Source


@frozen
class _Read:
    piece: Piece
    statement: Statement | None
    error: PenstockError | None
    hidden: list[tuple[int, int]]


def parse_script(script: str | bytes) -> list[Parsed]:
    """The statements of a script, in order. After an error it goes on behind the next semicolon.

    >>> [parsed.kind for parsed in parse_script("SELECT 1; CREATE STREAM; -- done")]
    ['SELECT', 'CREATE STREAM']
    """
    text = decode(script)
    pieces = split(text)
    torn = any(piece.torn for piece in pieces)
    reads: list[_Read] = []
    for piece in pieces:
        after_failure = bool(reads) and reads[-1].error is not None
        reads.append(_read(text, piece, torn=torn, after_failure=after_failure))
    hidden = [stretch for read in reads for stretch in read.hidden]
    source = redact.mask(text, [*hidden, *_between(text, pieces)])
    lines = Lines(text)
    return [
        Parsed(
            read.statement,
            read.error,
            kind_of(text, read.piece.start, read.piece.end),
            read.statement.span if read.statement else lines.span(read.piece.start, read.piece.end),
            source,
        )
        for read in reads
    ]


def parse_statement(text: str | bytes) -> Statement:
    """The one statement of a text; raises what is wrong with it."""
    found = parse_script(text)
    if len(found) != 1:
        span = found[1].span if found else Span(1, 1, 0)
        message = "expected one statement" if found else "the text holds no statement"
        raise ScriptError("SYNTAX_ERROR", message, span=span)
    if found[0].error is not None:
        raise found[0].error
    if found[0].statement is None:
        raise ScriptError("SYNTAX_ERROR", "the text holds no statement", span=found[0].span)
    return found[0].statement


def _between(text: str, pieces: list[Piece]) -> Iterator[tuple[int, int]]:
    """Comments outside of the statements."""
    position = 0
    for start, end in [*((piece.start, piece.end) for piece in pieces), (len(text), len(text))]:
        yield from redact.comments_between(text, position, start)
        position = end


def _read(text: str, piece: Piece, *, torn: bool, after_failure: bool) -> _Read:
    parser = PenstockParser(dialect=Penstock)

    def suspects() -> list[tuple[int, int]]:
        if piece.end - piece.start > MAX_STATEMENT or (piece.error and piece.error.condition in _HOPELESS):
            return [(piece.start, piece.end)]
        return redact.suspects(
            text, piece.start, piece.end, torn=torn, after_failure=after_failure, type_at=parser.type_at
        )

    if piece.error is not None:
        return _Read(piece, None, piece.error, suspects())
    try:
        tokens = tokenize(text, piece.start, piece.end)
        deep = longest_chain(tokens, MAX_CHAIN) if len(tokens) > MAX_CHAIN else None
        if deep is not None:
            raise too_deep(token_span(deep))
        parser.load(text, tokens)
        end = token_span(tokens[-1])
        found = parser.run(statement, Span(end.line, end.column + end.length, 1, end.end), _quoting(text, suspects))
        _finish(found)
    except PenstockError as error:
        return _Read(piece, None, error, suspects())
    return _Read(piece, found, None, parser.secret_stretches + redact.comments(text, piece.start, piece.end))


def _quoting(text: str, suspects: Callable[[], list[tuple[int, int]]]) -> Callable[[Token], str]:
    """How a message quotes a token: as the masked text shows it, else by what it is."""

    def shown(token: Token) -> str:
        if any(start <= token.end and token.start < end for start, end in suspects()):
            return describe_token(token)
        word = text[token.start : token.end + 1]
        return word if len(word) <= 40 and "\n" not in word else describe_token(token)

    return shown


def _finish(value: object) -> None:
    """Finishes every tree of a statement."""
    if isinstance(value, exp.Expr):
        finish(value)
    elif isinstance(value, tuple):
        for item in value:
            _finish(item)
    elif is_dataclass(value) and not isinstance(value, type | Span):
        for field in fields(value):
            _finish(getattr(value, field.name))
