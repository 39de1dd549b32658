"""`penstock sql`: the prompt, its history and completion, and statements from a pipe."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from penstock.interfaces.cli import engine_port, following, script_run
from penstock.interfaces.cli.answers import Answers
from penstock.interfaces.cli.main import run
from penstock.interfaces.cli.progress import Progress
from penstock.interfaces.cli.prompt_input import completions, is_complete, remembered, words_for
from penstock.interfaces.cli.repl import Repl, history_path
from tests.cli.fake_engine import FakeEngine
from tests.cli.test_run import INSERT, STREAM, TOTALS

CANARY = "canary-4711"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("PENSTOCK_STATE", raising=False)
    monkeypatch.setattr(script_run, "_PULSE", 0.02)
    monkeypatch.setattr(following, "_PULSE", 0.02)


def talk(engine: FakeEngine, typed: str, history: Path | None = None) -> None:
    """Type a text at the prompt; the end of the text is Ctrl-D."""
    with create_pipe_input() as terminal:
        terminal.send_text(typed.replace("\n", "\r") + "\x04")
        _talk(engine, terminal, history)


def _talk(engine: FakeEngine, terminal: PipeInput, history: Path | None) -> None:
    Repl(engine, Answers("table"), Progress(quiet=True), history, terminal=(terminal, DummyOutput())).run()


def test_a_statement_over_several_lines_runs_at_its_semicolon(capsys: pytest.CaptureFixture[str]) -> None:
    talk(FakeEngine(), "SELECT\n  1 AS one\n;\n")
    out, err = capsys.readouterr()
    assert out == "one\n---\n  1\n(1 row)\n"
    assert err.startswith("time: ")


def test_what_is_created_stays_for_the_next_statement(capsys: pytest.CaptureFixture[str]) -> None:
    engine = FakeEngine()
    talk(engine, STREAM + TOTALS + INSERT + "SELECT n FROM totals;\n\\d\n\\d trades\n")
    out, err = capsys.readouterr()
    assert "created stream trades" in err
    assert "totals | materialized view | NULL" in out
    assert "column   | ts" in out
    assert engine.log == []  # a prompt neither waits nor drains


def test_an_error_has_its_caret_and_the_prompt_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    talk(FakeEngine(), "SELECT nothing;\nSELECT 2 AS two;\n")
    out, err = capsys.readouterr()
    assert "error[UNKNOWN_COLUMN] sql:1:8: " in err
    assert "    |        ^^^^^^^" in err
    assert "two\n---\n  2\n" in out


def test_a_followed_query_comes_back_to_the_prompt_at_ctrl_c(capsys: pytest.CaptureFixture[str]) -> None:
    engine = FakeEngine(live=True)
    talk(engine, STREAM + INSERT + "SELECT symbol FROM trades;\nSELECT 3 AS three;\n")
    out, _ = capsys.readouterr()
    assert "symbol\n------\nACME\n" in out
    assert "three\n-----\n    3\n" in out
    assert engine.log == ["stream", "stream ended"]


def test_help_and_leaving(capsys: pytest.CaptureFixture[str]) -> None:
    talk(FakeEngine(), "\\?\n\\nonsense\n\\q\nSELECT 1;\n")
    out, err = capsys.readouterr()
    assert "\\d NAME" in out
    assert err == "\\nonsense is no command; \\? lists them\n"


def test_the_history_holds_no_secret(tmp_path: Path) -> None:
    """SC: nothing that may be secret is kept, in statements that are understood and in those that are not."""
    path = tmp_path / "new" / "history"
    typed = (
        f"CREATE SECRET p AS '{CANARY}';\n"
        f"CREATE STREAM s (a INT) WITH (connector = 'kafka', topic = 's', format = 'json', "
        f"properties.sasl.password = '{CANARY}');\n"
        f"CREATE SECRET q IS '{CANARY}';\n"
        "SELECT 1;\n"
    )
    talk(FakeEngine(), typed, path)
    text = path.read_text()
    assert CANARY not in text
    assert "SELECT 1;" in text
    assert "CREATE SECRET p AS" in text
    assert path.stat().st_mode & 0o777 == 0o600
    assert CANARY not in "".join(FileHistory(str(path)).load_history_strings())


def test_without_a_place_for_it_the_history_is_kept_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    talk(FakeEngine(), "SELECT 1;\n", tmp_path / "file" / "history")
    assert (tmp_path / "file").read_text() == ""


def test_the_history_has_its_place_among_the_users_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert history_path() == tmp_path / "penstock" / "sql_history"


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT ';'", False),
        ("SELECT 1; -- done", True),
        ("SELECT 1 -- not; yet", False),
        ("SELECT 'open;", False),
        ("SELECT 1; SELECT 2", False),
        ("", True),
        ("\\d trades", True),
        ("EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1;", False),
        ("EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; END;", True),
    ],
)
def test_a_text_is_whole_at_the_semicolon_that_ends_it(text: str, *, whole: bool) -> None:
    assert is_complete(text) is whole


def test_a_comment_is_not_remembered() -> None:
    assert CANARY not in remembered(f"SELECT 1; -- password {CANARY}")
    assert remembered(f"-- only {CANARY}") == ""


def test_completion_knows_the_catalog(capsys: pytest.CaptureFixture[str]) -> None:
    engine = FakeEngine()
    talk(engine, STREAM)
    words = words_for(engine.session)
    assert completions(words, "tra")[0] == "trades"
    assert "symbol" in completions(words, "sym")
    assert "MATERIALIZED" in completions(words, "MATER")
    assert "penstock.late_rows" in completions(words, "penstock.la")
    assert completions(words, "") == []


def test_statements_from_a_pipe_are_a_script_that_stops_no_job(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = FakeEngine()
    script = STREAM + TOTALS + INSERT + "SELECT n FROM totals; SELECT symbol FROM trades;"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(script.encode())))
    monkeypatch.setattr(engine_port, "connect", engine.open)
    assert run(["sql", "--format", "json"]) == 0
    out, err = capsys.readouterr()
    assert [json.loads(line) for line in out.splitlines()] == [{"n": 1}, {"symbol": "ACME"}]
    assert err == ""
    assert engine.log == ["open penstock", "settle", "select once", "close"]


def test_a_failing_statement_from_a_pipe_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"SELEC 1;")))
    monkeypatch.setattr(engine_port, "connect", FakeEngine().open)
    assert run(["sql"]) == 1
    assert capsys.readouterr().err.startswith("error[SYNTAX_ERROR] <stdin>:1:1: ")
