"""Joins as of PROCTIME(): each row meets what is current in its batch, and stays as it is (G13, G16, G21)."""

from __future__ import annotations

import random
from collections import Counter
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.plan.job_plan import plan_job
from penstock.plan.relation import Mode
from penstock.stores.views.model import BatchCommit
from penstock.stores.views.spec_text import spec_from_text, spec_to_text
from tests.unit.plan.analysis import last, planned
from tests.unit.stores.views.chaining import Chained
from tests.unit.stores.views.changing import Latest
from tests.unit.stores.views.finishing import TABLES, BrokenOffError, Finished, Row, add_rows, job_of, row_text

STREAMS = """
CREATE STREAM l (k BIGINT, id BIGINT, v BIGINT, s STRING);
CREATE STREAM r (k BIGINT, id BIGINT, w BIGINT, s STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH (connector = 'topic', changes = 'upsert');
CREATE STREAM u (k INT, x DOUBLE);
"""
GIVEN = TABLES.replace(
    "w BIGINT, s VARCHAR)", "w BIGINT, s VARCHAR, __deleted BOOLEAN, __partition INTEGER, __offset BIGINT)"
)
NOW = "r FOR SYSTEM_TIME AS OF PROCTIME()"
# The query, the rows as they meet, and the answer over all that have met.
SHAPES: dict[str, tuple[str, str, str]] = {
    "inner": (
        f"SELECT l.id, l.k, r.w, r.s FROM l JOIN {NOW} AS r ON l.v = r.id",
        "SELECT l.id, l.k, r.w, r.s FROM l JOIN r ON l.v = r.id",
        "FROM met",
    ),
    "left, filtered": (
        f"SELECT l.id, r.w + 1 AS x FROM l LEFT JOIN {NOW} AS r ON l.v = r.id AND r.w > 0 WHERE r.w IS NULL OR l.k > 2",
        "SELECT l.id, r.w + 1 AS x FROM l LEFT JOIN r ON l.v = r.id AND r.w > 0 WHERE r.w IS NULL OR l.k > 2",
        "FROM met",
    ),
    "by a part of the left": (
        f"SELECT x.id, y.w FROM (SELECT id, v % 3 AS m FROM l WHERE k > 0) AS x JOIN {NOW} AS y ON x.m = y.id WHERE y.w < 4",
        "SELECT l.id, r.w FROM l JOIN r ON l.v % 3 = r.id WHERE l.k > 0 AND r.w < 4",
        "FROM met",
    ),
    "by more than one": (
        f"SELECT l.id, a.w, b.s FROM l JOIN {NOW} AS a ON l.v = a.id LEFT JOIN {NOW} AS b ON a.w = b.id",
        "SELECT l.id, a.w, b.s FROM l JOIN r AS a ON l.v = a.id LEFT JOIN r AS b ON a.w = b.id",
        "FROM met",
    ),
    "union": (
        f"SELECT l.id, r.w FROM l JOIN {NOW} AS r ON l.v = r.id UNION ALL SELECT id, v FROM l WHERE v = 1",
        "SELECT l.id, r.w FROM l JOIN r ON l.v = r.id UNION ALL SELECT id, v FROM l WHERE v = 1",
        "FROM met",
    ),
    "grouped": (
        f"SELECT r.w, COUNT(*) AS n, SUM(l.v) AS t FROM l LEFT JOIN {NOW} AS r ON l.v = r.id GROUP BY r.w",
        "SELECT r.w, l.v FROM l LEFT JOIN r ON l.v = r.id",
        "SELECT w, COUNT(*), SUM(v) FROM met GROUP BY w",
    ),
    "of all": (
        f"SELECT COUNT(*) AS n, COUNT(DISTINCT x.w) AS m FROM (SELECT r.w FROM l JOIN {NOW} AS r ON l.v = r.id) AS x",
        "SELECT r.w FROM l JOIN r ON l.v = r.id",
        "SELECT COUNT(*), COUNT(DISTINCT w) FROM met",
    ),
    "best of each": (
        (
            f"SELECT l.id, r.s FROM l JOIN {NOW} AS r ON l.v = r.id "
            "QUALIFY ROW_NUMBER() OVER (PARTITION BY r.s ORDER BY l.id DESC) = 1"
        ),
        "SELECT l.id, r.s FROM l JOIN r ON l.v = r.id",
        "SELECT MAX(id), s FROM met GROUP BY s",
    ),
    "first of all": (
        f"SELECT l.id, r.w FROM l JOIN {NOW} AS r ON l.v = r.id ORDER BY l.v DESC, l.id DESC, w LIMIT 3",
        "SELECT l.id, r.w, l.v FROM l JOIN r ON l.v = r.id",
        "SELECT id, w FROM met ORDER BY v DESC, id DESC, w LIMIT 3",
    ),
    "distinct, in a subquery": (
        f"SELECT DISTINCT r.s FROM l JOIN {NOW} AS r ON l.v = r.id WHERE r.w NOT IN (SELECT v FROM l WHERE v > 3) OR l.k = 1",
        "SELECT r.s, r.w, l.k FROM l JOIN r ON l.v = r.id",
        "SELECT DISTINCT s FROM met WHERE w NOT IN (SELECT v FROM ever WHERE v > 3) OR k = 1",
    ),
    "beside all rows of both": (
        (
            f"SELECT l.id, r.w, c.n, y.w AS later FROM l JOIN {NOW} AS r ON l.v = r.id "
            "LEFT JOIN (SELECT k, COUNT(*) AS n FROM l GROUP BY k) AS c ON c.k = l.k LEFT JOIN r AS y ON y.id = l.v"
        ),
        "SELECT l.id, r.w, l.k, l.v FROM l JOIN r ON l.v = r.id",
        (
            "SELECT m.id, m.w, c.n, y.w FROM met AS m LEFT JOIN (SELECT k, COUNT(*) AS n FROM ever GROUP BY k) AS c "
            "ON c.k = m.k LEFT JOIN r AS y ON y.id = m.v"
        ),
    ),
}
GROWS = {"inner", "left, filtered", "by a part of the left", "by more than one", "union"}


