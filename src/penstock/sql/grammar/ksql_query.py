"""ksqlDB's CREATE STREAM and CREATE TABLE … AS SELECT.

With a topic the query is a sink over it; without one, a stream is a view and a table a materialized view.
"""

from __future__ import annotations

from typing import Protocol

from sqlglot.tokenizer_core import TokenType

from penstock.errors import Span
from penstock.frozen import frozen
from penstock.sql.dialects import ksql_options, ksqldb
from penstock.sql.dialects.ksql_options import text
from penstock.sql.parser import PenstockParser
from penstock.sql.statements import (
    CreateMaterializedView,
    CreateSink,
    CreateView,
    Name,
    Option,
    Query,
    Statement,
)


@frozen
class QueryHead:
    """What stands before the query."""

    name: Name
    table: bool
    or_replace: bool
    temporary: bool
    if_not_exists: bool
    comment: str | None


class Clauses(Protocol):
    """The WITH clause, read."""

    options: tuple[Option, ...]
    with_span: Span


def of_query(p: PenstockParser, head: QueryHead, clauses: Clauses) -> Statement:
    """AS query, behind CREATE STREAM | TABLE name [WITH (…)]"""
    first = p.current
    if clauses.options and not ksql_options.given(clauses.options):
        word = "MATERIALIZED VIEW" if head.table else "VIEW"
        hint = f"name the topic to write to, KAFKA_TOPIC = '…'; for a {word.lower()} use CREATE {word} … AS SELECT"
        ksqldb.refuse("a query with options and no KAFKA_TOPIC", hint, first)
    if head.temporary and (head.table or clauses.options):
        p.not_yet("a temporary job is not there yet", "leave TEMPORARY out, and drop it when it is done", first)
    if head.comment is not None and clauses.options:
        p.not_yet("comments of sinks are not there yet", "leave COMMENT out", first)
    p.expect("AS")
    query = p.query()
    if p.at(TokenType.PARTITION_BY):
        ksqldb.refuse("PARTITION BY", "name the columns of the key in the WITH clause: key.fields = '…'", p.current)
    if clauses.options:
        return _sink(head, clauses, query)
    if head.table:
        return CreateMaterializedView(
            name=head.name,
            query=query,
            comment=head.comment,
            or_replace=head.or_replace,
            if_not_exists=head.if_not_exists,
        )
    return CreateView(
        name=head.name,
        query=query,
        temporary=head.temporary,
        comment=head.comment,
        or_replace=head.or_replace,
        if_not_exists=head.if_not_exists,
    )


def _sink(head: QueryHead, clauses: Clauses, query: Query) -> CreateSink:
    """The query as a sink; the rows of a table replace each other by the key of the query, which is the record's."""
    clause = ksql_options.read(clauses.options, "upsert-kafka" if head.table else "kafka")
    assert clause.topic is not None
    place = clause.topic.key_span
    made = list(clause.options)
    if head.table:
        made.append(Option("value.fields_include", text("EXCEPT_KEY"), place, place))
    made += ksql_options.written_key_format(clause)
    made += ksql_options.written_time(clause)
    return CreateSink(
        name=head.name,
        options=tuple(made),
        query=query,
        or_replace=head.or_replace,
        if_not_exists=head.if_not_exists,
        with_span=clauses.with_span,
    )
