"""Offsets of a Kafka scan, as they stand in Spark's log and as the engine reads them.

A scan is two sources to Spark: Kafka's own, with `{"topic": {"0": 12}}`, and the pulse beside it. The engine sees one
text: `{"kafka": …, "pulse": …, "numbers": …}`, where `numbers` tells which number each partition of several topics has.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from penstock.errors import RuntimeFailure
from penstock.frozen import frozen

if TYPE_CHECKING:
    from penstock.connectors.kafka_notes import KafkaNotes

Partition = tuple[str, int]


@frozen
class KafkaOffset:
    """The next offset of each partition, by topic and by number."""

    offsets: Mapping[Partition, int] = field(hash=False)
    numbers: Mapping[Partition, int] = field(hash=False)
    pulse: Any = field(default=None, hash=False)

    @property
    def positions(self) -> dict[int, int]:
        """By number."""
        return {self.numbers[partition]: offset for partition, offset in self.offsets.items()}

    def text(self) -> str:
        """As the engine keeps it.

        >>> print(KafkaOffset({("t", 0): 5}, {("t", 0): 0}).text())
        {"kafka": {"t": {"0": 5}}, "pulse": null, "numbers": {"t": {"0": 0}}}
        """
        return json.dumps({"kafka": nested(self.offsets), "pulse": self.pulse, "numbers": nested(self.numbers)})


def nested(values: Mapping[Partition, int]) -> dict[str, dict[str, int]]:
    """Values by topic and partition, as Kafka's tools and Spark write them."""
    found: dict[str, dict[str, int]] = {}
    for (topic, number), value in sorted(values.items()):
        found.setdefault(topic, {})[str(number)] = value
    return found


def flat(values: Mapping[str, Mapping[str, int]]) -> dict[Partition, int]:
    """The same by pairs."""
    return {(topic, int(number)): int(value) for topic, each in values.items() for number, value in each.items()}


def read_kafka_offset(text: str) -> KafkaOffset:
    """What `KafkaOffset.text` wrote."""
    kept = json.loads(text)
    return KafkaOffset(flat(kept["kafka"]), flat(kept["numbers"]), kept["pulse"])


def folded_offset(kafka: str | None, pulse: str | None, notes: KafkaNotes, known: int) -> str | None:
    """The one text of a scan; PARTITIONS_CHANGED where there is a partition that the running query has no place for.

    `known` is how many partitions it was started with.
    """
    if kafka is None:
        return None
    offsets = flat(json.loads(kafka))
    numbers: dict[Partition, int] = {}
    for partition in offsets:
        number = notes.number(partition)
        if number is None or number >= known:
            raise RuntimeFailure(
                "PARTITIONS_CHANGED",
                f"topic {partition[0]} has a new partition {partition[1]}",
                hint="the job starts again by itself to read it",
            )
        numbers[partition] = number
    return KafkaOffset(offsets, numbers, None if pulse is None else json.loads(pulse)).text()
