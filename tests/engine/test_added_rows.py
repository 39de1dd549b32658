"""Rows that are only added, through chains of views, tables beside streams, windows and sinks, over a stop in the
middle. The breadth is in tests/unit/stores/views/test_added_views.py, which needs no Spark."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest

from penstock.errors import PenstockError
from tests.databases import Opened
from tests.engine.answers import check_change_log, read

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

SCRIPT = """
CREATE STREAM sales (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'topic');
CREATE TABLE old (k STRING, v INT) WITH (connector = 'file', path = '{old}', format = 'json');
CREATE MATERIALIZED VIEW large AS SELECT k, v, ts FROM sales WHERE v > 1;
CREATE MATERIALIZED VIEW larger AS SELECT k, v, ts FROM large WHERE v > 3;
CREATE MATERIALIZED VIEW both AS SELECT k, v FROM larger UNION ALL SELECT k, v FROM large WHERE k = 'a';
CREATE MATERIALIZED VIEW ever AS SELECT k, v FROM sales UNION ALL SELECT k, v FROM old;
CREATE MATERIALIZED VIEW minutes AS SELECT window_start, COUNT(*) AS n
FROM TABLE(TUMBLE(TABLE larger, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end EMIT FINAL;
CREATE SINK of_both WITH (connector = 'topic') AS SELECT k, v FROM both;
CREATE SINK of_two WITH (connector = 'topic') AS SELECT k, v FROM larger UNION ALL SELECT k, v FROM ever;
CREATE SINK of_ever WITH (connector = 'topic') AS SELECT k, v FROM sales UNION ALL SELECT k, v FROM old;
CREATE STREAM back (k STRING, v INT) WITH (connector = 'topic', topic = 'of_both');
CREATE MATERIALIZED VIEW read_both AS SELECT k, v FROM back;
CREATE STREAM back_two (k STRING, v INT) WITH (connector = 'topic', topic = 'of_two');
CREATE MATERIALIZED VIEW read_two AS SELECT k, v FROM back_two;
CREATE STREAM back_ever (k STRING, v INT) WITH (connector = 'topic', topic = 'of_ever');
CREATE MATERIALIZED VIEW read_ever AS SELECT k, v FROM back_ever;
"""
Row = tuple[str, int]


def test_rows_are_added_all_the_way_to_a_sink(opened: Opened, tmp_path: Path) -> None:
    old: list[Row] = [("a", 1), ("b", 5)]
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "rows.json").write_text("".join(json.dumps({"k": k, "v": v}) + "\n" for k, v in old))
    db = opened()
    db.execute(SCRIPT.format(old=tmp_path / "old"))
    rows: list[Row] = []
    for step in range(4):
        start = dt.datetime(2026, 1, 1, 0, step, tzinfo=dt.UTC)
        came = [("ab"[place % 2], place) for place in range(6)]
        db.append("sales", [{"k": k, "v": v, "ts": start + dt.timedelta(seconds=v)} for k, v in came])
        rows += came
        db.settle(180)
        if step == 1:
            db.execute("PAUSE JOB of_two; PAUSE JOB both")
        if step == 2:
            db.close()
            db = opened()
            db.execute("RESUME JOB of_two; RESUME JOB both")
            db.settle(180)
    larger = [row for row in rows if row[1] > 3]
    both = larger + [row for row in rows if row[1] > 1 and row[0] == "a"]
    ever = rows + old
    answers = {"larger": larger, "both": both, "ever": ever, "read_both": both, "read_two": larger + ever}
    for view, expected in {**answers, "read_ever": ever}.items():
        assert sorted(read(db, f"SELECT k, v FROM {view}")) == sorted(expected), view
    assert [n for _, n in read(db, "minutes")] == [2, 2, 2], "the last minute is open"
    for view in ("larger", "both", "ever"):
        check_change_log(db, view)
    with db.checkpoints("large") as coordinator, pytest.raises(PenstockError, match="writes the rows of view large"):
        coordinator.recover_from_checkpoint(coordinator.list_checkpoints()[-1].id)
    db.close()
