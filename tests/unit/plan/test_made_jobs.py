"""What a check says of the jobs that statements make: nothing is fine that no job runs, and nothing else is refused."""

from __future__ import annotations

import pytest

from penstock.plan.explain import explain_text
from penstock.plan.job_plan import plan_job
from penstock.plan.script import StatementReport, analyze_script

SOURCES = """
CREATE STREAM bids (auction BIGINT, price BIGINT, tags MAP<STRING, BIGINT>, ts TIMESTAMP,
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND);
CREATE TABLE ended (k STRING, v BIGINT, ts TIMESTAMP) WITH (connector = 'file', path = 'rows.csv', format = 'csv');
CREATE STREAM added (k STRING, n BIGINT);
CREATE STREAM kept (k STRING, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH (format = 'debezium-json');
"""
IN_SPARK = "CREATE MATERIALIZED VIEW v WITH (state = 'spark') AS "
TUMBLED = "FROM bids GROUP BY auction, TUMBLE(ts, INTERVAL '1' SECOND)"
SESSIONS = "FROM bids GROUP BY auction, SESSION(ts, INTERVAL '1' SECOND) EMIT CHANGES"
CLOCK = "FROM bids GROUP BY TUMBLE(PROCTIME(), INTERVAL '1' SECOND)"


def checked(sql: str) -> StatementReport:
    """What a check says of the last statement."""
    return analyze_script(SOURCES + sql, with_jobs=True)[-1]


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ((f"{IN_SPARK}SELECT auction, MAX(n) AS m FROM (SELECT auction, price, COUNT(*) AS n FROM bids "
         "GROUP BY auction, price) GROUP BY auction"), "view store answers"),
        ((f"{IN_SPARK}SELECT a.auction FROM bids AS a JOIN bids AS b ON a.price = b.price WHERE a.auction = 1 "
         "AND NOT EXISTS (SELECT 1 FROM bids AS c WHERE c.price = a.price + 1)"), "view store answers"),
        (f"{IN_SPARK}SELECT auction, price FROM bids ORDER BY price LIMIT 3", "view store answers"),
        (f"{IN_SPARK}SELECT auction, SUM(price) OVER (PARTITION BY auction ORDER BY ts) AS n FROM bids",
         "view store answers"),
        (f"{IN_SPARK}SELECT auction, COUNT(*) AS n FROM bids GROUP BY ROLLUP (auction)", "view store answers"),
        (f"{IN_SPARK}SELECT COUNT(*) AS n {CLOCK}", "processing time"),
        (f"{IN_SPARK}SELECT auction, COUNT(*) AS n {SESSIONS}", "sessions with EMIT CHANGES"),
        (("CREATE MATERIALIZED VIEW v WITH (state = 'spark', state_ttl = '1 hour') AS "
         "SELECT auction, COUNT(*) AS n FROM bids GROUP BY auction"), "state_ttl"),
        ("CREATE MATERIALIZED VIEW v AS SELECT NOW() AS now", "written out"),
        (("INSERT INTO kept WITH (state = 'spark') SELECT k, MAX(n) AS n FROM (SELECT k, n FROM added UNION "
          "SELECT k, v FROM ended) GROUP BY k"), "view store answers"),
        ("INSERT INTO added WITH (state_ttl = '1 hour') SELECT k, v FROM ended", "state_ttl of an INSERT"),
        ("CREATE SINK k WITH (connector = 'topic', state_ttl = '1 hour') AS SELECT k, v FROM ended",
         "state_ttl of an INSERT"),
        (("BEGIN STATEMENT SET; INSERT INTO added SELECT k, v FROM ended; "
         "INSERT INTO kept WITH (state_ttl = '1 hour') SELECT k, v FROM ended; END"), "state_ttl of an INSERT"),
    ],
)  # fmt: skip
def test_what_no_job_runs_is_refused(sql: str, word: str) -> None:
    """As not there yet, with a hint, where it stands; EXPLAIN explains it all the same."""
    found = checked(f"{sql};")
    assert found.error is not None, found.canonical
    assert found.error.support == "not_yet"
    assert word in found.error.message
    assert found.error.hint
    assert found.error.span is not None
    if not sql.startswith(("BEGIN", "INSERT")):
        explained = checked(f"EXPLAIN {sql};")
        assert explained.error is None, explained.error
        if "of an INSERT" not in word:
            assert "engine      not run yet: " in explain_text(explained)


