"""DROP and ALTER."""

from __future__ import annotations

from typing import Final, cast

from sqlglot.tokenizer_core import TokenType

from penstock.sql.grammar.jobs import job_name
from penstock.sql.grammar.options import key, options
from penstock.sql.parser import PenstockParser
from penstock.sql.statements import Alter, ControlJob, Drop, ObjectKind, Statement

T = TokenType

KINDS: Final = ("STREAM", "TABLE", "SOURCE", "SINK", "VIEW", "FUNCTION", "SECRET", "CONNECTION")
_LATER: Final = frozenset({"INDEX", "DATABASE", "SCHEMA", "CATALOG", "SUBSCRIPTION", "USER", "ROLE"})


def object_kind(p: PenstockParser) -> ObjectKind | None:
    """STREAM, MATERIALIZED VIEW …; None, having taken nothing, when no kind of object comes next."""
    if p.word("MATERIALIZED", "VIEW") or p.word("MATERIALIZED", "TABLE"):
        return "MATERIALIZED VIEW"
    if p.word("TEMPORARY", "SYSTEM", "FUNCTION") or p.word("TEMPORARY", "FUNCTION") or p.word("AGGREGATE"):
        return "FUNCTION"
    p.word("TEMPORARY")
    return cast("ObjectKind | None", p.any_word(*KINDS))


def drop(p: PenstockParser) -> Drop | ControlJob:
    """DROP kind [IF EXISTS] name [CASCADE | RESTRICT], or DROP JOB [IF EXISTS] name"""
    p.expect("DROP")
    if p.word("JOB"):
        return ControlJob(action="DROP", if_exists=p.word("IF", "EXISTS"), name=job_name(p))
    kind = _known_kind(p, "DROP")
    exists = p.word("IF", "EXISTS")
    name = p.name(f"the name of a {kind.lower()}")
    if p.current.token_type == T.COMMA:
        p.fail("one name", "drop one object a statement")
    return Drop(kind=kind, name=name, if_exists=exists, cascade=p.any_word("CASCADE", "RESTRICT") == "CASCADE")


def _known_kind(p: PenstockParser, verb: str) -> ObjectKind:
    first = p.current
    kind = object_kind(p)
    if kind is None:
        word = first.text.upper() if first else ""
        if word in _LATER:
            p.not_yet(f"{verb} {word} is not there yet", "there is one catalog of streams, views and sinks", first,
                      "STATEMENT_NOT_YET")  # fmt: skip
        p.fail("STREAM, TABLE, SOURCE, SINK, VIEW, MATERIALIZED VIEW, FUNCTION, SECRET or CONNECTION")
    return kind


def alter(p: PenstockParser) -> Statement:
    """ALTER kind [IF EXISTS] name SET (…) | RESET (…) | RENAME TO n; SUSPEND and RESUME of views are jobs' business"""
    p.expect("ALTER")
    first = p.current
    if first.text.upper() in {"JOB", "SYSTEM"}:
        p.not_yet(f"ALTER {first.text.upper()} is not there yet", "stop the job and create it again", first,
                  "STATEMENT_NOT_YET")  # fmt: skip
    kind = _known_kind(p, "ALTER")
    if kind == "CONNECTION":
        p.not_yet("ALTER CONNECTION is not there yet", "drop it and create it again", first, "STATEMENT_NOT_YET")
    exists = p.word("IF", "EXISTS")
    name = p.name(f"the name of a {kind.lower()}")
    action = p.current
    if kind == "MATERIALIZED VIEW" and p.word("SUSPEND"):
        return ControlJob(action="PAUSE", name=name)
    if kind == "MATERIALIZED VIEW" and p.word("RESUME"):
        return ControlJob(action="RESUME", name=name)
    if p.ahead("SET", "("):
        p.step()
        return Alter(kind=kind, name=name, action="set", options=options(p), if_exists=exists)
    if p.ahead("RESET", "("):
        p.step()
        keys = p.bracketed(lambda: key(p))
        return Alter(kind=kind, name=name, action="reset", keys=keys, if_exists=exists)
    if p.word("RENAME", "TO"):
        return Alter(kind=kind, name=name, action="rename", new_name=p.name(), if_exists=exists)
    if action and p.any_word("ADD", "DROP", "MODIFY", "ALTER", "RENAME", "SET", "CONNECTOR", "REFRESH", "SUSPEND",
                             "RESUME", "SWAP", "AS", "OWNER", "PARALLELISM"):  # fmt: skip
        p.not_yet("this change is not there yet", "SET (…), RESET (…) and RENAME TO are; or drop and create", action)
    return p.fail("SET, RESET or RENAME TO")
