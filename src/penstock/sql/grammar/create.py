"""CREATE STREAM, TABLE, SOURCE, VIEW, MATERIALIZED VIEW."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import Span
from penstock.frozen import frozen
from penstock.secrets import Secret
from penstock.sql.dialects import feldera_connectors, ksql_options, ksqldb, materialize
from penstock.sql.dialects.ksql_relations import over_topic
from penstock.sql.dialects.risingwave import include_columns
from penstock.sql.durations import NotADuration, duration_us
from penstock.sql.grammar.columns import Columns, column_list
from penstock.sql.grammar.ksql_query import QueryHead, of_query
from penstock.sql.grammar.materialize_source import SourceHead, names_alone, source_over_connection
from penstock.sql.grammar.options import check_foreign, format_clause, options
from penstock.sql.hints import state_ttl
from penstock.sql.parser import PenstockParser
from penstock.sql.reading import WORD_TOKENS
from penstock.sql.statements import (
    NOWHERE,
    CreateMaterializedView,
    CreateRelation,
    CreateSink,
    CreateView,
    Format,
    Name,
    Option,
    OptionValue,
    RelationKind,
    Statement,
)

T = TokenType


@frozen
class Head:
    """The words before the kind of object, and the kind's token."""

    token: Token
    or_replace: bool = False
    temporary: bool = False


def if_not_exists(p: PenstockParser) -> bool:
    """IF NOT EXISTS"""
    return p.word("IF", "NOT", "EXISTS")


def create_source(p: PenstockParser, head: Head) -> Statement:
    """CREATE SOURCE s …, and ksqlDB's CREATE SOURCE STREAM | TABLE, which can only be read"""
    word = p.taken if p.any_word("STREAM", "TABLE") is not None else None
    return create_relation(p, head, "SOURCE", word)


@dataclass(slots=True)
class _Clauses:
    options: tuple[Option, ...] = ()
    with_span: Span = NOWHERE
    format: Format | None = None
    comment: str | None = None
    partitioned_by: tuple[Name, ...] = ()
    append_only: bool = False
    seen: set[str] = field(default_factory=set)


def create_relation(p: PenstockParser, head: Head, kind: RelationKind, word: Token | None = None) -> Statement:
    """CREATE STREAM s (columns) [COMMENT …] [PARTITIONED BY (…)] [WITH (…)] [INCLUDE …] [FORMAT … ENCODE …]

    `word` is that of ksqlDB behind SOURCE. A query behind AS is ksqlDB's, too.
    """
    exists = if_not_exists(p)
    name = p.name(f"the name of the {kind.lower()}")
    names = p.names() if names_alone(p) else ()
    columns = column_list(p) if p.current.token_type == T.L_PAREN else Columns()
    if p.ahead("FROM", "KAFKA", "CONNECTION") and not head.temporary and word is None:
        return source_over_connection(p, SourceHead(kind, name, columns, names, head.or_replace, exists))
    clauses = _Clauses()
    while _clause(p, head, kind, columns, clauses):
        pass
    if p.ahead("AS") and kind != "SOURCE":
        _check_query(p, kind, columns, clauses)
        before = QueryHead(name, kind == "TABLE", head.or_replace, head.temporary, exists, clauses.comment)
        return of_query(p, before, clauses)
    if clauses.append_only and not clauses.options:
        kind = "STREAM"  # a table of RisingWave's own that rows are only added to: our embedded topic
    made = CreateRelation(
        kind=kind,
        name=name,
        columns=tuple(columns.columns),
        options=clauses.options,
        watermark=columns.watermark,
        primary_key=columns.primary_key,
        partitioned_by=clauses.partitioned_by,
        format=clauses.format,
        or_replace=head.or_replace,
        temporary=head.temporary,
        if_not_exists=exists,
        comment=clauses.comment,
        with_span=clauses.with_span,
    )
    return _read_foreign(p, made, columns, word)


