"""INSERT, statement sets, and bare queries."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from penstock.errors import UnsupportedError
from penstock.sql.grammar.options import options
from penstock.sql.parser import PenstockParser
from penstock.sql.statements import Insert, Option, Select, StatementSet

T = TokenType


def select(p: PenstockParser) -> Select:
    """A query by itself."""
    return Select(query=p.query())


def insert(p: PenstockParser) -> Insert:
    """[EXECUTE] INSERT INTO target [(columns)] [WITH (…)] query; EXECUTE is Flink's"""
    p.word("EXECUTE")
    first = p.current
    p.expect("INSERT")
    if p.ahead("OVERWRITE"):
        p.refuse(UnsupportedError, "UNSUPPORTED_CLAUSE", "a stream cannot be overwritten", "use INSERT INTO", p.current)
    p.expect("INTO")
    p.word("TABLE")
    target = p.name("the name of a table or sink")
    if p.ahead("PARTITION"):
        p.not_yet("INSERT into a partition is not there yet", "name the columns of the partition in the query")
    columns = p.names() if p.current.token_type == T.L_PAREN and not _query_follows(p) else ()
    found: tuple[Option, ...] = ()
    if p.current.token_type == T.WITH and p.following.token_type == T.L_PAREN:
        p.step()
        found = options(p)
    return Insert(target=target, query=p.query(), columns=columns, options=found, span=p.since(first))


def _query_follows(p: PenstockParser) -> bool:
    return p.following.token_type in {T.SELECT, T.WITH, T.VALUES, T.L_PAREN}


def statement_set(p: PenstockParser) -> StatementSet:
    """[EXECUTE] STATEMENT SET BEGIN insert; … END, or BEGIN STATEMENT SET; insert; … END

    Without EXECUTE it stands behind EXPLAIN only; the caller sees to that.
    """
    if p.word("BEGIN", "STATEMENT", "SET"):
        p.expect_symbol(T.SEMICOLON, ";")
    else:
        p.word("EXECUTE")
        p.expect("STATEMENT", "SET", "BEGIN")
    found: list[Insert] = []
    while not p.word("END"):
        if not p.ahead("INSERT"):
            p.fail("INSERT")
        found.append(insert(p))
        if not p.symbol(T.SEMICOLON) and not p.ahead("END"):
            p.fail("; or END")
    if not found:
        p.step_back()
        p.fail("INSERT")
    return StatementSet(inserts=tuple(found))
