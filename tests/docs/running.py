"""Runs the pages whose blocks are run: statements and programs in the order in which a reader meets them."""

from __future__ import annotations

import io
import re
from contextlib import closing, redirect_stdout
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.docs.blocks import Block, page_blocks, pages

RUN = ("run",)


@dataclass(frozen=True)
class Step:
    """A block that is run, and what the page says it prints."""

    language: str
    block: Block
    shown: str | None


def steps(path: Path) -> list[Step]:
    """The blocks of a page that are run."""
    following = pairwise([*page_blocks(path), ("", None)])
    return [
        Step(language, block, after.text if after_language == "text" and after is not None else None)
        for (language, block), (after_language, after) in following
        if block is not None and block.info == RUN
    ]


def running_pages() -> list[Path]:
    """The pages with blocks that are run."""
    return [path for path in pages() if steps(path)]


def run_page(path: Path, **settings: object) -> list[tuple[Step, str]]:
    """Each step with what it printed. The database `db` is made by the page, or is there from the beginning."""
    import penstock

    found = steps(path)
    names: dict[str, Any] = {"__name__": "page"}
    if "penstock.connect(" not in "".join(step.block.text for step in found):
        names["db"] = penstock.connect("state", **settings)
    printed = []
    try:
        for step in found:
            output = io.StringIO()
            with redirect_stdout(output):
                _run(step, names)
            printed.append((step, output.getvalue()))
    finally:
        if "db" in names:
            with closing(names["db"]):
                pass
    return printed


def _run(step: Step, names: dict[str, Any]) -> None:
    if step.language == "python":
        # Lines are counted as on the page.
        program = compile("\n" * (step.block.line - 1) + step.block.text, str(step.block.path), "exec")
        exec(program, names)  # noqa: S102  the pages are ours
        return
    from penstock.interfaces.table_output import render_table

    assert step.language == "sql"
    for statement in filter(str.strip, re.split(r";$", step.block.text, flags=re.MULTILINE)):
        if statement.split()[0] == "SELECT":
            names["db"].settle()
        result = names["db"].execute(statement)
        if result is not None:
            print(render_table(result.arrow()))  # noqa: T201  what the page shows
