"""The tokens of one statement.

Made by one regular expression and handed to sqlglot's parser as its own `Token` values. Two things differ from
sqlglot's tokenizer. Positions count in the whole script, and `line` and `col` are those of a token's first character.
And very few words are keywords: a word that can only be an operator or begin a clause has a token type of its own,
all others (`timestamp`, `key`, `value`, `type` …) are plain words, so that they can name columns.
"""

from __future__ import annotations

import re
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import ScriptError, Span
from penstock.sql.dialects import questdb

T = TokenType

# Never a name unless quoted.
RESERVED: Final[dict[str, TokenType]] = {
    "AND": T.AND,
    "AS": T.ALIAS,
    "BETWEEN": T.BETWEEN,
    "CASE": T.CASE,
    "CROSS": T.CROSS,
    "DISTINCT": T.DISTINCT,
    "ELSE": T.ELSE,
    "END": T.END,
    "EXCEPT": T.EXCEPT,
    "FALSE": T.FALSE,
    "FETCH": T.FETCH,
    "FOR": T.FOR,
    "FROM": T.FROM,
    "HAVING": T.HAVING,
    "ILIKE": T.ILIKE,
    "IN": T.IN,
    "INNER": T.INNER,
    "INTERSECT": T.INTERSECT,
    "IS": T.IS,
    "JOIN": T.JOIN,
    "LATERAL": T.LATERAL,
    "LIKE": T.LIKE,
    "LIMIT": T.LIMIT,
    "NATURAL": T.NATURAL,
    "NOT": T.NOT,
    "NULL": T.NULL,
    "ON": T.ON,
    "OR": T.OR,
    "QUALIFY": T.QUALIFY,
    "RLIKE": T.RLIKE,
    "SELECT": T.SELECT,
    "THEN": T.THEN,
    "TRUE": T.TRUE,
    "UNION": T.UNION,
    "UNNEST": T.UNNEST,
    "USING": T.USING,
    "VALUES": T.VALUES,
    "WHEN": T.WHEN,
    "WHERE": T.WHERE,
    "WITH": T.WITH,
}

# Keywords where the grammar expects them, names everywhere else.
SOFT: Final[dict[str, TokenType]] = {
    "ALL": T.ALL,
    "ANTI": T.ANTI,
    "ANY": T.ANY,
    "ASC": T.ASC,
    "ASOF": T.ASOF,
    "CUBE": T.CUBE,
    "CURRENT_DATE": T.CURRENT_DATE,
    "CURRENT_TIME": T.CURRENT_TIME,
    "CURRENT_TIMESTAMP": T.CURRENT_TIMESTAMP,
    "DESC": T.DESC,
    "DIV": T.DIV,
    "ESCAPE": T.ESCAPE,
    "EXISTS": T.EXISTS,
    "FILTER": T.FILTER,
    "FIRST": T.FIRST,
    "FULL": T.FULL,
    "INTERVAL": T.INTERVAL,
    "LEFT": T.LEFT,
    "LOCALTIME": T.LOCALTIME,
    "LOCALTIMESTAMP": T.LOCALTIMESTAMP,
    "MATCH_CONDITION": T.MATCH_CONDITION,
    "MATCH_RECOGNIZE": T.MATCH_RECOGNIZE,
    "NEXT": T.NEXT,
    "OFFSET": T.OFFSET,
    "ORDINALITY": T.ORDINALITY,
    "OUTER": T.OUTER,
    "OVER": T.OVER,
    "RANGE": T.RANGE,
    "RECURSIVE": T.RECURSIVE,
    "REGEXP": T.RLIKE,
    "RIGHT": T.RIGHT,
    "ROLLUP": T.ROLLUP,
    "ROWS": T.ROWS,
    "SEMI": T.SEMI,
    "SOME": T.SOME,
    "VIEW": T.VIEW,
    "WINDOW": T.WINDOW,
}

WORDS: Final[dict[str, TokenType]] = {**SOFT, **RESERVED}

# Two words that are one keyword, whatever stands between them.
PAIRS: Final[dict[tuple[str, str], TokenType]] = {
    ("GROUP", "BY"): T.GROUP_BY,
    ("ORDER", "BY"): T.ORDER_BY,
    ("PARTITION", "BY"): T.PARTITION_BY,
    ("GROUPING", "SETS"): T.GROUPING_SETS,
    ("SIMILAR", "TO"): T.SIMILAR_TO,
}
_SECOND: Final = frozenset(second for _, second in PAIRS)

