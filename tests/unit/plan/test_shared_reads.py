"""Which INSERTs of a statement set are one job (SC22)."""

from __future__ import annotations

import pytest

from penstock.plan.explain import explain_text
from penstock.plan.job_plan import plan_job
from penstock.plan.shared_reads import insert_jobs, one_reading
from penstock.sql.statements import StatementSet
from tests.unit.plan.analysis import last

SINKS = """
CREATE STREAM a (symbol STRING, price DOUBLE) WITH (type = 'sink');
CREATE STREAM b (symbol STRING, price DOUBLE) WITH (type = 'sink');
CREATE STREAM c (symbol STRING) WITH (type = 'sink');
CREATE STREAM d (volume INT) WITH (type = 'sink');
CREATE STREAM f (n BIGINT, at TIMESTAMP) WITH (type = 'sink');
CREATE SINK g (symbol STRING) WITH (connector = 'kafka', topic = 'g', late = 'drop');
"""
CHEAP = "INSERT INTO a SELECT symbol, price FROM trades WHERE price < 10;"
DEAR = "INSERT INTO b SELECT UPPER(symbol), price FROM trades WHERE price >= 10;"


def jobs(inserts: str) -> list[tuple[str, tuple[int, ...]]]:
    report = last(f"{SINKS} EXECUTE STATEMENT SET BEGIN {inserts} END;")
    assert isinstance(report.statement, StatementSet)
    assert report.analysis is not None, report.error
    found = insert_jobs(report.statement.inserts, report.analysis.plans, report.analysis.session)
    assert {job.name for job in found} <= report.analysis.session.jobs
    return [(job.name, job.places) for job in found]


def test_rows_that_only_pass_share_a_reading() -> None:
    assert jobs(CHEAP + DEAR) == [("insert_a_b", (0, 1))]
    four = "INSERT INTO c SELECT symbol FROM trades; INSERT INTO d SELECT volume FROM trades;"
    assert jobs(CHEAP + DEAR + four) == [("insert_a_b_c_and_1_more", (0, 1, 2, 3))]


@pytest.mark.parametrize(
    ("other", "name"),
    [
        ("INSERT INTO c SELECT k FROM plain;", "insert_c"),
        ("INSERT INTO a SELECT symbol, price FROM trades WHERE price > 99;", "insert_a"),
        ("INSERT INTO c WITH (job_name = 'mine') SELECT symbol FROM trades;", "mine"),
        ("INSERT INTO g SELECT symbol FROM trades;", "insert_g"),
        ("INSERT INTO c SELECT symbol FROM trades JOIN names ON symbol = id;", "insert_c"),
        ("INSERT INTO b SELECT symbol, RAND() FROM trades;", "insert_b"),
        ("INSERT INTO f SELECT 1, CURRENT_TIMESTAMP FROM trades WHERE price > 1;", "insert_f"),
        (
            "INSERT INTO f SELECT COUNT(*), MIN(ts) FROM trades GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE);",
            "insert_f",
        ),
    ],
    ids=["stream", "target", "options", "options of the sink", "dimension", "random", "clock", "window"],
)
def test_others_are_jobs_of_their_own(other: str, name: str) -> None:
    first = CHEAP + "INSERT INTO d SELECT volume FROM trades;"
    assert jobs(first + other) == [("insert_a_d", (0, 1)), (name, (2,))]


def test_values_are_no_job() -> None:
    assert jobs(f"{CHEAP} INSERT INTO c VALUES ('x');") == [("insert_a", (0,))]


def test_the_reading_has_the_columns_of_all() -> None:
    report = last(f"{SINKS} EXECUTE STATEMENT SET BEGIN INSERT INTO d SELECT volume FROM trades; {CHEAP} END;")
    assert report.analysis is not None
    plans = [plan_job(plan, state="spark") for plan in report.analysis.plans]
    shared = one_reading(plans, ("symbol", "price", "volume", "ts"))
    assert [scan.columns for scan in shared.scans] == [("symbol", "price", "volume")]
    assert shared.state == plans[0].state


def test_explain_tells() -> None:
    text = explain_text(last(f"{SINKS} EXPLAIN STATEMENT SET BEGIN {CHEAP}{DEAR} END;"))
    assert text.endswith("one job     insert_a_b reads trades once for a, b")
    assert "one job" not in explain_text(last(f"{SINKS} EXPLAIN STATEMENT SET BEGIN {CHEAP} END;"))
