"""Definitions from SQL text."""

from __future__ import annotations

import pytest

from penstock.catalog.define import Surroundings, define_function, define_secret, define_sink, define_source
from penstock.catalog.model import Definition, SinkDefinition, SourceDefinition
from penstock.catalog.snapshot import Catalog
from penstock.errors import PenstockError
from penstock.sql.script import parse_statement
from penstock.sql.statements import CreateFunction, CreateRelation, CreateSecret, CreateSink


def define(sql: str, surroundings: Surroundings | None = None) -> Definition:
    """The definition of a CREATE statement other than a view's."""
    statement = parse_statement(sql)
    known = surroundings or Surroundings()
    if isinstance(statement, CreateRelation):
        return define_source(statement, known)
    if isinstance(statement, CreateSink):
        return define_sink(statement, known)
    if isinstance(statement, CreateFunction):
        return define_function(statement)
    assert isinstance(statement, CreateSecret)
    return define_secret(statement)


def source_of(sql: str, surroundings: Surroundings | None = None) -> SourceDefinition:
    found = define(sql, surroundings)
    assert isinstance(found, SourceDefinition)
    return found


def sink_of(sql: str, surroundings: Surroundings | None = None) -> SinkDefinition:
    found = define(sql, surroundings)
    assert isinstance(found, SinkDefinition)
    return found


def catalog_of(*statements: str) -> Catalog:
    made = Catalog()
    for sql in statements:
        made, _ = made.put(define(sql, Surroundings(catalog=made)))
    return made


def refused(sql: str, surroundings: Surroundings | None = None) -> tuple[PenstockError, str]:
    """The error of a statement that is refused, and the stretch of text it points at."""
    with pytest.raises(PenstockError) as raised:
        define(sql, surroundings)
    span = raised.value.span
    assert span is not None, raised.value
    line = sql.splitlines()[span.line - 1]
    assert sql[span.start :].startswith(line[span.column - 1 :][:1])
    return raised.value, sql[span.start : span.end]
