"""Nexmark, end to end: the answers of jobs, folded to their final state, are DuckDB's (NEXMARK.md, "Correct means")."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.interfaces.cli.main import run
from penstock.interfaces.nexmark import verification
from penstock.interfaces.nexmark.events import NexmarkEvents
from penstock.interfaces.nexmark.queries import NAMES, NexmarkQuery, nexmark_query
from penstock.interfaces.nexmark.verification import Verdict, Verification

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

SETTINGS = {"parallelism": 2, "driver_memory": "1g"}
ROW_BY_ROW = ("q0", "q1", "q2", "q13", "q14", "q21", "q22")  # nothing is kept that a stop could lose


def check(verdicts: list[Verdict]) -> None:
    wrong = [verdict for verdict in verdicts if verdict.outcome != "equal" or verdict.rows < 2]
    assert not wrong, "\n".join(f"{verdict}" for verdict in wrong)


@pytest.mark.slow
def test_all_queries_are_right_over_a_stop(tmp_path: Path) -> None:
    """Out of order, in several batches; queries that keep nothing are not stopped here, for the sake of time."""
    asked = Verification(
        events=NexmarkEvents(3_000, seed=1, out_of_order=0.2), directory=tmp_path, batch_rows=1_000, settings=SETTINGS
    )
    check(list(asked.run([name for name in NAMES if name not in ROW_BY_ROW])))
    plain = replace(asked, directory=tmp_path / "plain", resume=False, at_once=3)
    check(list(plain.run(ROW_BY_ROW)))


@pytest.mark.slow
def test_the_command_tells_what_differs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0 where all are equal; 1 and the first rows where an answer is another, or where a query cannot run. The
    oracle of q2 is made to expect one row more, and q0 to read a column that is not there."""

    def misled(name: str) -> NexmarkQuery:
        found = nexmark_query(name)
        if name == "q0":
            return replace(found, statements="CREATE MATERIALIZED VIEW q0 AS SELECT auctions FROM bid")
        return replace(found, oracle=f"{found.oracle} UNION ALL SELECT 123, 7") if name == "q2" else found

    monkeypatch.setattr(verification, "nexmark_query", misled)
    arguments = ["nexmark", "verify", "--events", "2000", "--no-resume", "--json", "--query", "q22"]
    assert run(arguments) == 0
    equal = json.loads(capsys.readouterr().out)
    assert run([*arguments, "--query", "q0"]) == 1
    right, failed = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (failed["query"], failed["outcome"], failed["missing"], failed["more"]) == ("q0", "failed", [], [])
    assert "auctions" in failed["why"]
    assert right == equal
    assert run([*arguments, "--query", "q2"]) == 1
    right, wrong = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (wrong["query"], wrong["outcome"], wrong["more"]) == ("q2", "different", [])
    assert wrong["why"] == "1 rows are missing, 0 are too many"
    assert "123" in wrong["missing"][0]
    assert right == {"query": "q22", "outcome": "equal", "rows": 1840, "why": None, "missing": [], "more": []}


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("batch_rows", [700, 5_000, None])
def test_all_queries_for_seeds_and_batch_sizes(tmp_path: Path, seed: int, batch_rows: int | None) -> None:
    asked = Verification(
        events=NexmarkEvents(30_000, seed=seed, out_of_order=0.3),
        directory=tmp_path,
        batch_rows=batch_rows,
        settings=SETTINGS,
    )
    check(list(asked.run(NAMES)))
