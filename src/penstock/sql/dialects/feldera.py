"""Feldera: recognised and refused."""

from __future__ import annotations

from typing import NoReturn

from sqlglot.tokenizer_core import Token

from penstock.errors import NotYetError
from penstock.sql.spans import token_span

NAME = "Feldera"


def refuse(what: str, hint: str, token: Token) -> NoReturn:
    """Refuses a construct of Feldera."""
    raise NotYetError("DIALECT_NOT_YET", f"{what} of Feldera is not there yet", hint=hint, span=token_span(token))


def check_option(key: str, token: Token) -> None:
    """Refuses WITH ('connectors' = '[{…}]') and 'emit_final'."""
    if key.lower() == "connectors":
        refuse("the option connectors", "use connector = '…' and one option a setting", token)
    if key.lower() == "emit_final":
        refuse("the option emit_final", "end the query with EMIT FINAL", token)


def check_statement(token: Token) -> None:
    """Refuses LATENESS v.c INTERVAL … as a statement."""
    if token.text.upper() == "LATENESS":
        refuse("LATENESS of a view", "declare WATERMARK FOR ts AS ts - INTERVAL … in CREATE STREAM", token)
