"""`penstock doctor`: what it finds, the command that mends it, the exit code."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock.interfaces.cli import checkup
from penstock.interfaces.cli.checkup import Finding, check_up
from penstock.interfaces.cli.main import run
from penstock.spark import java
from penstock.stores.catalog_store import CatalogStore
from penstock.stores.owner_lock import OwnerLock
from penstock.stores.views.store import ViewStore


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("PENSTOCK_STATE", raising=False)


def found(state: Path, name: str) -> Finding:
    return next(finding for finding in check_up(state) if finding.name == name)


def test_everything_needed_is_looked_at(tmp_path: Path) -> None:
    names = [finding.name for finding in check_up(tmp_path / "state")]
    assert names[:6] == ["python", "pyspark", "duckdb", "pyarrow", "prompt_toolkit", "java"]
    assert {"spark jars", "state path", "disk", "temporary files", "loopback", "memory"} <= set(names)


def test_a_missing_java_is_a_failure_with_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = java.JavaProblem("Spark needs Java 17 or newer and none is installed", "apt-get install java")
    monkeypatch.setattr(java, "find_java", lambda: problem)
    assert run(["doctor", "--state", str(tmp_path / "state")]) == 1
    lines = capsys.readouterr().out.splitlines()
    (at,) = [number for number, line in enumerate(lines) if line.startswith("fail  java")]
    assert "none is installed" in lines[at]
    assert lines[at + 1].strip() == "try: apt-get install java"


def test_a_machine_that_has_everything_is_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "find_java", lambda: java.JavaFound(Path("/java"), 21))
    assert run(["doctor", "--state", str(tmp_path / "state")]) == 0
    assert not (tmp_path / "state").exists()


def test_json_has_one_object_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["doctor", "--json", "--state", str(tmp_path / "state")])
    findings = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [list(finding) for finding in findings] == [["name", "verdict", "message", "remedy"]] * len(findings)
    assert {finding["verdict"] for finding in findings} <= {"ok", "warn", "fail"}


def test_missing_and_old_packages_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = metadata.version

    def version(name: str) -> str:
        if name == "duckdb":
            raise metadata.PackageNotFoundError(name)
        return "3.5.1" if name == "pyspark" else real(name)

    monkeypatch.setattr(metadata, "version", version)
    missing, old = found(tmp_path, "duckdb"), found(tmp_path, "pyspark")
    assert (missing.verdict, missing.remedy) == ("fail", f"{sys.executable} -m pip install 'duckdb>=2.0'")
    assert (old.verdict, old.message) == ("fail", "3.5.1 is older than 4.2")


def test_a_state_path_in_use_is_told_and_left_alone(tmp_path: Path) -> None:
    with OwnerLock(tmp_path / "state"):
        finding = found(tmp_path / "state", "state path")
        assert (finding.verdict, str(os.getpid()) in finding.message) == ("warn", True)
    assert found(tmp_path / "state", "state path").verdict == "ok"


def test_a_state_path_that_is_a_file_fails(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    finding = found(tmp_path / "state", "state path")
    assert (finding.verdict, "not a directory" in finding.message) == ("fail", True)


def test_a_full_disk_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10 * 1024**2))
    assert found(tmp_path, "disk").verdict == "fail"
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=500 * 1024**2))
    assert found(tmp_path, "disk").verdict == "warn"


def test_a_closed_loopback_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> socket.socket:
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(socket, "create_connection", refused)
    assert found(tmp_path, "loopback").verdict == "fail"


def test_a_check_that_breaks_does_not_hide_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("no such sensor")

    monkeypatch.setattr(checkup, "_memory", broken)
    findings = check_up(tmp_path)
    assert any(finding.verdict == "fail" and "no such sensor" in finding.message for finding in findings)
    assert any(finding.name == "disk" for finding in findings)


@pytest.mark.parametrize("place", ["nope", "self/deep/below"])
def test_a_state_path_that_cannot_be_made_fails_even_for_the_superuser(place: str) -> None:
    finding = found(Path("/proc") / place, "state path")
    assert (finding.verdict, finding.remedy) == ("fail", "name a directory of yours with --state")
    assert "cannot be made in /proc" in finding.message


def test_a_state_path_below_a_file_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    finding = found(tmp_path / "file" / "state", "state path")
    assert finding.verdict == "fail"
    assert "not a directory" in finding.message


def test_a_state_path_that_is_there_is_tried_and_left_as_it_was(tmp_path: Path) -> None:
    assert found(tmp_path, "state path").verdict == "ok"
    assert list(tmp_path.iterdir()) == []
    finding = found(Path("/proc"), "state path")
    assert (finding.verdict, "cannot be written to" in finding.message) == ("fail", True)


@pytest.mark.parametrize(("file", "name"), [("catalog.db", "catalog"), ("views.duckdb", "views")])
def test_a_damaged_database_fails(tmp_path: Path, file: str, name: str) -> None:
    (tmp_path / file).write_bytes(b"no database at all" * 1000)
    damaged = found(tmp_path, name)
    assert damaged.verdict == "fail"
    assert f"{file} is damaged" in damaged.message
    assert "--state" in (damaged.remedy or "")


def test_databases_that_are_whole_are_not_mentioned(tmp_path: Path) -> None:
    with ViewStore.open(tmp_path), CatalogStore.open(tmp_path):
        pass
    assert not {"catalog", "views"} & {finding.name for finding in check_up(tmp_path)}


def test_a_state_path_that_cannot_be_shown_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--state", "a\nb"]) == 2
    assert r"'a\nb'" in capsys.readouterr().err
