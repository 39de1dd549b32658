"""What has to pass before a change lands."""

from __future__ import annotations

import re
import tomllib

from tests.project import ROOT


def test_linter_types_and_all_suites_run() -> None:
    """W4: CI lints, checks the format and all types strictly, and runs every suite but the hour-long ones; how much of
    the code the tests reach is measured, and stands in the page of dependencies."""
    steps = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "set -euo pipefail" in steps
    assert {"check", "test", "test-chaos"} <= set(re.findall(r"^make (\S+)$", steps, flags=re.MULTILINE))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    check = re.search(r"^check:.*?\n\n", makefile, flags=re.MULTILINE | re.DOTALL)
    assert check is not None
    for tool in ("ruff check .", "ruff format --check", "/mypy", "tests/architecture"):
        assert tool in check[0]
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    assert settings["mypy"]["strict"] is True
    assert {"src", "tests"} <= set(settings["mypy"]["files"])
    assert {"BLE", "S", "TRY", "F"} <= set(settings["ruff"]["lint"]["select"]), "errors are caught by name, and raised"
    assert settings["pytest"]["ini_options"]["filterwarnings"] == ["error"]
    assert re.search(r"^coverage:", makefile, flags=re.MULTILINE)
    assert re.search(
        r"(\d\d) % of the (lines|statements)", (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    )
