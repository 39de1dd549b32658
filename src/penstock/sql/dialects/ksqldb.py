"""ksqlDB: recognised and, but for its windows and WITHIN (ksql_windows), refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import NotYetError
from penstock.sql.spans import token_span

if TYPE_CHECKING:
    from penstock.sql.reading import Reader

NAME = "ksqlDB"

_WINDOWS: Final = ("TUMBLING", "HOPPING", "SESSION")


def refuse(what: str, hint: str, token: Token) -> NoReturn:
    """Refuses a construct of ksqlDB."""
    raise NotYetError("DIALECT_NOT_YET", f"{what} of ksqlDB is not there yet", hint=hint, span=token_span(token))


def check_clause(parser: Reader) -> bool:
    """Whether a window of ksqlDB, or its WITHIN, begins behind a relation; refuses its other clauses."""
    token, following = parser.current, parser.following
    upper = token.text.upper()
    if token.token_type == TokenType.WINDOW and following.text.upper() in _WINDOWS:
        return True
    if token.token_type != TokenType.VAR:
        return False
    if upper == "WITHIN" and following.token_type in {TokenType.NUMBER, TokenType.L_PAREN}:
        return True
    if upper == "GRACE" and following.text.upper() == "PERIOD":
        refuse("GRACE PERIOD", "give the delay in the WATERMARK of the stream", token)
    return False


def check_option(key: str, token: Token) -> None:
    """Refuses the option keys only ksqlDB has."""
    if key.upper() in {"KAFKA_TOPIC", "VALUE_FORMAT", "KEY_FORMAT", "WINDOW_TYPE"}:
        refuse(f"the option {key.upper()}", "use connector = 'kafka', topic = '…', format = '…'", token)
