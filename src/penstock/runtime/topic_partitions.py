"""Partitions of embedded topics: rows are in them, so they stay; a topic that is shared is changed by ALTER only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.catalog.model import SinkDefinition, SourceDefinition
from penstock.connectors.memory import memory_topics
from penstock.connectors.metadata_columns import topic_name
from penstock.errors import OptionError, PenstockError

if TYPE_CHECKING:
    from penstock.catalog.model import Definition
    from penstock.catalog.snapshot import Catalog
    from penstock.runtime.home import Home
    from penstock.stores.topics import Topic

_KEPT_HERE: Final = ("topic", "memory")


def refuse_wider(home: Home, definition: Definition, before: Catalog) -> None:
    """Refuse a new relation that asks for more partitions than a topic has on which others stand, too.

    Their keys would go to other partitions and their jobs would start again, because of somebody else's CREATE.
    """
    asked, topic = _asked(definition), _topic(home, definition)
    if asked is None or topic is None or asked <= topic.layout.partitions:
        return
    if definition.object_key in before:
        return  # replaced: whoever says so speaks of this very relation
    for other in before:
        if _topic_of(other) == _topic_of(definition):
            raise OptionError(
                "INVALID_OPTION",
                f"option partitions asks for {asked}, and topic {topic.name} has {topic.layout.partitions}, "
                f"which {other.name} uses, too",
                hint=f"leave partitions out, or first ALTER {other.kind.upper()} {other.name} "
                f"SET (partitions = {asked})",
            )


def refuse_fewer(home: Home, before: Definition, after: Definition) -> None:
    """Refuse an ALTER that would take partitions away."""
    topic = _topic(home, after)
    if topic is None or not isinstance(after, SourceDefinition | SinkDefinition):
        return
    asked = after.options.values.get("partitions")
    if not isinstance(asked, int) or asked >= topic.layout.partitions:
        return
    if isinstance(before, SourceDefinition | SinkDefinition) and before.options.values.get("partitions") == asked:
        return  # as before: another option is altered
    raise OptionError(
        "INVALID_OPTION",
        f"option partitions cannot become {asked}: topic {topic.name} has {topic.layout.partitions}, "
        "and a topic keeps its partitions, because rows are in them",
        hint=f"give {topic.layout.partitions} or more, or create another stream and INSERT INTO it",
    )


def fewer_notice(home: Home, definition: Definition) -> str | None:
    """What to tell of a relation that asks for fewer partitions than its topic has."""
    asked, topic = _asked(definition), _topic(home, definition)
    if asked is None or topic is None or topic.layout.partitions <= asked:
        return None
    return (
        f"topic {topic.name} has {topic.layout.partitions} partitions and keeps them, "
        f"though {definition.name} asks for {asked}"
    )


def _asked(definition: Definition) -> int | None:
    """The partitions that a statement says; None where it says none."""
    if not isinstance(definition, SourceDefinition | SinkDefinition) or "partitions" not in definition.options.given:
        return None
    asked = definition.options.values.get("partitions")
    return asked if isinstance(asked, int) else None


def _topic_of(definition: Definition) -> tuple[str, str] | None:
    if not isinstance(definition, SourceDefinition | SinkDefinition):
        return None
    connector = definition.options.connector
    return (connector, topic_name(definition)) if connector in _KEPT_HERE else None


def _topic(home: Home, definition: Definition) -> Topic | None:
    found = _topic_of(definition)
    if found is None:
        return None
    connector, name = found
    try:
        return (memory_topics(home.path) if connector == "memory" else home.topics).open(name)
    except PenstockError:
        return None  # none yet; or damaged, which is told by whoever needs its rows
