"""Materialize's CREATE SOURCE … FROM KAFKA CONNECTION, as a relation of ours over Kafka.

CREATE SOURCE s FROM KAFKA CONNECTION k (TOPIC 't') KEY FORMAT TEXT VALUE FORMAT JSON ENVELOPE UPSERT
-> CREATE SOURCE s (key STRING, data STRING, PRIMARY KEY (key) NOT ENFORCED)
   WITH (connector = 'upsert-kafka', connection = 'k', topic = 't', json.unstructured = true, 'key.fields' = 'key', …)

Without a list of columns a record is one column, as there. With columns and types, which Materialize does not have,
JSON and Avro are read into them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import CatalogError, Span
from penstock.frozen import frozen
from penstock.secrets import Secret
from penstock.sql.dialects import materialize
from penstock.sql.dialects.risingwave import HEADERS
from penstock.sql.grammar.columns import Columns
from penstock.sql.grammar.materialize_format import FormatClause, Formats, formats, key_options, text_option
from penstock.sql.grammar.materialize_format import value_options as value_format
from penstock.sql.grammar.phrases import Phrases, phrases
from penstock.sql.parser import PenstockParser
from penstock.sql.spans import token_span
from penstock.sql.statements import Column, CreateRelation, Name, Option, OptionValue, RelationKind
from penstock.types import BIGINT, BINARY, INT, STRING, TIMESTAMP, SqlType

T = TokenType
SOURCE: Final = Phrases(
    known={
        "TOPIC": "topic",
        "START OFFSET": "start_offsets",
        "START TIMESTAMP": "start_timestamp",
        "GROUP ID PREFIX": "group_id_prefix",
    },
    later={
        "TOPIC METADATA REFRESH INTERVAL": "leave it out; new partitions are looked for with each batch",
        "PROGRESS GROUP ID PREFIX": "leave it out",
    },
)
_INCLUDED: Final[dict[str, SqlType]] = {
    "PARTITION": INT,
    "OFFSET": BIGINT,
    "TIMESTAMP": TIMESTAMP,
    "HEADERS": HEADERS,
}


@frozen
class SourceHead:
    """What stands before FROM: of a list of names alone, `names`."""

    kind: RelationKind
    name: Name
    columns: Columns
    names: tuple[Name, ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(slots=True)
class _Clauses:
    formats: Formats | None = None
    columns: list[Column] = field(default_factory=list)
    key: Name | None = None  # INCLUDE KEY AS name
    key_asked: Token | None = None
    envelope: str = "NONE"


def names_alone(p: PenstockParser) -> bool:
    """Whether a list of names without types begins here, and FROM stands behind it."""
    if not p.at(T.L_PAREN):
        return False
    place = 2
    while (token := p.peek(place)) is not None and token.token_type == T.COMMA:
        place += 2
    return token is not None and token.token_type == T.R_PAREN and p.peek_text(place + 1, "FROM")


def source_over_connection(p: PenstockParser, head: SourceHead) -> CreateRelation:
    """FROM KAFKA CONNECTION k (…) [formats] [INCLUDE …] [ENVELOPE …]"""
    first = p.current
    p.expect("FROM", "KAFKA", "CONNECTION")
    made = [_connection(p, first), *_positions(p, first)]
    found = _Clauses()
    while _clause(p, found):
        pass
    span = p.since(first)
    if found.formats is None:
        p.fail("FORMAT")
    upsert = found.envelope == "UPSERT"
    value = found.formats.value
    plain, unstructured = _value_columns(p, head, value)
    made.insert(0, text_option("connector", "upsert-kafka" if upsert else "kafka", first))
    made += value_format(value, debezium=found.envelope == "DEBEZIUM")
    if unstructured:
        made.append(Option("json.unstructured", OptionValue("boolean", Secret("true")), _place(value), _place(value)))
    keys, key_columns = _upsert_key(head, found) if upsert else ((), _key_metadata(found))
    if upsert and keys:
        made += _key_options(found, keys, of_list=not key_columns)
    return CreateRelation(
        kind=head.kind,
        name=head.name,
        columns=(*(key_columns if upsert else ()), *plain, *(() if upsert else key_columns), *found.columns),
        options=tuple(made),
        watermark=head.columns.watermark,
        primary_key=keys or head.columns.primary_key,
        or_replace=head.or_replace,
        if_not_exists=head.if_not_exists,
        with_span=span,
    )


def _place(clause: FormatClause) -> Span:
    return token_span(clause.token)


def _connection(p: PenstockParser, first: Token) -> Option:
    key_span = p.since(first)
    name = p.name("the name of a connection")
    return Option("connection", OptionValue("text", Secret(name.text)), key_span, name.span)


def _positions(p: PenstockParser, first: Token) -> list[Option]:
    """TOPIC and where to begin, which in Materialize is the beginning unless it is said."""
    found = list(phrases(p, SOURCE))
    if not {option.key for option in found} & {"start_offsets", "start_timestamp"}:
        found.append(text_option("start", "earliest", first))
    return found


def _clause(p: PenstockParser, found: _Clauses) -> bool:
    first = p.current
    if found.formats is None and (clause := formats(p)) is not None:
        found.formats = clause
    elif p.word("INCLUDE"):
        _include(p, found)
        while p.symbol(T.COMMA):
            _include(p, found)
    elif p.word("ENVELOPE"):
        word = p.any_word("NONE", "UPSERT", "DEBEZIUM")
        if word is None:
            p.fail("NONE, UPSERT or DEBEZIUM")
        found.envelope = word
        if p.at(T.L_PAREN):
            materialize.refuse(
                "options of ENVELOPE", "leave them out; bad_data says what becomes of bad records", first
            )
    elif p.ahead("EXPOSE") or p.ahead("WITH"):
        materialize.refuse(f"{first.text.upper()} behind a source", "leave it out", first)
    else:
        return False
    return True


def _include(p: PenstockParser, found: _Clauses) -> None:
    first = p.current
    if p.word("KEY"):
        found.key_asked = first
        found.key = p.name("the name of the column") if p.word("AS") else Name("key", span=p.since(first))
        return
    if p.word("HEADER"):
        header = p.string("the key of the header")
        p.expect("AS")
        name = p.name("the name of the column")
        kind = BINARY if p.word("BYTES") else STRING
        found.columns.append(Column(name, kind, header=header, span=p.since(first)))
        return
    word = p.any_word(*_INCLUDED)
    if word is None:
        p.fail("KEY, PARTITION, OFFSET, TIMESTAMP, HEADERS or HEADER")
    name = p.name("the name of the column") if p.word("AS") else Name(word.lower(), span=p.since(first))
    found.columns.append(Column(name, _INCLUDED[word], metadata=word.lower(), virtual=True, span=p.since(first)))


def _value_columns(p: PenstockParser, head: SourceHead, clause: FormatClause) -> tuple[tuple[Column, ...], bool]:
    """The columns of the record, and whether it is JSON that is not taken apart."""
    if head.columns.columns:
        return tuple(head.columns.columns), False
    kind, names = clause.kind, head.names
    if kind in {"avro", "protobuf"}:
        p.not_yet(
            "columns taken from a schema registry are not there yet", "list the columns and their types", clause.token
        )
    width = (clause.columns or 0) if kind == "csv" else 1
    if names and len(names) != width:
        raise CatalogError(
            "INVALID_DEFINITION",
            f"source {head.name} names {len(names)} columns, and its records have {width}",
            hint="name as many, or list columns with their types",
            span=names[0].span,
        )
    usual = [f"column{n}" for n in range(1, width + 1)] if kind == "csv" else ["text" if kind == "text" else "data"]
    columns = names or tuple(Name(name, span=head.name.span) for name in usual)
    type_ = BINARY if kind == "bytes" else STRING
    return tuple(Column(name, type_, span=name.span) for name in columns), kind == "json"


def _key_metadata(found: _Clauses) -> tuple[Column, ...]:
    """INCLUDE KEY without ENVELOPE UPSERT: the key of the record as it is."""
    if found.key is None or found.key_asked is None or found.formats is None:
        return ()
    kind = (found.formats.key or found.formats.value).kind
    if kind not in {"text", "json", "bytes"}:
        hint = "use KEY FORMAT TEXT or BYTES, or ENVELOPE UPSERT with a PRIMARY KEY in the list of columns"
        materialize.refuse(f"INCLUDE KEY in {kind.upper()}", hint, found.key_asked)
    type_ = BINARY if kind == "bytes" else STRING
    return (Column(found.key, type_, metadata="key", virtual=True, span=found.key.span),)


def _upsert_key(head: SourceHead, found: _Clauses) -> tuple[tuple[Name, ...], tuple[Column, ...]]:
    """What rows replace each other by: a declared primary key, or a column of its own for the key of the record."""
    if head.columns.primary_key:
        return head.columns.primary_key, ()
    assert found.formats is not None
    kind = (found.formats.key or found.formats.value).kind
    if kind not in {"text", "json", "bytes"}:
        hint = "add PRIMARY KEY (column) NOT ENFORCED to the list of columns"
        token = (found.formats.key or found.formats.value).token
        materialize.refuse(f"ENVELOPE UPSERT with keys in {kind.upper()} and no PRIMARY KEY", hint, token)
    name = found.key or Name("key", span=head.name.span)
    return (name,), (Column(name, BINARY if kind == "bytes" else STRING, span=name.span),)


def _key_options(found: _Clauses, keys: tuple[Name, ...], *, of_list: bool) -> list[Option]:
    assert found.formats is not None
    clause = found.formats.key or found.formats.value
    made = [text_option("key.fields", ",".join(key.text for key in keys), clause.token)]
    if of_list:
        return [*made, *key_options(clause)]
    # The key is a column of its own, the text that it is.
    return [
        *made,
        text_option("key.format", "raw", clause.token),
        text_option("value.fields_include", "EXCEPT_KEY", clause.token),
    ]