def test_options_are_pointed_at() -> None:
    """An error about an option stands at its value."""
    error = checked(f"{IN_SPARK}SELECT auction, price FROM bids ORDER BY price LIMIT 3;").error
    assert error is not None
    assert error.span is not None
    start = error.span.start
    assert (SOURCES + IN_SPARK)[start : start + error.span.length] == "'spark'"


def test_what_stands_on_a_refused_view_is_checked() -> None:
    """A view that no job runs is well formed: what reads it is not in error because of it."""
    sql = f"{IN_SPARK}SELECT auction, price FROM bids ORDER BY price LIMIT 3; SELECT auction, prise FROM v;"
    *_, view, query = analyze_script(SOURCES + sql, with_jobs=True)
    assert (view.error is not None, view.mode) == (True, "retract")
    assert query.error is not None
    assert query.error.condition == "UNKNOWN_COLUMN"
    assert analyze_script(SOURCES + sql.replace("prise", "price"), with_jobs=True)[-1].ok


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO added VALUES ('a', 1)",
        "INSERT INTO added SELECT job, COUNT(DISTINCT value) FROM penstock.metrics GROUP BY job",
        "SELECT DISTINCT k FROM ended ORDER BY k LIMIT 3",
        "SELECT * FROM nowhere ORDER BY x LIMIT 3",
        "CREATE VIEW plain AS SELECT DISTINCT auction FROM bids",
    ],
)
def test_what_is_no_job_is_not_refused(sql: str) -> None:
    """What is read once, what is put in place elsewhere, and what nobody knows."""
    lenient = "nowhere" in sql
    found = analyze_script(f"{SOURCES}{sql};", with_jobs=True, lenient=lenient)[-1]
    assert found.error is None, found.error


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, COUNT(DISTINCT v) AS n FROM ended GROUP BY k",
        "SELECT k, v FROM ended EXCEPT SELECT k, v FROM ended WHERE v > 3",
        "SELECT k, v FROM ended ORDER BY v LIMIT 3",
        "SELECT k, SUM(v) OVER (PARTITION BY k ORDER BY ts) AS n FROM ended",
        "SELECT DISTINCT k, v FROM ended",
        "SELECT k, COUNT(*) AS n FROM ended GROUP BY ROLLUP (k)",
        "SELECT k, COUNT(*) AS n FROM ended GROUP BY k",
    ],
)
def test_bounded_input_changes_its_answers_until_it_ends(query: str) -> None:
    """A job reads a table batch by batch: a sink of changes takes each, and one of added rows is told that it cannot."""
    runs = checked(f"CREATE SINK changing WITH (connector = 'topic', format = 'json', changes = 'retract') AS {query};")
    assert runs.error is None, runs.error
    assert runs.plan is not None
    assert plan_job(runs.plan).kind in ("finish", "merge")
    told = checked(f"INSERT INTO added {query};").error
    assert told is not None
    assert told.condition == "SINK_CANNOT_UPDATE"


def test_closed_windows_of_bounded_input_are_added() -> None:
    """A window that closes has its rows once, also over a table."""
    windows = (
        "SELECT CAST(COUNT(*) AS STRING) AS k, COUNT(DISTINCT auction) AS n FROM bids "
        "GROUP BY TUMBLE(ts, INTERVAL '1' SECOND)"
    )
    assert checked(f"INSERT INTO added {windows};").ok
    assert checked("INSERT INTO added SELECT k, v FROM ended WHERE v > 3;").ok


def test_a_limit_ends_a_query_that_somebody_reads() -> None:
    """Spark is asked for all rows; whoever hands them out counts. Rows that change have no first ones so."""
    found = checked("SELECT auction, price FROM bids LIMIT 5;")
    assert found.plan is not None
    made = plan_job(found.plan)
    assert (made.kind, made.limit) == ("append", 5)
    assert "LIMIT" not in made.core
    assert "engine      Spark; nothing is kept between batches; it ends with the last of 5 rows" in explain_text(found)
    windows = checked(f"SELECT COUNT(*) AS n {TUMBLED} LIMIT 2;")
    assert windows.plan is not None
    assert plan_job(windows.plan).limit == 2
    stored = checked("CREATE MATERIALIZED VIEW v AS SELECT auction, price FROM bids LIMIT 5;")
    assert stored.plan is not None
    assert (plan_job(stored.plan).kind, plan_job(stored.plan).limit) == ("finish", None)
