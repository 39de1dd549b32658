"""kill -9 at seeded moments while rows keep coming: from Kafka into views, into Kafka, and in real time.

RELIABILITY tests 1 and 2: one kill, and ten.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kafka.conftest import Cluster
from tests.kafka.load import NOTHING, SEED, Load, wrong
from tests.project import ROOT

pytestmark = [pytest.mark.kafka, pytest.mark.chaos, pytest.mark.timeout(3_600)]


@contextmanager
def program(directory: Path, cluster: Cluster, topic: str, task: str) -> Iterator[subprocess.Popen[str]]:
    """The program in a process group of its own; what is left of it is killed."""
    with (directory / "errors").open("ab") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.kafka.load_worker", str(directory / "state"), cluster.address, topic, task],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"src{os.pathsep}.", "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
    patience = threading.Timer(600, process.kill)
    patience.start()
    try:
        yield process
    finally:
        patience.cancel()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(60)
        assert process.stdout is not None
        process.stdout.close()


@pytest.mark.parametrize(("kills", "rate"), [(1, 100), pytest.param(10, 500, marks=pytest.mark.soak)])
def test_nothing_is_lost_whenever_it_is_killed(cluster: Cluster, tmp_path: Path, kills: int, rate: int) -> None:
    """K14, J4: each row once in views and exactly once in Kafka; at least once elsewhere, in real time, too."""
    topic, chance = cluster.topic(2), random.Random(SEED)  # noqa: S311
    with Load(cluster.address, topic, rate) as load:
        for number in range(kills):
            with program(tmp_path, cluster, topic, "run") as process:
                assert process.stdout is not None
                # Every third one dies while it comes up, somewhere between its first line and its first batch.
                if number % 3 == 2:
                    load.wait_for(int(rate * chance.uniform(2, 20)))
                    continue
                assert process.stdout.readline() == "ready\n", (tmp_path / "errors").read_text()[-3_000:]
                load.wait_for(int(rate * chance.uniform(0.5, 8)))
        sent = load.stop()
    with program(tmp_path, cluster, topic, "report") as process:
        told, _ = process.communicate()
    assert process.returncode == 0, (tmp_path / "errors").read_text()[-3_000:]
    report = json.loads(told.splitlines()[-1])
    assert wrong(sent, report["seen"]) == NOTHING
    groups = {k: [id_ for id_ in sent if id_ % 7 == k] for k in range(7)}
    assert report["sums"] == [[k, len(ids), sum(ids)] for k, ids in groups.items()]

    def written(name: str) -> dict[str, int]:
        return wrong(sent, (json.loads(value)["id"] for value in cluster.values(f"{topic}-{name}")))

    assert written("exact") == NOTHING
    cluster.wait_until_nothing_is_open(f"{topic}-exact")
    for name in ("plain", "quick"):
        found = written(name)
        assert (found["lost"], found["phantom"]) == (0, 0), name
