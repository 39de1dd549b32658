"""Java is found, or the command that installs it is told."""

from __future__ import annotations

import platform
import shutil
from pathlib import Path

import pytest

from penstock.errors import RuntimeFailure
from penstock.spark import java
from penstock.spark.java import JavaFound, JavaProblem, find_java, java_version, require_java


def install(home: Path, version: str, *, release: bool) -> Path:
    """A Java that only tells its version."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    program.chmod(0o755)
    if release:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return home.resolve()


@pytest.fixture(autouse=True)
def only_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_USUAL_PLACES", ())


@pytest.mark.parametrize("release", [True, False])
@pytest.mark.parametrize(("written", "version"), [("17.0.15", 17), ("21", 21), ("1.8.0_402", 8), ("25-ea", 25)])
def test_version(tmp_path: Path, written: str, version: int, release: bool) -> None:
    assert java_version(install(tmp_path / "jdk", written, release=release)) == version


def test_java_home_comes_first_and_one_too_old_is_passed_over(tmp_path: Path) -> None:
    old = install(tmp_path / "old", "1.8.0_402", release=True)
    seventeen = install(tmp_path / "seventeen", "17.0.15", release=False)
    newer = install(tmp_path / "newer", "21.0.1", release=True)
    path = f"{seventeen / 'bin'}:{newer / 'bin'}"
    assert find_java({"JAVA_HOME": str(newer), "PATH": path}) == JavaFound(newer, 21)
    assert find_java({"JAVA_HOME": str(old), "PATH": path}) == JavaFound(seventeen, 17)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(newer / "bin" / "java")
    assert find_java({"PATH": str(tmp_path / "bin")}) == JavaFound(newer, 21)


def test_the_usual_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, version in (("jvm/a", "11.0.2"), ("jvm/b", "21.0.1"), ("jvm/c", "17.0.15")):
        install(tmp_path / name, version, release=True)
    monkeypatch.setattr(java, "_USUAL_PLACES", (f"{tmp_path}/jvm/*/",))
    assert find_java({"PATH": ""}) == JavaFound((tmp_path / "jvm" / "b").resolve(), 21)


def test_what_to_do_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = install(tmp_path / "old", "11.0.2", release=True)
    tools = {"apt-get"}
    monkeypatch.setattr(shutil, "which", lambda name, path=None: name if name in tools and path is None else None)
    problem = find_java({"JAVA_HOME": str(old)})
    assert isinstance(problem, JavaProblem)
    assert problem.problem == f"Spark needs Java 17 or newer, found Java 11 in {old}"
    assert problem.remedy.endswith("apt-get install -y openjdk-17-jre-headless")
    with pytest.raises(RuntimeFailure) as raised:
        require_java({})
    assert raised.value.condition == "JAVA_MISSING"
    assert raised.value.hint == problem.remedy
    tools.clear()
    tools.add("brew")
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    assert java.remedy() == "brew install openjdk@17"
    tools.clear()
    assert "set JAVA_HOME" in java.remedy()
    absent = find_java({"JAVA_HOME": str(tmp_path / "nowhere")})
    assert isinstance(absent, JavaProblem)
    assert "nowhere" in absent.problem
