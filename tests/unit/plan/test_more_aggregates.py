"""WITH ROLLUP, RANGE in FROM, and aggregates of lists, of moments and of any row where the rows below them change."""

from __future__ import annotations

import pytest

from penstock.plan.job_plan import JobPlan, plan_job
from tests.unit.plan.analysis import planned

STREAMS = """
CREATE STREAM a (id BIGINT, cat BIGINT, name STRING, price DOUBLE, ts TIMESTAMP);
CREATE STREAM c (id BIGINT, cat BIGINT, label STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (changes = 'upsert');
"""


def job(query: str) -> JobPlan:
    return plan_job(planned(f"{STREAMS} CREATE MATERIALIZED VIEW mv AS {query};"))


def view(query: str) -> str:
    found = job(query).finish
    assert found is not None
    return found.view.text


@pytest.mark.parametrize("word", ["ROLLUP", "CUBE"])
def test_sets_behind_the_keys(word: str) -> None:
    written = "SELECT cat, name, COUNT(*) AS n FROM a GROUP BY"
    assert view(f"{written} cat, name WITH {word}") == view(f"{written} {word} (cat, name)")


def test_whole_numbers_in_from() -> None:
    """The end is not among them, and where it comes first there are none."""
    one = job("SELECT a.id, r.id AS n FROM a, range(3) AS r")
    assert [(column.name, str(column.type)) for column in one.columns] == [("id", "BIGINT"), ("n", "BIGINT")]
    assert "SEQUENCE(CAST(0 AS BIGINT), CAST(3 AS BIGINT) - 1)" in " ".join(one.core.split()).upper().replace("`", "")
    two = job("SELECT a.id, r.n FROM a CROSS JOIN range(1, a.cat) AS r(n)")
    assert "if(" in two.core.lower()


@pytest.mark.parametrize(
    ("query", "part"),
    [
        ("SELECT id, STRING_AGG(name, ',') OVER (PARTITION BY cat ORDER BY ts) AS x FROM a", "string_agg("),
        ("SELECT id, COLLECT_SET(name) OVER (PARTITION BY cat ORDER BY ts) AS x FROM a", "list_distinct("),
        ("SELECT id, ARRAY_AGG(name) FILTER (WHERE id > 1) OVER (PARTITION BY cat) AS x FROM a", "FILTER (WHERE"),
        ("SELECT cat, FIRST(label) AS x FROM c GROUP BY cat", 'min("c"."label")'),
        ("SELECT cat, LAST(label, TRUE) AS x FROM c GROUP BY cat", 'max("c"."label")'),
        ("SELECT cat, FIRST(label) IGNORE NULLS AS x FROM c GROUP BY cat", 'min("c"."label")'),
        ("SELECT id, FIRST(label) OVER (PARTITION BY cat ORDER BY id) AS x FROM c", 'first_value("c"."label") OVER'),
        ("SELECT cat, SKEWNESS(id) AS x FROM c GROUP BY cat", "power(x - m, 3)"),
        ("SELECT cat, KURTOSIS(id) AS x FROM c GROUP BY cat", "power(x - m, 4)"),
    ],
)
def test_answers_of_the_store(query: str, part: str) -> None:
    assert part in view(query)
