"""Tests that `make` looks for in some directories only are in them."""

from __future__ import annotations

import re

from tests.project import ROOT

MAKEFILE = (ROOT / "Makefile").read_text()


def marked(*marks: str) -> set[str]:
    """The directories under `tests` whose files use one of the marks."""
    pattern = re.compile(rf"pytest\.mark\.({'|'.join(marks)})\b")
    return {
        f"tests/{path.relative_to(ROOT / 'tests').parts[0]}"
        for path in (ROOT / "tests").rglob("test_*.py")
        if pattern.search(path.read_text())
    }


def test_make_finds_every_test_of_spark_and_kafka() -> None:
    listed = re.search(r"^SPARK_TESTS +:= (.+)$", MAKEFILE, re.MULTILINE)
    assert listed is not None
    # Kill tests are collected from everywhere.
    assert marked("spark", "slow") - {"tests/chaos"} == set(listed[1].split())
    assert marked("kafka") == {"tests/kafka"}
