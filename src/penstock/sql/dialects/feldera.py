"""Feldera: what of it is recognised and refused. Its connectors are read by feldera_connectors."""

from __future__ import annotations

from typing import NoReturn

from sqlglot.tokenizer_core import Token

from penstock.errors import NotYetError, Span
from penstock.sql.spans import token_span

NAME = "Feldera"

_OPTIONS = {
    "connectors": "leave it out, and write CREATE SINK s FROM the view WITH (connector = 'kafka', …)",
    "emit_final": "end the query with EMIT FINAL",
    "materialized": "leave it out; CREATE MATERIALIZED VIEW v AS SELECT * FROM the table keeps its rows",
}


def refuse(what: str, hint: str, token: Token) -> NoReturn:
    """Refuses a construct of Feldera."""
    refuse_at(what, hint, token_span(token))


def refuse_at(what: str, hint: str, span: Span) -> NoReturn:
    """Refuses a construct of Feldera at a place."""
    raise NotYetError("DIALECT_NOT_YET", f"{what} of Feldera is not there yet", hint=hint, span=span)


def check_option(key: str, span: Span) -> None:
    """Refuses 'connectors' where no single table or view is read or written, 'emit_final' and 'materialized'."""
    hint = _OPTIONS.get(key.lower())
    if hint is not None:
        refuse_at(f"the option {key.lower()}", hint, span)


def check_statement(token: Token) -> None:
    """Refuses LATENESS v.c INTERVAL … as a statement."""
    if token.text.upper() == "LATENESS":
        refuse("LATENESS of a view", "declare WATERMARK FOR ts AS ts - INTERVAL … in CREATE STREAM", token)
