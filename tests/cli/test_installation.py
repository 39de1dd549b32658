"""A package that is not installed is named with the command that mends it; `penstock version` lists what there is."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import penstock
from penstock.interfaces.cli.main import run
from penstock.interfaces.installation import REQUIRED, missing_package
from penstock.spark import java
from tests.project import ROOT


def test_the_packages_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert sorted(REQUIRED.values()) == sorted(project["project"]["dependencies"])
    assert [re.split("[<>=~]", asked)[0].replace("-", "_") for asked in REQUIRED.values()] == list(REQUIRED)


@pytest.mark.parametrize("package", ["duckdb", "pyarrow"])
def test_opening_a_database_names_a_missing_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # what Python then raises is what it raises for a missing one
    with pytest.raises(penstock.PenstockError) as raised, penstock.connect(tmp_path / "state") as db:
        db.execute("CREATE STREAM s (a INT); INSERT INTO s VALUES (1)")
    assert raised.value.condition == "INSTALLATION_UNUSABLE"
    assert package in raised.value.message
    assert f"pip install '{REQUIRED[package]}'" in str(raised.value.hint)


def test_a_job_without_pyspark_names_it(tmp_path: Path) -> None:
    program = """
import sys
sys.modules["pyspark"] = None
from pathlib import Path
import penstock, penstock.spark.session as session
from penstock.spark.java import JavaFound
session.require_java = lambda: JavaFound(Path("/java"), 21)
with penstock.connect(sys.argv[1]) as db:
    db.execute("CREATE STREAM s (k STRING)")
    try:
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT k FROM s")
    except penstock.PenstockError as error:
        print(error.condition, error.hint)
    print(db.sql("SHOW JOBS").rows())
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "state")],
        cwd=ROOT / "src",
        capture_output=True,
        text=True,
        check=False,
    )
    told, jobs = done.stdout.splitlines()
    assert told == f"INSTALLATION_UNUSABLE {sys.executable} -m pip install '{REQUIRED['pyspark']}'", done.stderr
    assert jobs == "[]"


def test_a_command_names_a_missing_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    script = tmp_path / "script.sql"
    script.write_text("SELECT 1 AS one;", encoding="utf-8")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert run(["run", "--state", str(tmp_path / "state"), str(script)]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error[INSTALLATION_UNUSABLE]: the package duckdb is not installed")
    assert "-m pip install 'duckdb>=" in said
    assert not (tmp_path / "state").exists()


def test_a_command_line_without_its_own_packages_says_so_in_plain_text() -> None:
    program = "import sys; sys.modules['click'] = None; from penstock.interfaces.cli.main import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", program, "version"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error[INSTALLATION_UNUSABLE]: the package click is not installed")
    assert "Traceback" not in done.stderr


def test_other_imports_that_fail_are_not_explained_away() -> None:
    assert missing_package(ModuleNotFoundError("no", name="my_functions")) is None
    assert missing_package(ModuleNotFoundError("no")) is None
    assert missing_package(ImportError("cannot import name 'x' from 'duckdb'", name="duckdb")) is None


def test_version_lists_what_it_stands_on(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(java, "find_java", lambda: java.JavaFound(Path("/java"), 21))
    assert run(["version", "--json"]) == 0
    versions = json.loads(capsys.readouterr().out)
    assert list(versions) == ["penstock", "python", "java", "pyspark", "duckdb", "pyarrow", "sqlglot"]
    assert (versions["java"], versions["pyspark"]) == ("21", metadata.version("pyspark"))

    real = metadata.version

    def version(name: str) -> str:
        if name == "duckdb":
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(metadata, "version", version)
    monkeypatch.setattr(java, "find_java", lambda: java.JavaProblem("none is installed", "apt-get install java"))
    assert run(["version"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"pyarrow   {real('pyarrow')}" in lines
    assert [line.split()[0] for line in lines if "not found" in line] == ["java", "duckdb"]
