"""What functions of the user cost beside built-in expressions is measured by a program that runs."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.project import ROOT


@pytest.mark.spark
@pytest.mark.bench
@pytest.mark.soak
@pytest.mark.timeout(900)
def test_ratio_is_reported() -> None:
    """Q3: for each way to write a function, alone and in a job, the ratio to the built-in."""
    asked = [sys.executable, "benchmarks/functions.py", "--rows", "20000", "--rounds", "1"]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True)
    found = re.findall(r"^  (\S.*?) {2,}[\d.]+ s .* ([\d.]+)$", done.stdout, flags=re.MULTILINE)
    assert [name for name, _ in found] == [
        "built-in", "over Arrow", "over pandas", "over values", "PySpark's udf",
        "built-in", "over Arrow", "over pandas", "over values",
        "built-in", "a loop", *(["with Numba"] if find_spec("numba") is not None else []),
    ]  # fmt: skip
    assert [ratio for name, ratio in found if name == "built-in"] == ["1.0", "1.0", "1.0"]
