"""Jobs that go on for long, and state that is larger than memory. `make test-soak` runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import penstock
from tests.engine.answers import job, ms, read
from tests.engine.large_state_program import LETTERS
from tests.project import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(7_200)]

SECONDS = float(os.environ.get("PENSTOCK_SOAK_SECONDS", "600"))
BATCHES = int(os.environ.get("PENSTOCK_SOAK_BATCHES", "10000"))
KEYS = int(os.environ.get("PENSTOCK_SOAK_KEYS", "1500000"))
_MIB = 1024**2


def heap(db: penstock.Database) -> int:
    """What the JVM holds on to, after it has been asked to let go of the rest."""
    jvm = db._engine.home.spark()._jvm
    assert jvm is not None
    for _ in range(3):
        jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    return int(runtime.totalMemory()) - int(runtime.freeMemory())


def resident() -> int:
    """The memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_it_runs_until_it_is_stopped(db: penstock.Database) -> None:
    """G20, P8: ten minutes and ten thousand batches: nothing stops by itself, and memory stays what it was."""
    db.execute("""
        CREATE STREAM s (k STRING, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH (retention = '1 minute', fsync = 'never');
        CREATE MATERIALIZED VIEW totals WITH (changelog_retention = '1 minute') AS
        SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s GROUP BY k;
        CREATE MATERIALIZED VIEW windows WITH (changelog_retention = '1 minute') AS
        SELECT TUMBLE_START(ts, INTERVAL '1' HOUR) AS start, COUNT(*) AS n FROM s GROUP BY TUMBLE(ts, INTERVAL '1' HOUR);
    """)
    begun, sent = time.monotonic(), 0
    measured: list[tuple[int, int]] = []
    while True:
        db.append("s", [{"k": f"k{n}", "v": sent, "ts": ms(sent)} for n in range(10)])
        sent += 1
        db.settle(600)
        batches = min(job(db, name).batch_id or 0 for name in ("totals", "windows"))
        if sent % max(1, BATCHES // 20) == 0:
            measured.append((heap(db), resident()))
        if batches >= BATCHES and time.monotonic() - begun >= SECONDS:
            break
    assert {job(db, name).state for name in ("totals", "windows")} == {"running"}
    assert {job(db, name).restarts for name in ("totals", "windows")} == {0}
    assert read(db, "totals")[0] == ("k0", sent, sum(range(sent)))
    # The first quarter is for caches to fill.
    early, late = measured[len(measured) // 4], measured[-1]
    assert late[0] < early[0] * 1.25 + 32 * _MIB, [pair[0] // _MIB for pair in measured]
    assert late[1] < early[1] * 1.25 + 64 * _MIB, [pair[1] // _MIB for pair in measured]


def test_state_larger_than_memory(tmp_path: Path) -> None:
    """R8: with a heap of half a gigabyte a job keeps more than twice as much, on disk, and finds every key again."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.engine.large_state_program", str(tmp_path / "home"), str(KEYS), str(KEYS // 10)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))},
        capture_output=True,
        text=True,
        check=False,
        timeout=3_600,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["input_rows"] == KEYS + KEYS // 10
    assert found["twice"] == KEYS // 10, "each old key is found, once"
    assert found["keys"] == KEYS
    assert found["heap_bytes"] <= 600 * _MIB
    assert 2 * found["heap_bytes"] < LETTERS * KEYS, "the keys alone are twice the heap"
    assert found["disk_bytes"] > found["heap_bytes"]
