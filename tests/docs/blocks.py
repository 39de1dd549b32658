"""The code blocks of the documentation.

A block's info string says what it is:

    ```sql                     accepted as a script
    ```sql setup               accepted, and put before every later SQL block of the page
    ```sql lenient             accepted with --lenient
    ```sql refused CONDITION   exactly one statement is refused, with this condition
    ```sql run                 accepted behind the earlier ones of the page, and run
    ```python                  a program that is run by itself
    ```python run              run behind the earlier ones of the page
    ```text                    behind a block that is run: what it prints
    ```console                 lines that begin with `$ penstock` are run, the rest is what they print
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.project import ROOT, files, title

_FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: where it stands, what it is and what it holds."""

    path: Path
    line: int
    info: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"{title(self.path)}:{self.line}"


def pages() -> list[Path]:
    """README.md and everything under docs/."""
    return [ROOT / "README.md", *files("docs/**/*.md")]


def blocks(language: str) -> list[Block]:
    """The blocks of a language on all pages."""
    return [block for path in pages() for found, block in page_blocks(path) if found == language]


def page_blocks(path: Path) -> list[tuple[str, Block]]:
    """The blocks of one page in their order, each with its language."""
    page = path.read_text(encoding="utf-8")
    found = []
    for match in _FENCE.finditer(page):
        language, *info = match[1].split() or [""]
        found.append((language, Block(path, page.count("\n", 0, match.start()) + 2, tuple(info), match[2])))
    return found
