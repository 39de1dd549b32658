"""What all of our grammar stands on: taking tokens, asking for one, and saying what was expected instead.

The class is sqlglot's parser with its tolerance taken out. Where sqlglot is made to read every dialect and lets much
pass (a comma too many, a missing THEN, a number as a name), a text that is not quite SQL must be refused here, in our
words: sqlglot's own messages quote the text around the error, which may hold a password.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Final, NoReturn, TypeVar

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import NotYetError, PenstockError, ResolutionError, ScriptError, Span
from penstock.sql.spans import token_span
from penstock.sql.statements import Name
from penstock.sql.tokens import RESERVED, SOFT, WORDS

R = TypeVar("R")

NAME_TOKENS: Final = frozenset({TokenType.VAR, TokenType.IDENTIFIER, *SOFT.values()} - set(RESERVED.values()))
SYSTEM_SCHEMA: Final = "penstock"  # what system tables are named under
WORD_TOKENS: Final = frozenset({TokenType.VAR, *WORDS.values()})

# sqlglot's complaints that say what was expected; whatever is not here becomes "unexpected …".
_EXPECTED: Final = {
    "Expected table name": "a table name",
    "Required argument": "an expression",
    "Expected CTE to have alias": "a name",
    "Expected AS after CAST": "AS",
}
_EXPECTING = re.compile(r"Expect(?:ing|ed) ([()\[\]<>]|[A-Z]+)$")


class SyntaxFailure(ParseError):
    """What the grammar expected, and the token it found; becomes a SYNTAX_ERROR once the token may be quoted.

    It is one of sqlglot's errors so that sqlglot's own look-ahead, which tries a rule and steps back, keeps working.
    """

    def __init__(self, expected: str | None, token: Token | None, hint: str | None = None) -> None:
        super().__init__("syntax")
        self.expected = expected
        self.token = token
        self.hint = hint


class Reader(Parser):
    """The base of our grammar: sqlglot's token machinery, strict."""

    def __init__(self, **arguments: object) -> None:
        super().__init__(**arguments)  # type: ignore[arg-type]
        self.secret_stretches: list[tuple[int, int]] = []
        # Of the OVER that is read: the first and the last word of its frame, and the frame where that is a session.
        self._framed: tuple[Token, Token] | None = None
        self._session: exp.Expr | None = None
        self.type_at: int | None = None  # where a word begins that should be a type and is none
        self.shown: Callable[[Token], str] = describe_token

    def load(self, text: str, tokens: list[Token]) -> None:
        """Stands at the first token of a statement; positions of the tokens count in `text`."""
        self.reset()
        self.secret_stretches = []
        self.type_at = None
        self.sql = text
        self._chunks = [tokens]
        self._advance_chunk()

    # errors

    def raise_error(self, message: str, token: Token | None = None) -> NoReturn:
        """Every complaint of sqlglot's grammar, in our words."""
        match = _EXPECTING.match(message)
        expected = match.group(1) if match else next((w for m, w in _EXPECTED.items() if message.startswith(m)), None)
        raise SyntaxFailure(expected, token or self._curr or None)

    def fail(self, expected: str, hint: str | None = None) -> NoReturn:
        """Refuses the current token."""
        raise SyntaxFailure(expected, self._curr or None, hint)

    def refuse(self, error: type[PenstockError], condition: str, message: str, hint: str, token: Token) -> NoReturn:
        """Raises an error of ours at a token."""
        raise error(condition, message, hint=hint, span=token_span(token))

    def not_yet(
        self, message: str, hint: str, token: Token | None = None, condition: str = "CLAUSE_NOT_YET"
    ) -> NoReturn:
        """Refuses a clause, statement or dialect that is planned."""
        raise NotYetError(condition, message, hint=hint, span=token_span(token or self._curr or self._prev))

    def validate_expression(  # type: ignore[override]
        self, expression: exp.Expr, args: list[exp.Expr] | None = None
    ) -> exp.Expr:
        """Refuses a node that lacks a part it cannot be without, at the token where the part should stand."""
        for name, mandatory in expression.arg_types.items():
            value = expression.args.get(name)
            if mandatory and (value is None or (isinstance(value, list) and not value)):
                raise SyntaxFailure("an expression", self._curr or None)
        return expression

    # tokens

    @property
    def current(self) -> Token:
        """The token to be taken next; false at the end of the statement."""
        return self._curr

    @property
    def following(self) -> Token:
        """The token behind the current one."""
        return self._next

    @property
    def taken(self) -> Token:
        """The token taken last."""
        return self._prev

    def step(self, count: int = 1) -> None:
        """Takes tokens."""
        self._advance(count)

    def step_back(self, first: Token | None = None) -> None:
        """Stands at a token taken before, the last one unless told."""
        index = self._index - 1
        while first is not None and self._tokens[index] is not first:
            index -= 1
        self._retreat(index)

    def close(self) -> None:
        """Takes a closing bracket."""
        self.expect_symbol(TokenType.R_PAREN, ")")

    def connected(self) -> bool:
        """Whether nothing stands between the token taken last and the current one."""
        return self._is_connected()

    def several(self, item: Callable[[], R | None]) -> list[R]:
        """Items with commas between them."""
        return self._parse_csv(item)

    def identifier(self) -> exp.Expr:
        """A name as a node."""
        found = self._parse_id_var()
        if found is None:
            self.fail("a name")
        return found

    def word(self, *texts: str) -> bool:
        """Takes these words, if they come next."""
        return bool(self._match_text_seq(*texts))

    def ahead(self, *texts: str) -> bool:
        """Whether these words come next."""
        return bool(self._match_text_seq(*texts, advance=False))

    def any_word(self, *texts: str) -> str | None:
        """Takes one of these words and returns it, in upper case."""
        return self._prev.text.upper() if self._match_texts(frozenset(texts)) else None

    def expect(self, *texts: str) -> None:
        """Takes these words or refuses the first that differs."""
        for text in texts:
            if not self.word(text):
                self.fail(text)

    def symbol(self, kind: TokenType) -> bool:
        """Takes a token of this kind, if it comes next."""
        return bool(self._match(kind))

    def expect_symbol(self, kind: TokenType, shown: str) -> None:
        """Takes a token of this kind or refuses what stands there."""
        if not self._match(kind):
            self.fail(shown)

    def at(self, *kinds: TokenType) -> bool:
        """Whether the current token is of one of these kinds."""
        return self._curr.token_type in kinds

    def peek(self, offset: int) -> Token | None:
        """The token `offset` places after the current one."""
        index = self._index + offset
        return self._tokens[index] if 0 <= index < self._tokens_size else None

    def peek_text(self, offset: int, *texts: str) -> bool:
        """Whether the token `offset` places on is one of these words."""
        token = self.peek(offset)
        return token is not None and token.token_type != TokenType.IDENTIFIER and token.text.upper() in texts

    def since(self, first: Token) -> Span:
        """The span from a token to the last one taken."""
        return token_span(first, self._prev if self._prev and self._prev.end >= first.end else first)

    def end(self) -> None:
        """Refuses whatever is left of the statement."""
        if self._curr:
            raise SyntaxFailure(None, self._curr)

    # values

    def name(self, what: str = "a name") -> Name:
        """One identifier, not dotted."""
        token = self._curr
        if not token or token.token_type not in NAME_TOKENS:
            self.fail(what, _reserved_hint(token))
        self._advance()
        if self._curr.token_type == TokenType.DOT:
            if token.text.lower() == SYSTEM_SCHEMA:
                self.refuse(
                    ResolutionError,
                    "WRONG_OBJECT_KIND",
                    f"what is named {SYSTEM_SCHEMA}.… is a system table, and can only be read",
                    f"SELECT reads it and DESCRIBE shows its columns; your own names have no {SYSTEM_SCHEMA}. in front",
                    token,
                )
            self.not_yet(
                "names with a catalog or database in front are not there yet",
                "there is one catalog; use the last part of the name alone",
                token,
            )
        return Name(token.text, token.token_type == TokenType.IDENTIFIER, token_span(token))

    def names(self) -> tuple[Name, ...]:
        """( a, b, … )"""
        return self.bracketed(self.name)

    def bracketed(self, item: Callable[[], R], *, comma_behind: bool = False) -> tuple[R, ...]:
        """( item, … ), possibly empty; `comma_behind`: a comma may stand behind the last one."""
        self.expect_symbol(TokenType.L_PAREN, "(")
        found: list[R] = []
        if not self.symbol(TokenType.R_PAREN):
            found.append(item())
            while self.symbol(TokenType.COMMA) and not (comma_behind and self._curr.token_type == TokenType.R_PAREN):
                found.append(item())
            self.expect_symbol(TokenType.R_PAREN, ")")
        return tuple(found)

    def string(self, what: str = "a string") -> str:
        """The value of a string literal."""
        if self._curr.token_type != TokenType.STRING:
            self.fail(what)
        self._advance()
        return str(self._prev.text)

    # sqlglot's rules, strict

    def _parse_csv(self, parse_method: Callable[[], R | None], sep: TokenType = TokenType.COMMA) -> list[R]:
        first = parse_method()
        if first is None:
            return []
        items = [first]
        while self._match(sep):
            item = parse_method()
            if item is None:
                self.fail("an expression")
            items.append(item)
        return items

    def _parse_id_var(self, any_token: bool = True, tokens: Collection[TokenType] | None = None) -> exp.Expr | None:
        kind = self._curr.token_type
        # Behind a dot every word is a name; but `a. FROM t` is a name left out, not a column called from.
        after_dot = self._prev.token_type == TokenType.DOT and self._is_connected()
        if kind in (tokens or NAME_TOKENS) or kind == TokenType.IDENTIFIER or (after_dot and kind in WORD_TOKENS):
            self._advance()
            return self._identifier_expression(quoted=self._prev.token_type == TokenType.IDENTIFIER)
        return None

    def _advance_any(self, ignore_reserved: bool = False) -> Token | None:
        if self._curr and self._curr.token_type in WORD_TOKENS | {TokenType.IDENTIFIER}:
            self._advance()
            return self._prev
        return None

    def _parse_string_as_identifier(self) -> exp.Identifier | None:
        return None

    def _parse_placeholder(self) -> exp.Expr | None:
        return None


