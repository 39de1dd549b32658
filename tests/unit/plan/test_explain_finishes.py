"""EXPLAIN of answers that change: sources, event time, change modes and bounds are those that hold when the job runs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.plan.explain import explain_json, explain_text
from penstock.plan.script import StatementReport
from tests.unit.plan.analysis import last

STREAMS = """
CREATE STREAM c (id BIGINT, k BIGINT, v BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH (connector = 'topic', changes = 'upsert');
CREATE STREAM b (k BIGINT, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND);
CREATE STREAM l (k BIGINT, label STRING);
CREATE TABLE dim (k BIGINT, label STRING) WITH (connector = 'file', path = 'd', format = 'parquet');
CREATE MATERIALIZED VIEW p AS SELECT k, v FROM b;
"""


def told(query: str, options: str = "") -> StatementReport:
    report = last(f"{STREAMS} CREATE MATERIALIZED VIEW x {options} AS {query}")
    assert report.error is None, report.error
    return report


def as_json(query: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(explain_json(told(query))))["plans"][0]
    return found


def lines(report: StatementReport, head: str) -> list[str]:
    return [line[12:] for line in explain_text(report).splitlines() if line[:12].strip() == head]


@pytest.mark.parametrize(
    ("query", "sources"),
    [
        ("SELECT b.k, l.label FROM b LEFT JOIN l ON b.k = l.k", 2),
        ("SELECT k, COUNT(DISTINCT v) AS n FROM c GROUP BY k", 1),
        ("SELECT b.k, d.label FROM b FULL JOIN dim d ON b.k = d.k", 1),
        ("SELECT k, COUNT(DISTINCT v) AS n FROM p GROUP BY k", 1),
        ("SELECT label, COUNT(DISTINCT k) AS n FROM dim GROUP BY label", 0),
        ("SELECT label, COUNT(*) AS n FROM dim GROUP BY label", 0),
        ("SELECT k, v FROM b", 1),
    ],
)
def test_sources_are_counted_below_a_finish(query: str, sources: int) -> None:
    assert as_json(query)["summary"]["sources"] == sources


@pytest.mark.parametrize("query", ["SELECT b.k, l.label FROM b LEFT JOIN l ON b.k = l.k", "SELECT k, v FROM b"])
def test_the_event_time_of_a_source_is_told(query: str) -> None:
    assert lines(told(query), "event time") == ["b.ts, delay 1 second"]


def test_operators_below_a_finish_do_not_say_that_they_only_add_rows() -> None:
    def modes(query: str) -> dict[str, list[str | None]]:
        found: dict[str, list[str | None]] = {}
        for operator in as_json(query)["operators"]:
            found.setdefault(operator["name"], []).append(operator["mode"])
        return found

    joined = modes("SELECT b.k, l.label FROM b LEFT JOIN l ON b.k = l.k")
    assert joined == {
        "MaterializedView": ["retract"], "Finish": ["retract"], "Project": [None], "Join": [None], "Scan": ["append"] * 2,
    }  # fmt: skip
    grouped = modes("SELECT k, COUNT(DISTINCT v) AS n FROM c WHERE v > 1 GROUP BY k")
    assert (grouped["Aggregate"], grouped["Filter"], grouped["Scan"]) == ([None], [None], ["upsert"])
    over_a_core = modes(
        "SELECT * FROM (SELECT b.k, b.v, d.label, ROW_NUMBER() OVER (PARTITION BY d.label ORDER BY b.v) AS n "
        "FROM b JOIN dim d ON b.k = d.k) AS r WHERE n < 3"
    )
    assert (over_a_core["Core"], over_a_core["DimensionJoin"], over_a_core["Rank"]) == (["append"], ["append"], [None])
    assert modes("SELECT k, v FROM b") == {"MaterializedView": ["append"], "Project": ["append"], "Scan": ["append"]}


@pytest.mark.parametrize(
    ("query", "state", "warned"),
    [
        (
            "SELECT m, COUNT(*) AS n FROM (SELECT k, COUNT(*) AS m FROM p GROUP BY k) GROUP BY m",
            "Finish: the answer of subquery; what follows from the rows of p",
            [],
        ),
        (
            "SELECT b.k, d.label FROM b FULL JOIN dim d ON b.k = d.k",
            "Finish: every row of b (k) and every row of dim (k, label); nothing bounds it: it grows for ever",
            ["b"],
        ),
        (
            "SELECT c.id, d.label FROM c FULL JOIN dim d ON c.k = d.k",
            (
                "Finish: the latest row by (id) of c (id, k) and every row of dim (k, label); as many rows as there are at "
                "the source; the rows of dim end"
            ),
            [],
        ),
    ],
)
def test_what_grows_is_warned_of_and_nothing_else(query: str, state: str, warned: list[str]) -> None:
    report = told(query)
    assert lines(report, "state") == [state]
    growing = [text for text in report.notices if "grows for ever" in text]
    assert [text.split("every row of ")[1].split(" ")[0] for text in growing] == warned


def test_a_time_to_live_is_told_beside_another_bound() -> None:
    report = told("SELECT k, COUNT(DISTINCT v) AS n FROM c GROUP BY k", "WITH (state_ttl = '1 day')")
    assert lines(report, "state") == [
        (
            "Finish: the latest row by (id) of c (id, k, v); as many rows as there are at the source; a row is forgotten 1 day "
            "after its batch (state_ttl)"
        )
    ]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT k, v FROM b", "nothing is kept between batches"),
        ("SELECT k, COUNT(*) AS n FROM b GROUP BY k, TUMBLE(ts, INTERVAL '1' MINUTE)", "a bound of its own"),
    ],
)
def test_a_time_to_live_that_does_nothing_is_told(query: str, words: str) -> None:
    notices = told(query, "WITH (state_ttl = '1 day')").notices
    assert [words in text for text in notices if "state_ttl has no effect here" in text] == [True]
    setting = last(f"{STREAMS} SET state_ttl = '1 day'; CREATE MATERIALIZED VIEW x AS {query}")
    assert setting.error is None
    assert not any("state_ttl" in text for text in setting.notices)


@pytest.mark.parametrize(
    ("query", "mode", "key"),
    [
        ("SELECT label, COUNT(*) AS n FROM dim GROUP BY label", "upsert", ["label"]),
        ("SELECT label, COUNT(DISTINCT k) AS n FROM dim GROUP BY label", "upsert", ["label"]),
        ("SELECT COUNT(*) AS n FROM dim GROUP BY label", "retract", None),
        ("SELECT COUNT(*) AS n FROM dim", "upsert", []),
        ("SELECT label FROM dim", "append", None),
    ],
)
def test_groups_over_a_table_change_as_it_is_read(query: str, mode: str, key: list[str] | None) -> None:
    found = as_json(query)
    assert (found["mode"], found["key"]) == (mode, key)


@pytest.mark.parametrize(
    ("query", "reads"),
    [
        (
            "SELECT l.k FROM l WHERE l.k IN (SELECT b.k FROM b WHERE b.v > 3) AND NOT EXISTS (SELECT 1 FROM c WHERE c.k = l.k)",
            ["l (k)", "b (k, v)", "c (id, k)"],
        ),
        ("SELECT l.k FROM l WHERE l.k IN (SELECT p.k FROM p WHERE p.v > 3)", ["l (k)", "p (k, v)"]),
        ("SELECT l.k FROM l WHERE l.k IN (SELECT d.k FROM dim d)", ["l (k)", "dim (k)"]),
        ("SELECT l.k, (SELECT MAX(b.v) FROM b WHERE b.k = l.k) AS most FROM l", ["l (k)", "b (k, v)"]),
    ],
)
def test_what_only_a_subquery_names_is_read_too(query: str, reads: list[str]) -> None:
    report = told(query)
    assert sorted(lines(report, "reads")) == sorted(reads)
    assert lines(report, "event time") == (["b.ts, delay 1 second"] if " b " in query else [])
    counted = as_json(query)["summary"]["sources"]
    assert counted == len([each for each in reads if not each.startswith("dim")])


def test_a_question_that_is_answered_at_once_reads_what_its_subqueries_name() -> None:
    """All columns of such a table, whatever the subquery needs."""
    report = last(f"{STREAMS} EXPLAIN SELECT p.k FROM p WHERE p.v IN (SELECT d.k FROM dim d)")
    assert lines(report, "reads") == ["p (k, v)", "dim (k, label)"]


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN"])
def test_windows_that_the_view_store_joins_are_no_dimension(kind: str) -> None:
    """The second reading of a subquery stands for the first, and is not sent to every task."""
    windows = "(SELECT window_end AS w, k, COUNT(*) AS n FROM TUMBLE(b, ts, INTERVAL '1' MINUTE) GROUP BY window_start, window_end, k)"
    query = f"WITH w AS {windows} SELECT one.k, one.n, other.n AS m FROM w AS one {kind} w AS other ON one.w > other.w AND one.k = other.k"
    text = explain_text(told(query))
    assert "Join  kind" in text
    assert "strategy view store" in text
    assert "DimensionJoin" not in text
    assert "broadcast" not in text
    assert as_json(query)["summary"]["dimensions"] == 0
