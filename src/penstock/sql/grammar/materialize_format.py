"""The formats of Materialize's sources and sinks, for values and keys."""

from __future__ import annotations

from typing import Final, Literal

from sqlglot.tokenizer_core import Token, TokenType

from penstock.frozen import frozen
from penstock.secrets import Secret
from penstock.sql.dialects import materialize
from penstock.sql.grammar.options import value
from penstock.sql.parser import PenstockParser
from penstock.sql.spans import token_span
from penstock.sql.statements import Option, OptionValue

Kind = Literal["json", "text", "bytes", "csv", "avro", "protobuf"]

_NAMES: Final[dict[str, str]] = {
    "json": "json",
    "text": "raw",
    "bytes": "raw",
    "csv": "csv",
    "avro": "avro-confluent",
    "protobuf": "protobuf",
}


@frozen
class FormatClause:
    """One format: what it is, its options in our words, and where it stands. `columns` is the width of CSV."""

    kind: Kind
    options: tuple[Option, ...]
    token: Token
    columns: int | None = None


@frozen
class Formats:
    """FORMAT f, or KEY FORMAT f VALUE FORMAT g."""

    value: FormatClause
    key: FormatClause | None = None


def text_option(key: str, text: str, first: Token) -> Option:
    """An option that follows from a clause. It has the place of the clause's first word alone, because what an option
    has for its value may be shown, and a password may stand behind that word."""
    span = token_span(first)
    return Option(key, OptionValue("text", Secret(text)), span, span)


def formats(p: PenstockParser) -> Formats | None:
    """The clause, if it comes next; one format without VALUE is that of keys, too, where there are keys."""
    if p.word("KEY", "FORMAT"):
        key = _format(p)
        p.expect("VALUE", "FORMAT")
        return Formats(_format(p), key)
    return Formats(_format(p)) if p.word("FORMAT") else None


def key_options(clause: FormatClause) -> list[Option]:
    """The format of keys."""
    made = [text_option("key.format", _NAMES[clause.kind], clause.token)]
    if clause.kind == "protobuf":
        materialize.refuse("keys in PROTOBUF", "use KEY FORMAT AVRO, JSON or TEXT", clause.token)
    return made


def value_options(clause: FormatClause, *, debezium: bool = False) -> list[Option]:
    """The format of values."""
    if debezium and clause.kind != "json":
        materialize.refuse("ENVELOPE DEBEZIUM in another format", "use FORMAT JSON", clause.token)
    name = "debezium-json" if debezium else _NAMES[clause.kind]
    return [text_option("format", name, clause.token), *clause.options]


def _format(p: PenstockParser) -> FormatClause:
    first = p.current
    word = p.any_word("JSON", "TEXT", "BYTES", "CSV", "AVRO", "PROTOBUF", "REGEX")
    if word == "JSON":
        if p.ahead("ARRAY"):
            materialize.refuse("FORMAT JSON ARRAY", "use FORMAT JSON", first)
        return FormatClause("json", (), first)
    if word == "TEXT":
        return FormatClause("text", (), first)
    if word == "BYTES":
        return FormatClause("bytes", (), first)
    if word == "CSV":
        return _csv(p, first)
    if word == "AVRO":
        return FormatClause("avro", (_registry(p, first),), first)
    if word == "PROTOBUF":
        if p.ahead("MESSAGE"):
            materialize.refuse("PROTOBUF MESSAGE … USING SCHEMA", "use a schema registry, or WITH (…)", p.current)
        span = p.since(first)
        confluent = Option("protobuf.confluent_schema_registry", OptionValue("boolean", Secret("true")), span, span)
        return FormatClause("protobuf", (_registry(p, first), confluent), first)
    if word == "REGEX":
        materialize.refuse("FORMAT REGEX", "use FORMAT TEXT, and REGEXP_EXTRACT in a view", first)
    return p.fail("JSON, AVRO, PROTOBUF, CSV, TEXT or BYTES")


def _registry(p: PenstockParser, first: Token) -> Option:
    """USING CONFLUENT SCHEMA REGISTRY CONNECTION c"""
    p.expect("USING", "CONFLUENT", "SCHEMA", "REGISTRY", "CONNECTION")
    name = p.name("the name of a connection")
    if p.ahead("KEY", "STRATEGY") or p.ahead("VALUE", "STRATEGY") or p.ahead("SEED") or p.at(TokenType.L_PAREN):
        materialize.refuse("options of a schema registry", "list the columns and their types", p.current)
    key_span = p.since(first)
    return Option("schema_registry.connection", OptionValue("text", Secret(name.text)), key_span, name.span)


def _csv(p: PenstockParser, first: Token) -> FormatClause:
    """CSV WITH n COLUMNS [DELIMITED BY 'c']"""
    p.expect("WITH")
    if p.ahead("HEADER"):
        materialize.refuse("CSV WITH HEADER", "records of a topic have no header; use CSV WITH n COLUMNS", p.current)
    at = p.current
    width = value(p)
    if width.kind != "number" or not width.reveal().isdigit():
        p.step_back(at)
        p.fail("a number of columns")
    p.expect("COLUMNS")
    found: tuple[Option, ...] = ()
    if p.word("DELIMITED", "BY"):
        at = p.current
        found = (Option("csv.delimiter", value(p), p.since(first), p.since(at)),)
    return FormatClause("csv", found, first, int(width.reveal()))
