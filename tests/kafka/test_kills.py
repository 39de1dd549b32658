"""The engine is killed around its commits; readers of committed records see each row and each window once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.kafka.conftest import Cluster
from tests.project import ROOT

pytestmark = [pytest.mark.kafka, pytest.mark.chaos]

# Behind the commit of the transaction and before that of the engine, inside the transaction, and behind both.
KILLS = (
    "sink.after_write=crash@2",
    "sink.before_write=crash@1",
    "sink.before_commit=crash@2",
    "view.after_commit=crash@1",
)


@pytest.mark.timeout(900)
def test_each_row_and_each_window_is_there_once(cluster: Cluster, tmp_path: Path) -> None:
    """SC3, N5: Kafka to windows to Kafka, killed in the middle."""
    source, target = cluster.topic(2), cluster.topic()
    sent = 0
    for round_, failpoint in enumerate((*KILLS, "")):
        rows: list[dict[str, Any]] = [
            {"id": n, "ts": f"2026-01-01T10:{n // 60:02}:{n % 60:02}Z"} for n in range(sent, sent + 50)
        ]
        sent += len(rows)
        for partition in range(2):
            cluster.send(source, [json.dumps(row) for row in rows if row["id"] % 2 == partition], partition=partition)
        worker = [sys.executable, "-m", "tests.kafka.kill_worker", str(tmp_path / "state"), cluster.address]
        done = subprocess.run(
            [*worker, source, target],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"src{os.pathsep}.", "PENSTOCK_FAILPOINTS": failpoint},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == (137 if failpoint else 0), f"round {round_}: {done.stderr[-2000:]}"
    ids = Counter(json.loads(value)["id"] for value in cluster.values(target))
    assert ids == Counter(range(sent))
    outputs = (target, f"{target}-windows", f"{target}-hops")
    # Some of what was taken back had reached the broker: the crash was inside of transactions.
    written, committed = (
        Counter(record.value() for topic in outputs for record in cluster.records(topic, committed=only))
        for only in (False, True)
    )
    assert written > committed
    assert written.keys() == committed.keys()
    windows = [json.loads(value) for value in cluster.values(f"{target}-windows")]
    # All windows but the last, which is open: 10 rows each, each window once.
    assert [window["n"] for window in windows] == [10] * len(windows)
    assert len({window["start"] for window in windows}) == len(windows) == sent // 10 - 1
    hops = [json.loads(value) for value in cluster.values(f"{target}-hops")]
    # Four begin before the first row, and those that end behind the last one are open.
    assert sorted(hop["n"] for hop in hops) == [2, 4, 6, 8, *[10] * (len(hops) - 4)]
    assert len({hop["start"] for hop in hops}) == len(hops) == sent // 2 - 1