def describe_token(token: Token) -> str:
    """A token without its text."""
    if token.token_type in {TokenType.STRING, TokenType.HEX_STRING}:
        return "a string"
    if token.token_type == TokenType.NUMBER:
        return "a number"
    if token.token_type in WORD_TOKENS | {TokenType.IDENTIFIER}:
        return "a word"
    return str(token.text)


def _reserved_hint(token: Token | None) -> str | None:
    if token and token.token_type in RESERVED.values():
        return "quote a name that is a keyword"
    return None


def syntax_error(failure: SyntaxFailure, end: Span, shown: Callable[[Token], str]) -> ScriptError:
    """The error of ours for a failure; `end` is where the statement ends, `shown` a token as it may be quoted."""
    token = failure.token
    found = shown(token) if token else "the end of the statement"
    message = f"expected {failure.expected}, found {found}" if failure.expected else f"unexpected {found}"
    hint = failure.hint
    if hint is None and token and token.token_type == TokenType.VAR and token.text.upper() == "EMIT":
        hint = "EMIT stands at the end of the statement, outside of all brackets"
    if hint is None and token and token.token_type == TokenType.HINT:
        hint = "a hint stands behind SELECT, or as OPTIONS behind the name of a table that is read"
    return ScriptError("SYNTAX_ERROR", message, hint=hint, span=token_span(token) if token else end)
