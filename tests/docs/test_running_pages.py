"""Every block of the documentation that is marked to run does, and prints what its page shows (W2)."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import Block, blocks
from tests.docs.console import console_blocks, printed
from tests.docs.running import RUN, run_page, running_pages
from tests.project import ROOT, title

# Run by the test of that page, in processes of their own: a registration lasts.
ELSEWHERE = {"docs/connectors.md"}
# Needs a broker: tests/kafka/test_page.py.
WITH_BROKER = "docs/kafka.md"
PROGRAMS = [block for block in blocks("python") if block.info == () and title(block.path) not in ELSEWHERE]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", [path for path in running_pages() if title(path) != WITH_BROKER], ids=title)
def test_page_does_what_it_shows(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """V5: the guide for authors of connectors is one of them."""
    monkeypatch.chdir(tmp_path)
    for step, output in run_page(path):
        if step.shown is not None:
            assert plain(output) == plain(step.shown), str(step.block)


@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.parametrize("block", console_blocks(engine=True), ids=str)
def test_command_prints_what_the_page_shows(block: Block, tmp_path: Path) -> None:
    assert plain(printed(block, PENSTOCK_STATE=str(tmp_path / "state"))) == plain(block.text)


def plain(text: str) -> str:
    """A text without what differs from run to run: how many batches the rows came in."""
    lines = [line.rstrip() for line in text.strip().splitlines()]
    return re.sub(r"\bbatch \d+", "batch N", "\n".join(lines))


@pytest.mark.parametrize("block", PROGRAMS, ids=str)
def test_program_runs(block: Block) -> None:
    done = subprocess.run([sys.executable, "-c", block.text], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_python_block_is_run() -> None:
    assert [str(block) for block in blocks("python") if block.info not in ((), RUN)] == []


def test_there_are_pages_that_run() -> None:
    """The pages are found: an empty list would pass everything."""
    assert {title(path) for path in running_pages()} >= {
        "docs/custom-connectors.md",
        "docs/python.md",
        "docs/sql/views.md",
        "docs/sql/event-time.md",
    }


def test_numbers_of_batches_are_not_compared_and_all_else_is() -> None:
    assert plain("as of v batch 3  \n") == plain("as of v batch 12")
    assert plain("3 rows") != plain("4 rows")
