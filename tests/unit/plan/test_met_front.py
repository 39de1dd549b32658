"""Joins in front of a join as of PROCTIME(): they become one relation, and every name means what it did (G16, G21)."""

from __future__ import annotations

import pytest

from penstock.plan.job_plan import plan_job
from penstock.plan.nodes import Core, Join, all_nodes
from penstock.plan.relation import Mode
from tests.unit.plan.analysis import TRADES, last, planned

DECLARED = """
CREATE STREAM o (id BIGINT, cur STRING, at TIMESTAMP, seen AS PROCTIME(), WATERMARK FOR at AS at);
CREATE STREAM p (order_id BIGINT, cur STRING, amount BIGINT, at TIMESTAMP, WATERMARK FOR at AS at);
CREATE STREAM baskets (id BIGINT, curs ARRAY<STRING>);
CREATE TABLE rates (cur STRING, rate BIGINT, PRIMARY KEY (cur) NOT ENFORCED) WITH (connector = 'topic', changes = 'upsert');
CREATE TABLE accounts (id BIGINT, owner BIGINT, cur STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH (connector = 'topic', changes = 'upsert');
CREATE TABLE owners (num BIGINT, name STRING, PRIMARY KEY (num) NOT ENFORCED) WITH (connector = 'topic', changes = 'upsert');
CREATE MATERIALIZED VIEW most AS SELECT cur, MAX(amount) AS most FROM p GROUP BY cur;
"""
RATES = "rates FOR SYSTEM_TIME AS OF PROCTIME() AS r"
PAIRS = "o JOIN p ON o.id = p.order_id"


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        (f"SELECT o.id, p.amount, r.rate FROM {PAIRS} JOIN {RATES} ON o.cur = r.cur", "id amount rate"),
        (f"SELECT amount, p.cur, rate FROM {PAIRS} LEFT JOIN {RATES} ON p.cur = r.cur", "amount cur rate"),
        (f"SELECT o.*, rate FROM {PAIRS} JOIN {RATES} ON o.cur = r.cur", "id cur at seen rate"),
        (
            f"SELECT * FROM o JOIN p USING (cur, at) JOIN {RATES} USING (cur)",
            "cur at id seen order_id amount rate",
        ),
        ("SELECT rate FROM o JOIN p USING (cur) JOIN rates FOR SYSTEM_TIME AS OF o.seen AS r USING (cur)", "rate"),
        (
            f"SELECT b.id, c, r.rate FROM baskets b CROSS JOIN UNNEST(b.curs) AS t (c) JOIN {RATES} ON c = r.cur",
            "id c rate",
        ),
        (
            (
                f"SELECT o.id, r.rate, most FROM o, p JOIN {RATES} ON o.cur = r.cur "
                "LEFT JOIN most FOR SYSTEM_TIME AS OF PROCTIME() AS m ON m.cur = p.cur WHERE o.id = p.order_id AND rate > 3"
            ),
            "id rate most",
        ),
        (f"SELECT x.id, r.rate FROM (SELECT o.id, o.cur FROM {PAIRS}) AS x JOIN {RATES} ON x.cur = r.cur", "id rate"),
    ],
)
def test_rows_are_only_added(query: str, columns: str) -> None:
    plan = planned(f"{DECLARED} CREATE MATERIALIZED VIEW v AS {query};")
    assert plan.mode is Mode.APPEND
    assert [field.name for field in plan.columns] == columns.split()
    finish = plan_job(plan).finish
    assert finish is not None
    assert finish.view.once
    assert all(rows.passing for rows in finish.rows if rows.changes is None and rows.read is None)


def test_what_bounds_the_streams_may_stand_in_where() -> None:
    query = f"""SELECT o.id, r.rate FROM o, p JOIN {RATES} ON o.cur = r.cur
    WHERE o.id = p.order_id AND p.at BETWEEN o.at AND o.at + INTERVAL '1' HOUR"""
    plan = planned(f"{DECLARED} CREATE MATERIALIZED VIEW v AS {query};")
    cores = [node for node in all_nodes(plan.root) if isinstance(node, Core)]
    joins = [node for core in cores for node in all_nodes(core) if isinstance(node, Join)]
    assert [join.state.bound is not None for join in joins if join.state is not None] == [True]


