"""The line that says what is going on: on a terminal only, after a while, and gone at the end."""

from __future__ import annotations

import io
import re
import time

import pytest

from penstock.interfaces.cli import progress
from penstock.interfaces.cli.progress import Progress


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "_PATIENCE", 0.05)
    monkeypatch.setattr(progress, "_FRAME", 0.01)


def wait_for(stream: Terminal, text: str) -> None:
    deadline = time.monotonic() + 60
    while not re.search(text, stream.getvalue()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_takes_long_is_told_and_taken_away() -> None:
    stream = Terminal()
    with Progress(stream).during("starting Spark"):
        wait_for(stream, r"starting Spark … \d+ s")
    assert stream.getvalue().endswith("\r\x1b[2K")


def test_the_label_can_change_meanwhile() -> None:
    stream = Terminal()
    rows = iter(range(1, 10_000))
    with Progress(stream).during(lambda: f"reading, {next(rows)} rows"):
        wait_for(stream, "reading, 2 rows")


def test_what_is_quick_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_PATIENCE", 60.0)
    stream = Terminal()
    with Progress(stream).during("answering"):
        pass
    assert stream.getvalue() == ""


@pytest.mark.parametrize("term", ["dumb", "xterm"])
def test_nothing_is_written_where_nobody_looks(term: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", term)
    stream = Terminal() if term == "dumb" else io.StringIO()
    with Progress(stream).during("starting Spark"):
        time.sleep(0.2)
    assert stream.getvalue() == ""


def test_a_text_cannot_act_on_the_terminal_or_wrap() -> None:
    stream = Terminal()
    Progress(stream).status("bad\x1b[31m" + "x" * 500)
    assert stream.getvalue().count("\x1b") == 1
    assert len(stream.getvalue()) < 100
