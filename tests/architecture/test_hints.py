"""Hints that name a page of the documentation name one that is there and tells it."""

from __future__ import annotations

import re

import pytest

from tests.project import ROOT

SOURCE = ROOT / "src" / "penstock"
PAGE = re.compile(r"docs/[\w/.-]+\.md(?:#[\w-]+)?")
# What the page must say for the hint to help.
TOLD = {
    ("connectors/registration.py", "docs/custom-connectors.md"): "seek_to_offset(",
    ("stores/load_catalog.py", "docs/custom-connectors.md"): "behind the registration",
    ("plan/calls.py", "docs/sql/functions.md"): "CREATE FUNCTION",
    ("plan/expressions.py", "docs/sql/queries.md"): "not there",
    ("interfaces/demo/story.py", "docs/index.md"): "tutorial",
    ("options/reference.py", "docs/reference/options.md"): "rows_per_request",
}


def named() -> set[tuple[str, str]]:
    return {
        (path.relative_to(SOURCE).as_posix(), page)
        for path in SOURCE.rglob("*.py")
        for page in PAGE.findall(path.read_text(encoding="utf-8"))
    }


def test_every_page_that_is_named_is_looked_at() -> None:
    assert named() == set(TOLD)


@pytest.mark.parametrize(("module", "page"), TOLD)
def test_the_page_is_there_and_tells_it(module: str, page: str) -> None:
    path, _, part = page.partition("#")
    text = (ROOT / path).read_text(encoding="utf-8")
    assert TOLD[module, page] in text
    headings = [re.sub(r"[^\w -]", "", line.lstrip("# ")).lower().replace(" ", "-") for line in text.splitlines()]
    assert not part or part in headings
