"""Joins as of PROCTIME() behind rows that change and that no key tells apart: outer joins of streams, sets, bags (SC40, G16).

A row meets what is there in the batch that brings it about. DuckDB says which rows are in front, and what is there."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import duckdb
import pytest

from penstock.stores.views.model import BatchCommit
from tests.unit.stores.views.chaining import Chained, counted
from tests.unit.stores.views.changing import Changing
from tests.unit.stores.views.finishing import NULLS, STREAMS, TABLES, Finished, Row, add_rows, random_batch, row_text

LATEST = "CREATE VIEW latest AS SELECT k, MAX(x) AS x FROM u GROUP BY k;"
NOW = "latest FOR SYSTEM_TIME AS OF PROCTIME() AS m"


class Pairs(Finished):
    """A view over a join of l and r in front, beside what each pair has met. In DuckDB every row has a number, so that a
    pair is known by two; the query knows of none."""

    def __init__(self, kind: str, joined: str, asked: str, path: Path) -> None:
        """`asked` is what a pair meets a row by."""
        query = f"SELECT l.v, r.w, m.x FROM l {joined} {kind} {NOW} ON m.k = {asked}"
        super().__init__(query, path, STREAMS + LATEST)
        self.pairs = duckdb.connect()
        self.pairs.execute(NULLS + "; CREATE SEQUENCE numbers")
        self.pairs.execute(TABLES.replace(");", ", number BIGINT DEFAULT nextval('numbers'));") + LATEST)
        front = f"SELECT l.number AS one, r.number AS other, l.v, r.w, {asked} AS asked FROM l {joined}"
        self._meets = f"SELECT f.*, m.k AS met, m.x FROM ({front}) AS f LEFT JOIN latest AS m ON m.k = f.asked"
        self.pairs.execute(f"CREATE TABLE met AS {self._meets} LIMIT 0")
        self._shown = "SELECT v, w, x FROM met" + (" WHERE met IS NOT NULL" if kind == "JOIN" else "")

    def remember(self, batch: dict[str, list[Row]]) -> None:
        for name, columns in (("l", "k, id, v, s"), ("r", "k, id, w, s"), ("u", "k, x")):
            add_rows(self.pairs, f"{name} ({columns})", batch[name])
        self.pairs.execute(f"CREATE OR REPLACE TEMP TABLE now AS {self._meets}")
        same = "now.one IS NOT DISTINCT FROM met.one AND now.other IS NOT DISTINCT FROM met.other"
        self.pairs.execute(f"DELETE FROM met WHERE NOT EXISTS (FROM now WHERE {same})")
        self.pairs.execute(f"INSERT INTO met FROM now WHERE NOT EXISTS (FROM met WHERE {same})")

    def answer(self) -> Counter[str]:
        return Counter(row_text(row) for row in self.pairs.sql(self._shown).fetchall())


# The join of l and r in front, and what a pair meets a row by.
JOINS = {
    "left": ("LEFT JOIN r ON l.k = r.k", "l.v"),
    "right": ("RIGHT JOIN r ON l.k = r.k AND l.v < 3", "r.w"),
    "full": ("FULL JOIN r ON l.k = r.k AND l.s = r.s", "COALESCE(l.v, r.w)"),
}


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN"])
@pytest.mark.parametrize("join", JOINS)
def test_outer_joins_of_streams_in_front(join: str, kind: str, tmp_path: Path) -> None:
    """A row without a partner goes when one comes, and takes along what it has met; the pair meets what is there then."""
    found = Pairs(kind, *JOINS[join], tmp_path / "views.duckdb")
    rnd = random.Random(f"{join} {kind}")  # noqa: S311 - test data
    for number in range(30):
        found.add(number, random_batch(rnd, 10 * number))
        assert found.view() == found.answer(), f"batch {number}"
        found.follow()
        assert +found.fold == found.view(), f"batch {number}"
        if number == 15:
            found.reopen()
    assert found.pairs.sql("SELECT COUNT(*) FROM met WHERE one IS NULL OR other IS NULL").fetchall() != [(0,)]
    assert found.pairs.sql("SELECT COUNT(DISTINCT x) FROM met GROUP BY asked HAVING COUNT(DISTINCT x) > 1").fetchall()
    found.store.close()


# Rows in front that have no key, made of rows that replace each other.
BAGS = {
    "a part of the columns": "SELECT v FROM l",
    "one below the other": "SELECT v FROM l UNION ALL SELECT w FROM r",
    "a full join": "SELECT COALESCE(l.v, r.w) AS v FROM l FULL JOIN r ON l.k = r.k",
    "rows that another stream lacks": "SELECT v FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = l.k)",
    "counts of groups": "SELECT COUNT(*) AS v FROM l GROUP BY k",
}


@pytest.mark.parametrize("name", BAGS)
def test_of_equal_rows_those_that_came_first_stay(name: str, tmp_path: Path) -> None:
    """Where nothing tells rows apart, one more of them meets what is there, and one less takes the last one away."""
    query = f"SELECT f.v, u.x FROM ({BAGS[name]}) AS f LEFT JOIN u FOR SYSTEM_TIME AS OF PROCTIME() ON f.v = u.k"
    found = Changing(query, tmp_path / "views.duckdb", versioned=False)
    rnd = random.Random(name)  # noqa: S311 - test data
    met: dict[int | None, list[float | None]] = {}
    differed = False
    for number in range(40):
        batch = found.batch(rnd)
        if number % 3 == 1:
            batch["l"] = batch["r"] = []  # only what is met changes
        found.add(number, batch)
        there = {row[0]: row[1] for row in found.latest["u"]}
        meet(met, found.all.sql(BAGS[name]).fetchall(), there)
        differed = differed or any(len({*rows}) > 1 for rows in met.values())
        expected = Counter(row_text((value, x)) for value, rows in met.items() for x in rows)
        assert found.view() == expected, f"batch {number}"
        found.follow()
        assert +found.fold == expected, f"batch {number}"
    assert differed
    found.store.close()


def meet(met: dict[int | None, list[float | None]], front: list[Row], there: dict[int | None, float | None]) -> None:
    """What each of the equal rows in front has met, when these are the rows in front."""
    counts = Counter(value for (value,) in front)
    for value in {*met, *counts}:
        before = met.get(value, [])
        more = [there.get(value)] * (counts[value] - len(before))
        met[value] = [*before[: counts[value]], *more]


def test_a_view_without_a_key_in_front(tmp_path: Path) -> None:
    """The rows of a materialized view may be there more than once, and come by themselves."""
    below = "SELECT l.v FROM l LEFT JOIN r ON l.k = r.k"
    query = f"SELECT f.v, m.x FROM a AS f LEFT JOIN {NOW} ON m.k = f.v"
    found = Chained({"a": below, "v": query}, tmp_path / "views.duckdb", {"v": "SELECT 1"}, declared=LATEST)
    found.make()
    rnd = random.Random("view in front")  # noqa: S311 - test data
    met: dict[int | None, list[float | None]] = {}
    latest: dict[int | None, float | None] = {}
    for number in range(30):
        batch = random_batch(rnd, 10 * number)
        for name, rows in batch.items():
            add_rows(found.all, name, rows)
        found.store.commit(BatchCommit("a", number, f"hash {number}", view="a", rows=found.cores["a"].rows(batch)))
        meet(met, found.all.sql(below).fetchall(), latest)
        latest = dict(found.all.sql("SELECT k, MAX(x) FROM u WHERE k IS NOT NULL GROUP BY k").fetchall())
        found.store.commit(BatchCommit("v", number, f"hash {number}", view="v", rows=found.cores["v"].rows(batch)))
        expected = Counter(row_text((value, x)) for value, rows in met.items() for x in rows)
        assert counted(found.store.read("SELECT * FROM v").table) == expected, f"batch {number}"
    assert any(len({*rows}) > 1 for rows in met.values())
    found.store.close()
