"""Which items of the contract which tests name.

A test names the items that it shows by their IDs, in its docstring or at the head of its name; a module's docstring
speaks for all its tests. `K1 to K6` and `A1-A18` are ranges. Fixtures of SQL have them in their `-- ids:` line.

    def test_running_totals(...):
        \"\"\"G1, G3, SC33: totals across batches\"\"\"
    def test_e2_e8_rows_to_4000_give_3000(...):
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from tests.project import ROOT, files

HERE: Final = ROOT / "tests" / "contract"
Level = Literal["job", "unit", "text"]
# A job that runs, a part of the engine by itself, or only the text being understood: the first is the strongest.
LEVELS: Final[tuple[Level, ...]] = ("job", "unit", "text")
# Its docstrings speak of the fixtures, which name items themselves.
_FIXTURE_TEST: Final = ROOT / "tests" / "unit" / "test_fixtures.py"
_RANGE: Final = re.compile(r"\b(DEC|SC|[A-W])(\d{1,2})\b(?:\s*(?:to|-|–)\s*(?:\1)(\d{1,2})\b)?")
_IN_NAME: Final = re.compile(r"(?:dec|sc|[a-w])\d{1,2}")
_RUNNING: Final = frozenset({"spark", "chaos", "kafka"})


@dataclass(frozen=True)
class Section:
    """One letter of the contract, with its items: ID and what it asks for."""

    letter: str
    title: str
    items: dict[str, str]


@dataclass(frozen=True, order=True)
class Proof:
    """A test, or a fixture, that names an item."""

    rank: int
    where: str

    @property
    def level(self) -> Level:
        return LEVELS[self.rank]


def sections() -> list[Section]:
    """The contract, from `items.txt`."""
    found: list[Section] = []
    for line in (HERE / "items.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            letter, _, title = line[3:].partition(" ")
            found.append(Section(letter, title, {}))
        elif line:
            number, _, text = line.partition("\t")
            assert number.startswith(found[-1].letter), line
            assert number not in found[-1].items, line
            found[-1].items[number] = text
    return found


def not_here() -> dict[str, str]:
    """Items that will not be here, each with the reason."""
    lines = (HERE / "not_here.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t", 1) for line in lines if line)


def ids_in(text: str) -> list[str]:
    """The IDs that a docstring names, ranges written out.

    >>> ids_in("K1 to K3, A5-A6, DEC4: and so on")
    ['K1', 'K2', 'K3', 'A5', 'A6', 'DEC4']
    """
    found: list[str] = []
    for letter, first, last in _RANGE.findall(text):
        found += [f"{letter}{number}" for number in range(int(first), int(last or first) + 1)]
    return found


def ids_in_name(name: str) -> list[str]:
    """The IDs at the head of a test's name.

    >>> ids_in_name("test_e2_e8_rows_to_4000"), ids_in_name("test_rows_of_k7")
    (['E2', 'E8'], [])
    """
    found: list[str] = []
    for word in name.removeprefix("test_").split("_"):
        if not _IN_NAME.fullmatch(word):
            break
        found.append(word.upper())
    return found


def proofs() -> dict[str, list[Proof]]:
    """For each ID that is named anywhere, the tests that name it, the strongest first."""
    found: dict[str, set[Proof]] = {}
    for path in files("tests/**/test_*.py"):
        for number, proof in _named_in(path):
            found.setdefault(number, set()).add(proof)
    for path in files("tests/fixtures/**/*.sql"):
        for line in re.findall(r"^-- ids: (.*)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE):
            for number in line.split():
                found.setdefault(number, set()).add(Proof(LEVELS.index("text"), str(path.relative_to(ROOT))))
    return {number: sorted(tests) for number, tests in found.items()}


def _named_in(path: Path) -> Iterator[tuple[str, Proof]]:
    if path == _FIXTURE_TEST:
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    module = str(path.relative_to(ROOT))
    whole = _marks(tree)
    tests = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    tests = [node for node in tests if node.name.startswith("test_")]
    for number in ids_in(ast.get_docstring(tree) or ""):
        running = whole or (bool(tests) and all(_marks(node) for node in tests))
        yield number, _proof(running, module)
    for node in tests:
        for number in [*ids_in(ast.get_docstring(node) or ""), *ids_in_name(node.name)]:
            yield number, _proof(whole or _marks(node), f"{module}::{node.name}")


def _proof(running: bool, where: str) -> Proof:
    return Proof(LEVELS.index("job" if running else "unit"), where)


def _marks(node: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a test, or all tests of a module, are marked as ones that run jobs."""
    if isinstance(node, ast.Module):
        marks = [
            part.value
            for part in node.body
            if isinstance(part, ast.Assign) and "pytestmark" in ast.unparse(part.targets[0])
        ]
    else:
        marks = list(node.decorator_list)
    names = {name for mark in marks for name in re.findall(r"mark\.(\w+)", ast.unparse(mark))}
    return bool(names & _RUNNING)
