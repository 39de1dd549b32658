"""Streams whose rows change, beside a model of their latest rows told in plain Python."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.unit.stores.views.finishing import TABLES, Finished, Row, add_rows

_WITH = "(connector = 'topic', changes = 'upsert'{})"
_COLUMNS = {
    "l": "k BIGINT, id BIGINT, v BIGINT, s STRING, ver BIGINT, PRIMARY KEY (id) NOT ENFORCED",
    "r": "k BIGINT, id BIGINT, w BIGINT, s STRING, ver BIGINT, PRIMARY KEY (id) NOT ENFORCED",
    "u": "k INT, x DOUBLE, ver BIGINT, PRIMARY KEY (k) NOT ENFORCED",
}
_KEYLESS = {
    "l": "k BIGINT, id BIGINT, v BIGINT, s STRING",
    "r": "k BIGINT, id BIGINT, w BIGINT, s STRING",
    "u": "k INT, x DOUBLE",
}
KEYS = {"l": 1, "r": 1, "u": 0}  # the place of the key among the columns


def streams(*, versioned: bool) -> str:
    """The streams, with a version column where it counts."""
    more = ", version_column = 'ver'" if versioned else ""
    return "\n".join(
        f"CREATE STREAM {name} ({columns}) WITH {_WITH.format(more)};" for name, columns in _COLUMNS.items()
    )


def _with_more(tables: str, more: str) -> str:
    return tables.replace(");", f", {more});")


ALL = _with_more(TABLES, "ver BIGINT")
GIVEN = _with_more(TABLES, "ver BIGINT, __deleted BOOLEAN, __partition INTEGER, __offset BIGINT")


@dataclass
class Latest:
    """The latest row of each key of a stream: what a source whose rows change means."""

    place: int
    versioned: bool
    rows: dict[object, tuple[int | None, Row | None]] = field(default_factory=dict)

    def take(self, row: Row, *, deleted: bool) -> None:
        key, version = row[self.place], row[-1]
        before = self.rows.get(key)
        if self.versioned:
            if version is None:
                version = before[0] if before is not None else None
            if before is not None and before[0] is not None and (version is None or version < before[0]):
                return
        self.rows[key] = (version, None if deleted else row)

    def __iter__(self) -> Iterator[Row]:
        return (row for _, row in self.rows.values() if row is not None)


class Changing(Finished):
    """A finished view over streams whose rows change."""

    def __init__(
        self, query: str, path: Path | None, *, versioned: bool, more: str = "", more_tables: str = ""
    ) -> None:
        """`more` is declared beside the streams, and `more_tables` are there beside theirs."""
        super().__init__(query, path, streams(versioned=versioned) + more, ALL + more_tables, GIVEN + more_tables)
        self.latest = {name: Latest(place, versioned) for name, place in KEYS.items()}
        self._offsets = [0, 0, 0]

    def batch(self, rnd: random.Random) -> dict[str, list[Row]]:
        """New rows, other rows for known keys, deletions of known and unknown keys, each with its place."""
        made: dict[str, list[Row]] = {}
        for name, place in KEYS.items():
            made[name] = []
            for _ in range(rnd.randrange(8)):
                key = rnd.randrange(7 if name == "u" else 14)
                row = list(_row(rnd, name))
                row[place] = key
                deleted = rnd.random() < 0.25
                version = None if rnd.random() < (0.5 if deleted else 0.1) else rnd.randrange(12)
                partition = key % 3
                self._offsets[partition] += 1
                made[name].append((*row, version, deleted, partition, self._offsets[partition]))
            rnd.shuffle(made[name])  # Spark gives rows in any order
        return made

    def add(self, number: int, batch: dict[str, list[Row]]) -> None:
        for name, rows in batch.items():
            for row in sorted(rows, key=lambda one: one[-2:]):
                self.latest[name].take(row[:-3], deleted=row[-3])
            self.all.execute(f"DELETE FROM {name}")
            add_rows(self.all, name, list(self.latest[name]))
        self.commit(number, batch)


def _row(rnd: random.Random, name: str) -> Row:
    def some(limit: int) -> int | None:
        return None if rnd.random() < 0.12 else rnd.randrange(limit)

    if name == "u":
        return (0, rnd.choice([None, 0.5, 1.5, -2.0]))
    return (some(4), 0, some(5), None if rnd.random() < 0.1 else rnd.choice("abcAB"))


class Bags(Finished):
    """A finished view over streams of whole rows that come and go, without a key."""

    def __init__(self, query: str, path: Path | None) -> None:
        keyless = "".join(
            f"CREATE STREAM {name} ({columns}) WITH (connector = 'topic', format = 'debezium-json');"
            for name, columns in _KEYLESS.items()
        )
        given = _with_more(TABLES, "__deleted BOOLEAN, __partition INTEGER, __offset BIGINT")
        super().__init__(query, path, keyless, TABLES, given)
        self.rows: dict[str, list[Row]] = {name: [] for name in KEYS}

    def batch(self, rnd: random.Random) -> dict[str, list[Row]]:
        """New rows, the same row more than once, rows that go, in the batch that brought them or later, and rows that go
        and were never there."""
        made: dict[str, list[Row]] = {}
        for name, rows in self.rows.items():
            made[name] = []
            for _ in range(rnd.randrange(8)):
                gone = bool(rows) and rnd.random() < 0.4
                row = rows.pop(rnd.randrange(len(rows))) if gone else _row(rnd, name)
                if not gone:
                    rows.append(row)
                made[name].append((*row, gone, 0, 0))
            never = (99, 9.5) if name == "u" else (99, 99, 99, "z")
            made[name].append((*never, True, 0, 0))
        return made

    def add(self, number: int, batch: dict[str, list[Row]]) -> None:
        for name, rows in self.rows.items():
            self.all.execute(f"DELETE FROM {name}")
            add_rows(self.all, name, rows)
        self.commit(number, batch)
