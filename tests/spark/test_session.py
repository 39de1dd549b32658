"""The Spark session: what it is started with, that it stays out of the terminal, and that nothing of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.spark import session as module
from tests.project import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PROGRAM = """
import os, sys, time
from pathlib import Path
from penstock.spark.session import SparkSettings, jvm_pid, shared_session, stop_session

session = shared_session(SparkSettings(Path(sys.argv[1]), driver_memory_bytes=700 * 1024**2, parallelism=1))

def twice(batches):
    import penstock.errors  # a worker finds this package
    print("printed by a worker", file=sys.stderr)
    yield from batches

session.range(3).mapInArrow(twice, "id bigint").collect()
print(jvm_pid(), session.sparkContext._jvm.java.lang.Runtime.getRuntime().maxMemory() // 1024**2, flush=True)
if sys.argv[2] == "stop":
    stop_session()
else:
    time.sleep(100)
"""


def started(tmp_path: Path, ending: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "logs"), ending]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path
    )


def family(leader: int) -> list[int]:
    """The processes of the session that a JVM leads, and those that it started."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == leader and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def gone(leader: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while family(leader) and time.monotonic() < until:
        time.sleep(0.1)
    return not family(leader)


def test_a_program_that_stops_leaves_no_process_and_an_empty_terminal(tmp_path: Path) -> None:
    with started(tmp_path, "stop") as program:
        out, error = program.communicate(timeout=100)
    assert program.returncode == 0, error
    leader, heap = (int(word) for word in out.split())
    assert error == ""
    assert 650 < heap <= 700  # what the collector keeps back for itself is not counted
    assert gone(leader, 60)
    logs = tmp_path / "logs"
    assert "printed by a worker" in (logs / "spark.out").read_text()
    assert (logs / "spark.log").exists()
    # Spark puts nothing where the user happens to stand.
    assert [entry.name for entry in tmp_path.iterdir()] == ["logs"]


def test_ctrl_c_does_not_reach_spark_and_a_killed_program_takes_it_along(tmp_path: Path) -> None:
    with started(tmp_path, "wait") as program:
        assert program.stdout is not None
        leader = int(program.stdout.readline().split()[0])
        assert leader in family(leader)
        assert os.getpgid(leader) != os.getpgid(program.pid)
        assert os.getsid(leader) != os.getsid(program.pid)
        program.send_signal(signal.SIGKILL)
        program.wait(10)
        assert gone(leader, 60)


def test_a_program_that_stops_while_spark_starts_takes_it_along(tmp_path: Path) -> None:
    """It ends before the JVM could tell its port, after which it would wait for ever."""
    with started(tmp_path, "stop") as program:
        children = Path(f"/proc/{program.pid}/task/{program.pid}/children")
        until = time.monotonic() + 60
        while not (found := [int(pid) for pid in children.read_text().split() if os.getsid(int(pid)) == int(pid)]):
            assert time.monotonic() < until, "no JVM was started"
            time.sleep(0.01)
        program.send_signal(signal.SIGINT)
        _, error = program.communicate(timeout=60)
    assert "KeyboardInterrupt" in error
    assert gone(found[0], 60)


def test_settings(spark: SparkSession) -> None:
    """RELIABILITY: loopback only, no user interface; times are UTC."""
    conf = spark.conf
    assert conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert conf.get("spark.ui.enabled") == "false"
    assert conf.get("spark.sql.session.timeZone") == "UTC"
    assert conf.get("spark.sql.shuffle.partitions") == "2"
    assert spark.sql("SELECT '${nothing}' AS text").collect()[0]["text"] == "${nothing}"
    assert spark.sparkContext.uiWebUrl is None


def test_one_session_a_process(spark: SparkSession, tmp_path: Path) -> None:
    assert module.session_running()
    assert module.shared_session(module.SparkSettings(tmp_path / "other")) is spark
    assert not (tmp_path / "other").exists()
    assert module.jvm_pid() is not None
