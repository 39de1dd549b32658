"""The commands as a shell sees them: what they print where, and the exit code."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlglot.tokens
from sqlglot import exp

import penstock
from penstock.interfaces.cli import check as check_command
from penstock.interfaces.cli.commands import cli
from penstock.interfaces.cli.main import run
from penstock.plan import job_plan
from penstock.plan import script as plan_script
from penstock.plan.analysis import Analysis
from penstock.plan.job_model import JobPlan
from penstock.plan.logical import LogicalPlan
from tests.project import ROOT, files, title

GOOD = """\
CREATE STREAM clicks (user_id BIGINT, page STRING, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'topic');
SELECT user_id, COUNT(*) AS n FROM clicks GROUP BY user_id;
"""
BAD = """\
CREATE STREAM clicks (user_id BIGINT, page STRING, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'topic');
SELECT usr_id FROM clicks;
SELEC 1;
SELECT page FROM clicks;
"""
FIELDS = ["line", "column", "kind", "ok", "condition", "message", "hint", "support", "canonical", "mode"]
EXAMPLES = [path for path in files("examples/*.sql") if path.stem != "mistakes"]
# Three show what can be pasted from elsewhere; the README prints the quick start, where a short layout reads better.
OTHER_SPELLINGS = {"arroyo_clicks", "flink_orders", "risingwave_visits", "quickstart"}
CANARY = "canary-4711"
SECRETIVE = f"""\
CREATE STREAM s (a INT) WITH (
  connector = 'kafka', topic = 's', format = 'json', properties.sasl.password = '{CANARY}'
);
CREATE SECRET p AS '{CANARY}';
"""


@dataclass
class Shell:
    """Runs the command line in this process."""

    capsys: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch
    directory: Path
    out: str = ""
    err: str = ""

    def __call__(self, *arguments: str, stdin: bytes = b"") -> int:
        self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = run(arguments)
        self.out, self.err = self.capsys.readouterr()
        return code

    def file(self, text: str | bytes, name: str = "script.sql") -> str:
        path = self.directory / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    @property
    def objects(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    for name in list(os.environ):
        if name.startswith("PENSTOCK"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_COLOR", "1")
    return Shell(capsys, monkeypatch, tmp_path)


# check


def test_check_of_a_good_script_is_short(shell: Shell) -> None:
    path = shell.file(GOOD)
    assert shell("check", "--quiet", path) == 0
    assert (shell.out, shell.err) == ("2 statements, 0 errors\n", "")
    assert shell("check", path) == 0
    assert shell.out.startswith(f"notice {path}:2:1: ")
    assert shell.out.endswith("\n2 statements, 0 errors\n")


def test_check_goes_on_after_an_error_and_shows_each(shell: Shell) -> None:
    path = shell.file(BAD)
    assert shell("check", path) == 1
    lines = shell.out.splitlines()
    assert lines[0].startswith(f"error[UNKNOWN_COLUMN] {path}:2:8: ")
    assert lines[1:3] == ["  2 | SELECT usr_id FROM clicks;", "    |        ^^^^^^"]
    assert "user_id" in lines[3]
    assert any(line.startswith(f"error[SYNTAX_ERROR] {path}:3:1: ") for line in lines)
    assert lines[-1] == "4 statements, 2 errors"


def test_check_json_has_the_promised_fields_in_order(shell: Shell) -> None:
    assert shell("check", "--json", shell.file(BAD)) == 1
    assert [list(entry)[: len(FIELDS)] for entry in shell.objects] == [FIELDS] * 4
    create, unknown, syntax, select = shell.objects
    assert (create["kind"], create["ok"], create["condition"], create["mode"]) == ("CREATE STREAM", True, None, None)
    assert (unknown["line"], unknown["column"], unknown["condition"]) == (2, 8, "UNKNOWN_COLUMN")
    assert (unknown["ok"], unknown["support"]) == (False, None)
    assert (syntax["line"], syntax["condition"]) == (3, "SYNTAX_ERROR")
    assert (select["ok"], select["mode"], select["canonical"]) == (True, "append", "SELECT\n  page\nFROM clicks")


def test_check_json_tells_never_from_not_yet(shell: Shell) -> None:
    random = "SELECT DISTINCT page, n, rand() AS luck FROM (SELECT page, COUNT(*) AS n FROM clicks GROUP BY page) AS x"
    script = GOOD + f"{random};\nDELETE FROM clicks;"
    assert shell("check", "--json", shell.file(script)) == 1
    distinct, delete = shell.objects[2:]
    assert (distinct["condition"], distinct["support"]) == ("UPDATING_DISTINCT", "not_yet")
    assert distinct["mode"] in {"upsert", "append", "retract"}
    assert (delete["condition"], delete["support"]) == ("UNSUPPORTED_STATEMENT", "never")


def test_check_reads_the_standard_input(shell: Shell) -> None:
    assert shell("check", "-", stdin=BAD.encode()) == 1
    assert shell.out.startswith("error[UNKNOWN_COLUMN] <stdin>:2:8: ")


def test_check_takes_each_file_by_itself(shell: Shell) -> None:
    """What one file creates is not there in the next."""
    first, second = shell.file(GOOD, "a.sql"), shell.file("SELECT page FROM clicks", "b.sql")
    assert shell("check", first, second) == 1
    assert f"error[UNKNOWN_RELATION] {second}:1:18: " in shell.out
    assert shell.out.endswith("3 statements, 1 error\n")


def test_lenient_check_accepts_relations_it_does_not_know(shell: Shell) -> None:
    path = shell.file("SELECT page FROM clicks")
    assert shell("check", path) == 1
    assert shell("check", "--lenient", path) == 0
    shell.monkeypatch.setenv("PENSTOCK_CHECK_LENIENT", "1")
    assert shell("check", path) == 0


def test_check_of_comments_only_has_nothing_to_say(shell: Shell) -> None:
    assert shell("check", shell.file("-- nothing yet\n")) == 0
    assert shell.out == "0 statements, 0 errors\n"


@pytest.mark.parametrize("command", ["check", "explain", "fmt"])
def test_a_file_that_cannot_be_read_is_wrong_usage(shell: Shell, command: str) -> None:
    assert shell(command, "missing.sql") == 2
    assert shell.err == "error: cannot read 'missing.sql': no such file or directory\n"
    assert shell(command, str(shell.directory)) == 2
    assert "is a directory" in shell.err
    assert shell(command, "a\0b") == 2


@pytest.mark.parametrize("command", ["check", "explain", "fmt"])
@pytest.mark.parametrize("content", ["", " \n\t\n"])
def test_an_empty_file_is_an_error(shell: Shell, command: str, content: str) -> None:
    path = shell.file(content)
    assert shell(command, path) == 1
    assert shell.err == f"error: {path} is empty: there is no statement in it\n"


def test_an_empty_file_does_not_keep_the_others_from_being_checked(shell: Shell) -> None:
    empty, bad = shell.file("", "empty.sql"), shell.file(BAD, "bad.sql")
    assert shell("check", "--quiet", empty, bad) == 1
    assert shell.err == f"error: {empty} is empty: there is no statement in it\n"
    assert f"error[UNKNOWN_COLUMN] {bad}:2:8: " in shell.out
    assert shell.out.endswith("\n4 statements, 3 errors\n")
    assert shell("fmt", empty, shell.file("select 1 as a")) == 1
    assert shell.out == "SELECT\n  1 AS a;\n"


@pytest.mark.parametrize("arguments", [["check"], ["chekc", "x"], ["check", "--jsn", "x"], ["check", "-", "-"]])
def test_wrong_usage_exits_with_2(shell: Shell, arguments: list[str]) -> None:
    assert shell(*arguments) == 2
    assert shell.err.startswith("Usage: penstock")


@pytest.mark.parametrize(
    ("content", "condition"),
    [
        (b"SELECT \xff", "INVALID_CHARACTER"),
        (b"SELECT 1\x00", "INVALID_CHARACTER"),
        (b"SELECT 'a", "SYNTAX_ERROR"),
        (b"SELECT " + b"(" * 10_000 + b"1" + b")" * 10_000, "STATEMENT_TOO_DEEP"),
        (b"SELECT '" + b"a" * 10_000_000 + b"'", "STATEMENT_TOO_LONG"),
    ],
)
def test_hostile_scripts_are_refused_soon(shell: Shell, content: bytes, condition: str) -> None:
    path = shell.file(content)
    shell("check", shell.file("SELECT 1", "warm.sql"))
    begin = time.process_time()
    assert shell("check", path) == 1
    assert time.process_time() - begin < 20
    assert shell.out.startswith(f"error[{condition}]")
    assert len(shell.out) < 1000
    assert shell("check", "--json", path) == 1
    assert shell.objects[0]["condition"] == condition


# secrets


@pytest.mark.parametrize("command", [["check"], ["check", "--json"], ["explain"], ["explain", "--json"], ["fmt"]])
@pytest.mark.parametrize(
    "spoil",
    [
        "",
        "SELECT 1",  # a second statement in front
        "CREATE STREAM t (a INT, a INT) WITH (connector = 'kafka', password = 'canary-4711')",
        "CREATE STREAM t (a INT) WITH (connector = 'kafka' password 'canary-4711')",
        "CREATE SECRET x 'canary-4711'",
        "SET 'password' = canary-4711",
    ],
)
def test_no_command_prints_a_secret(shell: Shell, command: list[str], spoil: str) -> None:
    shell("--debug", *command, shell.file(f"{spoil};\n{SECRETIVE}"))
    assert CANARY not in shell.out + shell.err


# explain


def test_explain_shows_each_query(shell: Shell) -> None:
    assert shell("explain", shell.file(GOOD)) == 0
    assert shell.out.startswith("SELECT (line 2)\n")
    assert "clicks" in shell.out
    assert "upsert" in shell.out
    assert "CREATE STREAM" not in shell.out


def test_explain_answers_a_statement_in_its_own_form(shell: Shell) -> None:
    """SHOW REWRITE gives the canonical statement and Spark's SQL, EXPLAIN (FORMAT JSON) gives JSON."""
    asked = """CREATE STREAM s (k STRING);
        SHOW REWRITE SELECT "k" FROM s;
        EXPLAIN (FORMAT JSON) SELECT k FROM s;"""
    assert shell("explain", shell.file(asked)) == 0
    assert "-- canonical\nSELECT" in shell.out
    assert "FROM `s` AS `s`;" in shell.out
    assert '"is_stateful": false' in shell.out


