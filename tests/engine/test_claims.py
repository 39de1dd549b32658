"""The numbers that the texts claim are measured by a program that runs."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.project import ROOT


@pytest.mark.spark
@pytest.mark.bench
@pytest.mark.soak
@pytest.mark.timeout(600)
def test_every_claim_is_measured() -> None:
    """U1, U3, U4, U13, T2: commits of large state both ways, windows over batches of 10,000 rows, what coordination
    takes, and rows a second by the number of readers. What came out stands in docs/benchmarks.md."""
    asked = [sys.executable, "benchmarks/claims.py", "--keys", "20000", "--rows", "100000", "--rounds", "1"]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    commits = [re.fullmatch(r"state of 20,000 keys, (.*): commit \d+ ms, longest \d+ ms", line) for line in lines[:2]]
    assert [found and found[1] for found in commits] == ["as changes", "written whole"]
    windows = [re.fullmatch(r"windows, batches of 10,000: (.*) [\d,]+", line) for line in lines[2:6]]
    assert [found and found[1] for found in windows] == [
        "rows a second", "batch, ms", "coordination, ms", "coordination, 90 %, ms",
    ]  # fmt: skip
    readers = [re.fullmatch(r"readers (\d): ([\d,]+) rows/s", line) for line in lines[6:]]
    assert [found and found[1] for found in readers] == ["1", "2", "4"]
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert "benchmarks/claims.py" in page
