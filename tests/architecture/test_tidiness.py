"""Limits that keep the tree readable and safe to publish."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.project import ROOT, files, title

CODE = files("src/**/*.py", "tests/**/*.py", "benchmarks/*.py", "examples/*.py")
TEXT = [*CODE, *files("docs/**/*.md", "*.md", "examples/*", "Makefile", "pyproject.toml", ".ci/run")]
LOCKS = files("requirements/*.txt")
LINES_AT_MOST = 800
# Spelt apart so that this file does not find itself.
UNFINISHED = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK")) + r")\b")
MACHINE_PATH = re.compile(r"/(home|Users|root)/\w|/work" + r"/\w")


@pytest.mark.parametrize("path", CODE, ids=title)
def test_file_is_not_too_long(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LINES_AT_MOST


@pytest.mark.parametrize("path", TEXT, ids=title)
def test_file_holds_no_unfinished_note_and_no_machine_path(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert UNFINISHED.search(text) is None
    assert MACHINE_PATH.search(text) is None


@pytest.mark.parametrize("path", CODE, ids=title)
def test_module_postpones_annotations(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "from __future__ import annotations" in text or not re.search(
        r"^(def|class|import|from) ", text, re.MULTILINE
    )


@pytest.mark.parametrize("path", files("src/**/*.py"), ids=title)
def test_module_name_is_a_noun_of_the_domain(path: Path) -> None:
    assert path.stem not in {"utils", "util", "helpers", "helper", "misc", "manager"}


@pytest.mark.parametrize("path", LOCKS, ids=title)
def test_lock_file_has_hashes_and_no_address(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"^-", text, re.MULTILINE), "no options, only requirements"
    pins = re.findall(r"^(\S+)==", text, re.MULTILINE)
    entries = re.split(r"^(?=\S)", text, flags=re.MULTILINE)[1:]
    assert len(pins) == len(entries)
    assert all("--hash=sha256:" in entry for entry in entries)


def test_lock_files_hold_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    asked = [
        *project["project"]["dependencies"],
        *(name for group in project["dependency-groups"].values() for name in group),
    ]
    names = {re.split(r"[<>=~!\[ ]", requirement)[0] for requirement in asked}
    locked = set(
        re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert names <= locked


def test_the_runtime_lock_is_part_of_the_development_lock() -> None:
    def pins(name: str) -> set[str]:
        text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
        return set(re.findall(r"^[a-z0-9-]+==[^ ]+", text, re.MULTILINE))

    assert pins("runtime.txt") <= pins("dev.txt")


def test_every_dependency_is_explained() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    asked = [
        *project["project"]["dependencies"],
        *(name for group in project["dependency-groups"].values() for name in group),
    ]
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    missing = [requirement for requirement in asked if f"`{requirement}`" not in page]
    assert missing == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 150


def test_the_licence_is_permissive_and_travels_along() -> None:
    """W7."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license"] == "Apache-2.0"
    assert project["license-files"] == ["LICENSE", "NOTICE"]
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Penstock" in (ROOT / "NOTICE").read_text(encoding="utf-8")
