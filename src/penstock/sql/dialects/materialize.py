"""Materialize: what of it is recognised and refused. Its connections, sources and sinks are part of our grammar."""

from __future__ import annotations

from typing import NoReturn

from sqlglot.tokenizer_core import Token

from penstock.errors import NotYetError
from penstock.sql.spans import token_span

NAME = "Materialize"


def refuse(what: str, hint: str, token: Token) -> NoReturn:
    """Refuses a construct of Materialize."""
    raise NotYetError("DIALECT_NOT_YET", f"{what} of Materialize is not there yet", hint=hint, span=token_span(token))
