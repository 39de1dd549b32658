"""What a job has to know again about the topics it reads: kept in a file beside its checkpoint.

Partitions have numbers. Of one topic they are Kafka's own; of several topics they are given in the order in which they
were found, and stay. A topic has an id, by which one that was made anew under the same name is recognised. A source
that ends keeps where.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from pathlib import Path
from urllib.parse import quote

from penstock.frozen import frozen

Partition = tuple[str, int]


@frozen
class KafkaNotes:
    """What is known of the topics of one scan; `single` is the topic where there can be one only."""

    single: str | None = None
    pairs: tuple[Partition, ...] = ()
    ids: Mapping[str, str] = field(default_factory=dict, hash=False)
    ends: Mapping[int, int] | None = field(default=None, hash=False)
    renewed: tuple[str, ...] = ()  # topics that were made anew, of which no batch is committed yet
    most: int = 0  # how many partitions the single topic has had: one that is made anew may have fewer
    unread: Mapping[str, int] = field(default_factory=dict, hash=False)  # how much of each topic was behind a batch

    def number(self, partition: Partition) -> int | None:
        """The number of a partition; None where it has none yet."""
        if self.single is not None:
            return partition[1]
        return self.pairs.index(partition) if partition in self.pairs else None

    def partition(self, number: int) -> Partition:
        """The partition of a number."""
        return (self.single, number) if self.single is not None else self.pairs[number]

    def with_partitions(self, found: Iterable[Partition]) -> KafkaNotes:
        """With numbers for partitions that are new."""
        if self.single is not None:
            return replace(self, most=max([self.most, *(number + 1 for _, number in found)]))
        new = [one for one in found if one not in self.pairs]
        return replace(self, pairs=(*self.pairs, *new))

    def with_ids(self, ids: Mapping[str, str]) -> KafkaNotes:
        """With the ids of topics; those that had another one are new under an old name."""
        other = [name for name, found in ids.items() if self.ids.get(name, found) != found]
        renewed = tuple(dict.fromkeys((*self.renewed, *other)))
        return replace(self, ids={**self.ids, **ids}, renewed=renewed)

    def with_ends(self, ends: Mapping[int, int]) -> KafkaNotes:
        return replace(self, ends=dict(ends))

    def settled(self) -> KafkaNotes:
        """What was skipped of topics that were made anew is counted."""
        return replace(self, renewed=())

    def text(self) -> str:
        """The notes as they are kept.

        >>> notes = KafkaNotes(None, (("b", 0), ("a", 1)), {"b": "x"}, {0: 7}, ("b",), 2, {"a": 3})
        >>> read_notes(notes.text(), None) == notes
        True
        """
        ends = None if self.ends is None else dict(self.ends)
        kept = {"partitions": self.pairs, "ids": dict(self.ids), "ends": ends, "renewed": list(self.renewed)}
        return json.dumps({**kept, "most": self.most, "unread": dict(self.unread)})


def read_notes(text: str, single: str | None) -> KafkaNotes:
    """What `KafkaNotes.text` wrote."""
    kept = json.loads(text)
    ends = kept["ends"]
    return KafkaNotes(
        single,
        tuple((str(topic), int(number)) for topic, number in kept["partitions"]),
        kept["ids"],
        None if ends is None else {int(number): int(offset) for number, offset in ends.items()},
        tuple(kept.get("renewed", ())),
        int(kept.get("most", 0)),
        {str(topic): int(count) for topic, count in kept.get("unread", {}).items()},
    )


def load_notes(keep: Path | None, scan: str, single: str | None) -> KafkaNotes:
    """The notes of a scan; empty ones where nothing was kept."""
    if keep is None:
        return KafkaNotes(single)
    try:
        return read_notes(_file(keep, scan).read_text("utf-8"), single)
    except FileNotFoundError:
        return KafkaNotes(single)


def save_notes(keep: Path, scan: str, notes: KafkaNotes) -> None:
    """Keep the notes, whole or not at all."""
    place = _file(keep, scan)
    place.parent.mkdir(parents=True, exist_ok=True)
    new = place.with_suffix(".new")
    with new.open("w", encoding="utf-8") as file:
        file.write(notes.text())
        file.flush()
        os.fsync(file.fileno())
    new.replace(place)


def _file(keep: Path, scan: str) -> Path:
    return keep / "kafka" / f"{quote(scan, safe='')}.json"
