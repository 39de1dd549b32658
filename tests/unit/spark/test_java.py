"""Which Java is taken, and what is said where none will do."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import RuntimeFailure
from penstock.spark import java


@pytest.fixture(autouse=True)
def _nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_USUAL_PLACES", ())


def installed(home: Path, version: str) -> Path:
    """A directory that looks like a Java of this version."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nexit 1\n", "utf-8")
    program.chmod(0o755)
    (home / "release").write_text(f'JAVA_VERSION="{version}"\n', "utf-8")
    return home


def missing(environment: dict[str, str]) -> RuntimeFailure:
    with pytest.raises(RuntimeFailure) as caught:
        java.require_java(environment)
    assert caught.value.condition == "JAVA_MISSING"
    assert caught.value.hint == java.remedy()
    return caught.value


def test_no_java_at_all_is_told_with_what_to_install() -> None:
    assert missing({"PATH": ""}).message == "Spark needs Java 17 or newer and none is installed"


def test_a_java_home_without_java_is_named(tmp_path: Path) -> None:
    assert str(tmp_path) in missing({"JAVA_HOME": str(tmp_path)}).message


@pytest.mark.parametrize(("version", "told"), [("1.8.0_402", "Java 8"), ("11.0.2", "Java 11"), ("16", "Java 16")])
def test_a_java_that_is_too_old_is_named(tmp_path: Path, version: str, told: str) -> None:
    assert f"found {told} in" in missing({"JAVA_HOME": str(installed(tmp_path / "old", version))}).message


def test_java_home_wins_over_the_path(tmp_path: Path) -> None:
    home, other = installed(tmp_path / "home", "17.0.1"), installed(tmp_path / "other", "21.0.1")
    found = java.require_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert (found.home, found.version) == (home.resolve(), 17)


def test_a_good_java_on_the_path_is_taken_where_java_home_is_too_old(tmp_path: Path) -> None:
    home, other = installed(tmp_path / "home", "11.0.1"), installed(tmp_path / "other", "21.0.1")
    found = java.require_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert (found.home, found.version) == (other.resolve(), 21)
