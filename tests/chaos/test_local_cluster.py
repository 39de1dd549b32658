"""Spark as a cluster of processes: the same answers, tasks spread over workers, and a worker that is lost in the middle."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.batch.orders_queries import QUERIES
from tests.chaos.cluster_program import ROWS
from tests.project import ROOT

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(900)]

# Joins, subqueries and grouping sets that only Spark answers; the rest with the soak tests.
CHOSEN = ("q4 order priority", "q9 product profit", "grouping sets")


def run(home: Path, workers: int, names: tuple[str, ...]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos.cluster_program", str(home), str(workers), *names],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))},
        capture_output=True,
        text=True,
        check=False,
        timeout=800,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(
    ("workers", "names"), [(2, CHOSEN), pytest.param(4, tuple(QUERIES), marks=pytest.mark.soak)], ids=["two", "four"]
)
def test_a_worker_is_lost(tmp_path: Path, workers: int, names: tuple[str, ...]) -> None:
    """O3, T4, K12, SC17, SC34: batch answers of a cluster; rows of two partitions reach several workers; a task that
    fails and one whose worker is killed run again elsewhere, and every row counts once."""
    found = run(tmp_path / "home", workers, names)
    assert found["answers"] == dict.fromkeys(names, True)
    assert found["executors"] == workers
    assert len(found["before"]) == 2, "each partition is read by a worker of its own"
    assert sorted(n for _, n in found["before"]) == [ROWS, ROWS]

    # Once by the one that was killed, once more elsewhere; the failure before that was a task's, not the job's.
    assert found["attempts"][0] == found["victim"]
    assert 2 <= len(found["attempts"]) <= 3
    assert found["victim"] not in found["attempts"][1:]
    later = Counter(dict(found["after"]))
    later.subtract(dict(found["before"]))
    assert sum(later.values()) == 2 * ROWS
    # It may have ended the other partition's task before, after the failure brought both tasks to it: that one is kept.
    assert later[found["victim"]] in (0, ROWS), "of the task that the lost worker was at, nothing is kept"

    # Nothing lost, nothing twice, with the state of windows that the lost worker had.
    assert found["sums"] == [6 * ROWS, 2 * sum(range(10, 10 + ROWS)) + 2 * ROWS - 1 + 7 + 2 * ROWS]
    windows: Counter[tuple[str, float]] = Counter()
    for n in range(ROWS):
        windows[(f"k{n % 7}", n % 40 // 10 * 10.0)] += 2
    windows[("late", 40.0)] = 2 * ROWS
    assert {(k, start): n for k, start, n, _ in found["windows"]} == dict(windows)
    assert set(found["states"].values()) == {"running"}
