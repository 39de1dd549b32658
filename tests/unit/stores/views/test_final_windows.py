"""Windows over rows that change, each shown once (G3, G5, G18): after every batch the view is what DuckDB answers for the
windows that the batch closes, over the latest rows as they are then, behind what it has shown before."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Final

import duckdb
import pytest

from penstock.plan.job_plan import plan_job
from penstock.stores.views import ViewStore
from penstock.stores.views.database import FILE
from penstock.stores.views.model import BatchCommit, ViewSpec
from tests.unit.plan.analysis import planned
from tests.unit.stores.views.finishing import NULLS, Row, _duckdb, _known, add_rows, row_text

SECOND: Final = 1_000_000
KEYED: Final = "PRIMARY KEY (id) NOT ENFORCED"
TIMED: Final = "WATERMARK FOR ts AS ts - INTERVAL '2' SECOND"
STREAMS: Final = f"""
CREATE STREAM c (id BIGINT, k BIGINT, v BIGINT, ts TIMESTAMP, {TIMED}, {KEYED}) WITH (connector = 'topic', changes = 'upsert');
CREATE STREAM m (id BIGINT, k BIGINT, v BIGINT, ts TIMESTAMP, {TIMED}, {KEYED})
WITH (connector = 'topic', changes = 'upsert', version_column = 'v');
CREATE STREAM w (id BIGINT, k BIGINT, v BIGINT, ts TIMESTAMP, {TIMED}) WITH (connector = 'topic', format = 'debezium-json');
CREATE STREAM d (id BIGINT, name STRING, {KEYED}) WITH (connector = 'topic', changes = 'upsert');
"""
# DuckDB's functions for Spark's, and its tables for what a batch brings.
SPARK: Final = """
CREATE MACRO timestamp_micros(x) AS make_timestamp(CAST(x AS BIGINT));
CREATE MACRO unix_micros(x) AS epoch_us(x);
CREATE MACRO pmod(a, b) AS ((a % b) + b) % b;
"""
CHANGES: Final = "__deleted BOOLEAN, __partition INTEGER, __offset BIGINT"
TABLES: Final = dict.fromkeys(("c", "m", "w"), "id BIGINT, k BIGINT, v BIGINT, ts TIMESTAMP") | {
    "d": "id BIGINT, name VARCHAR"
}
TEN: Final = "INTERVAL '10' SECOND"
ENDS: Final = "time_bucket(INTERVAL 10 SECOND, {0}.ts) + INTERVAL 10 SECOND"
# What is asked of us, and the same of DuckDB, of windows that end at `e`.
QUERIES: Final = {
    "tumbled": (
        f"SELECT k, TUMBLE_END(ts, {TEN}) AS e, COUNT(*) AS n, SUM(v) AS t FROM c GROUP BY k, TUMBLE(ts, {TEN})",
        f"SELECT k, {ENDS.format('c')} AS e, count(*), sum(v)::BIGINT FROM c GROUP BY ALL",
    ),
    "filtered": (
        (f"SELECT e, k, n * 2 AS n FROM (SELECT k, window_end AS e, COUNT(*) AS n, MAX(v) AS high FROM TUMBLE(TABLE c, "
        f"DESCRIPTOR(ts), {TEN}) WHERE v > 2 GROUP BY k, window_end, window_start HAVING COUNT(*) > 1) WHERE high > 3"),
        (f"SELECT {ENDS.format('c')} AS e, k, count(*) * 2 FROM c WHERE v > 2 AND ts IS NOT NULL GROUP BY ALL "
        "HAVING count(*) > 1 AND max(v) > 3"),
    ),
    "hopped": (
        (f"SELECT window_end AS e, COUNT(*) AS n, COUNT(DISTINCT k) AS kinds FROM HOP(TABLE c, DESCRIPTOR(ts), "
        f"INTERVAL '4' SECOND, {TEN}) GROUP BY window_start, window_end"),
        ("SELECT e, count(*), count(DISTINCT k) FROM (SELECT k, ts, time_bucket(INTERVAL 4 SECOND, ts) - to_seconds(4 * i) "
        "+ INTERVAL 10 SECOND AS e FROM c, range(0, 3) AS r(i)) WHERE e > ts GROUP BY e"),
    ),
    "steps": (
        (f"SELECT window_end AS e, COUNT(*) AS n FROM CUMULATE(TABLE c, DESCRIPTOR(ts), INTERVAL '5' SECOND, {TEN}) "
        "GROUP BY window_start, window_end"),
        ("SELECT e, count(*) FROM (SELECT ts, time_bucket(INTERVAL 10 SECOND, ts) + to_seconds(5 * i) AS e "
        "FROM c, range(1, 3) AS r(i)) WHERE e > ts GROUP BY e"),
    ),
    "best": (
        (f"SELECT window_end AS e, k, COUNT(*) AS n FROM TUMBLE(TABLE c, DESCRIPTOR(ts), {TEN}) "
        "GROUP BY window_start, window_end, k "
        "QUALIFY ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY COUNT(*) DESC, k) <= 2"),
        ("SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY e ORDER BY n DESC, k) AS place FROM "
        f"(SELECT {ENDS.format('c')} AS e, k, count(*) AS n FROM c WHERE ts IS NOT NULL GROUP BY ALL)) WHERE place <= 2"),
    ),
    "rows": (
        f"SELECT id, v, window_end AS e FROM TUMBLE(TABLE c, DESCRIPTOR(ts), {TEN})",
        f"SELECT id, v, {ENDS.format('c')} AS e FROM c WHERE ts IS NOT NULL",
    ),
    "versioned": (
        f"SELECT TUMBLE_END(ts, {TEN}) AS e, COUNT(*) AS n, SUM(v) AS t FROM m GROUP BY TUMBLE(ts, {TEN})",
        f"SELECT {ENDS.format('m')} AS e, count(*), sum(v)::BIGINT FROM m WHERE ts IS NOT NULL GROUP BY ALL",
    ),
    "keyless": (
        f"SELECT k, TUMBLE_END(ts, {TEN}) AS e, COUNT(*) AS n, SUM(v) AS t FROM w GROUP BY k, TUMBLE(ts, {TEN})",
        f"SELECT k, {ENDS.format('w')} AS e, count(*), sum(v)::BIGINT FROM w GROUP BY ALL",
    ),
    "named": (
        (f"SELECT d.name, x.window_end AS e, COUNT(*) AS n FROM TUMBLE(TABLE c, DESCRIPTOR(ts), {TEN}) AS x "
        "LEFT JOIN d ON x.k = d.id GROUP BY d.name, x.window_start, x.window_end"),
        f"SELECT d.name, {ENDS.format('c')} AS e, count(*) FROM c LEFT JOIN d ON c.k = d.id WHERE ts IS NOT NULL GROUP BY ALL",
    ),
}  # fmt: skip


class Source:
    """Records that change rows at random, and the rows that are there by now."""

    def __init__(self, rnd: random.Random) -> None:
        self.rnd = rnd
        self.now = 0
        self.offset = 0
        self.rows: dict[str, dict[int, Row]] = {"c": {}, "m": {}, "d": {}}
        self.versions: dict[int, int] = {}
        self.bag: list[Row] = []

    def batch(self) -> dict[str, list[Row]]:
        """A batch whose times lie around one that goes on; some are far behind, and one is NULL now and then."""
        self.now += self.rnd.randrange(9)
        return {"c": self._keyed("c"), "m": self._keyed("m"), "w": self._whole(), "d": self._named()}

    def _row(self, identity: int) -> Row:
        back = self.rnd.choice([0, 0, 1, 3, 6, 15, 30])
        time = None if self.rnd.random() < 0.05 else max(0.0, self.now - back + self.rnd.random())
        stamp = None if time is None else f"1970-01-01 00:{int(time) // 60:02}:{time % 60:09.6f}"
        return (identity, self.rnd.choice([None, 1, 2, 3]), self.rnd.randrange(9), stamp)

    def _place(self) -> tuple[int, int]:
        self.offset += 1
        return (0, self.offset)

    def _keyed(self, name: str) -> list[Row]:
        made: list[Row] = []
        for _ in range(self.rnd.randrange(12)):
            identity = self.rnd.randrange(40)
            row = self._row(identity)
            deleted = self.rnd.random() < 0.2
            made.append((*row, deleted, *self._place()))
            if name == "m":
                version = int(str(row[2]))
                if version < self.versions.get(identity, -1):
                    continue
                self.versions[identity] = version
            self.rows[name].pop(identity, None)
            if not deleted:
                self.rows[name][identity] = row
        self.rnd.shuffle(made)
        return made

    def _whole(self) -> list[Row]:
        made: list[Row] = []
        for _ in range(self.rnd.randrange(6)):
            gone = bool(self.bag) and self.rnd.random() < 0.4
            row = self.bag.pop(self.rnd.randrange(len(self.bag))) if gone else self._row(self.rnd.randrange(3))
            if not gone:
                self.bag.append(row)
            made.append((*row, gone, 0, 0))
        return made

    def _named(self) -> list[Row]:
        identity, name = self.rnd.randrange(1, 4), self.rnd.choice("ab")
        if self.rnd.random() < 0.5:
            return []
        self.rows["d"][identity] = (identity, name)
        return [(identity, name, False, *self._place())]

    def there(self, name: str) -> list[Row]:
        return self.bag if name == "w" else list(self.rows[name].values())


class Shown:
    """A view of windows, and what it has to show."""

    def __init__(self, name: str, path: Path) -> None:
        query, self.oracle = QUERIES[name]
        self.job = plan_job(planned(f"{STREAMS} CREATE MATERIALIZED VIEW {name} AS {query} EMIT FINAL;"))
        finish = self.job.finish
        assert finish is not None
        assert self.job.uses_event_time
        self.spark, self.all = duckdb.connect(), duckdb.connect()
        self.spark.execute(SPARK)
        self.all.execute(NULLS)
        for table, columns in TABLES.items():
            self.spark.execute(f"CREATE TABLE {table} ({columns}, {CHANGES})")
            self.all.execute(f"CREATE TABLE {table} ({columns})")
        for scan in self.job.scans:
            self.spark.execute(f'CREATE VIEW "{scan.view}" AS FROM {scan.relation}')
        shown = tuple((column.name, _known(column.type)) for column in self.job.columns)
        self.spec = ViewSpec(name, shown, "finish", self.job.key, finish=finish.with_types({}))
        self.path = path
        self.store = ViewStore.open(path)
        self.store.create_view(self.spec)
        self.told: Counter[str] = Counter()
        self.closed = 0

    def reopen(self) -> None:
        self.store.close()
        self.store = ViewStore.open(self.path)
        self.store.create_view(self.spec)

    def rows_kept(self) -> int:
        self.store.close()
        with duckdb.connect(self.path / FILE) as file:
            found = file.execute("SELECT count(*) FROM store.r1_0").fetchone()
        assert found is not None
        return int(found[0])

    def commit(self, number: int, batch: dict[str, list[Row]], watermark: int) -> None:
        for name in TABLES:
            self.spark.execute(f"DELETE FROM {name}")
            add_rows(self.spark, name, batch.get(name, []))
        rows = self.spark.sql(_duckdb(self.job.core)).to_arrow_table()
        self.store.commit(
            BatchCommit("job", number, f"hash {number}", view=self.spec.name, rows=rows, closing_us=watermark * SECOND)
        )

    def expect(self, source: Source, watermark: int) -> None:
        """What the windows hold that end after the last watermark and not after this one."""
        for name in TABLES:
            self.all.execute(f"DELETE FROM {name}")
            add_rows(self.all, name, source.there(name))
        shown = "e, k, n" if self.spec.name == "best" else "*"
        closing = f"SELECT {shown} FROM ({self.oracle}) WHERE epoch(e) > {self.closed} AND epoch(e) <= {watermark}"
        self.told += Counter(map(row_text, self.all.sql(closing).fetchall()))
        self.closed = max(self.closed, watermark)

    def check(self) -> None:
        name = self.spec.name
        rows = [each.values() for each in self.store.read(f"SELECT * FROM {name}").table.to_pylist()]
        assert Counter(_plain(each) for each in rows) == self.told, self.oracle
        changes = list(self.store.changes(name, 0))
        assert all(change.before is None for change in changes)
        assert Counter(_plain(change.row.values()) for change in changes if change.row is not None) == self.told


def _plain(values: object) -> str:
    return row_text(value.replace(tzinfo=None) if hasattr(value, "tzinfo") else value for value in values)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", QUERIES)
def test_each_window_is_shown_once_as_it_was_when_it_closed(name: str, tmp_path: Path) -> None:
    """The store is opened again in the middle, and batches are gone back to and done again."""
    rnd = random.Random(name)  # noqa: S311
    source, view = Source(rnd), Shown(name, tmp_path)
    done: list[tuple[dict[str, list[Row]], int, Counter[str]]] = []
    watermark = 0
    for number in range(45):
        batch = source.batch()
        view.commit(number, batch, watermark)
        view.expect(source, watermark)
        if number % 3 == 0:
            view.check()
        done.append((batch, watermark, view.told.copy()))
        watermark = max(watermark, source.now - 2)
        if number == 25:
            view.reopen()
        if number in (20, 40):
            back = number - rnd.randrange(1, 15)
            view.store.rollback("job", back)
            view.told, told = done[back][2].copy(), view.told
            view.check()
            for again in range(back + 1, number + 1):
                view.commit(again, *done[again][:2])
            view.told = told
            view.check()
    assert sum(view.told.values()) > 5, "empty answers tell nothing"


def test_rows_are_let_go_of_behind_the_watermark(tmp_path: Path) -> None:
    """What is kept does not grow with what has come, unless versions have to be remembered."""
    kept: dict[str, int] = {}
    for name in ("hopped", "versioned"):
        view = Shown(name, tmp_path / name)
        table = "m" if name == "versioned" else "c"
        for number in range(161):
            stamp = f"1970-01-01 {number // 360:02}:{number // 6 % 60:02}:{number * 10 % 60:02}"
            batch = {table: [(number, 1, number, stamp, False, 0, number)]}
            view.commit(number, batch, max(0, number * 10 - 5))
        kept[name] = view.rows_kept()
    assert 100 <= kept["hopped"] < 110, "those that the last 100 batches need"
    assert kept["versioned"] == 161
