"""No option is taken and then forgotten: each is read by what runs, or says with a notice that it changes nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

import penstock
from penstock.options.jobs import INSERT_OPTIONS, VIEW_OPTIONS
from penstock.options.registry import known_connectors, known_formats
from penstock.options.schema import OptionSpec
from penstock.options.schemas.common import CHANGES, CONNECTOR, FORMAT, JOB, JOB_NAME, TYPE, VERSION
from penstock.options.settings import OWN_SETTINGS
from penstock.options.subscriptions import SUBSCRIBE_OPTIONS
from penstock.options.values import Choice

ROOT: Final = Path(penstock.__file__).parent
# Those that write options or check them, and read none for what runs.
NO_READERS: Final = (
    "sql/",
    "options/schemas/",
    "options/settings.py",
    "options/subscriptions.py",
    "options/jobs.py",
    "options/registry_use.py",
    "options/reference.py",
    "testing/",
)
_ALWAYS_SO: Final = "any other value is refused"
# What the schema of a connector makes something else of, or refuses unless it is what is so in any case.
MADE_INTO: Final = {
    "tail": "whether the source ends",
    "snapshot": "the number of the change that a subscription begins behind",
    "person.proportion": _ALWAYS_SO,
    "auction.proportion": _ALWAYS_SO,
    "bid.proportion": _ALWAYS_SO,
}
# A piece of text around what is put in must say something by itself: ".{name}" would be like any key.
_LEAST_LETTERS: Final = 4


def options() -> dict[str, OptionSpec]:
    """The options of every connector and format that this version runs, by what they are called."""
    found = {spec.key: spec for spec in (CONNECTOR, TYPE, FORMAT, CHANGES, VERSION, *JOB, JOB_NAME)}
    for connector in known_connectors():
        if connector.available:
            found |= {spec.key: spec for spec in connector.options}
    for form in known_formats():
        if form.available:
            found |= {spec.key: spec for spec in form.options}
    found |= {spec.key: spec for spec in (*OWN_SETTINGS, *SUBSCRIBE_OPTIONS, *VIEW_OPTIONS, *INSERT_OPTIONS)}
    # One that takes a single word says what is so in any case.
    return {key: spec for key, spec in found.items() if not isinstance(spec.kind, Choice) or len(spec.kind.values) > 1}


def texts(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """The texts of a module, without those that describe it; True: a pattern, made of a text with places in it."""
    described = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in described | parts:
            yield node.value, False
        elif isinstance(node, ast.JoinedStr):
            pieces = [part.value if isinstance(part, ast.Constant) else None for part in node.values]
            plain = "".join(str(piece) for piece in pieces if piece is not None)
            if " " not in plain and sum(map(str.isalpha, plain)) >= _LEAST_LETTERS:
                yield "".join("(.*)" if piece is None else re.escape(str(piece)) for piece in pieces), True


@cache
def read() -> tuple[frozenset[str], tuple[str, ...]]:
    """Every text in the modules that read options, and every pattern."""
    plain: set[str] = set()
    patterns: set[str] = set()
    for path in sorted(ROOT.rglob("*.py")):
        if not path.relative_to(ROOT).as_posix().startswith(NO_READERS):
            for text, pattern in texts(ast.parse(path.read_text(encoding="utf-8"))):
                (patterns if pattern else plain).add(text)
    return frozenset(plain), tuple(sorted(patterns))


def is_read(key: str) -> bool:
    """Whether a key stands in a module that reads options: as it is, or put together of texts that stand there."""
    plain, patterns = read()
    if key in plain:
        return True
    for pattern in patterns:
        found = re.fullmatch(pattern, key)
        # The beginning of a key is the name of a format; what else is put in must be a text somewhere, too.
        if found is not None and all(not part or part in plain or part.rstrip(".") in plain for part in found.groups()):
            return True
    return False


@pytest.mark.parametrize("key", sorted(options()))
def test_every_option_is_read_or_says_that_it_changes_nothing(key: str) -> None:
    spec = options()[key]
    if key in MADE_INTO:
        assert not is_read(key)
        return
    assert is_read(key) is not bool(spec.idle), (
        f"nothing reads option {key}: honour it, refuse it, or say in `idle` why it changes nothing"
        if spec.idle is None
        else f"option {key} is read, so that it should not say that it changes nothing"
    )


def test_what_nobody_reads_is_found_out() -> None:
    assert not is_read("partition_discovery")
    assert not is_read("json.map_null_key")
    assert not is_read("nonsense.that_nobody_reads")
    assert is_read("start_timestamp")
    assert is_read("debezium-json.fail_on_missing_field")
    assert is_read("schema_registry.token")
