"""Every program under examples/ runs, and prints what its own text says."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path

import pytest

from tests.project import ROOT, title

PROGRAMS = sorted((ROOT / "examples").glob("*.py"))
# How programs that want a broker do without one; with one they are run by tests/kafka.
OFFLINE = {"streaming_sql_kafka_to_kafka.py": ("embedded",)}


def told(path: Path) -> str:
    """What the program says that it prints: the end of its docstring, after `Prints:`."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")), clean=False) or ""
    return docstring.partition("\nPrints:\n")[2]


@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", PROGRAMS, ids=title)
@pytest.mark.slow
def test_example(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """V1, V2, V3, V7, V9, V10, SC1, SC2, A5, A13, B6, D9 to D12, U10, W3: without anything outside."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(path), *OFFLINE.get(path.name, ())])
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out == told(path)
    assert list(tmp_path.iterdir()) == [], "an example leaves nothing behind"


@pytest.mark.parametrize("path", PROGRAMS, ids=title)
def test_example_says_what_it_prints(path: Path) -> None:
    assert told(path).strip()


def test_there_are_examples() -> None:
    """The programs are found: an empty list would pass everything."""
    assert {path.name for path in PROGRAMS} >= {
        "create_stream_materialized_view.py",
        "custom_connector.py",
        "impulse_windows.py",
        "micro_batch_tailing.py",
        "python_function.py",
        "streaming_sql_kafka_to_kafka.py",
        "streaming_sql_windowed_aggregation.py",
        "streaming_sql_with_dimension_broadcast.py",
    }
