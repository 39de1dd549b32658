"""`penstock.watermarks` tells how far jobs came that do not run: it is kept with their batches (H4)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import penstock
from penstock.runtime.event_time import EventTimeTracker, ScanTime, Seen
from penstock.stores.views import BatchCommit

S = 1_000_000
ASKED = "SELECT source, partition, max_event_time, current_watermark, idle FROM penstock.watermarks WHERE job = 'copy'"


def at(seconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


def test_a_job_that_was_stopped_before_the_home_was_opened_is_told_of(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with penstock.connect(home) as db:
        db.execute("""
            CREATE STREAM s (a INT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (partitions = 3);
            CREATE STREAM k (n BIGINT);
        """)
        views = db._engine.home.views
        for job in ("copy", "young"):
            insert = f"INSERT INTO k WITH (job_name = '{job}') SELECT COUNT(*) AS n FROM s GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)"
            views.save_job(job, statement=insert, state="stopped")
    with penstock.connect(home) as db:
        assert {job.name: job.state for job in db.jobs()} == {"copy": "stopped", "young": "stopped"}
        assert db.sql(ASKED).rows() == [], "it has had no batch"
        (scan,) = db._engine.jobs["copy"].spec.plan.scans
        tracker = EventTimeTracker([ScanTime(scan.id, delay_us=5 * S, partitions=3)], started_us=0)
        tracker.observe_batch({scan.id: Seen({0: 100 * S, 1: 60 * S})}, now_us=0)
        db._engine.home.views.commit(
            BatchCommit("copy", 0, "hash", watermark_us=tracker.watermark_us, tracker=tracker.to_json())
        )
        stopped = [
            ("s", 0, at(100), at(95), False),
            ("s", 1, at(60), at(55), False),
            ("s", 2, None, None, False),
        ]
        assert sorted(db.sql(ASKED).rows()) == stopped
    with penstock.connect(home) as db:
        assert sorted(db.sql(ASKED).rows()) == stopped
        assert db.sql("SELECT DISTINCT job FROM penstock.watermarks").rows() == [("copy",)]
        assert [row[0] for row in db.sql("SELECT pending_windows FROM penstock.watermarks").rows()] == [[], [], []]
