"""Imports go one way, and the heavy libraries stay out of start-up."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project import ROOT, Module, modules

# Left to right: a part imports only from those to its left, or from itself. Parts on one line stand side by side
# and do not import each other.
ORDER: tuple[tuple[str, ...], ...] = (
    ("errors", "types", "secrets", "clock", "frozen", "failpoints", "cyarrow", "quick_json"),
    ("sql",),
    ("options",),
    ("catalog",),
    ("plan",),
    ("stores",),
    ("connectors", "formats"),
    ("spark",),
    ("runtime",),
    ("interfaces",),
    ("testing",),
)
LEVEL = {part: level for level, parts in enumerate(ORDER) for part in parts}
# The root names the public API and `python -m penstock` starts the command line; both may import anything.
ROOTS = {"", "__main__"}
HEAVY = {"pyspark", "duckdb", "pyarrow", "confluent_kafka"}
# Spark loads these in processes of its own, by class; here only functions import them.
WORKERS = {
    "penstock.connectors.dimension_reader",
    "penstock.connectors.custom_reader",
    "penstock.connectors.file_reader",
    "penstock.connectors.generated_values",
    "penstock.connectors.generator_reader",
    "penstock.connectors.memory_reader",
    "penstock.connectors.nexmark_reader",
    "penstock.connectors.nexmark_texts",
    "penstock.connectors.nexmark_values",
    "penstock.connectors.range_reader",
    "penstock.connectors.topic_reader",
}


def imported(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """The modules a tree imports, wherever in it, with the line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import in line {node.lineno}"
            assert node.module is not None
            yield node.module, node.lineno
            if node.module == "penstock":
                yield from ((f"penstock.{alias.name}", node.lineno) for alias in node.names)


def imported_at_start(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """The modules a tree imports when it is loaded: outside functions and outside TYPE_CHECKING."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                continue
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                waiting += node.orelse
                continue
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield from imported(node)
            waiting.append(node)


def against_direction(module: Module) -> list[str]:
    """What a module imports that stands to its right, or beside it."""
    if module.package in ROOTS:
        return []
    wrong = []
    for name, line in imported(module.tree):
        words = name.split(".")
        if words[0] != "penstock" or len(words) == 1 or words[1] == module.package:
            continue
        # `from penstock import __version__` and the like reach the root, which only the edges may.
        target = LEVEL.get(words[1])
        if target is None:
            if LEVEL[module.package] < LEVEL["interfaces"]:
                wrong.append(f"{module.path}:{line}: {module.name} imports {name} from the root")
        elif target > LEVEL[module.package] or (target == LEVEL[module.package] and target > 0):
            wrong.append(f"{module.path}:{line}: {module.name} imports {name}")
    return wrong


def test_every_part_has_its_place_in_the_order() -> None:
    unknown = {module.package for module in modules()} - set(LEVEL) - ROOTS
    assert not unknown, f"name these in ORDER: {sorted(unknown)}"


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.name)
def test_imports_go_one_way(module: Module) -> None:
    assert against_direction(module) == []


@pytest.mark.parametrize(
    "module", [module for module in modules() if module.name not in WORKERS], ids=lambda module: module.name
)
def test_heavy_libraries_are_imported_inside_functions_only(module: Module) -> None:
    heavy = [f"{name} in line {line}" for name, line in imported_at_start(module.tree) if name.split(".")[0] in HEAVY]
    assert heavy == []


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.name)
def test_modules_of_sparks_own_processes_are_imported_inside_functions_only(module: Module) -> None:
    if module.name not in WORKERS:
        assert [name for name, _ in imported_at_start(module.tree) if name in WORKERS] == []


def test_modules_of_sparks_own_processes_are_there() -> None:
    assert {module.name for module in modules()} >= WORKERS


@pytest.mark.parametrize(
    ("name", "text", "wrong"),
    [
        ("penstock.sql.dialect", "from penstock.plan.nodes import Node", True),
        ("penstock.sql.dialect", "def f():\n    import penstock.plan.nodes", True),
        ("penstock.plan.build", "from penstock.sql.nodes import WindowCall", False),
        ("penstock.sql.dialect", "from penstock import plan", True),
        ("penstock.sql.dialect", "from penstock import __version__", True),
        ("penstock.connectors.kafka", "import penstock.formats.json", True),
        ("penstock.errors", "from penstock.types import SqlType", False),
    ],
)
def test_the_direction_check_finds_what_it_should(name: str, text: str, *, wrong: bool) -> None:
    module = Module(name, Path("x.py"), ast.parse(text))
    assert bool(against_direction(module)) is wrong


def test_the_start_up_check_looks_into_classes_and_branches_but_not_functions() -> None:
    text = """
import a
class C:
    import b
try:
    import c
except ImportError:
    import d
def f():
    import e
if TYPE_CHECKING:
    import g
"""
    assert {name for name, _ in imported_at_start(ast.parse(text))} == {"a", "b", "c", "d"}


@pytest.mark.parametrize("arguments", [["--help"], ["check", "examples/trades.sql"], ["fmt", "examples/trades.sql"]])
def test_start_up_loads_none_of_the_heavy_libraries(arguments: list[str]) -> None:
    program = (
        "import sys; from penstock.interfaces.cli.main import run; code = run(sys.argv[1:]);"
        f"print('loaded', sorted({HEAVY!r} & set(sys.modules)), code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "loaded [] 0", done.stdout + done.stderr


def test_help_does_not_load_the_parser() -> None:
    program = (
        "import sys; from penstock.interfaces.cli.main import run; run(['check', '--help']);"
        "print('sqlglot' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "False"
