"""Every console block of the documentation shows what the command really prints."""

from __future__ import annotations

import pytest

from tests.docs.blocks import Block
from tests.docs.console import console_blocks, printed

BLOCKS = console_blocks()


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_console_block_is_what_is_printed(block: Block) -> None:
    """`python -m tests.docs.console` brings the pages up to date."""
    assert block.text == printed(block)


def test_there_are_blocks() -> None:
    """The pages are found: an empty list would pass everything."""
    assert len(BLOCKS) > 5
