"""The project's own files, for tests that look at them."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "penstock"


@dataclass(frozen=True)
class Module:
    """A module of ours, parsed."""

    name: str
    path: Path
    tree: ast.Module

    @property
    def package(self) -> str:
        """The part of the engine it belongs to: the first word behind `penstock`, or '' for penstock itself."""
        words = self.name.split(".")
        return words[1] if len(words) > 1 else ""


@cache
def modules() -> tuple[Module, ...]:
    """Every module under src/penstock."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        words = path.relative_to(SOURCE.parent).with_suffix("").parts
        name = ".".join(words[:-1] if words[-1] == "__init__" else words)
        found.append(Module(name, path, ast.parse(path.read_text(encoding="utf-8"), str(path))))
    return tuple(found)


def files(*patterns: str) -> list[Path]:
    """The project's files that match, without what tools make."""
    hidden = {
        ".git",
        ".mypy_cache",
        ".ruff_cache",
        ".pytest_cache",
        ".hypothesis",
        "__pycache__",
    }
    found = {path for pattern in patterns for path in ROOT.rglob(pattern) if path.is_file()}
    return sorted(path for path in found if not _made(path, hidden))


def _made(path: Path, hidden: set[str]) -> bool:
    parts = path.relative_to(ROOT).parts
    return bool(hidden & set(parts)) or parts[0].startswith(".venv")


def title(path: Path) -> str:
    """A file's name in a test's title."""
    return str(path.relative_to(ROOT))
