"""docs/sql/functions.md names exactly the functions of the registry, each where it belongs."""

from __future__ import annotations

import re

import pytest

from penstock.catalog.foreign_functions import FOREIGN, NOT_YET
from penstock.catalog.functions import DENIED, find_function, known_functions
from tests.project import ROOT

PAGE = (ROOT / "docs" / "sql" / "functions.md").read_text(encoding="utf-8")
SPARK = (ROOT / "tests" / "data" / "spark_functions_4_2.txt").read_text(encoding="utf-8").split()


def section(heading: str) -> set[str]:
    """The names in the section of this heading: of a table the first cells, else everything in backquotes."""
    body = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \|", body, flags=re.MULTILINE)
    return set(rows or re.findall(r"`([^`]+)`", body))


def native(kind: str) -> set[str]:
    """Spark's functions of one kind."""
    names = {name for name in known_functions() if name in SPARK}
    return {name for name in names if (info := find_function(name)) is not None and info.kind == kind}


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("Aggregates", native("aggregate")),
        ("Window functions", native("window")),
        ("Functions that make rows", native("generator")),
        ("Scalar functions", native("scalar")),
        ("Functions with a meaning of their own here", native("special") | {"proctime"}),
        ("Functions of other systems", set(FOREIGN)),
        ("Not there yet", set(NOT_YET)),
        ("Never", set(DENIED)),
    ],
)
def test_the_page_lists_what_the_registry_has(heading: str, expected: set[str]) -> None:
    assert section(heading) == expected


def test_the_reasons_on_the_page_are_those_of_the_errors() -> None:
    for name, reason in {**DENIED, **NOT_YET}.items():
        assert f"| `{name}` | {reason} |" in PAGE


def test_aggregates_that_merge_stand_apart_from_those_that_do_not() -> None:
    body = PAGE.partition("\n## Aggregates\n")[2].partition("\n## ")[0]
    merging, _, kept = body.partition("Others cannot be merged:")
    assert "`sum`" in merging
    assert "`median`" in kept
    for name in native("aggregate"):
        info = find_function(name)
        assert info is not None
        assert f"`{name}`" in (merging if info.mergeable else kept)
