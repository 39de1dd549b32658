"""CREATE CONNECTION: options that relations share, and what of them a relation takes.

CREATE CONNECTION k WITH (type = 'kafka', bootstrap_servers = 'broker:9092');
CREATE STREAM s (id INT) WITH (connector = 'kafka', connection = 'k', topic = 't')
-> s is defined as if it said bootstrap_servers = 'broker:9092'; its own text says connection = 'k'
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from penstock.catalog.model import ConnectionDefinition, ObjectKey
from penstock.catalog.secrets import used_secrets
from penstock.catalog.text import canonical_text
from penstock.options import normalise, option_slot, resolve_connection
from penstock.sql.statements import Name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.catalog.snapshot import Catalog
    from penstock.sql.statements import CreateConnection, Option

_KEYS: Final = frozenset({"connection", "schema_registry_connection"})


def define_connection(statement: CreateConnection, catalog: Catalog | None = None) -> ConnectionDefinition:
    """The definition. Passwords stand in it as references only, so it has no secrets of its own."""
    options = resolve_connection(statement.options, statement.name, statement.with_span)
    secrets = [catalog.get_secret(name).object_key for name in used_secrets(options)] if catalog is not None else []
    return ConnectionDefinition(
        name=statement.name,
        options=options,
        depends_on=tuple(dict.fromkeys(secrets)),
        text=canonical_text(replace(statement, options=options)),
    )


def connections_of(options: Sequence[Option], catalog: Catalog | None) -> tuple[ObjectKey, ...]:
    """The connections that the options of a relation name."""
    return tuple(found.object_key for found in _named(options, catalog))


def with_connections(options: tuple[Option, ...], catalog: Catalog | None) -> tuple[tuple[Option, ...], frozenset[str]]:
    """The options of a relation with those of its connections, and the keys of these; its own come first.

    Without a catalog a connection gives nothing.
    """
    slot = option_slot(options)
    taken = {slot(option.key) for option in options}
    shared = {
        option.key: option
        for connection in _named(options, catalog)
        for option in connection.options
        if option.key != "type" and option.key not in taken
    }
    return (*options, *shared.values()), frozenset(shared)


def _named(options: Sequence[Option], catalog: Catalog | None) -> Iterator[ConnectionDefinition]:
    for option in options:
        if catalog is not None and normalise(option.key) in _KEYS and option.value.kind == "text":
            yield catalog.get_connection(Name(option.value.reveal(), span=option.value_span))
