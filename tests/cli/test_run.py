"""`penstock run`: what it waits for, what it prints where, and how it ends."""

from __future__ import annotations

import io
import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from penstock.interfaces.cli import engine_port, following, script_run
from penstock.interfaces.cli.main import run
from penstock.runtime.states import JobState
from tests.cli.fake_engine import FakeEngine, reopened

STREAM = "CREATE STREAM trades (symbol STRING, price DOUBLE, ts TIMESTAMP, WATERMARK FOR ts AS ts);\n"
TOTALS = "CREATE MATERIALIZED VIEW totals AS SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol;\n"
MINUTES = """\
CREATE MATERIALIZED VIEW minutes AS
SELECT symbol, TUMBLE_START(ts, INTERVAL '1' MINUTE) AS minute, COUNT(*) AS n
FROM trades GROUP BY symbol, TUMBLE(ts, INTERVAL '1' MINUTE);
"""
INSERT = "INSERT INTO trades VALUES ('ACME', 1.5, TIMESTAMP '2026-01-01 10:00:01');\n"
LATER = "INSERT INTO trades VALUES ('ACME', 2.5, TIMESTAMP '2026-01-01 10:00:31');\n"
ONCE = ("run", "--once", "--quiet", "--format", "json")
FOLLOW = ("run", "--follow", "--quiet", "--format", "json")