class Meeting(Finished):
    """Such a view beside what the rows had met when they came."""

    def __init__(self, shape: str, path: Path | None) -> None:
        query, self._meets, self._above = SHAPES[shape]
        super().__init__(query, path, STREAMS, TABLES, GIVEN)
        self.all.execute(f"CREATE TABLE met AS {self._meets} LIMIT 0")
        self.all.execute("CREATE TABLE ever AS FROM l")
        self.latest = Latest(1, versioned=False)
        self._offset = 0
        self._before: list[tuple[Latest, list[Row], list[Row]]] = []

    def batch(self, rnd: random.Random, number: int) -> dict[str, list[Row]]:
        def some(limit: int) -> int | None:
            return None if rnd.random() < 0.1 else rnd.randrange(limit)

        left: list[Row] = [(some(4), 10 * number + at, some(5), rnd.choice("ab")) for at in range(rnd.randrange(6))]
        right: list[Row] = []
        for _ in range(rnd.randrange(5)):
            self._offset += 1
            right.append((some(4), rnd.randrange(5), some(5), rnd.choice("ab"), rnd.random() < 0.3, 0, self._offset))
        return {"l": left + left[:1], "r": right}

    def add(self, number: int, batch: dict[str, list[Row]]) -> None:
        for row in batch["r"]:
            self.latest.take(row[:4], deleted=row[4])
        for name, rows in (("l", batch["l"]), ("r", list(self.latest))):
            self.all.execute(f"DELETE FROM {name}")
            add_rows(self.all, name, rows)
        add_rows(self.all, "ever", batch["l"])
        self.all.execute(f"INSERT INTO met {self._meets}")
        met, ever = (self.all.sql(f"FROM {name}").fetchall() for name in ("met", "ever"))
        self._before.append((deepcopy(self.latest), met, ever))
        self.commit(number, batch)

    def go_back(self, number: int) -> None:
        """To what there was after a batch."""
        del self._before[number + 1 :]
        latest, met, ever = self._before[number]
        self.latest = deepcopy(latest)
        for name, rows in (("met", met), ("ever", ever)):
            self.all.execute(f"DELETE FROM {name}")
            add_rows(self.all, name, rows)
        self.store.rollback("job", number)
        self.fold.clear()
        self.seq = 0

    def answer(self) -> Counter[str]:
        return Counter(row_text(row) for row in self.all.sql(self._above).fetchall())


@pytest.mark.parametrize("shape", SHAPES)
def test_a_row_meets_what_is_there_when_it_comes(shape: str, tmp_path: Path) -> None:
    """With NULL keys, duplicates, deletions, a batch that comes twice, one that breaks off, a store that is closed and
    opened again, and a way back, after which the batches come in another order."""
    rnd = random.Random(f"met {shape}")  # noqa: S311
    found = Meeting(shape, tmp_path / "views.duckdb")
    batches = [found.batch(rnd, number) for number in range(9)]
    batches[4]["l"] = []
    batches[5]["r"] = []
    for number, batch in enumerate(batches):
        if number == 3:
            with pytest.raises(BrokenOffError):
                found.commit(number, batch, fails_at="view.before_commit")
        found.add(number, batch)
        if number == 2:
            found.commit(number, batch)
        if number == 4:
            found.reopen()
        found.follow()
        assert found.view() == found.answer() == +found.fold, f"after batch {number}"
    found.go_back(2)
    found.follow()
    assert found.view() == found.answer() == +found.fold, "gone back"
    for number, batch in enumerate([batches[6], batches[3], batches[8], batches[7]], start=3):
        found.add(number, batch)
        found.follow()
        assert found.view() == found.answer() == +found.fold, f"after batch {number} of the second way"
    assert found.answer()
    added = all(change.op == "insert" for change in found.store.changes("answered", 0, limit=10_000))
    assert added or shape not in GROWS
    assert found.job.shows_closed == (shape in GROWS)
    found.store.close()


