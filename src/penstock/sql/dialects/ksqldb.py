"""ksqlDB: recognised and refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import NotYetError
from penstock.sql.spans import token_span

if TYPE_CHECKING:
    from penstock.sql.reading import Reader

NAME = "ksqlDB"


def refuse(what: str, hint: str, token: Token) -> NoReturn:
    """Refuses a construct of ksqlDB."""
    raise NotYetError("DIALECT_NOT_YET", f"ksqlDB's {what} is not there yet", hint=hint, span=token_span(token))


def check_clause(parser: Reader) -> bool:
    """Refuses the clauses ksqlDB puts behind a relation; False when none begins here."""
    token, following = parser.current, parser.following
    upper = token.text.upper()
    if token.token_type == TokenType.WINDOW and following.text.upper() in {"TUMBLING", "HOPPING", "SESSION"}:
        refuse(f"WINDOW {following.text.upper()}", "GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)", token)
    if token.token_type != TokenType.VAR:
        return False
    if upper == "WITHIN" and (following.token_type in {TokenType.NUMBER, TokenType.L_PAREN}):
        refuse("WITHIN", "ON … AND a.ts BETWEEN b.ts - INTERVAL '2' HOUR AND b.ts", token)
    if upper == "GRACE" and following.text.upper() == "PERIOD":
        refuse("GRACE PERIOD", "give the delay in the WATERMARK of the stream", token)
    return False


def check_option(key: str, token: Token) -> None:
    """Refuses the option keys only ksqlDB has."""
    if key.upper() in {"KAFKA_TOPIC", "VALUE_FORMAT", "KEY_FORMAT", "WINDOW_TYPE"}:
        refuse(f"option {key.upper()}", "use connector = 'kafka', topic = '…', format = '…'", token)
