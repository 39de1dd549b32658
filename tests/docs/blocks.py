"""The code blocks of the documentation.

A block's info string says what it is:

    ```sql                     accepted as a script
    ```sql setup               accepted, and put before every later SQL block of the page
    ```sql lenient             accepted with --lenient
    ```sql refused CONDITION   exactly one statement is refused, with this condition
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


def blocks(language: str) -> list[Block]:
    """The blocks of a language in README.md and under docs/."""
    found = []
    for path in [ROOT / "README.md", *files("docs/**/*.md")]:
        page = path.read_text(encoding="utf-8")
        for match in _FENCE.finditer(page):
            info = tuple(match[1].split())
            if info[:1] == (language,):
                found.append(Block(path, page.count("\n", 0, match.start()) + 2, info[1:], match[2]))
    return found
