"""Where a reader stands in its partitions, and how much it takes next.

An offset is kept in Spark's offset log as JSON: `{"run": 3, "p": {"0": 120, "1": 97}}`, for each partition the offset
of the next row. A batch reads from one offset to the next: rows with start <= row offset < end. `run` counts the starts
of the job; since each start reports a new one, Spark runs a batch at every start, with or without new rows.
Generators keep one more number, `started_us`: the moment that their clock counts from.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from penstock.frozen import frozen


@frozen
class Offset:
    """The next offset of each partition, as of one start of the job."""

    run: int
    positions: Mapping[int, int] = field(hash=False)
    started_us: int | None = None

    def position(self, partition: int) -> int:
        """The next offset; a partition that is new to the reader begins at 0."""
        return self.positions.get(partition, 0)

    def json(self) -> dict[str, Any]:
        """The offset as Spark keeps it, always in the same order: Spark compares the text.

        >>> Offset(2, {1: 4, 0: 7}).json()
        {'run': 2, 'p': {'0': 7, '1': 4}}
        """
        kept: dict[str, Any] = {
            "run": self.run,
            "p": {str(partition): self.positions[partition] for partition in sorted(self.positions)},
        }
        if self.started_us is not None:
            kept["started_us"] = self.started_us
        return kept


@frozen
class Range:
    """Rows of one partition: first <= offset < end."""

    partition: int
    first: int
    end: int

    @property
    def rows(self) -> int:
        return self.end - self.first


def read_offset(kept: str | Mapping[str, Any]) -> Offset:
    """The offset in a JSON text, or in what was parsed from one.

    >>> read_offset('{"run": 2, "p": {"0": 7}}')
    Offset(run=2, positions={0: 7}, started_us=None)
    """
    found = json.loads(kept) if isinstance(kept, str) else kept
    positions = {int(partition): int(position) for partition, position in found["p"].items()}
    return Offset(int(found["run"]), positions, found.get("started_us"))


def ranges_between(start: Offset, end: Offset) -> tuple[Range, ...]:
    """What lies between two offsets, by partition; partitions without rows are left out."""
    found = (Range(partition, start.position(partition), stop) for partition, stop in sorted(end.positions.items()))
    return tuple(one for one in found if one.rows > 0)


def admit(start: Offset, ends: Mapping[int, int], limit: int) -> dict[int, int]:
    """How far to read when at most `limit` rows may be read: as many of each partition as of any other.

    A partition with less to read leaves its share to the others, so that none falls behind for good.

    >>> admit(Offset(1, {0: 0, 1: 10}), {0: 100, 1: 12}, 10)
    {0: 8, 1: 12}
    """
    waiting = {partition: max(0, end - start.position(partition)) for partition, end in ends.items()}
    taken = _shares(waiting, limit)
    # A partition that is no longer reported keeps its place.
    reached = dict(start.positions)
    for partition, rows in taken.items():
        reached[partition] = start.position(partition) + rows
    return dict(sorted(reached.items()))


def _shares(waiting: Mapping[int, int], limit: int) -> dict[int, int]:
    """Each partition's rows, evenly, from the one with the least to read to the one with the most."""
    if sum(waiting.values()) <= limit:
        return dict(waiting)
    shares: dict[int, int] = {}
    left = limit
    by_size = sorted(waiting, key=lambda partition: (waiting[partition], partition))
    for index, partition in enumerate(by_size):
        share = min(waiting[partition], left // (len(by_size) - index))
        shares[partition] = share
        left -= share
    return shares


def spread(ranges: Iterable[Range], tasks: int) -> list[tuple[Range, ...]]:
    """Ranges dealt out to at most `tasks` readers, the largest first, each to the reader with the least to do.

    A partition is never in two of them.

    >>> [sum(one.rows for one in task) for task in spread([Range(0, 0, 5), Range(1, 0, 9), Range(2, 0, 4)], 2)]
    [9, 9]
    """
    dealt: list[list[Range]] = []
    for one in sorted(ranges, key=lambda one: (-one.rows, one.partition)):
        if len(dealt) < tasks:
            dealt.append([one])
        else:
            min(dealt, key=lambda task: sum(held.rows for held in task)).append(one)
    return [tuple(task) for task in dealt]
