"""Which statement it is: the first words decide."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Final

from sqlglot.tokenizer_core import TokenType

from penstock.sql.dialects import feldera, spark_pipelines
from penstock.sql.grammar import connection, create, drop_alter, function, insert, jobs, settings, show, sink
from penstock.sql.grammar.refused import refuse_create, refused
from penstock.sql.parser import PenstockParser
from penstock.sql.redact import nearest_statement
from penstock.sql.statements import Statement

T = TokenType
Rule = Callable[[PenstockParser], Statement]


def statement(p: PenstockParser) -> Statement:
    """One statement, with its span."""
    first = p.current
    found = _rule(p)(p)
    return dataclasses.replace(found, span=p.since(first))


def _rule(p: PenstockParser) -> Rule:
    token = p.current
    if token.token_type in {T.SELECT, T.WITH, T.VALUES, T.L_PAREN}:
        return insert.select
    if p.ahead("TABLE"):
        return insert.select
    if p.ahead("BEGIN", "STATEMENT", "SET") or p.ahead("EXECUTE", "STATEMENT", "SET"):
        return insert.statement_set
    if p.ahead("EXECUTE", "INSERT"):
        return insert.insert
    rule = _RULES.get(token.text.upper()) if token.token_type != T.IDENTIFIER else None
    if rule is None:
        if token.token_type != T.IDENTIFIER:
            spark_pipelines.check_statement(p)
            feldera.check_statement(token)
            refused(p)
        p.fail("a statement", _begin_hint(token.text))
    return rule


def _begin_hint(word: str) -> str:
    """What to write where no statement begins; never the very word that was found."""
    if word.upper() in {"END", "EXECUTE"}:
        return "a statement set is EXECUTE STATEMENT SET BEGIN INSERT …; END"
    near = nearest_statement(word)
    if near is not None and near != word.upper():
        return f"did you mean {near}?"
    return "a statement begins with CREATE, SELECT, INSERT, EXPLAIN, SHOW, SET …"


def _create(p: PenstockParser) -> Statement:
    p.expect("CREATE")
    or_replace = p.word("OR", "REPLACE") or p.ahead("OR", "ALTER")
    spark_pipelines.check_create(p)
    p.word("OR", "ALTER")
    temporary = p.word("TEMPORARY") or p.word("TEMP")
    p.word("SYSTEM") if p.ahead("SYSTEM", "FUNCTION") else None
    head = create.Head(p.current, or_replace, temporary)
    if p.word("STREAM"):
        return create.create_relation(p, head, "STREAM")
    if p.word("TABLE"):
        return create.create_relation(p, head, "TABLE")
    if p.word("SOURCE"):
        return create.create_source(p, head)
    if p.word("SINK"):
        return sink.create_sink(p, head)
    if p.word("MATERIALIZED", "VIEW") or p.word("MATERIALIZED", "TABLE"):
        return create.create_materialized_view(p, head)
    if p.word("VIEW"):
        return create.create_view(p, head)
    if p.word("FUNCTION"):
        return function.create_function(p, head)
    if p.word("AGGREGATE"):
        p.word("FUNCTION")
        return function.create_function(p, head, aggregate=True)
    if p.word("SECRET"):
        return sink.create_secret(p, head)
    if p.word("CONNECTION"):
        return connection.create_connection(p, head)
    return refuse_create(p)


_RULES: Final[dict[str, Rule]] = {
    "CREATE": _create,
    "DROP": drop_alter.drop,
    "ALTER": drop_alter.alter,
    "INSERT": insert.insert,
    "SET": settings.set_setting,
    "RESET": settings.reset_setting,
    "SHOW": lambda p: show.show(p, statement),
    "DESCRIBE": show.describe,
    "DESC": show.describe,
    "EXPLAIN": lambda p: show.explain(p, statement),
    "SUBSCRIBE": jobs.subscribe,
    "PAUSE": jobs.control,
    "RESUME": jobs.control,
    "RESTART": jobs.control,
    "STOP": jobs.control,
    "ADVANCE": jobs.advance,
    "RETRY": jobs.retry,
}
