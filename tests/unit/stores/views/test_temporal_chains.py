"""Temporal joins in a row, with other joins between them: as of an event time, and as of PROCTIME() (G13, G16, G21).

DuckDB computes each step over all rows. Every row has a number there, so that a row of a chain is known by those of the
rows it is made of; what it has met as of PROCTIME() is kept by them, until it is another one."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import pytest

from tests.unit.stores.views.finishing import NULLS, Finished, Row, add_rows, row_text

STREAMS = """
CREATE STREAM l (k BIGINT, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts);
CREATE STREAM r (k BIGINT, w BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts);
CREATE STREAM u (k INT, x DOUBLE);
CREATE TABLE d (x DOUBLE, y BIGINT) WITH (connector = 'file', path = 'd.csv', format = 'csv');
CREATE VIEW latest AS SELECT k, MAX(x) AS x FROM u GROUP BY k;
"""
TABLES = """
CREATE TABLE l (k BIGINT, v BIGINT, ts TIMESTAMP);
CREATE TABLE r (k BIGINT, w BIGINT, ts TIMESTAMP);
CREATE TABLE u (k INTEGER, x DOUBLE);
CREATE TABLE d (x DOUBLE, y BIGINT);
"""
ENDS: list[Row] = [(0.5, 0), (0.5, 1), (1.5, 2), (None, 3)]  # what stands in the file of d
# The joins of a chain: what is written, what of it is shown, and DuckDB's step over the rows `f` in front of it. A version
# that has to meet a condition is no other one than the one before it, where what is read of both is the same.
JOINS = {
    "time": (
        "r FOR SYSTEM_TIME AS OF l.ts AS h ON h.k = l.k",
        "h.w",
        "SELECT f.*, h.number AS n1, h.w AS h_w FROM f ASOF {} r AS h ON h.k = f.l_k AND h.ts <= f.l_ts",
    ),
    "condition": (
        "r FOR SYSTEM_TIME AS OF l.ts AS h ON h.k = l.k AND h.w > l.v",
        "h.w",
        (
            "SELECT f.*, CASE WHEN h.w > f.l_v THEN h.w END AS n1, CASE WHEN h.w > f.l_v THEN h.w END AS h_w "
            "FROM f ASOF {} r AS h ON h.k = f.l_k AND h.ts <= f.l_ts"
        ),
    ),
    "plain": (
        "r AS p ON p.w = l.v",
        "p.k",
        "SELECT f.*, p.number AS n2, p.k AS p_k, p.ts AS p_ts FROM f {} r AS p ON p.w = f.l_v",
    ),
    "other time": (
        "r FOR SYSTEM_TIME AS OF p.ts AS g ON g.k = p.k",
        "g.w",
        "SELECT f.*, g.number AS n3, g.w AS g_w FROM f ASOF {} r AS g ON g.k = f.p_k AND g.ts <= f.p_ts",
    ),
    "now": (
        "latest FOR SYSTEM_TIME AS OF PROCTIME() AS m ON m.k = l.k",
        "m.x",
        "SELECT f.*, m.k AS m_k, m.x AS m_x FROM f LEFT JOIN latest AS m ON m.k = f.l_k",
    ),
    "other now": (
        "latest FOR SYSTEM_TIME AS OF PROCTIME() AS o ON o.k = p.k",
        "o.x",
        "SELECT f.*, o.k AS o_k, o.x AS o_x FROM f LEFT JOIN latest AS o ON o.k = f.p_k",
    ),
    "file": (
        "d FOR SYSTEM_TIME AS OF PROCTIME() AS d ON d.x = m.x",
        "d.y",
        "SELECT f.*, d.number AS n4, d.y AS d_y FROM f {} d ON d.x = f.m_x",
    ),
    "by the file": (
        "latest FOR SYSTEM_TIME AS OF PROCTIME() AS q ON q.k = d.y",
        "q.x",
        "SELECT f.*, q.k AS q_k, q.x AS q_x FROM f LEFT JOIN latest AS q ON q.k = f.d_y",
    ),
    "elements": (
        "UNNEST(ARRAY(l.v, l.k)) AS t (e)",
        "t.e",
        "SELECT f.*, place AS n5, CASE place WHEN 1 THEN f.l_v ELSE f.l_k END AS t_e FROM f {} range(1, 3) AS r(place)",
    ),
    "by an element": (
        "latest FOR SYSTEM_TIME AS OF PROCTIME() AS y ON y.k = e",
        "y.x",
        "SELECT f.*, y.k AS y_k, y.x AS y_x FROM f LEFT JOIN latest AS y ON y.k = f.t_e",
    ),
}
MET = {"now": "m_k", "other now": "o_k", "by the file": "q_k", "by an element": "y_k"}
NUMBERS = ("n0", "n1", "n2", "n3", "n4", "n5")


class Chain(Finished):
    """A view over such joins beside what each step has to give."""

    def __init__(self, joins: list[tuple[str, str]], path: Path) -> None:
        """`joins` are the kinds and the names of the joins."""
        written = " ".join(f"{kind} {JOINS[name][0]}" for kind, name in joins)
        shown = ["l.v", *(JOINS[name][1] for _, name in joins)]
        listed = ", ".join(f"{each} AS c{place}" for place, each in enumerate(shown))
        super().__init__(f"SELECT {listed} FROM l {written}", path, STREAMS, TABLES, TABLES)
        self._steps = joins
        self._shown = ", ".join(each.replace(".", "_") for each in shown)
        self.steps = duckdb.connect()
        self.steps.execute(NULLS + "; CREATE SEQUENCE numbers")
        self.steps.execute(TABLES.replace(");", ", number BIGINT DEFAULT nextval('numbers'));"))
        self.steps.execute("CREATE VIEW latest AS SELECT k, MAX(x) AS x FROM u WHERE k IS NOT NULL GROUP BY k")
        add_rows(self.steps, "d (x, y)", ENDS)
        add_rows(self.spark, "d", ENDS)
        self._move()

    def commit(self, number: int, batch: dict[str, list[Row]]) -> None:  # type: ignore[override]
        super().commit(number, batch)
        self.spark.execute("DELETE FROM d")  # a file is read once

    def remember(self, batch: dict[str, list[Row]]) -> None:
        for name, columns in (("l", "k, v, ts"), ("r", "k, w, ts"), ("u", "k, x")):
            add_rows(self.steps, f"{name} ({columns})", batch[name])
        self._move()

    def _move(self) -> None:
        """Every step over what the one before it gives now."""
        self.steps.execute("CREATE OR REPLACE TABLE f AS SELECT number AS n0, k AS l_k, v AS l_v, ts AS l_ts FROM l")
        for place, (kind, name) in enumerate(self._steps):
            self.steps.execute(f"CREATE OR REPLACE TABLE now AS {JOINS[name][2].format(kind)}")
            if name in MET:
                self._keep(f"met{place}")
                left_out = "" if kind == "LEFT JOIN" else f" WHERE {MET[name]} IS NOT NULL"
                self.steps.execute(f"CREATE OR REPLACE TABLE f AS FROM met{place}{left_out}")
            else:
                self.steps.execute("CREATE OR REPLACE TABLE f AS FROM now")

    def _keep(self, met: str) -> None:
        """Rows that were there keep what they have met."""
        self.steps.execute(f"CREATE TABLE IF NOT EXISTS {met} AS FROM now LIMIT 0")
        known = [column for (column, *_) in self.steps.sql("DESCRIBE now").fetchall() if column in NUMBERS]
        same = " AND ".join(f"now.{column} IS NOT DISTINCT FROM {met}.{column}" for column in known)
        self.steps.execute(f"DELETE FROM {met} WHERE NOT EXISTS (FROM now WHERE {same})")
        self.steps.execute(f"INSERT INTO {met} FROM now WHERE NOT EXISTS (FROM {met} WHERE {same})")

    def answer(self) -> Counter[str]:
        return Counter(row_text(row) for row in self.steps.sql(f"SELECT {self._shown} FROM f").fetchall())


CHAINS = [
    "LEFT JOIN time, JOIN plain, LEFT JOIN other time",
    "JOIN time, LEFT JOIN plain, LEFT JOIN other now",
    "LEFT JOIN now, LEFT JOIN plain, JOIN other time",
    "JOIN now, LEFT JOIN plain, LEFT JOIN other now",
    "LEFT JOIN now, JOIN plain, JOIN other now",
    "LEFT JOIN time, LEFT JOIN now, LEFT JOIN plain, LEFT JOIN other time, LEFT JOIN other now",
    "LEFT JOIN now, LEFT JOIN condition",
    "JOIN now, LEFT JOIN condition, LEFT JOIN plain, LEFT JOIN other now",
    "LEFT JOIN now, LEFT JOIN file, LEFT JOIN by the file",
    "JOIN now, JOIN file, LEFT JOIN by the file",
    "LEFT JOIN now, CROSS JOIN elements, LEFT JOIN by an element",
    "JOIN now, LEFT JOIN plain, CROSS JOIN elements, JOIN by an element",
]


@pytest.mark.parametrize("chain", CHAINS)
def test_each_join_of_a_chain_meets_its_own_version(chain: str, tmp_path: Path) -> None:
    joins = [each.partition("JOIN ") for each in chain.split(", ")]
    found = Chain([(before + "JOIN", name) for before, _, name in joins], tmp_path / "views.duckdb")
    rnd = random.Random(chain)  # noqa: S311 - test data
    for number in range(14):
        found.add(number, _batch(rnd, number))
        assert found.view() == found.answer(), f"batch {number}"
        found.follow()
        assert +found.fold == found.view(), f"batch {number}"
        if number == 7:
            found.reopen()
    assert sum(found.view().values()) > 5
    found.store.close()


def _batch(rnd: random.Random, number: int) -> dict[str, list[Row]]:
    """Rows of all times; no two versions of a key are of the same moment."""
    start = datetime(2026, 1, 1)  # noqa: DTZ001 - DuckDB has no zone either
    rows: list[Row] = [
        (rnd.choice([None, 0, 1, 2]), rnd.choice([None, 0, 1, 2, 3]), start + timedelta(seconds=rnd.randrange(200)))
        for _ in range(rnd.randrange(4))
    ]
    versions: list[Row] = [
        (rnd.randrange(3), rnd.randrange(4), start + timedelta(seconds=rnd.randrange(200), microseconds=each))
        for each in rnd.sample(range(number * 100, number * 100 + 100), rnd.randrange(3))
    ]
    others: list[Row] = [
        (rnd.choice([None, 0, 1, 2]), number + rnd.choice([0.5, 1.5])) for _ in range(rnd.randrange(3))
    ]
    if rnd.random() < 0.5:
        others = [(key, rnd.choice([0.5, 1.5])) for key, _ in others]
    return {"l": rows + rows[:1], "r": versions, "u": others}