def test_whole_rows_that_come_and_go_are_met() -> None:
    """Debezium's rows without a key."""
    keyless = STREAMS.replace(", PRIMARY KEY (id) NOT ENFORCED", "").replace(
        "changes = 'upsert'", "format = 'debezium-json'"
    )
    found = Finished(f"SELECT l.id, r.w FROM l JOIN {NOW} AS r ON l.v = r.id", None, keyless, TABLES, GIVEN)
    found.commit(0, {"r": [(1, 1, 7, "a", False, 0, 1)], "l": [(1, 1, 1, "a")]})
    found.commit(1, {"r": [(1, 1, 7, "a", True, 0, 2), (1, 1, 8, "a", False, 0, 3)], "l": [(1, 2, 1, "a")]})
    found.commit(2, {"r": [(1, 1, 8, "a", True, 0, 4)], "l": [(1, 3, 1, "a")]})
    assert found.view() == Counter({"[1, 7]": 1, "[2, 8]": 1})
    found.store.close()


def test_going_back_behind_the_first_row() -> None:
    found = Meeting("of all", None)
    found.add(0, {"l": [], "r": [(1, 1, 2, "a", False, 0, 1)]})
    found.add(1, {"l": [(1, 1, 1, "a")], "r": []})
    assert found.view() == Counter({"[1, 1]": 1})
    found.go_back(0)
    assert found.view() == Counter({"[0, 0]": 1})
    found.store.close()


def test_the_definition_is_stored() -> None:
    found = Meeting("grouped", None)
    assert spec_from_text(spec_to_text(found.spec)) == found.spec
    finish = found.spec.finish
    assert finish is not None
    assert [(rows.relation, rows.passing) for rows in finish.rows] == [("l", True), ("r", False)]
    assert [stage.once for stage in finish.stages] == [True, False]
    found.store.close()


def test_how_tells_of_it() -> None:
    assert job_of(SHAPES["inner"][0], STREAMS).how == (
        "Spark reads and filters each batch, the view store keeps the rows of r (id, w, s), the latest by (id), and answers "
        "the query: once, for each row of l that a batch brings, beside r as of that batch, with the changes that it "
        "brings itself"
    )


def test_materialized_views_are_met_and_others_are_built_above(tmp_path: Path) -> None:
    """What is met changes in its own batches, is gone in others, stands still, and is followed again."""
    found = Chained(
        {
            "a": "SELECT k, COUNT(*) AS n FROM l GROUP BY k HAVING COUNT(*) < 3",
            "m": "SELECT r.id, a.n FROM r LEFT JOIN a FOR SYSTEM_TIME AS OF PROCTIME() AS a ON r.k = a.k",
            "top": "SELECT n, COUNT(*) AS rows FROM m GROUP BY n",
        },
        tmp_path,
        oracle={"m": "FROM met", "top": "SELECT n, COUNT(*) AS rows FROM met GROUP BY n"},
        tables="CREATE TABLE met (id BIGINT, n BIGINT);",
    )
    job = found.jobs["m"]
    assert (job.views, [scan.relation for scan in job.scans], job.shows_closed) == (("a",), ["r"], True)
    found.make()
    batches = iter(range(100))

    def meets(*rows: Row) -> None:
        below = found.store.read("SELECT k, n FROM a").table.to_pylist()
        now = {row["k"]: row["n"] for row in below}
        add_rows(found.all, "met", [(row[1], now.get(row[0]) if row[0] is not None else None) for row in rows])
        found.add("m", next(batches), {"r": list(rows)})
        found.check()

    meets((1, 1, 0, "a"))
    found.add("a", 0, {"l": [(1, 1, 1, "a"), (2, 2, 1, "a"), (None, 3, 1, "a")]})
    found.check()
    meets((1, 2, 0, "a"), (None, 3, 0, "a"), (3, 4, 0, "a"))
    found.add("a", 1, {"l": [(1, 4, 1, "a")]})
    found.check()
    meets((1, 5, 0, "a"), (2, 6, 0, "a"))
    found.add("a", 2, {"l": [(1, 5, 1, "a")]})
    meets((1, 7, 0, "a"))
    found.reopen()
    found.store.hold("m")
    found.add("a", 3, {"l": [(2, 6, 1, "a")]})
    found.add("m", next(batches), {"r": [(2, 8, 0, "a")]})
    add_rows(found.all, "met", [(8, 2)])
    found.store.follow("m")
    found.check()
    assert all(change.op == "insert" for change in found.store.changes("m", 0))
    found.store.close()