def _read_foreign(p: PenstockParser, made: CreateRelation, columns: Columns, word: Token | None) -> CreateRelation:
    """The options of ksqlDB and Feldera in our words; those of others as they are."""
    if ksql_options.given(made.options):
        table = "TABLE" in {made.kind, word.text.upper() if word is not None else ""}
        return over_topic(made, [key for key, _ in columns.keys], table=table)
    if word is not None:
        ksqldb.refuse(f"CREATE SOURCE {word.text.upper()} without KAFKA_TOPIC", "use CREATE SOURCE", word)
    if columns.keys:
        ksqldb.refuse("a KEY column without KAFKA_TOPIC", "use PRIMARY KEY, or key.fields = '…'", columns.keys[0][1])
    if feldera_connectors.given(made.options):
        return feldera_connectors.table(made, p.sql)
    for option in made.options:
        check_foreign(option.key, option.key_span)
    return made


def _clause(p: PenstockParser, head: Head, kind: str, columns: Columns, found: _Clauses) -> bool:
    first = p.current
    if p.word("WITH"):
        _once(p, found, "WITH", first)
        found.options = options(p, foreign=True)
        found.with_span = p.since(first)
    elif p.ahead("FORMAT"):
        _once(p, found, "FORMAT", first)
        found.format = format_clause(p)
    elif p.word("INCLUDE"):
        columns.columns.append(include_columns(p, first))
    elif p.word("COMMENT"):
        _once(p, found, "COMMENT", first)
        p.symbol(T.EQ)
        found.comment = p.string()
    elif p.word("PARTITIONED", "BY"):
        _once(p, found, "PARTITIONED BY", first)
        found.partitioned_by = p.names()
    elif p.word("APPEND"):  # RisingWave's word for what a stream is anyway
        p.expect("ONLY")
        found.append_only = True
    else:
        return _refused(p, kind, found, first)
    return True


def _once(p: PenstockParser, found: _Clauses, clause: str, first: Token) -> None:
    if clause in found.seen:
        p.step_back(first)
        p.fail(f"one {clause} clause")
    found.seen.add(clause)


def _refused(p: PenstockParser, kind: str, found: _Clauses, first: Token) -> bool:
    if p.ahead("LIKE"):
        p.not_yet("CREATE … LIKE is not there yet", "list the columns again", first)
    if p.ahead("DISTRIBUTED") or p.ahead("CLUSTERED"):
        p.not_yet(f"{first.text.upper()} is not there yet", "leave the clause out", first)
    if p.ahead("ON", "CONFLICT"):
        p.not_yet("ON CONFLICT is not there yet", "a primary key keeps the latest row", first)
    outside = p.ahead("FROM") and p.peek_text(1, "KAFKA", "POSTGRES", "MYSQL", "LOAD", "WEBHOOK")
    if outside or p.ahead("ENVELOPE") or p.ahead("IN", "CLUSTER"):
        hint = "CREATE SOURCE s FROM KAFKA CONNECTION k (…) FORMAT … is read, and WITH (connector = '…')"
        materialize.refuse(f"CREATE {kind} over such a connection", hint, first)
    if p.ahead("FROM"):
        p.not_yet("tables over a shared source are not there yet", "give the table its own connector", first)
    return False


def _check_query(p: PenstockParser, kind: str, columns: Columns, found: _Clauses) -> None:
    """Refuses CREATE TABLE … WITH ('connector' = …) AS SELECT …, which in Flink makes a table and a job, and whatever
    else than options and a comment stands before the query."""
    if columns.columns or columns.watermark or columns.primary_key or found.seen - {"WITH", "COMMENT"}:
        p.not_yet(f"columns and clauses of CREATE {kind} … AS SELECT are not there yet", "they follow from the query")
    if any(option.key.lower() == "connector" or _quoted(p, option) for option in found.options):
        hint = "use CREATE SINK … WITH (…) AS SELECT …"
        p.not_yet(f"CREATE {kind} … AS SELECT of Flink is not there yet", hint, None, "STATEMENT_NOT_YET")


def _quoted(p: PenstockParser, option: Option) -> bool:
    """Whether the key is a string, as Flink writes it."""
    return p.sql.startswith("'", option.key_span.start)


def _view_columns(p: PenstockParser) -> tuple[Name, ...]:
    """The names in brackets behind the name of a view; keys, types and comments of its columns are refused."""
    return p.bracketed(lambda: _view_column(p)) if p.current.token_type == T.L_PAREN else ()