@dataclass
class Shell:
    """Runs the command line in this process, on an engine in memory."""

    capsys: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch
    directory: Path
    engine: FakeEngine = field(default_factory=FakeEngine)
    out: str = ""
    err: str = ""

    def __call__(self, *arguments: str, script: str) -> int:
        self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(script.encode())))
        self.monkeypatch.setattr(engine_port, "connect", self.engine.open)
        code = run([*arguments, "-"])
        self.out, self.err = self.capsys.readouterr()
        return code

    @property
    def rows(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    for name in list(os.environ):
        if name.startswith("PENSTOCK"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(script_run, "_PULSE", 0.02)
    monkeypatch.setattr(following, "_PULSE", 0.02)
    return Shell(capsys, monkeypatch, tmp_path)


# once


def test_a_query_over_a_view_sees_what_was_inserted_before_it(shell: Shell) -> None:
    assert shell(*ONCE, script=STREAM + TOTALS + INSERT + "SELECT * FROM totals;") == 0
    assert shell.rows == [{"symbol": "ACME", "n": 1}]
    assert shell.err == ""


def test_every_window_is_closed_before_a_query_over_it(shell: Shell) -> None:
    assert shell(*ONCE, script=STREAM + MINUTES + INSERT + "SELECT symbol, n, minute FROM minutes;") == 0
    assert shell.rows == [{"symbol": "ACME", "n": 1, "minute": "2026-01-01T10:00:00Z"}]


def test_a_window_that_the_script_goes_on_to_feed_stays_open(shell: Shell) -> None:
    """Closing it at the first query would make the second row late."""
    script = STREAM + MINUTES + INSERT + "SELECT n FROM minutes;" + LATER + "SELECT n FROM minutes;"
    assert shell(*ONCE, script=script) == 0
    assert shell.rows == [{"n": 2}]
    assert shell.engine.log == ["open penstock", "settle", "drain minutes", "close"]


def test_rows_that_come_too_late_are_told(shell: Shell) -> None:
    script = STREAM.replace("STREAM", "STREAM IF NOT EXISTS") + MINUTES.replace("VIEW", "VIEW IF NOT EXISTS")
    assert shell("run", "--once", script=script + INSERT) == 0
    assert "too late" not in shell.err
    assert shell("run", "--once", script=script + LATER) == 0
    assert shell.err.splitlines()[-1] == "too late: 1 row, kept in penstock.late_rows"


def test_queries_between_inserts_see_what_came_before_each(shell: Shell) -> None:
    script = STREAM + TOTALS + INSERT + "SELECT n FROM totals;" + LATER + "SELECT n FROM totals;"
    assert shell(*ONCE, script=script) == 0
    assert shell.rows == [{"n": 1}, {"n": 2}]


def test_a_query_over_a_stream_is_answered_for_what_is_there(shell: Shell) -> None:
    assert shell(*ONCE, script=STREAM + INSERT + "SELECT symbol, price FROM trades;" + LATER) == 0
    assert shell.rows == [{"symbol": "ACME", "price": 1.5}]


def test_all_jobs_of_the_script_are_drained_at_its_end(shell: Shell) -> None:
    assert shell(*ONCE, script=STREAM + TOTALS + MINUTES + INSERT) == 0
    assert shell.engine.log == ["open penstock", "drain totals", "drain minutes", "close"]
    assert shell.engine.closed


def test_a_chain_of_jobs_is_drained_from_its_beginning(shell: Shell) -> None:
    script = (
        "CREATE STREAM copies (symbol STRING, price DOUBLE) WITH (connector = 'topic');\n"
        "CREATE MATERIALIZED VIEW counts AS SELECT symbol, COUNT(*) AS n FROM copies GROUP BY symbol;\n"
        "INSERT INTO copies SELECT symbol, price FROM trades;\n"
    )
    assert shell(*ONCE, script=STREAM + script + INSERT + "SELECT n FROM counts;") == 0
    assert shell.rows == [{"n": 1}]
    assert shell.engine.log[1:3] == ["drain insert_copies", "drain counts"]


def test_a_chain_that_is_fed_later_is_settled_level_by_level(shell: Shell) -> None:
    script = (
        "CREATE STREAM copies (symbol STRING, price DOUBLE) WITH (connector = 'topic');\n"
        "INSERT INTO copies SELECT symbol, price FROM trades;\n"
        "CREATE MATERIALIZED VIEW counts AS SELECT symbol, COUNT(*) AS n FROM copies GROUP BY symbol;\n"
    )
    assert shell(*ONCE, script=STREAM + script + INSERT + "SELECT n FROM counts;" + LATER) == 0
    assert shell.rows == [{"n": 1}]


def test_a_job_that_a_later_statement_names_is_left_running(shell: Shell) -> None:
    assert shell(*ONCE, script=STREAM + TOTALS + INSERT + "SELECT n FROM totals; PAUSE JOB totals;") == 0
    assert shell.rows == [{"n": 1}]
    assert shell.engine.log == ["open penstock", "settle", "pause totals", "close"]


def test_the_job_of_another_script_is_not_stopped(shell: Shell) -> None:
    shell(*ONCE, script=STREAM + TOTALS + INSERT)
    shell.engine = reopened(shell.engine)
    shell.engine.running["totals"].state = JobState.RUNNING
    assert shell("run", "--quiet", "--format", "json", script="SELECT n FROM totals") == 0
    assert shell.rows == [{"n": 1}]
    assert shell.engine.log == ["open penstock", "settle", "close"]


def test_the_same_script_again_goes_on(shell: Shell) -> None:
    script = STREAM + TOTALS + INSERT + "SELECT n FROM totals;"
    shell(*ONCE, script=script)
    shell.engine = reopened(shell.engine)
    assert shell("run", "--once", "--format", "json", script=script) == 0
    assert shell.rows == [{"n": 2}]
    assert "resume totals" in shell.engine.log
    assert "stream trades is there\n" in shell.err
    assert "notice <stdin>:1:1: stream trades exists already with the same definition\n" in shell.err


def test_a_subscription_prints_the_changes_there_are(shell: Shell) -> None:
    assert shell(*ONCE, script=STREAM + TOTALS + INSERT + "SUBSCRIBE TO totals;") == 0
    (change,) = shell.rows
    assert (change["seq"], change["op"], change["before"]) == (1, "insert", None)
    assert change["row"] == {"symbol": "ACME", "n": 1}


def test_a_subscription_prints_the_form_that_is_asked_for(shell: Shell) -> None:
    asked = "SUBSCRIBE TO totals WITH (changes = 'upsert');"
    assert shell(*ONCE, script=STREAM + TOTALS + INSERT + asked) == 0
    assert shell.rows == [{"seq": 1, "_op": "upsert", "symbol": "ACME", "n": 1}]


def test_a_subscription_without_a_snapshot_prints_only_what_comes(shell: Shell) -> None:
    assert shell(*ONCE, script=STREAM + TOTALS + INSERT + "SUBSCRIBE TO totals WITH (snapshot = false);") == 0, (
        shell.err
    )
    assert shell.rows == []
    asked = "SUBSCRIBE TO totals WITH (snapshot = false) SINCE 0;"
    assert shell(*ONCE, script=STREAM + TOTALS + INSERT + asked) == 0, shell.err
    assert [change["seq"] for change in shell.rows] == [1]


def test_a_subscription_to_a_query_prints_what_there_is(shell: Shell) -> None:
    asked = "SUBSCRIBE TO (SELECT symbol, n + 1 AS more FROM totals);"
    assert shell(*ONCE, script=STREAM + TOTALS + INSERT + asked) == 0, shell.err
    assert [(change["op"], change["row"]) for change in shell.rows] == [("insert", {"symbol": "ACME", "more": 2})]
    assert [step for step in shell.engine.log if "query" in step] == [
        "subscribe to a query", "drain the query", "close the query",
    ]  # fmt: skip


def test_a_system_table_waits_for_the_input_and_stops_nothing(shell: Shell) -> None:
    assert shell(*ONCE, script=STREAM + TOTALS + INSERT + "SELECT count(*) AS n FROM penstock.late_rows;") == 0
    assert shell.rows == [{"n": 0}]
    assert shell.engine.log[1] == "settle"


# which of the two


def test_a_script_without_endless_input_runs_once(shell: Shell) -> None:
    assert shell("run", "--quiet", "--format", "json", script="SELECT 1 AS one;") == 0
    assert shell.rows == [{"one": 1}]


def test_a_script_over_an_endless_stream_is_followed(shell: Shell) -> None:
    shell.engine.live = True
    assert shell("run", "--quiet", "--format", "json", script=STREAM + INSERT + "SELECT symbol FROM trades;") == 130
    assert shell.rows == [{"symbol": "ACME"}]


# Each is answered by the view store, and planned over all rows so far, as if its stream ended.
CHANGING = (
    "SELECT symbol, COUNT(DISTINCT price) AS n FROM trades GROUP BY symbol;",
    "SELECT DISTINCT symbol FROM trades;",
    "SELECT symbol FROM trades QUALIFY ROW_NUMBER() OVER (PARTITION BY symbol ORDER BY price DESC) = 1;",
    "SELECT symbol FROM trades ORDER BY price DESC LIMIT 1;",
    "SELECT a.symbol FROM trades AS a LEFT JOIN trades AS b ON a.symbol = b.symbol;",
    "SELECT 1 AS one WHERE 2 IN (SELECT price FROM trades);",
)


@pytest.mark.parametrize("query", CHANGING)
def test_an_answer_that_changes_is_asked_once_of_a_stream(shell: Shell, query: str) -> None:
    assert shell(*ONCE, script=STREAM + INSERT + query) == 0, shell.err
    assert "select once" in shell.engine.log


@pytest.mark.parametrize("query", CHANGING)
def test_an_answer_that_changes_is_followed_over_a_stream(shell: Shell, query: str) -> None:
    shell.engine.live = True
    assert shell("run", "--quiet", "--format", "json", script=STREAM + INSERT + query) == 130, shell.err
    assert "stream" in shell.engine.log


BESIDE_A_VIEW = "SELECT DISTINCT t.symbol FROM trades AS t JOIN totals ON totals.symbol = t.symbol"


def test_an_answer_over_a_stream_beside_a_view_is_asked_once(shell: Shell) -> None:
    assert shell(*ONCE, script=STREAM + INSERT + TOTALS + BESIDE_A_VIEW) == 0, shell.err
    assert "select once" in shell.engine.log


def test_an_answer_over_a_stream_beside_a_view_is_followed(shell: Shell) -> None:
    shell.engine.live = True
    script = STREAM + INSERT + TOTALS + BESIDE_A_VIEW
    assert shell("run", "--quiet", "--format", "json", script=script) == 130, shell.err
    assert "stream" in shell.engine.log


def test_a_view_whose_answer_changes_goes_on(shell: Shell) -> None:
    shell.engine.live = True
    view = "CREATE MATERIALIZED VIEW symbols AS SELECT DISTINCT symbol FROM trades;"
    assert shell("run", "--quiet", "--format", "json", script=STREAM + INSERT + view) == 130, shell.err


def test_definitions_alone_end(shell: Shell) -> None:
    assert shell("run", script=STREAM) == 0
    assert shell.err == "created stream trades\n"


# follow


def test_rows_of_a_stream_are_shown_as_they_come_until_ctrl_c(shell: Shell) -> None:
    shell.engine.live = True
    shell.engine.arriving = [("trades", ("ZORG", 3.0, "2026-01-01 10:00:02")), ("trades", ("ACME", 4.0, None))]
    assert shell(*FOLLOW, script=STREAM + INSERT + "SELECT symbol, price FROM trades;") == 130
    assert shell.rows == [
        {"symbol": "ACME", "price": 1.5},
        {"symbol": "ZORG", "price": 3.0},
        {"symbol": "ACME", "price": 4.0},
    ]
    assert shell.engine.log[-2:] == ["stream ended", "close"]


def test_new_rows_of_a_view_are_shown_after_each_batch(shell: Shell) -> None:
    shell.engine.live = True
    shell.engine.arriving = [("trades", ("ZORG", 3.0, None))]
    assert shell(*FOLLOW, script=STREAM + TOTALS + INSERT + "SELECT * FROM totals ORDER BY symbol;") == 130
    assert {"symbol": "ZORG", "n": 1} in shell.rows
    assert [row for row in shell.rows if row["symbol"] == "ACME"] == [{"symbol": "ACME", "n": 1}]


def test_nothing_is_drained_when_following_ends(shell: Shell) -> None:
    shell.engine.live = True
    assert shell(*FOLLOW, script=STREAM + MINUTES + INSERT) == 130
    assert shell.engine.log == ["open penstock", "close"]


def test_several_followed_queries_are_told_apart_in_tables(shell: Shell) -> None:
    shell.engine.live = True
    script = STREAM + INSERT + "SELECT symbol FROM trades;\nSELECT price FROM trades;\n"
    assert shell("run", "--follow", "--quiet", script=script) == 130
    assert "-- line 3\nsymbol\n------\nACME\n" in shell.out
    assert "-- line 4\nprice\n-----\n  1.5\n" in shell.out


def test_a_subscription_is_followed(shell: Shell) -> None:
    shell.engine.live = True
    assert shell(*FOLLOW, script=STREAM + TOTALS + INSERT + "SUBSCRIBE TO totals;") == 130
    assert [change["row"] for change in shell.rows] == [{"symbol": "ACME", "n": 1}]


def test_a_subscription_to_a_query_is_followed_and_closed(shell: Shell) -> None:
    shell.engine.live = True
    asked = "SUBSCRIBE (SELECT symbol FROM trades) WITH (changes = 'retract');"
    assert shell(*FOLLOW, script=STREAM + INSERT + asked) == 130, shell.err
    assert shell.rows == [{"seq": 1, "_op": "insert", "symbol": "ACME"}]
    assert shell.engine.log[-2:] == ["close the query", "close"]


def test_a_job_that_fails_ends_following(shell: Shell) -> None:
    shell.engine.live = True
    shell.engine.fails["totals"] = "the disk is full"
    assert shell(*FOLLOW, script=STREAM + TOTALS + INSERT) == 1
    assert shell.err == "error[JOB_FAILED] <stdin>: the disk is full\n"
    assert shell.engine.closed


# output


def test_a_table_is_for_people(shell: Shell) -> None:
    assert shell("run", "--once", script=STREAM + TOTALS + INSERT + "SELECT * FROM totals; SHOW CREATE trades;") == 0
    assert shell.out.startswith(
        "symbol | n\n-------+--\nACME   | 1\n(1 row; as of totals batch 1)\n\nCREATE STREAM trades (\n"
    )
    assert shell.err.startswith("created stream trades\nnotice <stdin>:2:1: ")
    assert "created materialized view totals, which runs\n" in shell.err
    assert "inserted 1 row into trades\n" in shell.err


def test_csv_answers_have_a_head_each(shell: Shell) -> None:
    assert shell("run", "--format", "csv", "-q", script="SELECT 1 AS a, 'x,y' AS b; SELECT NULL AS c, '' AS d;") == 0
    assert shell.out == 'a,b\r\n1,"x,y"\r\n\r\nc,d\r\n,""\r\n'


def test_an_explanation_is_printed_as_text(shell: Shell) -> None:
    assert shell("run", "-q", script=STREAM + "EXPLAIN SELECT symbol FROM trades;") == 0
    assert shell.out.startswith("Result\n└─ Project  symbol\n")


def test_the_state_path_and_every_flag_can_come_from_the_environment(shell: Shell) -> None:
    shell.monkeypatch.setenv("PENSTOCK_STATE", "elsewhere")
    shell.monkeypatch.setenv("PENSTOCK_RUN_FORMAT", "json")
    shell.monkeypatch.setenv("PENSTOCK_RUN_QUIET", "1")
    assert shell("run", script="SELECT 1 AS a") == 0
    assert shell.engine.log[0] == "open elsewhere"
    assert (shell.rows, shell.err) == ([{"a": 1}], "")
    shell.monkeypatch.setenv("PENSTOCK_RUN_STATE", "other")
    shell.monkeypatch.delenv("PENSTOCK_STATE")
    assert shell("run", script="SELECT 1 AS a") == 0
    assert shell.engine.log[2] == "open other"


# what goes wrong


def test_a_statement_that_fails_ends_the_script(shell: Shell) -> None:
    assert shell("run", "-q", script=STREAM + "SELECT prise FROM trades;\nSELECT 1;") == 1
    assert shell.out == ""
    lines = shell.err.splitlines()
    assert lines[0].startswith("error[UNKNOWN_COLUMN] <stdin>:2:8: ")
    assert lines[1:3] == ["  2 | SELECT prise FROM trades;", "    |        ^^^^^"]
    assert shell.engine.log == ["open penstock", "close"]


def test_a_syntax_error_stops_where_it_is_reached(shell: Shell) -> None:
    assert shell("run", "-q", "--format", "json", script="SELECT 1 AS a;\nSELEC 2;") == 1
    assert shell.rows == [{"a": 1}]
    assert shell.err.startswith("error[SYNTAX_ERROR] <stdin>:2:1: ")


def test_a_job_that_fails_is_an_error_of_the_run(shell: Shell) -> None:
    shell.engine.fails["totals"] = "the disk is full"
    assert shell(*ONCE, script=STREAM + TOTALS + INSERT + "SELECT * FROM totals;") == 1
    assert shell.err.startswith("error[JOB_FAILED] <stdin>:4:1: the disk is full\n")
    assert shell.engine.closed


def test_once_and_follow_exclude_each_other(shell: Shell) -> None:
    assert shell("run", "--once", "--follow", script="SELECT 1") == 2
    assert "exclude each other" in shell.err
    assert shell.engine.log == []


def test_an_empty_script_is_an_error(shell: Shell) -> None:
    assert shell("run", script=" \n") == 1
    assert shell.err == "error: <stdin> is empty: there is no statement in it\n"


def test_no_secret_is_printed(shell: Shell) -> None:
    script = "CREATE SECRET p AS 'canary-4711'; CREATE SECRET p AS 'canary-4712' WITH (x = 'canary-4713'; SHOW SECRETS;"
    shell("run", script=script)
    assert "canary" not in shell.out + shell.err


def test_an_empty_state_path_is_not_the_directory_one_is_in(shell: Shell) -> None:
    assert shell("run", "--state", "", script="SELECT 1 AS one;") == 2
    assert "the path is empty" in shell.err
    assert list(shell.directory.iterdir()) == []
    assert shell("run", "--state", ".", script="SELECT 1 AS one;") == 0
