"""ksqlDB: what of it is recognised and refused. Its windows, relations and queries are read by the files beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import NotYetError, Span
from penstock.sql.spans import token_span

if TYPE_CHECKING:
    from penstock.sql.reading import Reader

NAME = "ksqlDB"
TOPIC: Final = "KAFKA_TOPIC"

_WINDOWS: Final = ("TUMBLING", "HOPPING", "SESSION")


def refuse(what: str, hint: str, token: Token) -> NoReturn:
    """Refuses a construct of ksqlDB."""
    refuse_at(what, hint, token_span(token))


def refuse_at(what: str, hint: str, span: Span) -> NoReturn:
    """Refuses a construct of ksqlDB at a place."""
    raise NotYetError("DIALECT_NOT_YET", f"{what} of ksqlDB is not there yet", hint=hint, span=span)


def check_clause(parser: Reader) -> bool:
    """Whether a window of ksqlDB, or its WITHIN, begins behind a relation."""
    token, following = parser.current, parser.following
    if token.token_type == TokenType.WINDOW and following.text.upper() in _WINDOWS:
        return True
    if token.token_type != TokenType.VAR:
        return False
    return token.text.upper() == "WITHIN" and following.token_type in {TokenType.NUMBER, TokenType.L_PAREN}


def check_option(key: str, span: Span) -> None:
    """Refuses the option keys only ksqlDB has, where they are not those of a relation over a topic."""
    if key.upper() in {TOPIC, "VALUE_FORMAT", "KEY_FORMAT", "WINDOW_TYPE"}:
        refuse_at(f"the option {key.upper()}", "use connector = 'kafka', topic = '…', format = '…'", span)
