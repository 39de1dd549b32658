"""The prompt of `penstock sql`: statements over several lines, history, completion, and answers as they come."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from penstock.errors import PenstockError
from penstock.interfaces.cli.messages import print_error, remark
from penstock.interfaces.cli.prompt_input import completions, is_complete, remembered, words_for
from penstock.interfaces.cli.script_run import ScriptRun
from penstock.plan.script import read_script

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.input import Input
    from prompt_toolkit.output import Output

    from penstock.interfaces.cli.answers import Answers
    from penstock.interfaces.cli.engine_port import EnginePort
    from penstock.interfaces.cli.progress import Progress

PROMPT: Final = "penstock> "
_CONTINUED: Final = "      ...> "
_WORD: Final = re.compile(r"[\w.]+$")
HELP: Final = r"""
Statements end with a semicolon and may run over several lines.
  \d          what is defined          \d NAME     the columns and options of a relation
  \?          this help                \q, Ctrl-D  leave
A query over a stream shows rows as they come; Ctrl-C ends it and comes back here. Jobs go on when you leave and come
back: they are part of the state path.
"""


class Repl:
    """One conversation with an open engine."""

    def __init__(
        self,
        engine: EnginePort,
        answers: Answers,
        progress: Progress,
        history: Path | None,
        *,
        debug: bool = False,
        terminal: tuple[Input, Output] | None = None,
    ) -> None:
        self._engine = engine
        self._answers = answers
        self._progress = progress
        self._debug = debug
        self._prompt = _prompt_session(engine, history, terminal)

    def run(self) -> None:
        """Read and run until the user leaves."""
        while True:
            try:
                text = self._prompt.prompt(PROMPT)
            except KeyboardInterrupt:
                continue
            except EOFError:
                return
            if text.strip() in {"\\q", "quit", "exit", "quit;", "exit;"}:
                return
            try:
                self._do(text)
            except KeyboardInterrupt:
                # Back to the prompt: what was asked for has stopped, the jobs have not.
                self._progress.clear()
                click.echo(err=True)

    def _do(self, text: str) -> None:
        command = text.strip()
        if not command:
            return
        if command.startswith("\\"):
            self._command(command)
            return
        began = time.perf_counter()
        if self._run(text):
            remark(f"time: {_seconds(time.perf_counter() - began)}")

    def _run(self, text: str) -> bool:
        try:
            statements, source = read_script(text)
            script = ScriptRun(self._engine, "sql", self._answers, self._progress, mode="prompt", debug=self._debug)
            return script.run(statements, source)
        except PenstockError as error:
            print_error(error, trace_of=error if self._debug else None)
            return False

    def _command(self, command: str) -> None:
        word, _, name = command.rstrip(";").partition(" ")
        if word == "\\?":
            click.echo(HELP.strip())
        elif word == "\\d" and name.strip():
            self._run(f"DESCRIBE EXTENDED {name.strip()};")
        elif word == "\\d":
            self._list()
        else:
            remark(f"{word} is no command; \\? lists them")

    def _list(self) -> None:
        from penstock.interfaces.catalog_answers import relations_table
        from penstock.interfaces.result import Result
        from penstock.sql.statements import Show

        self._answers.show(Show(kind="TABLES"), Result(relations_table(self._engine.session)))


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def history_path() -> Path:
    """Where the history is kept: with the other state of the user's programs."""
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "penstock" / "sql_history"


def _prompt_session(
    engine: EnginePort, history: Path | None, terminal: tuple[Input, Output] | None
) -> PromptSession[str]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import Completer, Completion
    from prompt_toolkit.filters import Condition, completion_is_selected
    from prompt_toolkit.key_binding import KeyBindings

    class FromCatalog(Completer):
        """Completes from the catalog as it is when the key is pressed."""

        def get_completions(self, document: Any, complete_event: Any) -> Iterable[Completion]:
            match = _WORD.search(document.text_before_cursor)
            typed = match.group() if match else ""
            for word in completions(words_for(engine.session), typed):
                yield Completion(word, start_position=-len(typed))

    keys = KeyBindings()

    @keys.add("enter", filter=~completion_is_selected)
    def _(event: Any) -> None:
        buffer = event.current_buffer
        # In the middle of a text Enter makes a line; at its end it sends what is whole.
        if buffer.document.is_cursor_at_the_end and is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    ways: dict[str, Any] = {} if terminal is None else {"input": terminal[0], "output": terminal[1]}
    return PromptSession(
        multiline=Condition(lambda: True),
        prompt_continuation=_CONTINUED,
        history=_history(history),
        completer=FromCatalog(),
        complete_while_typing=False,
        key_bindings=keys,
        **ways,
    )


def _history(path: Path | None) -> Any:
    """A history whose strings, in memory and on disk, have everything masked that may be secret."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    class Redacted(FileHistory):
        def append_string(self, string: str) -> None:
            kept = remembered(string)
            if kept.strip():
                super().append_string(kept)

    class RedactedInMemory(InMemoryHistory):
        def append_string(self, string: str) -> None:
            kept = remembered(string)
            if kept.strip():
                super().append_string(kept)

    if path is None or not _private_file(path):
        return RedactedInMemory()
    return Redacted(str(path))


def _private_file(path: Path) -> bool:
    """Make the file for its owner only; whether it can be used."""
    from penstock.stores.private_files import touch_private

    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        touch_private(path)
    except OSError:
        return False
    return True
