"""Sinks whose queries read streams beside materialized views: what they have been told, folded, is DuckDB's answer,
also where only the view has changed, and behind a pause and a restart."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import duckdb
import pytest

import penstock
from tests.databases import Opened
from tests.engine.answers import Rows, in_order
from tests.engine.beside_duckdb import add_row, answer_of

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

COLUMNS = {"s": ("id", "k", "v"), "t": ("k", "w")}
MV = "SELECT k, COUNT(*) AS n, SUM(w) AS w FROM t GROUP BY k"
# Changes to files, with `_op`.
TO_FILES = {
    "joined": "SELECT s.id, mv.n, d.name FROM s LEFT JOIN mv ON s.k = mv.k LEFT JOIN d ON s.k = d.k",
    "above": "SELECT s.id, s.v FROM s WHERE s.v > (SELECT AVG(n) FROM mv)",
}
# Upserts to topics.
TO_TOPICS = {
    "rich": "SELECT k, SUM(v) AS m FROM s GROUP BY k HAVING SUM(v) > (SELECT AVG(n) FROM mv)",
    "counted": "SELECT s.k, COUNT(*) AS m FROM s JOIN mv ON s.k = mv.k AND mv.n > 1 GROUP BY s.k",
}
STEPS: list[dict[str, list[tuple[int, ...]]]] = [
    {"t": [(1, 5), (2, 5)], "s": [(10, 1, 1), (11, 2, 3), (12, 3, 9)]},
    {"t": [(1, 7), (3, 1), (3, 1), (3, 1)]},
    {"t": [(1, 2), (2, 2), (2, 2), (4, 1)]},
    {"s": [(13, 1, 2), (14, 4, 1)]},
]


def test_what_sinks_are_told_is_the_answer(opened: Opened, tmp_path: Path) -> None:
    oracle = duckdb.connect()
    oracle.execute("CREATE TABLE s (id INT, k INT, v INT); CREATE TABLE t (k INT, w INT)")
    oracle.execute("CREATE TABLE d AS SELECT * FROM (VALUES (1, 'one'), (3, 'three')) AS d(k, name)")
    oracle.execute(f"CREATE VIEW mv AS {MV}")
    (tmp_path / "d").mkdir()
    oracle.execute(f"COPY d TO '{tmp_path / 'd' / 'd.parquet'}' (FORMAT parquet)")
    with opened() as db:
        db.execute(
            "CREATE STREAM s (id INT, k INT, v INT) WITH (connector = 'topic'); "
            "CREATE STREAM t (k INT, w INT) WITH (connector = 'topic'); "
            f"CREATE TABLE d (k INT, name STRING) WITH (connector = 'file', path = '{tmp_path / 'd'}', format = 'parquet'); "
            f"CREATE MATERIALIZED VIEW mv AS {MV}"
        )
        _fill(db, oracle, {"t": [(9, 9)]})  # the sinks begin with what the view holds
        for name, query in TO_FILES.items():
            options = f"connector = 'file', path = '{tmp_path / name}', format = 'json', changes = 'retract'"
            db.execute(f"CREATE SINK {name} WITH ({options}) AS {query}")
        for name, query in TO_TOPICS.items():
            options = "connector = 'topic', changes = 'upsert'"
            db.execute(
                f"CREATE STREAM {name} (k INT, m BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ({options}); "
                f"INSERT INTO {name} {query}"
            )
        met = f"connector = 'file', path = '{tmp_path / 'met'}', format = 'json'"
        db.execute(
            f"CREATE SINK met WITH ({met}) AS "
            "SELECT s.id, mv.n FROM s LEFT JOIN mv FOR SYSTEM_TIME AS OF PROCTIME() ON s.k = mv.k"
        )
        for step in STEPS[:2]:
            _fill(db, oracle, step)
            _compare(db, oracle, tmp_path)
        other = f"EXPLAIN CREATE SINK e WITH ({met}, changes = 'retract') AS {TO_FILES['joined']}"
        assert "its changes are written to the sink" in str(db.execute(other).rows())  # type: ignore[union-attr]
    with opened() as db:
        db.execute("PAUSE JOB joined; PAUSE JOB insert_counted")
        before = _told(tmp_path / "joined")
        _fill(db, oracle, STEPS[2])
        assert _told(tmp_path / "joined") == before
        db.execute("RESUME JOB joined; RESUME JOB insert_counted")
        db.settle(180)
        _compare(db, oracle, tmp_path)
        _fill(db, oracle, STEPS[3])
        _compare(db, oracle, tmp_path)
        # What a row has met stays; the rows of a step come behind those of the view.
        assert in_order(_rows(tmp_path / "met")) == [(10, 1), (11, 1), (12, None), (13, 3), (14, 1)]
        assert all(answer_of(oracle, query) for query in {**TO_FILES, **TO_TOPICS}.values()), "no rows say nothing"
        written = len(_rows(tmp_path / "joined"))
        db.settle(180)
        assert len(_rows(tmp_path / "joined")) == written, "nothing is written twice"
        assert {job.state for job in db.jobs()} == {"running"}


def _fill(db: penstock.Database, oracle: duckdb.DuckDBPyConnection, step: dict[str, list[tuple[int, ...]]]) -> None:
    for stream, rows in step.items():
        for row in rows:
            add_row(db, oracle, stream, COLUMNS[stream], row)
        db.settle(180)


def _compare(db: penstock.Database, oracle: duckdb.DuckDBPyConnection, directory: Path) -> None:
    for name, query in TO_FILES.items():
        assert in_order(_told(directory / name).elements()) == answer_of(oracle, query), name
    for name, query in TO_TOPICS.items():
        assert in_order(db.select_once(f"SELECT k, m FROM {name}").rows()) == answer_of(oracle, query), name


def _rows(directory: Path) -> Rows:
    """The records of a sink of files, in their order."""
    files = sorted(directory.glob("*.json*"), key=lambda file: file.name)
    return [tuple(json.loads(line).values()) for file in files for line in file.read_text().splitlines()]


def _told(directory: Path) -> Counter[tuple[object, ...]]:
    """What is there after all the changes; nothing is taken back that is not there."""
    found: Counter[tuple[object, ...]] = Counter()
    for row in _rows(directory):
        *values, op = row if row[-1] in ("insert", "delete") else (*row[1:], row[0])
        found[tuple(values)] += 1 if op == "insert" else -1
        assert found[tuple(values)] >= 0, f"{directory.name} takes back {values}, which is not there"
    return +found
