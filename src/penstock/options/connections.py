"""The options of CREATE CONNECTION: those of Kafka and of a schema registry that say where it is and how to log in."""

from __future__ import annotations

from typing import Final

from penstock.errors import NotYetError, OptionError, Span
from penstock.options.keys import normalise
from penstock.options.matching import KeyTable
from penstock.options.problems import unknown_options
from penstock.options.reading import read_options
from penstock.options.schema import OptionSpec
from penstock.options.schemas.formats import AVRO_CONFLUENT
from penstock.options.schemas.kafka import BOOTSTRAP
from penstock.options.schemas.kafka_client import CLIENT
from penstock.options.values import Choice
from penstock.secrets import only_references
from penstock.sql.statements import Name, Option

_REGISTRY: Final = ("schema_registry.url", "schema_registry.username", "schema_registry.password")
_TYPE: Final = OptionSpec("type", Choice(("kafka", "schema_registry")), "what it leads to", literal=True)
_TABLES: Final = {
    "kafka": KeyTable((_TYPE, BOOTSTRAP), (), CLIENT),
    "schema_registry": KeyTable((_TYPE, *(spec for spec in AVRO_CONFLUENT.options if spec.key in _REGISTRY))),
}
_NEEDED: Final = {"kafka": BOOTSTRAP.key, "schema_registry": _REGISTRY[0]}


def resolve_connection(options: tuple[Option, ...], name: Name, span: Span) -> tuple[Option, ...]:
    """The options of a connection with canonical keys and values, checked."""
    kind = _kind(options, name, span)
    table = _TABLES[kind]
    found = read_options(options, table)
    if found.unknown:
        raise unknown_options(found.unknown, table, f"connection {name}")
    if _NEEDED[kind] not in found.given:
        raise OptionError(
            "MISSING_OPTION",
            f"connection {name} needs the option {_NEEDED[kind]}",
            hint=f"add {_NEEDED[kind]} = '…'",
            span=span,
        )
    made: list[Option] = []
    for reading in found.given.values():
        canonical = reading.canonical()
        if reading.secret and canonical.value.kind != "secret" and not only_references(canonical.value.reveal()):
            raise OptionError(
                "INVALID_OPTION",
                f"option {reading.option.key} of connection {name} is secret and must be a reference",
                hint="CREATE SECRET s AS '…' and write SECRET s, or write '${env:NAME}' for a variable",
                span=reading.option.value_span,
            )
        made.append(canonical)
    return tuple(made)


def _kind(options: tuple[Option, ...], name: Name, span: Span) -> str:
    given = next((option for option in options if normalise(option.key) == "type"), None)
    if given is None:
        raise OptionError(
            "MISSING_OPTION",
            f"connection {name} does not say what it leads to",
            hint="add type = 'kafka', or type = 'schema_registry'",
            span=span,
        )
    kind = given.value.reveal().lower()
    if kind not in _TABLES:
        raise NotYetError(
            "CLAUSE_NOT_YET",
            f"connection {name} is of a type that is not there yet",
            hint="connections are of type 'kafka' or 'schema_registry'; give other options in the WITH clause of the "
            "relation",
            span=given.value_span,
        )
    return kind
