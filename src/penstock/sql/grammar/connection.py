"""CREATE CONNECTION: RisingWave's with options, Materialize's TO KAFKA (…) and TO CONFLUENT SCHEMA REGISTRY (…).

CREATE CONNECTION k TO KAFKA (BROKER 'b:9092', SASL PASSWORD = SECRET p, …)
-> CREATE CONNECTION k WITH (type = 'kafka', bootstrap_servers = 'b:9092', kafka.sasl.password = SECRET p, …)
"""

from __future__ import annotations

from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from penstock.sql.dialects import materialize
from penstock.sql.grammar.create import Head, if_not_exists
from penstock.sql.grammar.materialize_format import text_option
from penstock.sql.grammar.options import options
from penstock.sql.grammar.phrases import Phrases, phrases
from penstock.sql.parser import PenstockParser
from penstock.sql.statements import CreateConnection, Option

T = TokenType

_KAFKA: Final = Phrases(
    known={
        "BROKER": "bootstrap_servers",
        "BROKERS": "bootstrap_servers",
        "SECURITY PROTOCOL": "kafka.security.protocol",
        "SASL MECHANISMS": "kafka.sasl.mechanism",
        "SASL USERNAME": "kafka.sasl.username",
        "SASL PASSWORD": "kafka.sasl.password",
        "SSL CERTIFICATE AUTHORITY": "kafka.ssl.ca.pem",
        "SSL CERTIFICATE": "kafka.ssl.certificate.pem",
        "SSL KEY": "kafka.ssl.key.pem",
    },
    later={
        "SSH TUNNEL": "name brokers that can be reached",
        "AWS CONNECTION": "log in with SASL USERNAME and SASL PASSWORD",
        "AWS PRIVATELINK": "name brokers that can be reached",
        "PROGRESS TOPIC": "leave it out; the offsets of a sink are kept in a consumer group",
        "PROGRESS TOPIC REPLICATION FACTOR": "leave it out; the offsets of a sink are kept in a consumer group",
    },
)
_REGISTRY: Final = Phrases(
    known={
        "URL": "schema_registry.url",
        "USERNAME": "schema_registry.username",
        "PASSWORD": "schema_registry.password",
    },
    later={
        "SSL CERTIFICATE AUTHORITY": "trust the authority on this machine",
        "SSL CERTIFICATE": "log in with USERNAME and PASSWORD",
        "SSL KEY": "log in with USERNAME and PASSWORD",
        "SSH TUNNEL": "name an address that can be reached",
        "AWS PRIVATELINK": "name an address that can be reached",
        "PORT": "write it in the URL",
    },
)


def create_connection(p: PenstockParser, head: Head) -> CreateConnection:
    """CREATE CONNECTION k WITH (type = 'kafka', …) | TO KAFKA (…) | TO CONFLUENT SCHEMA REGISTRY (…)"""
    exists = if_not_exists(p)
    name = p.name("the name of the connection")
    first = p.current
    if p.word("WITH"):
        found = options(p)
    else:
        p.expect("TO")
        found = _of_materialize(p)
    span = p.since(first)
    if p.word("WITH"):
        p.expect_symbol(T.L_PAREN, "(")
        p.expect("VALIDATE")
        p.expect_symbol(T.EQ, "=")
        if p.symbol(T.TRUE):
            materialize.refuse("VALIDATE = true", "leave it out; the first statement that reads finds out", p.taken)
        p.expect_symbol(T.FALSE, "false")
        p.close()
    return CreateConnection(name=name, options=found, or_replace=head.or_replace, if_not_exists=exists, with_span=span)


def _of_materialize(p: PenstockParser) -> tuple[Option, ...]:
    first = p.current
    if p.word("KAFKA"):
        found = phrases(p, _KAFKA)
        return (text_option("type", "kafka", first), *found, *_protocol(found, first))
    if p.word("CONFLUENT", "SCHEMA", "REGISTRY"):
        return (text_option("type", "schema_registry", first), *phrases(p, _REGISTRY))
    return materialize.refuse(
        f"CREATE CONNECTION TO {first.text.upper()}" if first else "CREATE CONNECTION",
        "connections lead to KAFKA or to a CONFLUENT SCHEMA REGISTRY; give other options to the relation",
        first or p.taken,
    )


def _protocol(found: tuple[Option, ...], first: Token) -> tuple[Option, ...]:
    """Materialize encrypts unless it is told SECURITY PROTOCOL = 'PLAINTEXT'."""
    keys = {option.key for option in found}
    if "kafka.security.protocol" in keys:
        return ()
    login = any(key.startswith("kafka.sasl.") for key in keys)
    return (text_option("kafka.security.protocol", "SASL_SSL" if login else "SSL", first),)
