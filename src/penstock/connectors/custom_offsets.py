"""Offsets of connectors of somebody else, as Spark's offset log keeps them.

    {"run": 3, "p": {"0": 120}, "at": {"0": "2026-01-31/7"}, "first": {"0": "2026-01-01/0"}}

`p` counts rows as for every other source. `at` is the connector's own offset behind them, `first` the one that the job
began at: it is asked for once, since a connector may begin somewhere else the next time. `watermark` holds what
`extract_watermark` said, in milliseconds, and `ended` is there when a bounded source has been read to its end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from penstock.frozen import frozen


@frozen
class CustomOffset:
    """Where a job stands in each partition."""

    run: int
    positions: Mapping[int, int] = field(hash=False)
    at: Mapping[int, Any] = field(hash=False)
    first: Mapping[int, Any] = field(hash=False)
    watermark_ms: Mapping[int, int] = field(default_factory=dict, hash=False)
    ended: bool = False

    def json(self) -> dict[str, Any]:
        """Always in the same order: Spark compares the text."""
        kept: dict[str, Any] = {"run": self.run, "p": _kept(self.positions)}
        kept["at"] = _kept(self.at)
        kept["first"] = _kept(self.first)
        if self.watermark_ms:
            kept["watermark"] = _kept(self.watermark_ms)
        if self.ended:
            kept["ended"] = True
        return kept

    def place(self, partition: int, end: CustomOffset) -> tuple[int, Any]:
        """The number and the own offset of the next row of a partition, for a batch that goes up to `end`."""
        number = self.positions.get(partition, 0)
        first = end.first.get(partition, self.first.get(partition))
        return number, first if number == 0 else self.at[partition]


def read_custom(kept: str | Mapping[str, Any]) -> CustomOffset:
    """The offset in a JSON text, or in what was parsed from one.

    >>> offset = CustomOffset(2, {0: 7}, {0: [1, "x"]}, {0: None}, {0: 1000})
    >>> read_custom(json.dumps(offset.json())) == offset
    True
    """
    found = json.loads(kept) if isinstance(kept, str) else kept
    return CustomOffset(
        int(found["run"]),
        {int(partition): int(number) for partition, number in found["p"].items()},
        _read(found["at"]),
        _read(found["first"]),
        _read(found.get("watermark", {})),
        bool(found.get("ended", False)),
    )


def _kept(values: Mapping[int, Any]) -> dict[str, Any]:
    return {str(partition): values[partition] for partition in sorted(values)}


def _read(values: Mapping[str, Any]) -> dict[int, Any]:
    return {int(partition): value for partition, value in values.items()}
