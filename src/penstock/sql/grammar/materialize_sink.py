"""Materialize's CREATE SINK … INTO KAFKA CONNECTION, as a sink of ours over Kafka, exactly once as there."""

from __future__ import annotations

from typing import Final

from penstock.errors import CatalogError
from penstock.frozen import frozen
from penstock.secrets import Secret
from penstock.sql.dialects import materialize
from penstock.sql.grammar.materialize_format import formats, key_options, text_option, value_options
from penstock.sql.grammar.phrases import Phrases, phrases
from penstock.sql.parser import PenstockParser
from penstock.sql.statements import CreateSink, Name, Option, OptionValue, Query

_SINK: Final = Phrases(
    known={
        "TOPIC": "topic",
        "TOPIC PARTITION COUNT": "partitions",
        "TOPIC REPLICATION FACTOR": "replication_factor",
        "COMPRESSION TYPE": "kafka.compression.type",
        "TRANSACTIONAL ID PREFIX": "transactional_id_prefix",
    },
    later={
        "TOPIC CONFIG": "leave it out, and configure the topic",
        "PARTITION BY": "leave it out; the key says which partition a row goes to",
        "PROGRESS GROUP ID PREFIX": "leave it out",
    },
)


@frozen
class SinkHead:
    """What stands before INTO."""

    name: Name
    query: Query
    or_replace: bool
    if_not_exists: bool


def sink_over_connection(p: PenstockParser, head: SinkHead) -> CreateSink:
    """INTO KAFKA CONNECTION k (…) [KEY (columns)] formats ENVELOPE UPSERT | DEBEZIUM"""
    first = p.current
    p.expect("INTO", "KAFKA", "CONNECTION")
    key_span = p.since(first)
    connection = p.name("the name of a connection")
    made = [Option("connection", OptionValue("text", Secret(connection.text)), key_span, connection.span)]
    made += phrases(p, _SINK)
    keys: tuple[Name, ...] = ()
    if p.ahead("KEY", "("):
        at = p.current
        p.step()
        keys = p.names()
        p.word("NOT", "ENFORCED")
        made.append(text_option("key.fields", ",".join(key.text for key in keys), at))
    if p.ahead("HEADERS"):
        materialize.refuse("HEADERS of a sink", "list the columns of the sink, one METADATA FROM 'headers'", p.current)
    clause = formats(p)
    if clause is None:
        p.fail("FORMAT")
    p.expect("ENVELOPE")
    envelope = p.any_word("UPSERT", "DEBEZIUM")
    if envelope is None:
        p.fail("UPSERT or DEBEZIUM")
    if envelope == "UPSERT" and not keys:
        message = f"rows of sink {head.name} replace each other, and nothing says by which key"
        p.refuse(CatalogError, "INVALID_DEFINITION", message, "add KEY (column) before FORMAT", p.taken)
    connector = "upsert-kafka" if envelope == "UPSERT" else "kafka"
    made.insert(0, text_option("connector", connector, first))
    made += value_options(clause.value, debezium=envelope == "DEBEZIUM")
    made += key_options(clause.key or clause.value) if keys else []
    made.append(text_option("delivery", "exactly_once", first))
    return CreateSink(
        name=head.name,
        options=tuple(made),
        query=head.query,
        primary_key=keys,
        or_replace=head.or_replace,
        if_not_exists=head.if_not_exists,
        with_span=p.since(first),
    )