def _view_column(p: PenstockParser) -> Name:
    if p.ahead("PRIMARY", "KEY") or (p.ahead("CONSTRAINT") and p.peek_text(2, "PRIMARY", "UNIQUE")):
        p.not_yet("keys of views are not there yet", "leave the key out; it follows from the query")
    if p.ahead("WATERMARK", "FOR"):
        p.not_yet("watermarks of views are not there yet", "leave the watermark out; it follows from the query")
    name = p.name()
    if p.current.token_type in WORD_TOKENS:
        p.not_yet(
            "types and comments of a view's columns are not there yet", "list the names alone, and CAST in the query"
        )
    return name


def _view_with_connectors(
    p: PenstockParser, head: Head, name: Name, columns: tuple[Name, ...], *, exists: bool
) -> CreateSink:
    """WITH ('connectors' = '[…]') AS query, behind the name of a view of Feldera: where its changes are written."""
    first = p.current
    p.step()
    found = options(p, foreign=True) if p.current.token_type == T.L_PAREN else ()
    if not feldera_connectors.given(found) or columns or head.temporary:
        p.step_back(first)
        p.fail("AS", "a plain view has no options; use CREATE MATERIALIZED VIEW")
    span = p.since(first)
    p.expect("AS")
    return CreateSink(
        name=name,
        options=feldera_connectors.sink(found, p.sql),
        query=p.query(),
        or_replace=head.or_replace,
        if_not_exists=exists,
        with_span=span,
    )


def create_view(p: PenstockParser, head: Head) -> CreateView | CreateSink:
    """CREATE VIEW v [(names)] AS query"""
    exists = if_not_exists(p)
    name = p.name("the name of the view")
    columns = _view_columns(p)
    comment = p.string() if p.word("COMMENT") else None
    if p.ahead("WITH"):
        return _view_with_connectors(p, head, name, columns, exists=exists)
    p.expect("AS")
    return CreateView(
        name=name,
        query=p.query(),
        columns=columns,
        comment=comment,
        or_replace=head.or_replace,
        temporary=head.temporary,
        if_not_exists=exists,
    )


def create_materialized_view(p: PenstockParser, head: Head) -> CreateMaterializedView:
    """CREATE MATERIALIZED VIEW v [(names)] [WITH (…)] AS query"""
    exists = if_not_exists(p)
    name = p.name("the name of the view")
    columns = _view_columns(p)
    comment: str | None = None
    found: tuple[Option, ...] = ()
    while not p.word("AS"):
        first = p.current
        if p.word("WITH"):
            found += options(p)
        elif comment is None and p.word("COMMENT"):
            comment = p.string()
        elif p.ahead("FRESHNESS") or p.ahead("REFRESH_MODE") or p.ahead("START_MODE"):
            found += (_flink_option(p, first),)
        elif p.ahead("PARTITIONED") or p.ahead("DISTRIBUTED"):
            p.not_yet(f"{first.text.upper()} BY on a view is not there yet", "leave the clause out", first)
        else:
            p.fail("AS")
    query = p.query(kept=True)
    hinted = state_ttl(query.tree, kept=True)
    return CreateMaterializedView(
        name=name,
        query=query,
        columns=columns,
        options=found if hinted is None else (*found, hinted),
        comment=comment,
        or_replace=head.or_replace,
        if_not_exists=exists,
    )


def _flink_option(p: PenstockParser, first: Token) -> Option:
    """FRESHNESS = INTERVAL '1' MINUTE, REFRESH_MODE = CONTINUOUS | FULL"""
    p.step()
    key = first.text.lower()
    key_span = p.since(first)
    p.expect_symbol(T.EQ, "=")
    at = p.current
    if key != "freshness":
        p.step()
        if key == "refresh_mode" and p.taken.text.upper() != "CONTINUOUS":
            p.not_yet("REFRESH_MODE other than CONTINUOUS is not there yet", "leave REFRESH_MODE out", at)
        if key == "start_mode":
            p.not_yet("START_MODE is not there yet", "leave START_MODE out", at)
        return Option(key, OptionValue("text", Secret(p.taken.text.lower())), key_span, p.since(at))
    node = p.interval()
    try:
        micros = duration_us(node if node is not None else "")
    except NotADuration:
        p.fail("an interval such as INTERVAL '1' MINUTE")
    return Option(key, OptionValue("interval", Secret(str(micros))), key_span, p.since(at))
