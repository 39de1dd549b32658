"""PIVOT and UNPIVOT: the queries that they are read as, and what is refused of them."""

from __future__ import annotations

import pytest

from penstock.errors import PenstockError
from penstock.plan.job_plan import plan_job
from penstock.sql.format import format_tree
from penstock.sql.script import parse_statement
from penstock.sql.statements import Select
from tests.unit.plan.analysis import last, planned

STREAM = "CREATE STREAM sales (shop STRING, kind STRING, amount BIGINT, cost BIGINT);"


def written(text: str) -> str:
    statement = parse_statement(text)
    assert isinstance(statement, Select)
    return " ".join(format_tree(statement.query.tree).split())


@pytest.mark.parametrize(
    ("clause", "query"),
    [
        (
            "PIVOT (SUM(amount) FOR kind IN ('a', 'b' AS other))",
            (
                "(SELECT * EXCEPT (kind, amount), SUM(amount) FILTER (WHERE kind = 'a') AS \"a\", "
                "SUM(amount) FILTER (WHERE kind = 'b') AS \"other\" FROM sales GROUP BY ALL)"
            ),
        ),
        (
            "PIVOT (SUM(amount) AS total, COUNT(*) AS n FOR (shop, kind) IN (('x', NULL))) AS p",
            (
                "(SELECT * EXCEPT (shop, kind, amount), SUM(amount) FILTER (WHERE shop = 'x' AND kind IS NULL) AS "
                '"x_null_total", COUNT(*) FILTER (WHERE shop = \'x\' AND kind IS NULL) AS "x_null_n" FROM sales GROUP BY ALL) AS p'
            ),
        ),
        (
            "UNPIVOT (v FOR k IN (amount, cost AS 'c')) AS u",
            (
                "(SELECT * EXCEPT (amount, cost, unpivoted_name, unpivoted_value), unpivoted_name AS k, unpivoted_value "
                "AS v FROM sales CROSS JOIN LATERAL (VALUES ('amount', amount), ('c', cost)) AS "
                "unpivoted(unpivoted_name, unpivoted_value) WHERE NOT unpivoted_value IS NULL) AS u"
            ),
        ),
    ],
)
def test_the_query_that_it_stands_for(clause: str, query: str) -> None:
    assert written(f"SELECT * FROM sales {clause}") == written(f"SELECT * FROM {query}")
    again = written(f"SELECT * FROM sales {clause}")
    assert written(again) == again


def test_the_columns_of_a_pivot() -> None:
    """Those that are neither counted nor spread are the keys."""
    query = "SELECT * FROM sales PIVOT (SUM(amount) FOR kind IN ('a', 'b'))"
    made = plan_job(planned(f"{STREAM} CREATE MATERIALIZED VIEW v AS {query};"))
    assert [column.name for column in made.columns] == ["shop", "cost", "a", "b"]
    assert made.key == ("shop", "cost")


def test_the_columns_of_an_unpivot() -> None:
    query = "SELECT * FROM sales UNPIVOT INCLUDE NULLS (amount FOR what IN (amount, cost))"
    made = plan_job(planned(f"{STREAM} CREATE MATERIALIZED VIEW v AS {query};"))
    assert [column.name for column in made.columns] == ["shop", "kind", "what", "amount"]
    assert made.kind == "append"


@pytest.mark.parametrize(
    ("clause", "hint"),
    [
        ("PIVOT (SUM(amount) FOR kind IN (SELECT kind FROM kinds))", "write the values out"),
        ("PIVOT (SUM(amount) FOR kind IN (ANY))", "write the values out"),
        ("PIVOT (SUM(amount) FOR kind IN (shop))", "write the values out"),
        ("PIVOT (SUM(amount), MAX(amount) FOR kind IN ('a'))", "name each"),
        ("PIVOT (SUM(amount) + 1 FOR kind IN ('a'))", "around the PIVOT"),
        ("UNPIVOT ((v, w) FOR k IN ((amount, cost)))", "UNION ALL"),
    ],
)
def test_what_is_refused(clause: str, hint: str) -> None:
    with pytest.raises(PenstockError) as raised:
        parse_statement(f"SELECT * FROM sales {clause}")
    assert raised.value.condition == "CLAUSE_NOT_YET"
    assert hint in str(raised.value.hint)


def test_a_column_may_have_the_name() -> None:
    assert last(f"{STREAM} SELECT pivot.shop AS unpivot FROM sales AS pivot").error is None
