"""The connectors that users copy are short, and keep to what the shipped tests of connectors ask."""

from __future__ import annotations

import ast
import io
import runpy
import sqlite3
import tokenize
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.testing.connectors import ConnectorConformance, check_connector
from tests.docs.blocks import page_blocks
from tests.project import ROOT

FEWER_THAN = 30
EXAMPLE = ROOT / "examples" / "custom_connector.py"
PAGE = ROOT / "docs" / "custom-connectors.md"
_NOT_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def block_of_the_page() -> str:
    """The first program of the page: the connector and its registration."""
    return next(block.text for language, block in page_blocks(PAGE) if language == "python")


def connector_in(source: str) -> ast.ClassDef:
    [found] = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "penstock.Connector" for base in node.bases)
    ]
    return found


def code_lines(source: str, node: ast.AST) -> int:
    """Lines of a class or program that hold code: no docstrings, no comments, no empty lines."""
    docstrings = {
        line
        for part in ast.walk(node)
        if isinstance(part, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(part) is not None
        for line in range(part.body[0].lineno, (part.body[0].end_lineno or 0) + 1)
    }
    first, last = getattr(node, "lineno", 1), getattr(node, "end_lineno", len(source.splitlines()))
    found = {
        line
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in _NOT_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len({line for line in found - docstrings if first <= line <= last})


def database(path: Path, table: str, columns: str, rows: list[tuple[Any, ...]]) -> dict[str, str]:
    with sqlite3.connect(path) as made:
        made.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, {columns})")
        marks = ", ".join("?" for _ in rows[0])
        made.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", rows)
    made.close()
    return {"path": str(path)}


def of_the_example(folder: Path) -> tuple[type[penstock.Connector], dict[str, str]]:
    rows = [("Oslo", number / 2, number * 60_000) for number in range(50)]
    options = database(folder / "readings.db", "readings", "city, celsius, at", rows)
    return runpy.run_path(str(EXAMPLE))["Readings"], options


def of_the_page(folder: Path) -> tuple[type[penstock.Connector], dict[str, str]]:
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(block_of_the_page(), str(PAGE), "exec"), names)  # noqa: S102  the page is ours
    rows = [("tea", number * 1_000) for number in range(50)]
    return names["Orders"], database(folder / "orders.db", "orders", "item, at", rows)


@pytest.mark.parametrize("made", [of_the_example, of_the_page], ids=["example", "page"])
def test_the_connector_users_copy_passes_the_conformance_kit(made: Any, tmp_path: Path) -> None:
    """I1 to I8: and the kit is not passed by everything: what is broken in it is told."""
    connector, options = made(tmp_path)
    check_connector(connector, options)

    class Forgetful(connector):  # type: ignore[valid-type,misc]
        """Starts from the beginning wherever it is sent to."""

        def seek_to_offset(self, offset: int) -> None:
            super().seek_to_offset(0)

    with pytest.raises(AssertionError, match="a new object goes on at any offset"):
        check_connector(Forgetful, options)


def test_the_connectors_users_copy_are_under_thirty_lines() -> None:
    example = EXAMPLE.read_text(encoding="utf-8")
    page = block_of_the_page()
    assert 10 < code_lines(example, connector_in(example)) < FEWER_THAN
    # The whole program of the page: imports, class and registration.
    assert 10 < code_lines(page, ast.parse(page)) < FEWER_THAN


def test_the_page_names_the_kit_and_the_example() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert "(../examples/custom_connector.py)" in text
    assert f"fewer than {FEWER_THAN} lines" in text.replace("\n", " ")
    assert check_connector.__name__ in text
    assert ConnectorConformance.__name__ in text


def test_lines_are_counted_without_what_is_no_code() -> None:
    source = '"""A module."""\n\n# why\nclass A:\n    """Of\n    two lines."""\n\n    x = (\n        1,  # one\n    )\n'
    assert code_lines(source, ast.parse(source)) == 4
