"""Temporal filters: rows come into a view and leave it as time goes on, whatever else the query does with them (G3)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from penstock.stores.views import finish_view
from penstock.stores.views.model import BatchCommit
from tests.unit.stores.views.finishing import VIEW, Finished, Row, row_text

SECOND: Final = 1_000_000
STREAMS: Final = """
CREATE STREAM l (k BIGINT, id BIGINT, v BIGINT, ts TIMESTAMP);
CREATE STREAM r (k BIGINT, id BIGINT, w BIGINT, ts TIMESTAMP);
CREATE STREAM u (k INT, x DOUBLE);
"""
TABLES: Final = """
CREATE TABLE l (k BIGINT, id BIGINT, v BIGINT, ts TIMESTAMP);
CREATE TABLE r (k BIGINT, id BIGINT, w BIGINT, ts TIMESTAMP);
CREATE TABLE u (k INTEGER, x DOUBLE);
"""
YOUNG: Final = "ts > mz_now() - INTERVAL '5' SECOND"
# Conditions on a time of each row: only the keys of rows that come in or leave are answered anew.
OF_ROWS: Final = {
    "rows": f"SELECT id, k FROM l WHERE {YOUNG}",
    "turned": "SELECT id FROM l WHERE mz_now() <= ts + INTERVAL '5' SECOND AND v > 1",
    "come": "SELECT id FROM l WHERE ts <= mz_now()",
    "between": "SELECT k, COUNT(*) AS n FROM l WHERE ts BETWEEN mz_now() - INTERVAL '4' SECOND AND mz_now() GROUP BY k",
    "counts": f"SELECT k, COUNT(*) AS n, MAX(v) AS m FROM l WHERE {YOUNG} GROUP BY k",
    "all": f"SELECT COUNT(*) AS n FROM l WHERE {YOUNG}",
    "distinct": f"SELECT DISTINCT k, v FROM l WHERE {YOUNG}",
    "best": (
        "SELECT k, id FROM (SELECT k, id, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) AS rn "
        f"FROM l WHERE {YOUNG}) AS x WHERE rn <= 2"
    ),
    "first": f"SELECT id, v FROM l WHERE {YOUNG} ORDER BY v DESC, id LIMIT 3",
    "joined": "SELECT l.id, r.id AS other FROM l JOIN r ON l.k = r.k WHERE l.ts > mz_now() AND r.ts < mz_now()",
    "outer": f"SELECT l.id, r.id AS other FROM l LEFT JOIN r ON l.k = r.k WHERE l.{YOUNG}",
    "exists": f"SELECT id FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = l.k AND r.{YOUNG})",
    "of_counts": f"SELECT n, COUNT(*) AS c FROM (SELECT k, COUNT(*) AS n FROM l WHERE {YOUNG} GROUP BY k) AS x GROUP BY n",
    "less": f"SELECT k FROM l WHERE {YOUNG} EXCEPT SELECT k FROM r",
}
# Others: what asks them is answered anew as a whole.
AS_A_WHOLE: Final = {
    "having": "SELECT k, COUNT(*) AS n FROM l GROUP BY k HAVING MAX(ts) > mz_now() - INTERVAL '5' SECOND",
    "above": f"SELECT k, n FROM (SELECT k, COUNT(*) AS n, MAX(ts) AS ts FROM l GROUP BY k) AS x WHERE {YOUNG}",
    "outer_on": "SELECT l.id, r.id AS other FROM l LEFT JOIN r ON l.k = r.k AND r.ts > mz_now()",
    "pairs": f"SELECT x.id, y.id AS other FROM l AS x JOIN l AS y ON x.k = y.v WHERE x.{YOUNG}",
    "either": f"SELECT id FROM l WHERE v = 1 OR {YOUNG}",
}
GROWING: Final = ("come", "all", "outer_on")
QUERIES: Final = OF_ROWS | AS_A_WHOLE


class Passing(Finished):
    """A view with a clock; each batch has a time."""

    def __init__(self, query: str, path: Path | None = None) -> None:
        self.clock_us = 0
        super().__init__(query, path, STREAMS, TABLES, TABLES)

    def commit(self, number: int, batch: Mapping[str, list[Row]], fails_at: str | None = None) -> None:
        rows = self.core(batch)
        self.store.commit(BatchCommit("job", number, f"hash {number}", view=VIEW, rows=rows, clock_us=self.clock_us))

    def answer(self) -> Counter[str]:
        clock = f"make_timestamp({self.clock_us})"
        found = self.all.sql(self.oracle.replace("mz_now()", clock)).fetchall()
        return Counter(row_text(row) for row in found)

    def kept(self) -> int:
        with self.store._database.snapshot() as reader:
            row = reader.execute("SELECT count(*) FROM store.r1_0").fetchone()
        assert row is not None
        return int(row[0])


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)


def some_rows(rnd: random.Random, second: float, ids: int) -> dict[str, list[Row]]:
    """Rows around a time, some long past or ahead, some without a time."""

    def rows(count: int) -> list[Row]:
        return [
            (
                None if rnd.random() < 0.1 else rnd.randrange(5),
                ids + place,
                rnd.randrange(5),
                None if rnd.random() < 0.1 else moment(second + rnd.choice([-20, -3, -1, -0.000001, 0, 0, 1, 2.5, 6])),
            )
            for place in range(count)
        ]

    return {"l": rows(rnd.randrange(6)), "r": rows(rnd.randrange(4))}


@pytest.mark.parametrize("name", QUERIES)
def test_after_every_batch_the_answer_is_that_of_its_time(name: str, tmp_path: Path) -> None:
    """With rows and without; over a restart, a batch that comes again, and batches that are gone back behind."""
    rnd = random.Random(f"clock {name}")  # noqa: S311
    found = Passing(QUERIES[name], tmp_path)
    assert found.job.finish is not None
    assert [stage.timed for stage in found.job.finish.stages][-1] == (name in AS_A_WHOLE)
    second, answers, sizes = 1_000.0, [], []
    for number in range(15):
        second += rnd.choice([0, 0.5, 1, 3, 8])
        found.clock_us = round(second * SECOND)
        found.add(number, some_rows(rnd, second, 10 * number) if number % 3 else {})
        if number % 7 == 6:
            found.reopen()
            found.commit(number, {})  # the ledger has it
        found.follow()
        assert found.view() == found.answer() == +found.fold, f"{name} after batch {number}"
        answers.append(found.view())
        sizes.append(sum(answers[-1].values()))
    assert max(sizes) > 0
    assert any(later < earlier for earlier, later in pairwise(sizes)) or name in GROWING
    for number in (12, 7, 3):
        found.store.rollback("job", number)
        assert found.view() == answers[number], f"{name} back at batch {number}"
    found.store.close()


@pytest.mark.parametrize(
    ("condition", "right"),
    [
        ("mz_now() < v * 1000 + 101500", "mz_now() < make_timestamp((v * 1000 + 101500) * 1000)"),
        ("(v + 100.5) * 1000 >= mz_now()", "make_timestamp(((v + 100.5) * 1000000)::BIGINT) >= mz_now()"),
        (
            "mz_now() BETWEEN v * 1000 + 100000 AND (v * 1000 + 102000)::NUMERIC / 1",
            "mz_now() BETWEEN make_timestamp((v + 100) * 1000000) AND make_timestamp((v + 102) * 1000000)",
        ),
    ],
)
def test_a_number_beside_the_clock_is_one_of_milliseconds(condition: str, right: str) -> None:
    """As in Materialize; a time of each row like any other, so that only the keys of rows that come and go are touched."""
    found = Passing(f"SELECT id FROM l WHERE {condition}")
    found.oracle = f"SELECT id FROM l WHERE {right}"
    found.spark.execute("CREATE MACRO timestamp_micros(x) AS make_timestamp(x)")
    assert found.job.finish is not None
    assert [stage.timed for stage in found.job.finish.stages] == [False]
    sizes = []
    for number in range(8):
        found.clock_us = (200 + number) * SECOND // 2
        found.add(number, {"l": [(1, number, number % 4, None), (1, 10 + number, number % 3, None)]})
        assert found.view() == found.answer(), number
        sizes.append(sum(found.view().values()))
    assert any(later < earlier for earlier, later in pairwise(sizes))
    found.store.close()


def test_rows_whose_time_is_over_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """As soon as nobody goes back there; what comes too late is not kept at all, and what can come in is kept."""
    monkeypatch.setattr(finish_view, "KEPT_BATCHES", 5)
    found = Passing(OF_ROWS["all"])
    for number in range(61):
        found.clock_us = (100 + number) * SECOND
        found.add(number, {"l": [(1, number, 1, moment(100 + number)), (1, number, 1, moment(70 + number))]})
        assert found.view() == found.answer()
    assert found.kept() == 10  # five that are shown, and those of the batches that one can go back to
    found.store.rollback("job", 56)
    found.clock_us = 156 * SECOND
    assert found.view() == Counter({"[5]": 1})
    found.clock_us = 190 * SECOND
    found.commit(57, {})
    assert found.view() == Counter({"[0]": 1})
    found.store.rollback("job", 56)
    assert found.view() == Counter({"[5]": 1})
    found.store.close()


def test_the_clock_never_goes_back() -> None:
    """A computer whose clock is set back shows no row again that it has taken out, which may be forgotten."""
    found = Passing(OF_ROWS["rows"])
    found.clock_us = 100 * SECOND
    found.commit(0, {"l": [(1, 1, 1, moment(90)), (1, 2, 1, moment(99))]})
    found.clock_us = 90 * SECOND
    found.commit(1, {"l": [(1, 3, 1, moment(92))]})
    assert sorted(found.view()) == ["[2, 1]"]
    found.store.close()


def test_the_store_knows_what_is_due() -> None:
    """The next time at which a row comes in or leaves; every second where only asking tells."""
    found = Passing(OF_ROWS["between"])
    assert found.store.due(VIEW) is None
    found.clock_us = 100 * SECOND
    found.commit(0, {"l": [(1, 1, 1, moment(99)), (1, 2, 1, moment(102))]})
    assert found.store.due(VIEW) == 102 * SECOND
    found.clock_us = 102 * SECOND
    found.commit(1, {})
    assert found.store.due(VIEW) == 103 * SECOND + 1
    found.clock_us = 200 * SECOND
    found.commit(2, {})
    assert found.store.due(VIEW) is None
    found.store.close()
    asked = Passing(AS_A_WHOLE["having"])
    asked.clock_us = 100 * SECOND
    asked.commit(0, {})
    assert asked.store.due(VIEW) == 101 * SECOND
    asked.store.close()


def test_a_sink_is_told_what_leaves() -> None:
    """A batch without rows takes them out; one that is staged again tells the same."""
    found = Passing(OF_ROWS["counts"])
    rows = found.core({"l": [(1, 1, 7, moment(100)), (1, 2, 3, moment(102)), (2, 3, 1, moment(100))]})
    first = found.store.stage("job", VIEW, 0, rows, clock_us=101 * SECOND)
    assert first.operations == ["insert", "insert"]
    found.store.commit(BatchCommit("job", 0, "hash 0", view=VIEW))
    for _ in range(2):
        later = found.store.stage("job", VIEW, 1, found.core({}), clock_us=105 * SECOND)
        assert later.operations == ["delete", "update"]
    assert found.view() == Counter({"[1, 1, 3]": 1})
    found.store.close()
