"""Every condition of the table is documented, raised and tested."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from penstock.errors import CONDITIONS
from tests.project import ROOT, files, modules

ERRORS_PAGE = ROOT / "docs" / "reference" / "errors.md"


@cache
def named_in_source() -> frozenset[str]:
    """Every string of the source that is a condition's name, outside the table itself."""
    found = set()
    for module in modules():
        if module.name == "penstock.errors":
            continue
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in CONDITIONS:
                found.add(node.value)
    # The one condition that a class of the table's own module raises.
    return frozenset(found | {"INTERNAL_ERROR"})


@cache
def named_in_tests() -> frozenset[str]:
    """Every condition that a test or a fixture names; this file names none."""
    words: set[str] = set()
    for path in files("tests/**/*"):
        if path.suffix in {".py", ".sql", ".json", ".txt", ".md", ".slt"}:
            words |= set(re.findall(r"\b[A-Z][A-Z_]+\b", path.read_text(encoding="utf-8", errors="replace")))
    return frozenset(words & set(CONDITIONS))


@cache
def documented() -> dict[str, str]:
    """The sections of the page of conditions: the name, and what is written under it."""
    parts = re.split(r"^### ([A-Z_]+)$", ERRORS_PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("name", CONDITIONS)
def test_condition_is_documented(name: str) -> None:
    section = documented()[name]
    assert f"SQLSTATE {CONDITIONS[name].sqlstate}" in section
    assert CONDITIONS[name].meaning.lower() in section.lower()
    assert "What to do:" in section


@pytest.mark.parametrize("name", CONDITIONS)
def test_condition_is_raised_somewhere(name: str) -> None:
    assert name in named_in_source()


@pytest.mark.parametrize("name", CONDITIONS)
def test_condition_is_tested(name: str) -> None:
    assert name in named_in_tests()


def test_no_condition_is_documented_that_does_not_exist() -> None:
    assert set(documented()) == set(CONDITIONS)


def test_conditions_are_documented_in_the_order_of_the_table() -> None:
    assert list(documented()) == list(CONDITIONS)
