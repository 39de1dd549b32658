"""Every condition of the table is documented, raised and tested."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from penstock.errors import CONDITIONS
from tests.architecture.raised_conditions import raised_conditions
from tests.project import ROOT, files, modules

ERRORS_PAGE = ROOT / "docs" / "reference" / "errors.md"


@cache
def raised() -> frozenset[str]:
    """Every condition that our source can raise."""
    return raised_conditions(module.tree for module in modules() if module.name != "penstock.errors")


@cache
def expected_by_tests() -> frozenset[str]:
    """Every condition that a refused fixture expects or that the code of a test names; comments do not count."""
    found: set[str] = set()
    for path in files("tests/fixtures/refused/**/*.sql"):
        found |= set(re.findall(r"^-- condition: ([A-Z_]+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE))
    for path in files("tests/**/test_*.py"):
        if path.parent != Path(__file__).parent:
            found |= named_in_code(ast.parse(path.read_text(encoding="utf-8")))
    return frozenset(found)


def named_in_code(tree: ast.Module) -> set[str]:
    """The conditions that strings of a test are, or show as the command line prints them."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= {node.value, *re.findall(r"^error\[([A-Z_]+)\]", node.value)}
    return found & set(CONDITIONS)


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
    assert name in raised()


@pytest.mark.parametrize("name", CONDITIONS)
def test_condition_is_tested(name: str) -> None:
    assert name in expected_by_tests()


def test_no_condition_is_documented_that_does_not_exist() -> None:
    assert set(documented()) == set(CONDITIONS)


def test_conditions_are_documented_in_the_order_of_the_table() -> None:
    assert list(documented()) == list(CONDITIONS)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("raise ScriptError('SYNTAX_ERROR', 'x')", True),
        ("raise errors.ScriptError('SYNTAX_ERROR', 'x')", True),
        ("raise ValueError('SYNTAX_ERROR')", False),
        ("raise ScriptError('UNKNOWN_TYPE', 'SYNTAX_ERROR')", False),
        ("if error.condition == 'SYNTAX_ERROR': pass", False),
        ("# ScriptError('SYNTAX_ERROR')", False),
        ("LIST = ['SYNTAX_ERROR']", False),
        ("T = {1: ('SYNTAX_ERROR', 'x')}\ndef f(k):\n    c, w = T[k]\n    raise ScriptError(c, w)", True),
        ("T = {'SYNTAX_ERROR': 'UNKNOWN_TYPE'}\ndef f(k):\n    raise ScriptError(T[k], 'x')", False),
        ("T = {1: 'SYNTAX_ERROR'}\ndef f(k):\n    raise ScriptError('UNKNOWN_TYPE', T[k])", False),
        ("def f(m, c):\n    raise ScriptError(c, m)\nf('x', 'SYNTAX_ERROR')", True),
        ("def f(m, c):\n    raise ScriptError(c, m)\nf('SYNTAX_ERROR', 'x')", False),
        ("def f(m, c='SYNTAX_ERROR'):\n    raise ScriptError(c, m)", True),
        ("def f(e: type[PenstockError], c):\n    raise e(c, 'x')\nf(ScriptError, 'SYNTAX_ERROR')", True),
    ],
)
def test_the_search_for_raised_conditions_finds_what_it_should(text: str, *, found: bool) -> None:
    assert ("SYNTAX_ERROR" in raised_conditions([ast.parse(text)])) is found


def test_a_comment_tests_nothing() -> None:
    assert named_in_code(ast.parse("# SYNTAX_ERROR\nx = 'about SYNTAX_ERROR'")) == set()
    assert named_in_code(ast.parse("x = 'SYNTAX_ERROR'; y = 'error[UNKNOWN_TYPE] at'")) == {
        "SYNTAX_ERROR",
        "UNKNOWN_TYPE",
    }