def test_explain_rewrite_shows_every_statement(shell: Shell) -> None:
    assert shell("explain", "--rewrite", shell.file("create stream s (k string); select k from s;")) == 0
    assert "CREATE STREAM s (" in shell.out
    assert "-- Spark SQL\nSELECT\n  `s`.`k` AS `k`" in shell.out


def test_explain_json_is_one_object_a_query(shell: Shell) -> None:
    assert shell("explain", "--json", shell.file(GOOD)) == 0
    (plan,) = shell.objects
    assert (plan["line"], plan["column"], plan["kind"]) == (2, 1, "SELECT")
    text = json.dumps(plan)
    for name in ("is_stateful", "is_broadcast", "requires_shuffle"):
        assert name in text


def test_explain_puts_errors_beside_and_exits_with_1(shell: Shell) -> None:
    path = shell.file(BAD)
    assert shell("explain", path) == 1
    assert shell.out.startswith("SELECT (line 4)\n")
    assert shell.err.startswith(f"error[UNKNOWN_COLUMN] {path}:2:8: ")


# fmt


def test_fmt_prints_the_canonical_form_with_its_comments(shell: Shell) -> None:
    script = "-- a header\n\n/* of\n   two */\nselect  a,b from t where a=1 -- beside\n; ;select 1 as x;\n-- the end\n"
    assert shell("fmt", shell.file(script)) == 0
    assert shell.out == (
        "-- a header\n\n/* of\n   two */\nSELECT\n  a,\n  b\nFROM t\nWHERE\n  a = 1; -- beside\n\n"
        "SELECT\n  1 AS x;\n\n-- the end\n"
    )
    assert shell.err == ""