SYMBOLS: Final[dict[str, TokenType]] = {
    "(": T.L_PAREN,
    ")": T.R_PAREN,
    "[": T.L_BRACKET,
    "]": T.R_BRACKET,
    "{": T.L_BRACE,
    "}": T.R_BRACE,
    ",": T.COMMA,
    ".": T.DOT,
    ";": T.SEMICOLON,
    ":": T.COLON,
    "::": T.DCOLON,
    "+": T.PLUS,
    "-": T.DASH,
    "*": T.STAR,
    "/": T.SLASH,
    "%": T.MOD,
    "=": T.EQ,
    "==": T.EQ,
    "<>": T.NEQ,
    "!=": T.NEQ,
    "<": T.LT,
    "<=": T.LTE,
    ">": T.GT,
    ">=": T.GTE,
    "<=>": T.NULLSAFE_EQ,
    "||": T.DPIPE,
    "|": T.PIPE,
    "&": T.AMP,
    "^": T.CARET,
    "~": T.TILDE,
    "~*": T.IRLIKE,
    "!~": T.IRLIKE,
    "!~*": T.IRLIKE,
    "->": T.ARROW,
    "->>": T.DARROW,
    "=>": T.FARROW,
    "#>": T.HASH_ARROW,
    "#>>": T.DHASH_ARROW,
    "?": T.PLACEHOLDER,
}

MAX_TOKENS: Final = 100_000  # of one statement; some two seconds of the parser

_TOKEN = re.compile(
    r"""
    (?P<space>[\s\ufeff]+|--[^\r\n]*|/\*(?!\+).*?\*/)
  | (?P<hint>/\*\+.*?\*/)
  | (?P<escaped>[eE]'(?:[^'\\]|\\.|'')*+')
  | (?P<hex>[xX]'[^']*')
  | (?P<string>'[^']*(?:''[^']*)*')
  | (?P<dollar>\$(?P<tag>(?:[^\W\d]\w*)?)\$.*?\$(?P=tag)\$)
  | (?P<parameter>\$[0-9]+)
  | (?P<name>"[^"]*(?:""[^"]*)*"|`[^`]*(?:``[^`]*)*`)
  | (?P<word>[^\W\d]\w*)
  | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
  | (?P<symbol>\#>>|->>|<=>|!~\*|!~|~\*|\#>|->|=>|::|==|<>|!=|<=|>=|\|\||[()\[\]{},.;:+\-*/%=<>|&^~?])
    """,
    re.VERBOSE | re.DOTALL,
)

_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([0-7]{1,3})|(.))|''", re.DOTALL)
_PLAIN_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def tokenize(text: str, start: int = 0, end: int | None = None) -> list[Token]:
    """The tokens of text[start:end], comments left out."""
    end = len(text) if end is None else end
    line = text.count("\n", 0, start) + 1
    line_start = text.rfind("\n", 0, start) + 1
    tokens: list[Token] = []
    position = start
    match_at = _TOKEN.match
    while position < end:
        match = match_at(text, position, end)
        if match is None:
            raise _unexpected(text, Span(line, position - line_start + 1, 1, position))
        kind, stop = match.lastgroup, match.end()
        if len(tokens) > MAX_TOKENS:
            raise ScriptError(
                "STATEMENT_TOO_LONG",
                f"the statement has more than {MAX_TOKENS} words and symbols",
                hint="load data from a file or a topic, not from the text of a statement",
                span=Span(line, position - line_start + 1, 1, position),
            )
        if kind == "hint":
            tokens += _hint(text, position, stop)
        elif kind != "space":
            _add(tokens, kind or "", match.group(), Span(line, position - line_start + 1, stop - position, position))
        breaks = text.count("\n", position, stop)
        if breaks:
            line += breaks
            line_start = text.rfind("\n", position, stop) + 1
        position = stop
    return tokens


def _hint(text: str, start: int, stop: int) -> list[Token]:
    """The tokens of /*+ … */, its two ends among them."""
    inside = tokenize(text, start + 3, stop - 2)
    return [_end_of_hint(text, start, start + 3), *inside, _end_of_hint(text, stop - 2, stop)]


def _end_of_hint(text: str, start: int, stop: int) -> Token:
    line = text.count("\n", 0, start) + 1
    column = start - text.rfind("\n", 0, start)
    return Token(T.HINT, text[start:stop], line, column, start, stop - 1)