def test_conditions_stay_behind_an_outer_join_that_makes_up_rows() -> None:
    query = f"SELECT o.id, q.cur FROM {PAIRS} JOIN {RATES} ON o.cur = r.cur RIGHT JOIN most q ON q.most = o.id WHERE p.amount > 3"
    plan = planned(f"{DECLARED} CREATE MATERIALIZED VIEW v AS {query};")
    core = next(node for node in all_nodes(plan.root) if isinstance(node, Core))
    assert not any("amount > 3" in str(getattr(node, "condition", "")) for node in all_nodes(core))


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN"])
def test_the_keys_of_rows_that_change_need_not_be_selected(kind: str) -> None:
    query = f"SELECT w.name, r.rate FROM accounts a {kind} owners w ON a.owner = w.num JOIN {RATES} ON a.cur = r.cur"
    job = plan_job(planned(f"{DECLARED} CREATE MATERIALIZED VIEW v AS {query};"))
    assert job.finish is not None
    front, met, _ = job.finish.stages
    assert front.words == "the rows in front"
    assert front.unique == ("a_id", "w_num")
    assert met.meets


@pytest.mark.parametrize("kind", ["LEFT", "RIGHT", "FULL"])
def test_rows_without_a_key_are_told_apart_by_all_that_is_asked_of_them(kind: str) -> None:
    query = (
        f"SELECT o.id, r.rate FROM o {kind} JOIN p ON o.id = p.order_id AND p.amount > 3 JOIN {RATES} ON o.cur = r.cur"
    )
    plan = planned(f"{DECLARED} CREATE MATERIALIZED VIEW v AS {query};")
    assert plan.mode is Mode.RETRACT
    finish = plan_job(plan).finish
    assert finish is not None
    front, met = finish.stages[-3:-1]
    assert front.unique == ("o_id", "o_cur", "p_order_id", "p_amount", "__copy")
    assert met.meets
    assert len(front.keys) == (4 if kind == "FULL" else 1)


@pytest.mark.parametrize(
    ("query", "condition", "told"),
    [
        (f"SELECT cur FROM {PAIRS} JOIN {RATES} ON o.cur = r.cur", "AMBIGUOUS_COLUMN", '"o", "p", "r"'),
        (f"SELECT o.other FROM {PAIRS} JOIN {RATES} ON o.cur = r.cur", "UNKNOWN_COLUMN", '"o.other"'),
        (
            f"SELECT o.id FROM o JOIN p AS r ON o.id = r.order_id JOIN {RATES} ON o.cur = r.cur",
            "DUPLICATE_ALIAS",
            '"r"',
        ),
    ],
)
def test_mistakes_are_told_as_ever(query: str, condition: str, told: str) -> None:
    error = last(f"{DECLARED} CREATE MATERIALIZED VIEW v AS {query};").error
    assert error is not None
    assert error.condition == condition
    assert told in f"{error} {error.hint}"
    assert error.span is not None


LAST = "(SELECT id, cur, at, ROW_NUMBER() OVER (PARTITION BY cur ORDER BY id) AS n FROM o) AS l"


@pytest.mark.parametrize(
    ("query", "told", "place"),
    [
        (
            f"SELECT l.id FROM {LAST} LEFT SEMI JOIN {RATES} ON l.cur = r.cur WHERE l.n < 3",
            "a SEMI JOIN as of PROCTIME() is not there yet, an inner one and LEFT JOIN are",
            "FOR",
        ),
        (
            f"SELECT l.id, p.amount FROM {LAST} JOIN p FOR SYSTEM_TIME AS OF PROCTIME() ON l.cur = p.cur WHERE l.n < 3",
            "rows of a stream that are only added have no version that is current",
            "FOR",
        ),
        (
            f"SELECT l.id, r.rate FROM {LAST} JOIN {RATES} ON l.cur = r.cur AND RAND() > 0.3 WHERE l.n < 3",
            "RAND differs each time it is computed",
            "RAND",
        ),
        (
            "SELECT o.id FROM o LEFT SEMI JOIN p FOR SYSTEM_TIME AS OF o.at ON o.cur = p.cur AND p.amount > 3",
            "a SEMI JOIN as of an event time goes by the equalities of its key alone",
            "o.cur",
        ),
        (
            f"SELECT o.id, x.m FROM o LEFT JOIN (SELECT id, MAP(curs[0], 1) AS m FROM baskets) x ON x.id = o.id JOIN {RATES} ON r.cur = o.cur",
            "no key tells the rows in front of it apart, and nothing says which values of type MAP<STRING, INT> are equal",
            "FOR",
        ),
    ],
)
def test_a_refusal_tells_its_own_reason(query: str, told: str, place: str) -> None:
    """The view store ranks the rows of a stream: that Spark by itself does not is no reason."""
    script = f"{DECLARED} CREATE MATERIALIZED VIEW v AS {query};"
    error = last(script).error
    assert error is not None
    assert error.condition == "VERSIONED_JOIN"
    assert told in str(error)
    assert "rank within a window" not in str(error.hint)
    assert error.span is not None
    assert (TRADES + script)[error.span.start :].startswith(place)


