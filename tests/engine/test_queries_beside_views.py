"""Queries that nobody keeps, over streams beside materialized views: what a reader is told, folded, is DuckDB's answer,
also where only a view has changed; and nothing is left behind."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import duckdb
import pytest

import penstock
from penstock import JobFailed, PenstockError
from tests.databases import Opened
from tests.engine.answers import in_order, until
from tests.engine.beside_duckdb import add_row, answer_of

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

COLUMNS = {"s": ("id", "k", "v"), "t": ("k", "w")}
SCRIPT = """
CREATE STREAM s (id INT, k INT, v INT) WITH (connector = 'topic');
CREATE STREAM t (k INT, w INT) WITH (connector = 'topic');
CREATE MATERIALIZED VIEW mv AS SELECT k, COUNT(*) AS n, SUM(w) AS w FROM t GROUP BY k;
CREATE MATERIALIZED VIEW big AS SELECT k, w FROM t WHERE w > 4;
"""
QUERIES = (
    "SELECT s.id, mv.n FROM s JOIN mv ON s.k = mv.k",
    "SELECT k, n AS m FROM mv UNION ALL SELECT k, v FROM s",
    "SELECT s.k, mv.k AS other, mv.w FROM s FULL JOIN mv ON s.k = mv.k",
    "SELECT s.id, s.v FROM s WHERE s.k NOT IN (SELECT k FROM big)",
)
STEPS: list[dict[str, list[tuple[int, ...]]]] = [
    {"t": [(1, 5), (2, 5)], "s": [(10, 1, 1), (11, 2, 3), (12, 3, 9)]},
    {"t": [(1, 7), (3, 1)]},
    {"s": [(13, 1, 2), (14, 4, 1)]},
]


class Reader:
    """Follows a query in a thread of its own and folds what it is told."""

    def __init__(self, db: penstock.Database, sql: str) -> None:
        self.rows: Counter[tuple[Any, ...]] = Counter()
        self.error: BaseException | None = None
        self.sql = sql
        self._batches = db.follow(sql)
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        try:
            for batch in self._batches:
                names = batch.schema.names
                assert names[0] == "_op", names
                columns = [batch.column(place).to_pylist() for place in range(len(names))]
                for op, *row in zip(*columns, strict=True):
                    self.rows[tuple(row)] += 1 if op == "insert" else -1
                    assert self.rows[tuple(row)] >= 0, f"{row} is taken back, and is not there"
        except BaseException as error:  # noqa: BLE001 - looked at by the test
            self.error = error

    def shows(self, answer: list[tuple[Any, ...]]) -> bool:
        if self.error is not None:
            raise self.error
        return in_order((+self.rows).elements()) == answer

    def end(self) -> BaseException | None:
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self.error


def _until_shown(reader: Reader, answer: list[tuple[Any, ...]]) -> None:
    until(lambda: reader.shows(answer), 120, lambda: f"{reader.sql}: {reader.rows} instead of {answer}")


def _oracle() -> duckdb.DuckDBPyConnection:
    oracle = duckdb.connect()
    oracle.execute(
        "CREATE TABLE s (id INT, k INT, v INT); CREATE TABLE t (k INT, w INT); "
        "CREATE VIEW mv AS SELECT k, COUNT(*) AS n, SUM(w) AS w FROM t GROUP BY k; "
        "CREATE VIEW big AS SELECT k, w FROM t WHERE w > 4"
    )
    return oracle


def _fill(db: penstock.Database, oracle: duckdb.DuckDBPyConnection, step: dict[str, list[tuple[int, ...]]]) -> None:
    for stream, rows in step.items():
        for row in rows:
            add_row(db, oracle, stream, COLUMNS[stream], row)
        db.settle(180)


def test_what_a_reader_is_told_is_the_answer(opened: Opened) -> None:
    oracle = _oracle()
    with opened() as db:
        db.execute(SCRIPT)
        _fill(db, oracle, {"t": [(9, 9)]})  # what the view holds when they begin comes first
        readers = [Reader(db, sql) for sql in QUERIES]
        for step in STEPS:
            _fill(db, oracle, step)
            for reader in readers:
                answer = answer_of(oracle, reader.sql)
                _until_shown(reader, answer)
        for sql in QUERIES[:2]:
            assert in_order(db.select_once(sql).rows()) == answer_of(oracle, sql)
        met = "SELECT s.id, mv.n FROM s LEFT JOIN mv FOR SYSTEM_TIME AS OF PROCTIME() ON s.k = mv.k"
        first = next(db.follow(met))  # rows that are only added come as they are
        assert in_order(zip(*(column.to_pylist() for column in first.columns), strict=True)) == answer_of(
            oracle, "SELECT s.id, mv.n FROM s LEFT JOIN mv ON s.k = mv.k"
        )
        assert {job.name for job in db.jobs()} == {"mv", "big"}
        with pytest.raises(PenstockError) as refused:
            db.sql(QUERIES[0])
        assert refused.value.condition == "UNBOUNDED_QUERY"
        # A view that goes takes along what reads it; the others go on.
        db.execute("DROP MATERIALIZED VIEW big")
        ended = readers[3].end()
        assert isinstance(ended, JobFailed)
        assert '"big", which it reads, was dropped' in ended.message
        _fill(db, oracle, {"t": [(4, 4)]})
        answer = answer_of(oracle, QUERIES[0])
        _until_shown(readers[0], answer)
    for reader in readers[:3]:
        assert reader.end() is None, "a closed database ends the loop"
    with opened() as db:
        home = db._engine.home
        assert [spec.name for spec in home.views.specs()] == ["mv"]
        assert home.views.job_names() == ("mv",)
        assert list((db.path / "ephemeral").glob("*")) == []
        reader = Reader(db, QUERIES[0])
        _until_shown(reader, answer)


def test_a_subscription_to_a_query(opened: Opened) -> None:
    """What there is as inserts, then changes with the row before and after, of streams, of views, and of both."""
    with opened() as db:
        db.execute(SCRIPT)
        db.append("t", [{"k": 1, "w": 5}, {"k": 2, "w": 1}])
        db.append("s", [{"id": 10, "k": 1, "v": 1}])
        db.settle(180)
        over_a_view = "SELECT k, n * 10 AS tens FROM mv WHERE w > 2"
        counted = db.subscribe("SELECT k, COUNT(*) AS n FROM s GROUP BY k", timeout=60)
        seen = db.subscribe(over_a_view, timeout=60, changes="upsert")
        beside = db.subscribe("(SELECT s.id, mv.n FROM s JOIN mv ON s.k = mv.k)", timeout=60)
        followed = db.follow(over_a_view)
        assert _told(next(counted)) == ("insert", None, {"k": 1, "n": 1})
        assert _told(next(seen)) == ("upsert", None, {"k": 1, "tens": 10})
        assert _told(next(beside)) == ("insert", None, {"id": 10, "n": 1})
        assert next(followed).to_pylist() == [{"_op": "insert", "k": 1, "tens": 10}]
        db.append("s", [{"id": 11, "k": 1, "v": 1}])
        assert _told(next(counted)) == ("update", {"k": 1, "n": 1}, {"k": 1, "n": 2})
        assert _told(next(beside)) == ("insert", None, {"id": 11, "n": 1})
        db.append("t", [{"k": 1, "w": -9}])  # Spark has no part in what follows
        assert _told(next(seen)) == ("delete", {"k": 1}, None)
        assert next(followed).to_pylist() == [{"_op": "delete", "k": 1, "tens": 10}]
        changes = sorted((_told(next(beside)) for _ in range(4)), key=str)
        assert changes == [
            ("delete", {"id": 10, "n": 1}, None), ("delete", {"id": 11, "n": 1}, None),
            ("insert", None, {"id": 10, "n": 2}), ("insert", None, {"id": 11, "n": 2}),
        ]  # fmt: skip
        assert {job.name for job in db.jobs()} == {"mv", "big"}
        assert list(db.subscribe("SELECT k FROM mv WHERE k > 5", timeout=0.1)) == []
        for open_one in (counted, seen, beside, followed):
            open_one.close()  # type: ignore[union-attr]  # they are generators
        assert sorted(spec.name for spec in db._engine.home.views.specs()) == ["big", "mv"]
        assert list((db.path / "ephemeral").glob("*")) == []
        for text, asked, condition in (
            ("SELECT k FROM mv", {"since": 1}, "INVALID_ARGUMENT"),
            ("SELECT k FROM mv", {"changes": "append"}, "SINK_CANNOT_UPDATE"),
            ("SELECT nothing FROM mv", {}, "UNKNOWN_COLUMN"),
            ("WITH a AS (SELECT 1) INSERT INTO s SELECT k, k, k FROM mv", {}, "SYNTAX_ERROR"),
        ):
            with pytest.raises(PenstockError) as refused:
                db.subscribe(text, **asked)
            assert refused.value.condition == condition
        with pytest.raises(PenstockError, match="SUBSCRIBE does not end"):
            db.execute("SUBSCRIBE TO (SELECT k FROM mv)")


def _told(change: penstock.Change) -> tuple[str, object, object]:
    return change.op, change.before, change.row
