"""What an answer is sorted by that is asked for once: what is selected, and further columns where that is not (B7)."""

from __future__ import annotations

import pytest

from penstock.plan.analyze import analyze
from penstock.plan.asked_order import answer_in_order, with_order_shown
from penstock.plan.job_plan import plan_job
from penstock.sql.statements import Query, Select
from tests.unit.plan.analysis import last

STREAM = "CREATE STREAM e (id BIGINT, k STRING, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts);"


def asked(query: str) -> Query:
    statement = last(f"{STREAM} {query};").statement
    assert isinstance(statement, Select)
    return statement.query


@pytest.mark.parametrize(
    ("query", "order", "added"),
    [
        ("SELECT * FROM e ORDER BY v DESC, id LIMIT 3", '"v" DESC NULLS LAST, "id" ASC NULLS FIRST', 0),
        ("SELECT k, v FROM e ORDER BY 2, 1 DESC LIMIT 3", '"v" ASC NULLS FIRST, "k" DESC NULLS LAST', 0),
        ("SELECT DISTINCT k FROM e ORDER BY k NULLS LAST LIMIT 3", '"k" ASC NULLS LAST', 0),
        ("SELECT k FROM e ORDER BY id % 2, e.v LIMIT 3", None, 2),
        ("SELECT k, COUNT(*) AS n FROM e GROUP BY k ORDER BY n DESC, MAX(ts) LIMIT 3", None, 1),
    ],
)
def test_what_it_is_sorted_by(query: str, order: str | None, added: int) -> None:
    shown = with_order_shown(asked(query))
    declared = last(STREAM).analysis
    assert declared is not None
    plan = analyze(Select(query=shown), declared.session).plans[0]
    text = answer_in_order(plan, plan_job(plan), "result")
    assert text.count("EXCLUDE") == (1 if added else 0)
    assert len(shown.tree.selects) == len(asked(query).tree.selects) + added
    if order is not None:
        assert text == f'SELECT * FROM "result" ORDER BY {order}'
    else:
        assert text.split(" ORDER BY ")[1].count("__qualified_order") == added


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k FROM e LIMIT 3",
        "SELECT k, v FROM e UNION SELECT k, v FROM e ORDER BY v LIMIT 3",
        "SELECT k, SUM(v) AS s FROM e GROUP BY ALL ORDER BY k LIMIT 3",
    ],
)
def test_what_needs_no_further_columns_is_left_as_it_is(query: str) -> None:
    found = asked(query)
    assert with_order_shown(found) is found
