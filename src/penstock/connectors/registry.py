"""Which connectors this version runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.connectors.blackhole import BlackholeSink
from penstock.connectors.console import ConsoleSink
from penstock.connectors.file_sink import FileSink
from penstock.connectors.file_source import FileSource
from penstock.connectors.generator import GeneratorSource
from penstock.connectors.http import HttpSink
from penstock.connectors.kafka import KafkaSource
from penstock.connectors.kafka_sink import KafkaSink
from penstock.connectors.memory import MemorySource
from penstock.connectors.nexmark import NexmarkSource
from penstock.connectors.topic import TopicSource
from penstock.connectors.topic_sink import TopicSink
from penstock.errors import NotYetError

if TYPE_CHECKING:
    from penstock.connectors.sink import Sink
    from penstock.connectors.source import Source

_GENERATOR: Final = GeneratorSource()
_KAFKA: Final = KafkaSource()
_TO_KAFKA: Final = KafkaSink()
_SOURCES: Final[dict[str, Source]] = {
    "topic": TopicSource(),
    "file": FileSource(),
    "datagen": _GENERATOR,
    "impulse": _GENERATOR,
    "nexmark": NexmarkSource(),
    "memory": MemorySource(),
    "kafka": _KAFKA,
    "upsert-kafka": _KAFKA,
}
_SINKS: Final[dict[str, Sink]] = {
    "topic": TopicSink(),
    "file": FileSink(),
    "console": ConsoleSink(),
    "blackhole": BlackholeSink(),
    "http": HttpSink(),
    "kafka": _TO_KAFKA,
    "upsert-kafka": _TO_KAFKA,
}


def add_source(connector: str, source: Source) -> None:
    """Make another source known, or put it in the place of one."""
    _SOURCES[connector] = source


def source_of(connector: str) -> Source:
    """The source behind a connector's canonical name."""
    found = _SOURCES.get(connector)
    if found is None:
        raise NotYetError(
            "CONNECTOR_NOT_YET",
            f"connector '{connector}' cannot be read from yet",
            hint=f"this version reads from {', '.join(_SOURCES)}",
        )
    return found


def sink_of(connector: str) -> Sink:
    """The sink behind a connector's canonical name."""
    found = _SINKS.get(connector)
    if found is None:
        raise NotYetError(
            "CONNECTOR_NOT_YET",
            f"connector '{connector}' cannot be written to yet",
            hint=f"this version writes to {', '.join(_SINKS)}",
        )
    return found
