"""CREATE FUNCTION: in Python by its path or its source, or in SQL as one expression."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import NotYetError, UnsupportedError
from penstock.sql.grammar.create import Head, if_not_exists
from penstock.sql.grammar.options import options
from penstock.sql.parser import PenstockParser
from penstock.sql.reading import WORD_TOKENS
from penstock.sql.spans import token_span
from penstock.sql.statements import CreateFunction, Option, Parameter
from penstock.sql.tokens import tokenize
from penstock.types import SqlType

T = TokenType

# What other systems want to be told of a function in SQL, and what can be seen here from its body.
_TOLD: Final = (
    ("NOT", "DETERMINISTIC"),
    ("DETERMINISTIC",),
    ("IMMUTABLE",),
    ("STABLE",),
    ("VOLATILE",),
    ("CONTAINS", "SQL"),
    ("CALLED", "ON", "NULL", "INPUT"),
    ("PARALLEL", "SAFE"),
)
_ONE: Final = "the body of a function in SQL is one expression over its parameters; a query is a view"


def create_function(p: PenstockParser, head: Head, *, aggregate: bool = False) -> CreateFunction:
    """CREATE FUNCTION f (a INT) RETURNS INT LANGUAGE python AS 'module.function' | $$ source $$

    CREATE FUNCTION f (a INT) RETURNS INT RETURN a + 1, or LANGUAGE sql AS 'SELECT a + 1' | $$ SELECT $1 + 1 $$
    """
    exists = if_not_exists(p)
    name = p.name("the name of the function")
    parameters = p.bracketed(lambda: _parameter(p)) if p.current.token_type == T.L_PAREN else ()
    found = CreateFunction(
        name=name,
        parameters=parameters,
        returns=None,
        language="",
        body="",
        aggregate=aggregate,
        or_replace=head.or_replace,
        temporary=head.temporary,
        if_not_exists=exists,
    )
    text: Token | None = None
    while p.current:
        if text is None and found.expression is None and p.word("AS"):
            text = p.current
            found = replace(found, body=p.string("'module.function' or $$ source $$"))
        elif text is None and found.expression is None and p.word("RETURN"):
            found = replace(found, expression=_expression(p))
        else:
            found = _clause(p, found)
    if found.expression is not None:
        return _in_sql(found, p)
    if text is None:
        p.fail("AS")
    if found.language == "sql":
        return replace(found, body="", expression=_expression_in(p, text))
    return replace(found, language=found.language or "python")


def _clause(p: PenstockParser, found: CreateFunction) -> CreateFunction:
    """What stands before and behind the body, in any order."""
    if found.returns is None and p.word("RETURNS"):
        return replace(found, returns=_returns(p))
    if not found.language and p.word("LANGUAGE"):
        if p.current.token_type not in WORD_TOKENS:
            p.fail("the name of a language")
        p.step()
        return replace(found, language=p.taken.text.lower())
    if not found.options and p.word("WITH"):
        given: tuple[Option, ...] = options(p)
        return replace(found, options=given)
    if p.ahead("USING"):
        p.not_yet("functions from archives are not there yet", "install the module and name it in AS")
    if p.ahead("STRICT") or p.ahead("RETURNS", "NULL"):
        p.not_yet("STRICT is not there yet", "write CASE WHEN x IS NULL THEN NULL ELSE … END")
    if not any(p.word(*words) for words in _TOLD):
        p.end()
    return found


def _returns(p: PenstockParser) -> SqlType:
    if p.ahead("TABLE"):
        p.not_yet("functions that return tables are not there yet", "return an array and UNNEST it")
    return p.type_name()


def _in_sql(found: CreateFunction, p: PenstockParser) -> CreateFunction:
    if found.language not in ("", "sql"):
        p.refuse(
            UnsupportedError,
            "UNSUPPORTED_CLAUSE",
            f"RETURN is SQL, and function {found.name} is written in {found.language}",
            "leave LANGUAGE out, or write AS $$ … $$",
            p.taken,
        )
    return replace(found, language="sql")


def _expression(p: PenstockParser) -> exp.Expr:
    return p.an_expression()


def _expression_in(p: PenstockParser, text: Token) -> exp.Expr:
    """The expression in the string of a body: with or without SELECT in front."""
    inner = type(p)(dialect=p.dialect)
    inner.load(p.sql, _tokens(p.sql, text))
    return inner.run(_body, token_span(text), p.shown)


def _body(p: PenstockParser) -> exp.Expr:
    p.word("SELECT")
    found = _expression(p)
    if p.symbol(T.ALIAS):
        p.identifier()
    p.symbol(T.SEMICOLON)
    if p.current:
        raise NotYetError(
            "CLAUSE_NOT_YET",
            "functions whose body is a query are not there yet",
            hint=_ONE,
            span=token_span(p.current),
        )
    return found


def _tokens(sql: str, text: Token) -> list[Token]:
    """The tokens inside of a string, at their places in the statement; all at that of a string with escapes."""
    whole = sql[text.start : text.end + 1]
    width = whole.index("$", 1) + 1 if whole.startswith("$") else 1
    start, end = text.start + width, text.end + 1 - width
    if sql[start:end] == text.text:
        found = tokenize(sql, start, end)
    else:
        found = tokenize(text.text)
        for token in found:
            token.line, token.col, token.start, token.end = text.line, text.col, text.start, text.end
    for token in found:
        if token.token_type == T.PARAMETER:
            token.token_type = T.IDENTIFIER  # $1 is the name of the first parameter
    return found


def _parameter(p: PenstockParser) -> Parameter:
    """Name type, or type alone"""
    if p.current.token_type in WORD_TOKENS | {T.IDENTIFIER} and p.following.token_type in WORD_TOKENS:
        goes_on = p.following.text.upper() in {"PRECISION", "VARYING", "UNSIGNED", "WITH", "WITHOUT"}
        if p.current.token_type == T.IDENTIFIER or not goes_on:
            p.step()
            return Parameter(name=p.taken.text, type=p.type_name())
    return Parameter(name=None, type=p.type_name())
