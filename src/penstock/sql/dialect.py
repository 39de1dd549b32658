"""Penstock as a dialect of sqlglot: one tokenizer, one parser, one generator."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import tokens as sqlglot_tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import Token

from penstock.sql.generator import CanonicalGenerator
from penstock.sql.parser import PenstockParser
from penstock.sql.tokens import tokenize


class Penstock(Dialect):
    """Our SQL. Strings are '…', a backslash in them is an ordinary character; names are "…" or `…`."""

    TYPED_DIVISION = False
    INDEX_OFFSET = 0
    SUPPORTS_USER_DEFINED_TYPES = False

    class Tokenizer(sqlglot_tokens.Tokenizer):
        """Our tokens in place of sqlglot's."""

        IDENTIFIERS: ClassVar = ['"', "`"]
        NESTED_COMMENTS = False

        def tokenize(self, sql: str) -> list[Token]:
            return tokenize(sql)

    Parser = PenstockParser
    Generator = CanonicalGenerator
