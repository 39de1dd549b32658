"""Spark's declarative pipelines and streaming clauses: recognised and refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import NotYetError
from penstock.sql.spans import token_span

if TYPE_CHECKING:
    from penstock.sql.reading import Reader

NAME = "Spark"


def refuse(what: str, hint: str, token: Token) -> NoReturn:
    """Refuses a construct of Spark's pipelines."""
    raise NotYetError("DIALECT_NOT_YET", f"{what} of Spark is not there yet", hint=hint, span=token_span(token))


def check_relation(parser: Reader) -> None:
    """FROM STREAM t, FROM STREAM(t)"""
    token, following = parser.current, parser.following
    if token.text.upper() != "STREAM" or token.token_type != TokenType.VAR:
        return
    if parser.peek_text(1, "EMIT"):
        return
    if following.token_type in {TokenType.VAR, TokenType.IDENTIFIER, TokenType.L_PAREN}:
        refuse("FROM STREAM", "name the stream alone; it is read as a stream", token)


def check_watermark(parser: Reader) -> None:
    """FROM t WATERMARK ts DELAY OF INTERVAL …"""
    token, after = parser.current, parser.peek(2)
    if token.text.upper() == "WATERMARK" and after is not None and after.text.upper() == "DELAY":
        refuse("WATERMARK … DELAY OF", "declare WATERMARK FOR ts AS ts - INTERVAL … in CREATE STREAM", token)


def check_create(parser: Reader) -> None:
    """CREATE [OR REFRESH] STREAMING TABLE, CREATE FLOW"""
    token = parser.current
    if parser.ahead("OR", "REFRESH") or parser.ahead("STREAMING", "TABLE") or parser.ahead("STREAMING", "LIVE"):
        refuse("CREATE STREAMING TABLE", "use CREATE MATERIALIZED VIEW … AS SELECT", token)
    if parser.ahead("FLOW"):
        refuse("CREATE FLOW", "use INSERT INTO … SELECT", token)


def check_statement(parser: Reader) -> None:
    """AUTO CDC INTO …, APPLY CHANGES INTO …"""
    token = parser.current
    if parser.ahead("AUTO", "CDC") or parser.ahead("APPLY", "CHANGES"):
        refuse(f"{token.text.upper()} {parser.following.text.upper()}", "use FORMAT DEBEZIUM or a primary key", token)
