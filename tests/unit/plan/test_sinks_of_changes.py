"""Queries whose rows change, into sinks: what is taken, by which key, and what is refused at plan time."""

from __future__ import annotations

import pytest

from penstock.catalog.model import SinkDefinition
from penstock.plan.job_plan import plan_job
from penstock.plan.script import StatementReport, analyze_script

SETUP = """
CREATE STREAM trades (symbol STRING, price BIGINT, id BIGINT);
CREATE STREAM accounts (id BIGINT, owner STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (connector = 'topic', changes = 'upsert');
"""
TOP = "SELECT symbol, price, ROW_NUMBER() OVER (PARTITION BY symbol ORDER BY price DESC, id) AS place FROM trades"
KAFKA = "connector = 'upsert-kafka', topic = 't', key.format = 'json'"


def report(statement: str) -> StatementReport:
    return analyze_script(f"{SETUP}{statement};")[-1]


@pytest.mark.parametrize(
    ("query", "key", "kind"),
    [
        ("SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol", ("symbol",), "merge"),
        (f"SELECT symbol, place, price FROM ({TOP}) AS x WHERE place <= 3", ("symbol", "place"), "finish"),
        (f"SELECT symbol, price FROM ({TOP}) AS x WHERE place = 1", ("symbol",), "finish"),
        ("SELECT DISTINCT symbol FROM trades", ("symbol",), "finish"),
        ("SELECT symbol FROM trades EXCEPT SELECT owner FROM accounts", ("symbol",), "finish"),
        ("SELECT id AS n, owner FROM accounts WHERE owner <> 'x'", ("n",), "finish"),
        (
            "SELECT a.id, b.id AS other FROM accounts a LEFT JOIN accounts b ON a.owner = b.owner",
            ("id", "other"),
            "finish",
        ),
        ("SELECT owner, COUNT(*) AS n FROM accounts GROUP BY owner", ("owner",), "finish"),
    ],
)
def test_the_key_of_upserts_is_that_of_the_query(query: str, key: tuple[str, ...], kind: str) -> None:
    found = report(f"CREATE SINK k WITH ({KAFKA}) AS {query}")
    assert found.error is None
    assert found.analysis is not None
    sink, plan = found.analysis.definition, found.analysis.plan
    assert isinstance(sink, SinkDefinition)
    assert plan is not None
    assert (sink.primary_key, sink.options.values["key.fields"]) == (key, key)
    assert plan_job(plan).kind == kind


@pytest.mark.parametrize(
    ("sink", "query", "condition"),
    [
        ("connector = 'topic'", "SELECT DISTINCT symbol FROM trades", "SINK_CANNOT_UPDATE"),
        ("connector = 'http', url = 'http://h'", "SELECT owner FROM accounts", "SINK_CANNOT_UPDATE"),
        (KAFKA, "SELECT owner FROM accounts", "KEY_MISMATCH"),
        (KAFKA, "SELECT price FROM trades ORDER BY price LIMIT 2", "KEY_MISMATCH"),
        (f"{KAFKA}, primary_key = 'owner'", "SELECT id, owner FROM accounts", "KEY_MISMATCH"),
        (f"{KAFKA}, primary_key = 'owner;id'", "SELECT id, owner FROM accounts", None),
        ("connector = 'kafka', topic = 't', format = 'debezium-json'", "SELECT owner FROM accounts", None),
        ("connector = 'http', url = 'http://h', changes = 'retract'", "SELECT owner FROM accounts", None),
        ("connector = 'console'", TOP, None),
    ],
)
def test_what_a_sink_can_take(sink: str, query: str, condition: str | None) -> None:
    error = report(f"CREATE SINK k WITH ({sink}) AS {query}").error
    assert (None if error is None else error.condition) == condition


def test_rows_that_are_only_added_stay_in_spark() -> None:
    found = report("CREATE SINK k WITH (connector = 'topic') AS SELECT symbol FROM trades WHERE price > 1")
    assert found.analysis is not None
    assert found.analysis.plan is not None
    assert plan_job(found.analysis.plan).kind == "append"
