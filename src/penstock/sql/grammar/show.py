"""SHOW, DESCRIBE, EXPLAIN.

Those that take a statement are given the rule for one, so that modules do not import in a ring.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Final, cast

from sqlglot.tokenizer_core import TokenType

from penstock.sql.dialects import ksqldb
from penstock.sql.grammar.drop_alter import object_kind
from penstock.sql.grammar.insert import statement_set
from penstock.sql.parser import PenstockParser
from penstock.sql.reading import NAME_TOKENS, SYSTEM_SCHEMA
from penstock.sql.statements import (
    Describe,
    Explain,
    ExplainWatermark,
    Name,
    Show,
    ShowCreate,
    ShowKind,
    ShowRewrite,
    Statement,
)

T = TokenType
Rule = Callable[[PenstockParser], Statement]

_KINDS: Final = ("STREAMS", "TABLES", "SOURCES", "VIEWS", "SINKS", "JOBS", "FUNCTIONS", "SECRETS", "SETTINGS")
_DETAILS: Final = frozenset({"ESTIMATED_COST", "CHANGELOG_MODE", "JSON_EXECUTION_PLAN", "PLAN_ADVICE"})
_LATER: Final = frozenset({"DATABASES", "SCHEMAS", "CATALOGS", "CONNECTIONS", "INDEXES", "CLUSTER", "PROCESSLIST"})


def show(p: PenstockParser, inner: Rule) -> Statement:
    """SHOW kind | CREATE [kind] name | REWRITE statement | COLUMNS FROM name"""
    p.expect("SHOW")
    found = _shown(p, inner)
    if isinstance(found, Show | Describe) and (p.ahead("LIKE") or p.ahead("ILIKE") or p.ahead("NOT", "LIKE")):
        hint = f"use SHOW {found.kind} alone" if isinstance(found, Show) else "use DESCRIBE alone"
        p.not_yet("SHOW … LIKE is not there yet", hint)
    return found


def _shown(p: PenstockParser, inner: Rule) -> Statement:
    first = p.current
    if p.word("REWRITE"):
        return ShowRewrite(statement=_inner(p, inner))
    if p.word("CREATE"):
        kind = object_kind(p) if p.following else None
        return ShowCreate(name=relation_name(p), kind=kind)
    if p.word("MATERIALIZED", "VIEWS") or p.word("MATERIALIZED", "TABLES"):
        return Show(kind="MATERIALIZED VIEWS")
    if p.word("COLUMNS"):
        if p.any_word("FROM", "IN") is None:
            p.fail("FROM")
        return Describe(name=relation_name(p))
    if p.word("USER", "FUNCTIONS"):
        return Show(kind="FUNCTIONS")
    if p.word("PARAMETERS") or p.word("ALL"):
        return Show(kind="SETTINGS")
    kind_word = p.any_word(*_KINDS)
    if kind_word is not None:
        return Show(kind=cast(ShowKind, kind_word))
    word = first.text.upper() if first else ""
    if word in {"QUERIES", "TOPICS", "PROPERTIES"}:
        ksqldb.refuse(f"SHOW {word}", "use SHOW JOBS, SHOW STREAMS or SHOW SETTINGS", first)
    if word in _LATER:
        p.not_yet(f"SHOW {word} is not there yet", "there is one catalog", first, "STATEMENT_NOT_YET")
    return p.fail(f"{', '.join(_KINDS)}, MATERIALIZED VIEWS, CREATE or REWRITE")


def describe(p: PenstockParser) -> Describe:
    """DESCRIBE | DESC [EXTENDED | FORMATTED] [kind] name"""
    p.step()
    extended = bool(p.following) and p.any_word("EXTENDED", "FORMATTED") is not None
    if p.following and p.following.token_type in NAME_TOKENS and p.following.text.upper() != "EXTENDED":
        object_kind(p)
    name = relation_name(p)
    return Describe(name=name, extended=extended or p.word("EXTENDED"))


def relation_name(p: PenstockParser) -> Name:
    """A name, or the dotted name of a system table."""
    first = p.current
    if first.text.lower() == SYSTEM_SCHEMA and first.token_type == T.VAR and p.following.token_type == T.DOT:
        p.step(2)
        name = p.name("the name of a system table")
        return Name(f"{first.text}.{name.text}", False, p.since(first))
    return p.name("the name of a relation")


def explain(p: PenstockParser, inner: Rule) -> Statement:
    """EXPLAIN [WATERMARK FOR v | [PLAN FOR] [PHYSICAL] [(FORMAT JSON)] statement]"""
    p.expect("EXPLAIN")
    if p.word("WATERMARK"):
        p.expect("FOR")
        return ExplainWatermark(name=p.name("the name of a view or job"))
    if p.ahead("ANALYZE"):
        p.not_yet("EXPLAIN ANALYZE is not there yet", "use EXPLAIN, or SHOW JOBS for a running job")
    if p.current.text.upper() in _DETAILS and p.current.token_type == T.VAR:
        detail = p.current.text.upper()
        p.not_yet(f"EXPLAIN {detail} is not there yet", "use EXPLAIN alone; it names the change mode of the result")
    physical = json = False
    while True:
        if not physical and p.word("PHYSICAL"):
            physical = True
        elif p.ahead("(", "FORMAT"):
            p.step(2)
            word = p.any_word("JSON", "TEXT")
            if word is None:
                p.fail("JSON or TEXT")
            json = word == "JSON"
            p.expect_symbol(T.R_PAREN, ")")
        elif not p.word("PLAN", "FOR"):
            break
    rule = _explained_set if p.ahead("STATEMENT", "SET") else inner
    return Explain(statement=_inner(p, rule), physical=physical, json=json)


def _explained_set(p: PenstockParser) -> Statement:
    """STATEMENT SET BEGIN … END, as Flink writes it behind EXPLAIN"""
    first = p.current
    return dataclasses.replace(statement_set(p), span=p.since(first))


def _inner(p: PenstockParser, inner: Rule) -> Statement:
    if not p.current:
        p.fail("a statement")
    if p.ahead("EXPLAIN") or p.ahead("SHOW", "REWRITE"):
        p.fail("a statement that runs")
    return inner(p)