_CHAIN: Final = frozenset(
    {T.AND, T.OR, T.NOT, T.PLUS, T.DASH, T.STAR, T.SLASH, T.MOD, T.DPIPE, T.PIPE, T.AMP, T.CARET, T.TILDE, T.DOT}
    | {T.DCOLON, T.ARROW, T.DARROW, T.HASH_ARROW, T.DHASH_ARROW, T.UNION, T.EXCEPT, T.INTERSECT, T.JOIN, T.CASE, T.EQ}
)


def longest_chain(tokens: list[Token], limit: int) -> Token | None:
    """The operator that makes a chain longer than the limit. Such a chain is refused before it costs time."""
    counts = [0]
    for token in tokens:
        kind = token.token_type
        if kind in _CHAIN:
            counts[-1] += 1
            if counts[-1] > limit:
                return token
        elif kind is T.COMMA:
            counts[-1] = 0
        elif kind in {T.L_PAREN, T.L_BRACKET}:
            counts.append(0)
        elif kind in {T.R_PAREN, T.R_BRACKET} and len(counts) > 1:
            counts.pop()
    return None


def _add(tokens: list[Token], kind: str, text: str, span: Span) -> None:
    if kind == "word":
        upper = text.upper()
        if upper in _SECOND and tokens:
            previous = tokens[-1]
            pair = PAIRS.get((previous.text.upper(), upper)) if previous.token_type is T.VAR else None
            if pair is not None:
                previous.text = f"{previous.text.upper()} {upper}"
                previous.token_type, previous.end = pair, span.end - 1
                return
        _append(tokens, WORDS.get(upper, T.VAR), text, span)
    elif kind == "symbol":
        _append(tokens, SYMBOLS[text], text, span)
    elif kind == "parameter":
        _append(tokens, T.PARAMETER, text, span)
    elif kind == "string":
        _append(tokens, T.STRING, text[1:-1].replace("''", "'"), span)
    elif kind == "number":
        _append(tokens, T.NUMBER, text, span)
    elif kind == "name":
        _append(tokens, T.IDENTIFIER, _name(text, span), span)
    elif kind == "hex":
        _append(tokens, T.HEX_STRING, _hex(text, span), span)
    elif kind == "escaped":
        _append(tokens, T.STRING, _unescape(text[2:-1], span), span)
    else:  # $$ … $$ or $tag$ … $tag$
        width = text.index("$", 1) + 1
        _append(tokens, T.STRING, text[width:-width], span)


def _append(tokens: list[Token], kind: TokenType, text: str, span: Span) -> None:
    if tokens and kind in _GLUED and tokens[-1].token_type is T.NUMBER and tokens[-1].end + 1 == span.start:
        questdb.check_glued(tokens)
        raise ScriptError("SYNTAX_ERROR", "a name cannot begin with a digit", hint="quote the name", span=span)
    tokens.append(Token(kind, text, span.line, span.column, span.start, span.end - 1))


_GLUED: Final = frozenset({T.VAR, T.NUMBER, *WORDS.values()})


def _name(text: str, span: Span) -> str:
    quote = text[0]
    name = text[1:-1].replace(quote * 2, quote)
    if not name:
        raise ScriptError("SYNTAX_ERROR", "a quoted name cannot be empty", span=span)
    return name


def _hex(text: str, span: Span) -> str:
    digits = text[2:-1]
    if len(digits) % 2 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
        raise ScriptError("SYNTAX_ERROR", "X'…' takes pairs of hexadecimal digits", span=span)
    return digits.upper()


def _unescape(body: str, span: Span) -> str:
    def one(match: re.Match[str]) -> str:
        hexadecimal = match.group(1) or match.group(2) or match.group(3)
        if hexadecimal:
            return _character(int(hexadecimal, 16), span)
        if match.group(4):
            return _character(int(match.group(4), 8), span)
        if match.group(5):
            return _PLAIN_ESCAPES.get(match.group(5), match.group(5))
        return "'"

    return _ESCAPE.sub(one, body)


def _character(code: int, span: Span) -> str:
    if code == 0 or 0xD800 <= code <= 0xDFFF or code > 0x10FFFF:
        raise ScriptError("INVALID_CHARACTER", "an escape of the string stands for no character", span=span)
    return chr(code)


def _unexpected(text: str, span: Span) -> ScriptError:
    character = text[span.start]
    shown = character if character.isprintable() else f"U+{ord(character):04X}"
    return ScriptError("SYNTAX_ERROR", f"unexpected character {shown}", span=span)