def test_rows_that_have_met_are_forgotten_where_they_are_state(tmp_path: Path) -> None:
    """`state_ttl` lets go of what groups are made of; what a view of met rows shows is no state."""
    second = 1_000_000
    for shape, shown in (("grouped", 1), ("inner", 3)):
        found = Meeting(shape, tmp_path / f"{shape}.duckdb")
        found.store.drop_view("answered")
        found.store.create_view(replace(found.spec, ttl_us=10 * second))
        for number, at in enumerate((0, 5, 30)):
            rows = found.core({"l": [(1, number, 1, "a")], "r": [(1, 1, 7 + number, "a", False, 0, number)]})
            found.store.commit(
                BatchCommit("job", number, str(number), view="answered", rows=rows, clock_us=(100 + at) * second)
            )
        assert sum(found.view().values()) == shown
        found.store.close()


def test_what_a_sink_was_given_is_not_kept() -> None:
    """Of the view behind a sink the changes are read, those of the last batches, and its rows go with them."""
    found = Meeting("inner", None)
    for number in range(301):
        rows = found.core({"l": [(1, number, 1, "a")], "r": [(1, 1, number, "a", False, 0, number)]})
        changes = found.store.stage("job", "answered", number, rows)
        assert changes.after.to_pylist() == [{"id": number, "k": 1, "w": number, "s": "a"}]
    assert found.store.stage("job", "answered", 300, rows).after.num_rows == 1
    assert sum(found.view().values()) < 301
    found.store.close()


MARKET = """
CREATE STREAM bid (auction BIGINT, price BIGINT, at TIMESTAMP, seen AS PROCTIME(), WATERMARK FOR at AS at);
CREATE STREAM side (key BIGINT, value STRING, PRIMARY KEY (key) NOT ENFORCED)
WITH (connector = 'topic', changes = 'upsert');
CREATE STREAM added (key BIGINT, value STRING) WITH (connector = 'topic');
CREATE MATERIALIZED VIEW known AS SELECT key, COUNT(*) AS n FROM added GROUP BY key;
"""


@pytest.mark.parametrize("time", ["PROCTIME()", "NOW()", "b.seen", "CURRENT_TIMESTAMP"])
def test_a_query_that_only_adds_rows(time: str) -> None:
    """Flink's and RisingWave's q13: the result is appended, to any sink."""
    query = (
        f"SELECT b.auction, s.value FROM bid AS b JOIN side FOR SYSTEM_TIME AS OF {time} AS s ON b.auction % 9 = s.key"
    )
    for before in ("CREATE MATERIALIZED VIEW q AS ", "CREATE SINK q WITH (connector = 'topic', topic = 'out') AS ", ""):
        plan = planned(MARKET + before + query)
        assert plan.mode is Mode.APPEND
        job = plan_job(plan)
        assert (job.kind, job.shows_closed, job.key) == ("finish", True, ())
        assert not any("grows for ever" in warning or "no key" in warning for warning in plan.warnings)


def test_the_time_may_be_computed_in_a_subquery() -> None:
    plan = planned(
        f"{MARKET} CREATE MATERIALIZED VIEW q AS SELECT b.auction, s.value FROM (SELECT *, PROCTIME() AS p FROM bid) AS b "
        "JOIN side FOR SYSTEM_TIME AS OF b.p AS s ON mod(b.auction, 9) = s.key"
    )
    assert plan.mode is Mode.APPEND


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT b.auction FROM bid b JOIN added FOR SYSTEM_TIME AS OF NOW() AS a ON a.key = b.auction", "only added"),
        (
            "SELECT b.auction FROM bid b RIGHT JOIN side FOR SYSTEM_TIME AS OF NOW() AS s ON s.key = b.auction",
            "RIGHT JOIN",
        ),
        (
            "SELECT b.auction FROM bid b SEMI JOIN side FOR SYSTEM_TIME AS OF NOW() AS s ON s.key = b.auction",
            "SEMI JOIN",
        ),
        (
            "SELECT b.auction, NOW() FROM bid b JOIN side FOR SYSTEM_TIME AS OF NOW() AS s ON s.key = b.auction",
            "nothing keeps its value here",
        ),
    ],
)
def test_what_is_refused_is_refused_by_name(query: str, told: str) -> None:
    error = last(f"{MARKET} CREATE MATERIALIZED VIEW q AS {query}").error
    assert error is not None
    assert error.condition in ("VERSIONED_JOIN", "QUERY_NOT_YET", "UNSUPPORTED_CLAUSE")
    assert told in str(error)
    assert error.hint
    assert error.span is not None
