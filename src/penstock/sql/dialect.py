"""Penstock as a dialect of sqlglot: one tokenizer, one parser, one generator."""

from __future__ import annotations

from typing import ClassVar

from sqlglot.dialects.dialect import Dialect
from sqlglot.tokens import SQLGLOTC_INSTALLED, Token, Tokenizer

from penstock.errors import InternalError
from penstock.sql.generator import CanonicalGenerator
from penstock.sql.parser import PenstockParser
from penstock.sql.tokens import tokenize

if SQLGLOTC_INSTALLED:  # the compiled build cannot be subclassed at run time
    raise InternalError("the compiled build of sqlglot is installed; install sqlglot without sqlglotc")


class Penstock(Dialect):
    """Our SQL. Strings are '…', a backslash in them is an ordinary character; names are "…" or `…`."""

    TYPED_DIVISION = False
    INDEX_OFFSET = 0
    SUPPORTS_USER_DEFINED_TYPES = False

    class Tokenizer(Tokenizer):
        """Our tokens in place of sqlglot's."""

        IDENTIFIERS: ClassVar = ['"', "`"]
        NESTED_COMMENTS = False

        def tokenize(self, sql: str) -> list[Token]:
            return tokenize(sql)

    Parser = PenstockParser
    Generator = CanonicalGenerator
