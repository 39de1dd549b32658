"""RisingWave: what its statements mean by default, and the clauses only it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot.tokenizer_core import Token, TokenType

from penstock.sql.statements import Column, Name
from penstock.types import BIGINT, BINARY, INT, STRING, TIMESTAMP, Field, SqlType

if TYPE_CHECKING:
    from penstock.sql.parser import PenstockParser

NAME = "RisingWave"

_INCLUDED: Final[dict[str, SqlType]] = {
    "KEY": BINARY,
    "OFFSET": BIGINT,
    "PARTITION": INT,
    "TIMESTAMP": TIMESTAMP,
    "HEADER": BINARY,
}

HEADERS: Final = SqlType("ARRAY", elements=(SqlType("STRUCT", fields=(Field("key", STRING), Field("value", BINARY))),))


def include_columns(p: PenstockParser, first: Token) -> Column:
    """INCLUDE KEY | OFFSET | PARTITION | TIMESTAMP | HEADER ['k'] [AS c]: a metadata column behind the column list."""
    word = p.any_word(*_INCLUDED, "PAYLOAD", "FILE", "DATABASE_NAME")
    if word is None:
        p.fail("KEY, OFFSET, PARTITION, TIMESTAMP or HEADER")
    if word not in _INCLUDED:
        p.not_yet(f"INCLUDE {word} is not there yet", "include KEY, OFFSET, PARTITION, TIMESTAMP or HEADER", p.taken)
    token = p.taken
    if word == "HEADER" and p.current.token_type != TokenType.STRING:
        return _all_headers(p, first)
    header = p.string("the key of the header") if word == "HEADER" else None
    kind = _INCLUDED[word]
    if p.current.token_type == TokenType.VAR and p.current.text.upper() in {"VARCHAR", "TEXT", "BYTEA", "STRING"}:
        kind = p.type_name()
    if p.word("AS"):
        name = p.name("the name of the column")
    else:
        name = Name(f"_rw_kafka_{word.lower()}", False, p.since(token))
    if header is not None:
        return Column(name, STRING if kind == STRING else BINARY, header=header, span=p.since(first))
    return Column(name, kind, metadata=word.lower(), virtual=True, span=p.since(first))


def _all_headers(p: PenstockParser, first: Token) -> Column:
    """INCLUDE HEADER [AS c]: all headers of the message, in their order."""
    token = p.taken
    name = p.name("the name of the column") if p.word("AS") else Name("_rw_kafka_header", False, p.since(token))
    return Column(name, HEADERS, metadata="headers", virtual=True, span=p.since(first))