def test_fmt_of_its_own_output_changes_nothing(shell: Shell) -> None:
    for path in EXAMPLES:
        assert shell("fmt", str(path)) == 0
        once = shell.out
        assert shell("fmt", shell.file(once)) == 0
        assert shell.out == once, title(path)


def test_fmt_check_and_write(shell: Shell) -> None:
    path = shell.file("select 1 as a")
    assert shell("fmt", "--check", path) == 1
    assert shell.err == f"error: {path} is not in canonical form\n"
    assert shell("fmt", "--write", path) == 0
    assert Path(path).read_text(encoding="utf-8") == "SELECT\n  1 AS a;\n"
    assert shell("fmt", "--check", path) == 0
    assert (shell.out, shell.err) == ("", "")


def test_fmt_write_refuses_to_lose_a_comment(shell: Shell) -> None:
    text = "select 1, -- the first\n  2;\n"
    path = shell.file(text)
    assert shell("fmt", path) == 0
    assert shell.err == f"notice {path}: comments inside statements are left out (line 1)\n"
    assert shell("fmt", "--write", path) == 1
    assert Path(path).read_text(encoding="utf-8") == text


def test_fmt_masks_secrets_and_refuses_to_write_them(shell: Shell) -> None:
    path = shell.file(SECRETIVE)
    assert shell("fmt", path) == 0
    assert "'********'" in shell.out
    assert "topic = 's'" in shell.out
    assert "may be secret" in shell.err
    assert shell("fmt", "--write", path) == 1
    assert shell("fmt", "--check", path) == 1
    assert Path(path).read_text(encoding="utf-8") == SECRETIVE


