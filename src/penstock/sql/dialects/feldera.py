"""Feldera: recognised and refused."""

from __future__ import annotations

from typing import NoReturn

from sqlglot.tokenizer_core import Token

from penstock.errors import NotYetError
from penstock.sql.spans import token_span

NAME = "Feldera"


def refuse(what: str, hint: str, token: Token) -> NoReturn:
    """Refuses a construct of Feldera."""
    raise NotYetError("DIALECT_NOT_YET", f"Feldera's {what} is not there yet", hint=hint, span=token_span(token))


def check_option(key: str, token: Token) -> None:
    """Refuses WITH ('connectors' = '[{…}]')."""
    if key.lower() == "connectors":
        refuse("connectors option", "use connector = '…' and one option a setting", token)
