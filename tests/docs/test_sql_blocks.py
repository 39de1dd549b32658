"""Every SQL block of the documentation is accepted, or refused with the condition the page names."""

from __future__ import annotations

import pytest

from penstock.errors import CONDITIONS
from penstock.plan.script import analyze_script
from tests.docs.blocks import Block, blocks

BLOCKS = blocks("sql")


def script(block: Block) -> str:
    """The block, behind the set-up of its page."""
    before = [
        other.text
        for other in BLOCKS
        if other.path == block.path and other.line < block.line and (other.info == ("setup",) or _runs(other, block))
    ]
    return "\n;\n".join([*before, block.text])


def _runs(other: Block, block: Block) -> bool:
    return other.info == block.info == ("run",)


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_sql_block_is_what_the_page_says(block: Block) -> None:
    reports = analyze_script(script(block), lenient=block.info == ("lenient",))
    found = [(report.error.condition, str(report.error)) for report in reports if report.error is not None]
    match block.info:
        case () | ("setup",) | ("lenient",) | ("run",):
            assert found == []
            assert reports
        case ("refused", condition):
            assert condition in CONDITIONS
            assert [name for name, _ in found] == [condition], found
        case other:
            pytest.fail(f"unknown info string: {' '.join(other)}")


def test_there_are_blocks() -> None:
    """The pages are found: an empty list would pass everything."""
    assert len(BLOCKS) > 50
