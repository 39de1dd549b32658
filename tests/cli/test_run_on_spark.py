"""The commands that run SQL, on Spark, as a shell sees them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from tests.project import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

SCRIPT = ROOT / "examples" / "minutes.sql"
SECONDS = 240


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK")}
    return {**kept, "NO_COLOR": "1", "PYTHONPATH": str(ROOT / "src")}


def penstock(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "penstock", *arguments],
        cwd=ROOT,
        env=environment(),
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


@pytest.mark.slow
def test_a_script_from_rows_to_windows_and_again(tmp_path: Path) -> None:
    """The first minutes of a user: run, look, run again on the same state."""
    state = str(tmp_path / "state")
    done = penstock("run", "--once", "--format", "json", "--state", state, str(SCRIPT))
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["symbol"], row["minute"], row["trades"]) for row in rows[:3]] == [
        ("ACME", "2026-01-01T10:00:00Z", 2),
        ("ZORG", "2026-01-01T10:00:00Z", 1),
        ("ACME", "2026-01-01T10:01:00Z", 1),
    ]
    assert sorted(row["price"] for row in rows[3:]) == [11.0, 12.0, 20.0]
    assert "created materialized view prices, which runs" in done.stderr

    looked = penstock("sql", "--format", "json", "--state", state, stdin="SELECT COUNT(*) AS n FROM prices; SHOW JOBS;")
    assert looked.returncode == 0, looked.stderr
    count, job = [json.loads(line) for line in looked.stdout.splitlines()]
    assert (count, job["name"], job["state"]) == ({"n": 3}, "prices", "stopped")

    again = penstock("run", "--once", "--quiet", "--format", "json", "--state", state, str(SCRIPT))
    assert again.returncode == 0, again.stderr
    # The windows are closed: the same rows again are late, and the view is as it was.
    assert [json.loads(line) for line in again.stdout.splitlines()][:3] == rows[:3]


@pytest.mark.slow
def test_answers_that_change_are_asked_once(tmp_path: Path) -> None:
    """What the view store answers for a query that nobody keeps is DuckDB's answer, and no file of it is left."""
    rows = (
        "INSERT INTO o VALUES (1, 'a', 1), (2, 'a', 2), (3, 'b', 2), (4, 'a', 2), (5, NULL, 7);\n"
        "INSERT INTO p VALUES (1, 10), (1, 11), (3, 5), (9, 1);\n"
    )
    queries = (
        "SELECT 0 AS q, c, COUNT(DISTINCT n) AS v FROM o GROUP BY c",
        "SELECT DISTINCT 1 AS q, c, n AS v FROM o",
        "SELECT 2 AS q, c, id AS v FROM o ORDER BY n DESC, id LIMIT 2",
        "SELECT 3 AS q, c, id AS v FROM o QUALIFY ROW_NUMBER() OVER (PARTITION BY c ORDER BY id DESC) = 1",
        "SELECT 4 AS q, o.c, p.amount AS v FROM o LEFT JOIN p ON p.oid = o.id",
        "SELECT 5 AS q, o.c, p.amount AS v FROM o JOIN p ON p.oid = o.id",
        "SELECT 6 AS q, c, n AS v FROM o WHERE id NOT IN (SELECT oid FROM p)",
    )
    tables = "CREATE {0} o (id INT, c STRING, n INT);\nCREATE {0} p (oid INT, amount INT);\n"
    asked = ";\n".join(queries) + ";\n"
    state = tmp_path / "state"
    done = penstock(
        "run", "--once", "--quiet", "--format", "json", "--state", str(state), "-",
        stdin=tables.format("STREAM") + rows + asked,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with duckdb.connect() as db:
        db.execute(tables.format("TABLE") + rows)
        expected = [row for query in queries for row in db.execute(query).fetchall()]
    found = [tuple(json.loads(line)[name] for name in ("q", "c", "v")) for line in done.stdout.splitlines()]
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert list(state.glob("ephemeral/*")) == []


def test_following_ends_at_ctrl_c_and_leaves_no_process(tmp_path: Path) -> None:
    script = tmp_path / "follow.sql"
    script.write_text(
        "CREATE STREAM s (a INT);\nINSERT INTO s VALUES (1), (2);\n"
        "CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM s;\nSELECT a FROM s;\n"
    )
    options = ["--quiet", "--format", "json", "--state", str(tmp_path / "state")]
    with subprocess.Popen(
        [sys.executable, "-m", "penstock", "run", *options, str(script)],
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        lines = [json.loads(running.stdout.readline()) for _ in range(2)]
        assert sorted(line["a"] for line in lines) == [1, 2]
        running.send_signal(signal.SIGINT)
        assert running.wait(180) == 130
        assert running.stderr.read().strip() == ""
        assert _gone(str(tmp_path))
    looked = penstock(
        "run", "--quiet", "--format", "json", "--state", str(tmp_path / "state"), "-", stdin="SELECT n FROM v"
    )
    assert looked.returncode == 0, looked.stderr
    assert json.loads(looked.stdout) == {"n": 2}


def _gone(path: str) -> bool:
    """Whether no process names the directory any more, a moment after it should be so."""
    for _ in range(300):
        named = [
            entry
            for entry in Path("/proc").glob("[0-9]*/cmdline")
            if path.encode() in _read(entry) and int(entry.parent.name) != os.getpid()
        ]
        if not named:
            return True
        time.sleep(0.1)
    return False


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.mark.slow
def test_the_demo_proves_itself() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "penstock.interfaces.demo"],
        cwd=ROOT,
        env={**environment(), "PENSTOCK_DEMO_SECONDS": "6"},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("  yes\n") == 3
    assert "What to type next" in done.stdout