MOST = "most FOR SYSTEM_TIME AS OF PROCTIME() AS m"
NAMED = "names FOR SYSTEM_TIME AS OF PROCTIME() AS n ON n.id = o.cur"


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        (f"SELECT o.id, r.rate, n.name FROM o JOIN {RATES} ON o.cur = r.cur LEFT JOIN {NAMED}", "id rate name"),
        (f"SELECT o.id, r.rate, n.name FROM o LEFT JOIN {NAMED} JOIN {RATES} ON o.cur = r.cur", "id rate name"),
        (
            f"SELECT rate, name, most FROM o JOIN {RATES} ON o.cur = r.cur JOIN {NAMED} JOIN {MOST} ON m.cur = o.cur",
            "rate name most",
        ),
        (
            (
                f"SELECT p.amount, rate, name, most FROM {PAIRS} JOIN {RATES} ON r.cur = p.cur LEFT JOIN {MOST} ON m.cur = o.cur "
                "LEFT JOIN names n ON n.id = p.cur WHERE name <> 'x'"
            ),
            "amount rate name most",
        ),
        (
            (
                f"SELECT o.id, r.rate, n.name, again.rate AS other FROM o JOIN {RATES} ON o.cur = r.cur LEFT JOIN {NAMED} "
                "LEFT JOIN rates FOR SYSTEM_TIME AS OF PROCTIME() AS again ON again.cur = n.name"
            ),
            "id rate name other",
        ),
        (
            (
                f"SELECT *, 1 AS one FROM (SELECT id, cur AS c FROM o) AS o JOIN {RATES} ON r.cur = o.c "
                "JOIN (SELECT id AS num, name FROM names WHERE name > 'a') n ON n.num = o.c"
            ),
            "id c cur rate num name one",
        ),
    ],
)
def test_a_bounded_table_is_joined_wherever_it_stands(query: str, columns: str) -> None:
    """Spark joins it with the rows in front, which are only added, and the columns stay in their order."""
    plan = planned(f"{DECLARED} CREATE MATERIALIZED VIEW v AS {query};")
    assert plan.mode is Mode.APPEND
    assert [field.name for field in plan.columns] == columns.split()
    core = next(node for node in all_nodes(plan.root) if isinstance(node, Core))
    assert any(isinstance(node, Join) and node.strategy == "broadcast" for node in all_nodes(core))
    finish = plan_job(plan).finish
    assert finish is not None
    assert finish.view.once
    assert not any(rows.relation == "names" for rows in finish.rows)


@pytest.mark.parametrize(
    "query",
    [
        # it asks what the row has met
        f"SELECT o.id, n.name FROM o JOIN {RATES} ON o.cur = r.cur LEFT JOIN names n ON n.id = CAST(r.rate AS STRING)",
        # rows that a RIGHT JOIN makes up have no names
        f"SELECT o.id, n.name FROM o JOIN {RATES} ON o.cur = r.cur RIGHT JOIN most q ON q.most = o.id LEFT JOIN names n ON n.id = o.cur",
        # rows that change are told apart by their keys
        f"SELECT a.id, n.name FROM accounts a JOIN {RATES} ON a.cur = r.cur LEFT JOIN names n ON n.id = a.cur",
        # a column of USING is one of all relations in front
        f"SELECT cur, n.name FROM o JOIN {RATES} USING (cur) LEFT JOIN names n ON n.id = o.cur",
    ],
)
def test_elsewhere_it_stays_where_it_is(query: str) -> None:
    report = last(f"{DECLARED} CREATE MATERIALIZED VIEW v AS {query};")
    assert report.error is None, report.error
    assert report.plan is not None
    joins = [node for node in all_nodes(report.plan.root) if isinstance(node, Join)]
    cores = [node for node in all_nodes(report.plan.root) if isinstance(node, Core)]
    assert joins
    assert not any(isinstance(node, Join) for core in cores for node in all_nodes(core))
    assert report.plan.mode is not Mode.APPEND