def test_fmt_keeps_references_to_secrets(shell: Shell) -> None:
    assert shell("fmt", shell.file(SECRETIVE.replace(CANARY, "${env:PASSWORD}"))) == 0
    assert shell.out.count("'${env:PASSWORD}'") == 2
    assert shell.err == ""


def test_fmt_prints_nothing_of_a_script_it_cannot_read(shell: Shell) -> None:
    path = shell.file("SELECT 1;\nSELEC 2;")
    assert shell("fmt", path) == 1
    assert shell.out == ""
    assert shell.err.startswith(f"error[SYNTAX_ERROR] {path}:2:1: ")


def test_fmt_check_and_write_exclude_each_other(shell: Shell) -> None:
    assert shell("fmt", "--check", "--write", shell.file(GOOD)) == 2
    assert shell("fmt", "--write", "-", stdin=GOOD.encode()) == 2


# the rest


def test_version(shell: Shell) -> None:
    assert shell("version", "--json") == 0
    assert shell.objects[0]["penstock"] == penstock.__version__
    assert shell("--version") == 0
    assert shell.out == f"penstock {penstock.__version__}\n"


def test_every_option_is_an_environment_variable(shell: Shell) -> None:
    shell.monkeypatch.setenv("PENSTOCK_CHECK_JSON", "true")
    assert shell("check", shell.file(GOOD)) == 0
    assert len(shell.objects) == 2


@pytest.mark.parametrize("name", ["PENSTOCK_VERSION", "PENSTOCK_HELP", "PENSTOCK_CHECK_HELP"])
@pytest.mark.parametrize("value", ["1", "0.1.0"])
def test_version_and_help_are_no_environment_variables(shell: Shell, name: str, value: str) -> None:
    shell.monkeypatch.setenv(name, value)
    assert shell("check", "--quiet", shell.file(GOOD)) == 0
    assert shell.out == "2 statements, 0 errors\n"


def test_every_command_and_option_has_help() -> None:
    for name, command in cli.commands.items():
        assert command.help, name
        for parameter in command.params:
            assert parameter.param_type_name == "argument" or getattr(parameter, "help", None), (name, parameter.name)


def test_debug_shows_where_an_error_was_raised(shell: Shell) -> None:
    path = shell.file(BAD)
    shell("check", path)
    assert "trace" not in shell.err
    for arguments in (["--debug", "check", path], ["check", path, "--debug"]):
        assert shell(*arguments) == 1
        assert "penstock.errors.ResolutionError" in shell.err


def test_a_bug_is_reported_as_one(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_names: tuple[str, ...]) -> None:
        raise KeyError(CANARY)

    monkeypatch.setattr(check_command, "read_scripts", broken)
    assert shell("check", "x.sql") == 1
    assert shell.err.startswith("error[INTERNAL_ERROR]: an unexpected KeyError\n")
    assert shell("--debug", "check", "x.sql") == 1
    assert "in broken" in shell.err
    assert CANARY not in shell.err


