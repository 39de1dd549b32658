"""Every console block of the documentation shows what the command really prints."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys

import pytest

from tests.docs.blocks import Block, blocks
from tests.project import ROOT

BLOCKS = [block for block in blocks("console") if "$ penstock" in block.text]


def commands(block: Block) -> list[tuple[str, str]]:
    """The commands of a block, each with what stands below it."""
    parts = re.split(r"^\$ (.*)\n", block.text, flags=re.MULTILINE)
    assert parts[0] == "", f"{block} begins with output"
    return list(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_console_block_is_what_is_printed(block: Block) -> None:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PENSTOCK", "FORCE_COLOR", "COLUMNS"))
    }
    for command, expected in commands(block):
        program, *arguments = shlex.split(command, comments=True)
        assert program == "penstock"
        done = subprocess.run(
            [sys.executable, "-m", "penstock", *arguments],
            cwd=ROOT,
            env={**environment, "NO_COLOR": "1", "COLUMNS": "100"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.stdout.rstrip() == expected.rstrip(), command


def test_there_are_blocks() -> None:
    """The pages are found: an empty list would pass everything."""
    assert len(BLOCKS) > 5
