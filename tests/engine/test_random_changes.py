"""Random queries over streams whose rows change at random, as jobs: after every batch the rows of each view are its folded
changes, and what DuckDB answers over the rows that are there by then.

The breadth of queries is in tests/unit/stores/views/test_finish_queries.py, which needs no Spark. PENSTOCK_ORACLE_EXAMPLES
says how many examples are run, each a database of its own; they begin with the seed PENSTOCK_ORACLE_SEED, which a failure
tells.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from typing import Any, Final

import duckdb
import pytest

import penstock
from tests.databases import Opened
from tests.engine.answers import check_change_log
from tests.unit.stores.views.changing import Latest
from tests.unit.stores.views.finishing import NULLS, Row, add_rows, row_text
from tests.updating_queries import OVER_ONE, OVER_THREE, OVER_TWO, for_duckdb

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]

FIRST: Final = int(os.environ.get("PENSTOCK_ORACLE_SEED", "1"))
EXAMPLES: Final = int(os.environ.get("PENSTOCK_ORACLE_EXAMPLES", "1"))
BATCHES: Final = 5
QUERIES: Final = 10
WIDTHS: Final = (1, 2, 5)  # counts of Spark's shuffle partitions
KEYS: Final = 9
PARTITIONS: Final = 2

STREAMS: Final = f"""
CREATE STREAM l (k BIGINT, id BIGINT, v BIGINT, s STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH (connector = 'topic', format = 'debezium-json', partitions = {PARTITIONS});
CREATE STREAM m (k BIGINT, id BIGINT, v BIGINT, s STRING, ver BIGINT, PRIMARY KEY (id) NOT ENFORCED)
WITH (connector = 'topic', changes = 'upsert', version_column = 'ver', partitions = {PARTITIONS});
CREATE STREAM r (k BIGINT, id BIGINT, w BIGINT, s STRING) WITH (connector = 'topic', partitions = {PARTITIONS});
"""
TABLES: Final = """
CREATE TABLE l (k BIGINT, id BIGINT, v BIGINT, s VARCHAR);
CREATE TABLE m (k BIGINT, id BIGINT, v BIGINT, s VARCHAR, ver BIGINT);
CREATE TABLE r (k BIGINT, id BIGINT, w BIGINT, s VARCHAR);
"""
# The changes of a view as a topic of envelopes, and that read again: the same view.
WRITTEN: Final = f"""
CREATE SINK written WITH (connector = 'topic', format = 'debezium-json', partitions = {PARTITIONS}) AS SELECT * FROM changing;
CREATE STREAM told (k BIGINT, id BIGINT, v BIGINT, s STRING)
WITH (connector = 'topic', topic = 'written', format = 'debezium-json');
"""
COLUMNS: Final = {"l": ("k", "id", "v", "s"), "m": ("k", "id", "v", "s", "ver"), "r": ("k", "id", "w", "s")}
OVER_STREAMS: Final = (
    "SELECT k, id, v, s FROM l",
    "SELECT k, id, v, s FROM l WHERE v > 1",
    "SELECT k, id, v, s FROM m",
    "SELECT k, id, w AS v, s FROM r",
)
# Two views that others are built on: one whose rows change, and one whose rows are only added.
OVER_VIEWS: Final = ("SELECT k, id, v, s FROM changing", "SELECT k, id, v, s FROM added")


class Source:
    """The rows that the three streams stand for, and records that change them."""

    def __init__(self, rnd: random.Random) -> None:
        self.rnd = rnd
        self.latest = {"l": Latest(1, versioned=False), "m": Latest(1, versioned=True)}
        self.added: list[Row] = []

    def rows(self, name: str) -> list[Row]:
        if name == "r":
            return self.added
        return [row[: len(COLUMNS[name])] for row in self.latest[name]]

    def batch(self, *, first: bool) -> list[tuple[str, int, list[Any]]]:
        """Records by stream and partition. A key has one partition, where its records stand in order."""
        made = []
        for name in ("l", "m", "r"):
            parts: list[list[Any]] = [[] for _ in range(PARTITIONS)]
            # An aggregate of all rows is there from the first row on.
            for place in range(-1 if first else 0, self.rnd.randrange(9)):
                identity = self.rnd.randrange(KEYS) if place >= 0 else 0
                row = self._row(identity) if place >= 0 else (1, 0, 2, "a", 0)
                deleted = place >= 0 and self.rnd.random() < 0.3
                parts[identity % PARTITIONS] += self._records(name, row, deleted=deleted)
            made += [(name, partition, records) for partition, records in enumerate(parts) if records]
        return made

    def _row(self, identity: int) -> Row:
        def some(limit: int) -> int | None:
            return None if self.rnd.random() < 0.15 else self.rnd.randrange(limit)

        text = None if self.rnd.random() < 0.15 else self.rnd.choice("abAB")
        return (some(4), identity, some(5), text, some(6))

    def _records(self, name: str, row: Row, *, deleted: bool) -> list[Any]:
        if name == "r":
            self.added.append(row[:-1])
            return [dict(zip(COLUMNS[name], row, strict=False))]
        latest = self.latest[name]
        known = latest.rows.get(row[1], (None, None))[1]
        records: list[Any]
        if name == "l":
            records = [_envelope(None if known is None else known[:-1], None if deleted else row[:-1], row[1])]
        else:
            told = dict(zip(COLUMNS[name], row, strict=True))
            records = [{"id": row[1], "ver": row[-1], "_op": "delete"} if deleted else told]
        latest.take(row, deleted=deleted)
        if deleted and self.rnd.random() < 0.5:  # and there again, in the same batch
            records += self._records(name, self._row(row[1]), deleted=False)
        return records


def _envelope(before: Row | None, after: Row | None, identity: object) -> str:
    """A record of Debezium; rows that were never there can be deleted too."""
    named = [None if row is None else dict(zip(COLUMNS["l"], row, strict=True)) for row in (before, after)]
    if after is None:
        return json.dumps({"op": "d", "before": named[0] or {"id": identity}, "after": None})
    return json.dumps({"op": "c" if before is None else "u", "before": named[0], "after": named[1]})


def random_views(rnd: random.Random) -> dict[str, tuple[str, str]]:
    """Of each view its query and its options; no operator stands on top twice."""
    some = rnd.sample(OVER_ONE, QUERIES // 2 + 1) + rnd.sample(OVER_TWO + OVER_THREE, QUERIES - QUERIES // 2)
    first, *others = some
    queries = {
        "changing": first.format(*rnd.choices(OVER_STREAMS, k=3)),
        "again": "SELECT * FROM told",
        "added": "SELECT k, id, w AS v, s FROM r WHERE w > 0",
        "kept_by_spark": "SELECT k, COUNT(*) AS id, SUM(w) AS v, MAX(s) AS s FROM r GROUP BY k",
    }
    for place, operator in enumerate(others):
        below = [_relation(rnd) for _ in range(3)]
        queries[f"v{place}"] = operator.format(*below)
    start = rnd.randrange(len(WIDTHS))
    return {
        name: (query, _options(name, WIDTHS[(start + place) % len(WIDTHS)]))
        for place, (name, query) in enumerate(queries.items())
    }


def _relation(rnd: random.Random) -> str:
    """What an operator stands over: a stream, a view, or another operator."""
    base = rnd.choice(OVER_STREAMS + OVER_VIEWS)
    if rnd.random() < 0.6:
        return base
    return rnd.choice(OVER_ONE + OVER_TWO).format(base, rnd.choice(OVER_STREAMS))


def _options(name: str, width: int) -> str:
    return f"parallelism = {width}" + (", state = 'spark'" if name == "kept_by_spark" else "")


def check(db: penstock.Database, source: Source, views: dict[str, tuple[str, str]], told: str) -> set[str]:
    """The rows of each view are its folded changes and DuckDB's answer over the rows by now. Returns the views with rows."""
    with_rows = set()
    with duckdb.connect() as oracle:
        oracle.execute(NULLS)
        oracle.execute(TABLES)
        for name in COLUMNS:
            add_rows(oracle, name, source.rows(name))
        for name, (query, _) in views.items():
            oracle.execute(f"CREATE VIEW {name} AS {for_duckdb(query)}")
            if name == "changing":
                oracle.execute("CREATE VIEW told AS FROM changing")
        for name, (query, options) in views.items():
            have = Counter(map(row_text, db.sql(f"SELECT * FROM {name}").rows()))
            want = Counter(map(row_text, oracle.execute(f"SELECT * FROM {name}").fetchall()))
            assert have == want, (
                f"{name} {told}: {query} WITH ({options})\nmissing {want - have}\nnot expected {have - want}"
            )
            check_change_log(db, name, key=())
            with_rows |= {name} if have else set()
    return with_rows


@pytest.mark.parametrize("seed", range(FIRST, FIRST + EXAMPLES))
def test_views_are_their_changes_and_the_answer(opened: Opened, seed: int) -> None:
    """ORACLE, SC40, G13, G16, G18: some views are there from the start, others begin in the middle; the database is closed
    and opened again between batches, and while it works on one."""
    rnd = random.Random(seed)  # noqa: S311
    source = Source(rnd)
    views = random_views(rnd)
    late = rnd.randrange(5, len(views))
    stops = {rnd.randrange(1, BATCHES): rnd.choice(["before", "amid"]) for _ in range(2)}
    db = opened()
    db.execute(STREAMS)
    there: dict[str, tuple[str, str]] = {}
    had_rows: set[str] = set()
    for number in range(BATCHES):
        told = f"after batch {number} of seed {seed}, stops {stops}"
        for name in list(views)[len(there) : late if number == 0 else None]:
            query, options = there[name] = views[name]
            db.execute(f"CREATE MATERIALIZED VIEW {name} WITH ({options}) AS {query}")
            if name == "changing":
                db.execute(WRITTEN)
        if stops.get(number) == "before":
            db.close()
            db = opened()
        for name, partition, records in source.batch(first=number == 0):
            db.append(name, records, partition=partition)
        if stops.get(number) == "amid":
            db.close()
            db = opened()
        for _ in range(3):  # a view may wait for another one, and for what a sink has written
            db.settle(600)
        had_rows |= check(db, source, there, told)
    assert len(had_rows) > len(views) * 2 // 3, "empty answers tell nothing"
