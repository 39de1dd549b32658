"""CREATE SINK, CREATE FUNCTION, CREATE SECRET."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from penstock.errors import CatalogError, Span
from penstock.secrets import Secret
from penstock.sql.dialects import materialize
from penstock.sql.grammar.columns import Columns, column_list
from penstock.sql.grammar.create import Head, if_not_exists
from penstock.sql.grammar.materialize_sink import SinkHead, sink_over_connection
from penstock.sql.grammar.options import format_clause, options
from penstock.sql.parser import PenstockParser
from penstock.sql.spans import token_span
from penstock.sql.statements import (
    NOWHERE,
    CreateSecret,
    CreateSink,
    Format,
    Name,
    Option,
    Query,
)

T = TokenType


def create_sink(p: PenstockParser, head: Head) -> CreateSink:
    """CREATE SINK k [(columns)] [INTO t] [FROM r | AS query] [WITH (…)] [FORMAT …], the clauses in any order"""
    exists = if_not_exists(p)
    name = p.name("the name of the sink")
    columns = column_list(p) if p.current.token_type == T.L_PAREN else Columns()
    if columns.watermark is not None:
        raise CatalogError("INVALID_WATERMARK", "a sink has no watermark", span=columns.watermark.span)
    into: Name | None = None
    query: Query | None = None
    found: tuple[Option, ...] = ()
    form: Format | None = None
    with_span = NOWHERE
    while p.current:
        first = p.current
        if _over_connection(p, query, columns, with_span):
            assert query is not None
            return sink_over_connection(p, SinkHead(name, query, head.or_replace, exists))
        if into is None and query is None and p.word("INTO"):
            into = p.name("the name of a table")
        elif query is None and p.word("FROM"):
            query = _whole(p)
        elif query is None and p.word("AS"):
            query = p.query()
        elif with_span is NOWHERE and p.word("WITH"):
            found = options(p)
            with_span = p.since(first)
        elif form is None and p.ahead("FORMAT"):
            form = format_clause(p)
        else:
            if p.ahead("ENVELOPE") or p.ahead("KEY", "(") or p.ahead("IN", "CLUSTER"):
                hint = "CREATE SINK s FROM v INTO KAFKA CONNECTION k (…) KEY (…) FORMAT … ENVELOPE … is read"
                materialize.refuse(f"{first.text.upper()} here", hint, first)
            p.end()
    return CreateSink(
        name=name,
        options=found,
        query=query,
        columns=tuple(columns.columns),
        primary_key=columns.primary_key,
        into=into,
        format=form,
        or_replace=head.or_replace,
        if_not_exists=exists,
        with_span=with_span,
    )


def _whole(p: PenstockParser) -> Query:
    """FROM r, which is AS SELECT * FROM r"""
    first = p.taken
    table = p.table_name()
    star = exp.Star().update_positions(first)
    return Query(exp.Select(expressions=[star], from_=exp.From(this=table)), span=p.since(first))


def _over_connection(p: PenstockParser, query: Query | None, columns: Columns, with_span: Span) -> bool:
    """Whether Materialize's INTO KAFKA CONNECTION stands behind FROM v."""
    return p.ahead("INTO", "KAFKA", "CONNECTION") and query is not None and not columns.columns and with_span is NOWHERE


def create_secret(p: PenstockParser, head: Head) -> CreateSecret:
    """CREATE SECRET name [WITH (…)] AS 'value'"""
    exists = if_not_exists(p)
    name = p.name("the name of the secret")
    found = tuple(option for option in options(p) if not _default_backend(option)) if p.word("WITH") else ()
    p.expect("AS")
    token = p.current
    value = p.string("the value, in single quotes")
    p.secret_stretches.append((token.start, token.end + 1))
    return CreateSecret(
        name=name,
        value=Secret(value),
        options=found,
        or_replace=head.or_replace,
        if_not_exists=exists,
        value_span=token_span(token),
    )


def _default_backend(option: Option) -> bool:
    """RisingWave's backend = 'meta': the value is kept beside the catalog, as it is here anyway."""
    return option.key.lower() == "backend" and option.value.reveal().lower() == "meta"
