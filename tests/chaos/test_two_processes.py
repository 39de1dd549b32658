"""Two programs on one home: the second is refused before it has written anything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import penstock
from tests.project import ROOT

pytestmark = pytest.mark.chaos

OPEN: Final = """
import sys, penstock
try:
    penstock.connect(sys.argv[1])
except penstock.PenstockError as error:
    print(error.condition, error.message)
"""


def listing(home: Path) -> dict[str, tuple[int, int, int]]:
    """Every file and directory of a home, with its size and when it or its entry was last changed."""
    found = {}
    for path in [home, *home.rglob("*")]:
        stat = path.stat()
        found[str(path.relative_to(home))] = (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
    return found


def second(home: Path) -> str:
    """What a second process is told."""
    done = subprocess.run(
        [sys.executable, "-c", OPEN, str(home)],
        env={"PYTHONPATH": f"{ROOT / 'src'}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout


def test_the_second_process_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with penstock.connect(home) as db:
        db.execute("CREATE STREAM s (a BIGINT) WITH (connector = 'topic')")
        db.append("s", [{"a": 1}])
        before = listing(home)
        told = second(home)
        assert told.startswith("ENGINE_ALREADY_RUNNING"), told
        assert listing(home) == before
        assert db.append("s", [{"a": 2}])[0].first_offset == 1
    assert second(home) == "", "the home is free again"
