"""Topics that one relation writes changes to and another one reads as rows.

    CREATE SINK totals WITH (connector = 'topic', topic = 't', changes = 'upsert') AS SELECT k, COUNT(*) AS n …
    CREATE STREAM read (k BIGINT, n BIGINT) WITH (connector = 'topic', topic = 't')

Each change is then a row of its own, deletions among them. That may be what is wanted, so it is told and not refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.catalog.model import SinkDefinition, SourceDefinition

if TYPE_CHECKING:
    from penstock.catalog.snapshot import Catalog

_FAMILIES: Final = {"topic": "topic", "kafka": "kafka", "upsert-kafka": "kafka"}
_SERVERS: Final = "bootstrap_servers"
_ENVELOPES: Final = "debezium-json"
# What says of a record which change it is: whoever has a column for that knows what is read.
_OPERATIONS: Final = frozenset({"_op", "op"})


def told_of_changes(definition: SourceDefinition | SinkDefinition, catalog: Catalog) -> tuple[str, ...]:
    """What to tell of a new relation whose topic is read as rows and written as changes."""
    found: list[str] = []
    for other in catalog.relations():
        if isinstance(definition, SourceDefinition) and isinstance(other, SinkDefinition):
            source, sink = definition, other
        elif isinstance(definition, SinkDefinition) and isinstance(other, SourceDefinition):
            source, sink = other, definition
        else:
            continue
        place = _place(source)
        if place is not None and place == _place(sink) and sink.options.changes != "append" and _reads_rows(source):
            found.append(
                f'"{source.name}" reads as rows what sink "{sink.name}" writes as changes: each is one more row, and a '
                f"row that is replaced or deleted stays; {_reading(sink)} reads what the changes make"
            )
    return tuple(found)


def _place(relation: SourceDefinition | SinkDefinition) -> tuple[str, str, str] | None:
    """The kind of topic, the brokers and the topic; None where a relation has no one topic."""
    options = relation.options
    family = _FAMILIES.get(options.connector)
    named = options.values.get("topic") or (relation.name.text if family == "topic" else ())
    topics = named if isinstance(named, tuple) else (named,)
    if family is None or len(topics) != 1:
        return None
    return family, str(options.values.get(_SERVERS) or ""), str(topics[0])


def _reads_rows(source: SourceDefinition) -> bool:
    marks = [column for column in source.columns if column.metadata == "headers"]
    marks += [column for column in source.columns if column.name.casefold() in _OPERATIONS]
    return source.mode == "append" and not marks


def _reading(sink: SinkDefinition) -> str:
    """The options by which a source reads the changes of a sink."""
    if sink.options.format == _ENVELOPES:
        return f"format = '{_ENVELOPES}'"
    if sink.options.changes == "upsert":
        return "changes = 'upsert' and a PRIMARY KEY"
    return "changes = 'retract'"