@pytest.fixture
def broken_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planner with a bug in it: what any query with GROUP BY meets."""
    planned = job_plan._plan_job

    def broken(plan: LogicalPlan, state: str | None) -> JobPlan:
        if plan.spark.find(exp.Group) is not None:
            raise KeyError(CANARY)
        return planned(plan, state)

    monkeypatch.setattr(job_plan, "_plan_job", broken)


@pytest.mark.usefixtures("broken_groups")
def test_a_bug_in_one_statement_keeps_no_other_from_being_checked(shell: Shell) -> None:
    path = shell.file(GOOD + "SELECT usr_id FROM clicks;\n")
    assert shell("check", "--quiet", path) == 1
    assert f"error[INTERNAL_ERROR] {path}:2:1: an unexpected KeyError\n" in shell.out
    assert f"error[UNKNOWN_COLUMN] {path}:3:8: " in shell.out
    assert shell.out.endswith("\n3 statements, 2 errors\n")
    assert CANARY not in shell.out
    assert shell("--debug", "check", path) == 1
    assert "in broken" in shell.err
    assert CANARY not in shell.err


@pytest.mark.usefixtures("broken_groups")
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_bug_in_one_statement_keeps_no_other_from_being_explained(shell: Shell, form: list[str]) -> None:
    path = shell.file(GOOD + "SELECT page FROM clicks;\n")
    assert shell("explain", *form, path) == 1
    assert f"error[INTERNAL_ERROR] {path}:2:1: an unexpected KeyError\n" in shell.err
    assert "page" in shell.out
    assert CANARY not in shell.err + shell.out


def test_a_bug_in_reading_the_names_of_a_statement_has_a_place(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Analysis:
        raise ZeroDivisionError(CANARY)

    monkeypatch.setattr(plan_script, "analyze", broken)
    path = shell.file(BAD)
    assert shell("check", path) == 1
    assert f"error[INTERNAL_ERROR] {path}:1:1: an unexpected ZeroDivisionError\n" in shell.out
    assert f"error[SYNTAX_ERROR] {path}:3:1: " in shell.out
    assert shell.out.endswith("\n4 statements, 4 errors\n")


def test_the_compiled_build_of_sqlglot_is_refused_by_name(shell: Shell) -> None:
    program = (
        "import sqlglot.tokens; sqlglot.tokens.SQLGLOTC_INSTALLED = True;"
        "from penstock.interfaces.cli.main import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "check", shell.file(GOOD)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert sqlglot.tokens.SQLGLOTC_INSTALLED is False
    assert done.returncode == 1
    assert done.stderr.startswith("error[INSTALLATION_UNUSABLE]: sqlglot is installed in its compiled build (sqlglotc)")
    assert "pip uninstall sqlglotc" in done.stderr


def test_ctrl_c_exits_with_130(tmp_path: Path) -> None:
    pipe = tmp_path / "script.sql"
    os.mkfifo(pipe)
    # A shell may have told its children to ignore Ctrl-C, and children hand that on.
    launcher = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL);"
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    command = [sys.executable, "-c", launcher, "-m", "penstock", "check", str(pipe)]
    # Opening the pipe returns when the command has opened its other end: from then on it waits for text.
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE) as process, pipe.open("w"):
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert b"Traceback" not in err


@pytest.mark.parametrize("start", [["-m", "penstock"], ["-c", "from penstock.interfaces.cli.main import main; main()"]])
def test_ctrl_c_during_the_imports_exits_with_130(tmp_path: Path, start: list[str]) -> None:
    """A module in place of click stands for the moment in which the key is pressed."""
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt\n", encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), str(ROOT / "src")])
    done = subprocess.run(
        [sys.executable, *start, "version"],
        env={**os.environ, "PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


@pytest.mark.parametrize("arguments", [["check"], ["check", "--json"], ["explain"], ["fmt"], ["--help"]])
def test_an_output_that_cannot_be_written_is_no_bug(shell: Shell, arguments: list[str]) -> None:
    command = [sys.executable, "-m", "penstock", *arguments, shell.file(GOOD)]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, check=False)
        assert (done.returncode, done.stderr) == (1, b"error: cannot write the output: no space left on device\n")
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=full, check=False)
        assert done.returncode == 1


# control characters

ACTIVE = "\x1b[31mred\x1b]0;title\x07\x9b1m\u202e"
HOSTILE = f"SELECT '{ACTIVE}' AS \"{ACTIVE}\";"


@pytest.mark.parametrize("command", [["fmt"], ["explain"], ["explain", "--rewrite"], ["check"]])
def test_a_terminal_gets_no_control_characters(shell: Shell, command: list[str]) -> None:
    path = shell.file(HOSTILE)
    ours, theirs = pty.openpty()
    with open(ours, "rb", buffering=0) as reader:  # noqa: PTH123 - a descriptor, not a path
        environment = {**os.environ, "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
        run_it = [sys.executable, "-m", "penstock", *command, path]
        done = subprocess.run(run_it, cwd=ROOT, env=environment, stdout=theirs, stderr=theirs, check=False)
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # the end of a terminal nobody writes to any more
            while part := reader.read(65536):
                shown += part
    assert done.returncode == 0
    text = shown.decode()
    assert not set(text) & {"\x1b", "\x07", "\x9b", "\u202e"}
    assert command == ["check"] or "\ufffd[31mred\ufffd]0;title\ufffd" in text


def test_wrong_usage_is_shown_without_control_characters(shell: Shell) -> None:
    assert shell("check", "--x\x07\x9b") == 2
    assert not {"\x07", "\x9b"} & set(shell.err)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_fmt_into_a_pipe_is_what_fmt_writes(shell: Shell, encoding: str) -> None:
    path = shell.file(HOSTILE)
    environment = {**os.environ, "FORCE_COLOR": "1", "PYTHONIOENCODING": encoding}
    command = [sys.executable, "-m", "penstock", "fmt", path]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    assert done.stdout.decode() == f"SELECT\n  '{ACTIVE}' AS \"{ACTIVE}\";\n"
    assert shell("fmt", "--write", path) == 0
    assert Path(path).read_bytes() == done.stdout


def test_explain_into_a_pipe_keeps_the_text(shell: Shell) -> None:
    assert shell("explain", shell.file(HOSTILE)) == 0
    assert ACTIVE in shell.out


@pytest.mark.parametrize("command", ["check", "explain"])
def test_json_escapes_what_a_terminal_acts_on(shell: Shell, command: str) -> None:
    assert shell(command, "--json", shell.file(f"SELECT '{ACTIVE}\u200f\x7fé日' AS a")) == 0
    assert all(char.isprintable() for char in shell.out.removesuffix("\n"))
    assert "é日" in shell.out
    if command == "check":
        assert f"'{ACTIVE}\u200f\x7fé日'" in str(shell.objects[0]["canonical"])


def test_a_terminal_without_the_characters_is_no_error(shell: Shell) -> None:
    command = [sys.executable, "-m", "penstock", "check", shell.file("SELECT 日 FROM")]
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (1, b"")
    assert b"SELECT \\u65e5 FROM" in done.stdout


def test_a_reader_that_leaves_early_is_no_error(shell: Shell) -> None:
    command = [sys.executable, "-m", "penstock", "check", "--json", shell.file(GOOD * 80)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""


@pytest.mark.parametrize("path", EXAMPLES, ids=title)
def test_examples_are_accepted(shell: Shell, path: Path) -> None:
    assert shell("check", str(path)) == 0, shell.out


@pytest.mark.parametrize("path", [path for path in EXAMPLES if path.stem not in OTHER_SPELLINGS], ids=title)
def test_examples_in_our_own_spelling_are_canonical(shell: Shell, path: Path) -> None:
    assert shell("fmt", "--check", str(path)) == 0, shell.err


def test_the_example_of_mistakes_is_refused_statement_by_statement(shell: Shell) -> None:
    assert shell("check", "--json", str(ROOT / "examples" / "mistakes.sql")) == 1
    assert [entry["condition"] for entry in shell.objects] == [
        None,
        "UNKNOWN_COLUMN",
        "SINK_CANNOT_UPDATE",
        "UNSUPPORTED_STATEMENT",
    ]
