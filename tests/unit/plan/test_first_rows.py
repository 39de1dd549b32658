"""The first row of each key: which spellings are append-only and by which keys rows are dropped (G13, G14)."""

from __future__ import annotations

import pytest

from penstock.errors import NotYetError
from penstock.plan.job_plan import JobPlan, plan_job
from tests.unit.plan.analysis import planned, refused

SETUP = """
CREATE STREAM clicks (id STRING, url STRING, ts TIMESTAMP, arrived AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND);
"""


def job(sql: str) -> JobPlan:
    return plan_job(planned(f"{SETUP} CREATE MATERIALIZED VIEW v AS {sql};"))


@pytest.mark.parametrize(
    ("sql", "keys", "bounded"),
    [
        # Flink
        (("SELECT id, url FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY arrived ASC) AS row_num FROM clicks) "
         "WHERE row_num = 1"), ["id"], False),
        (("SELECT id, url FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY PROCTIME()) AS rn FROM clicks) AS c "
         "WHERE rn <= 1 AND url <> ''"), ["id"], False),
        ("SELECT id, url FROM clicks QUALIFY ROW_NUMBER() OVER (PARTITION BY id, url ORDER BY PROCTIME()) = 1",
         ["id", "url"], False),
        # with the event time among the keys it says when a key can be forgotten; an order by a key orders nothing
        (("SELECT id, url, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id, ts ORDER BY ts) AS rn FROM clicks) "
         "WHERE rn = 1"), ["id", "ts"], True),
        ("SELECT url FROM clicks QUALIFY ROW_NUMBER() OVER (PARTITION BY id, ts ORDER BY PROCTIME()) = 1",
         ["__p0", "__event_time"], True),
        # RisingWave and PostgreSQL
        ("SELECT DISTINCT ON (id) id, url, ts FROM clicks", ["id"], False),
        ("SELECT DISTINCT ON (id) url FROM clicks WHERE url <> ''", ["__p0"], False),
        ("SELECT DISTINCT ON (id, ts) id, url, ts FROM clicks ORDER BY id, ts", ["id", "ts"], True),
        ("SELECT DISTINCT ON (lower(id)) id, url FROM clicks", ["__p0"], False),
    ],
)  # fmt: skip
def test_keys(sql: str, keys: list[str], bounded: bool) -> None:
    found = job(sql)
    (step,) = found.steps
    assert list(step.keys) == keys
    assert "row_number" not in (found.core + step.sql).lower(), "Spark has none on a stream"
    assert found.kind == "append"
    assert found.uses_event_time is bounded
    assert (found.late is not None) is bounded
    assert [kept.kind for kept in found.kept] == ["distinct"]
    assert ("for ever" in found.how) is not bounded
    warnings = planned(f"{SETUP} CREATE MATERIALIZED VIEW v AS {sql};").warnings
    assert any("every key for ever" in text for text in warnings) is not bounded


def test_windows_and_sums_over_first_rows() -> None:
    found = job(
        "SELECT id, COUNT(*) AS n FROM (SELECT DISTINCT ON (id, ts) id, url, ts FROM clicks) AS c "
        "GROUP BY id, TUMBLE(ts, INTERVAL '1' MINUTE)"
    )
    assert [kept.kind for kept in found.kept] == ["aggregate", "distinct"]
    found = job("SELECT url, COUNT(*) AS n FROM (SELECT DISTINCT ON (id) id, url FROM clicks) AS c GROUP BY url")
    assert (found.kind, found.steps[0].keys) == ("merge", ("id",))


def test_the_state_is_the_keys() -> None:
    """Other columns may be selected over the same state; other keys are another state."""
    text = "SELECT DISTINCT ON ({}) {} FROM clicks"
    assert job(text.format("id", "id, url")).fingerprint == job(text.format("id", "id, ts")).fingerprint
    assert job(text.format("id", "id, url")).fingerprint != job(text.format("url", "id, url")).fingerprint


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT DISTINCT ON (id) id, url FROM clicks ORDER BY id, ts",
        "SELECT DISTINCT ON (id) id, url FROM clicks ORDER BY id, url",
        "SELECT id FROM clicks QUALIFY ROW_NUMBER() OVER (PARTITION BY id ORDER BY ts) = 1",
        "SELECT id FROM clicks QUALIFY ROW_NUMBER() OVER (PARTITION BY id ORDER BY arrived DESC) = 1",
        "SELECT id FROM clicks QUALIFY ROW_NUMBER() OVER (PARTITION BY id ORDER BY arrived) <= 2",
        "SELECT id FROM clicks QUALIFY RANK() OVER (PARTITION BY id ORDER BY arrived) = 1",
        "SELECT id FROM clicks QUALIFY ROW_NUMBER() OVER (ORDER BY arrived) = 1",
    ],
)
def test_rows_that_could_still_be_replaced(sql: str) -> None:
    """A row that comes later could take the place of one that was shown: the view store answers from all of them, and
    a sink of added rows does not take it."""
    assert job(sql).kind == "finish"
    assert refused(f"{SETUP} CREATE SINK v WITH (connector = 'topic') AS {sql};") == "SINK_CANNOT_UPDATE"


def test_a_window_over_keys_that_are_kept_for_ever() -> None:
    """Spark finds the first rows, and would drop some of them beside a window: the view store puts them into it."""
    query = (
        "SELECT id, COUNT(*) AS n FROM (SELECT DISTINCT ON (id) id, ts FROM clicks) AS c "
        "GROUP BY id, TUMBLE(ts, INTERVAL '1' MINUTE)"
    )
    made = job(query)
    assert made.kind == "finish"
    assert made.kept
    with pytest.raises(NotYetError) as raised:
        job(f"{query} EMIT FINAL")
    assert "first rows of keys" in raised.value.message
    assert "event time" in (raised.value.hint or "")


BOTH = "SELECT symbol, price FROM trades UNION ALL SELECT symbol, bid AS price FROM quotes"


@pytest.mark.parametrize(
    "sql",
    [
        f"CREATE MATERIALIZED VIEW v WITH (state_ttl = '1 day') AS SELECT DISTINCT ON (symbol) symbol, price FROM ({BOTH}) AS t",
        (
            f"CREATE VIEW t AS {BOTH}; CREATE MATERIALIZED VIEW v WITH (state_ttl = '1 day') AS "
            "SELECT DISTINCT ON (symbol) symbol, price FROM t"
        ),
        (
            f"CREATE VIEW t AS {BOTH}; CREATE VIEW u AS SELECT * FROM t WHERE price > 1; "
            "CREATE MATERIALIZED VIEW v WITH (state_ttl = '1 day') AS SELECT symbol, price FROM "
            "(SELECT *, ROW_NUMBER() OVER (PARTITION BY symbol ORDER BY PROCTIME()) AS rn FROM u) WHERE rn = 1"
        ),
        (
            "CREATE VIEW t AS SELECT symbol, price FROM trades; CREATE MATERIALIZED VIEW v WITH (state_ttl = '1 day') AS "
            "SELECT DISTINCT ON (symbol) symbol, price FROM t"
        ),
    ],
)
def test_first_rows_of_several_streams_are_forgotten(sql: str) -> None:
    """By the time of the batch that brought a row, which it has where its stream is read, inside of a view too."""
    plan = planned(sql)
    job = plan_job(plan)
    assert job.kind == "finish"
    assert job.ttl_us == 86_400_000_000
    if "CREATE VIEW" in sql:
        assert {"t", "u"} & {*plan.depends_on}
    assert refused(f"{sql}; DROP VIEW t") == ("DEPENDENT_OBJECTS" if "CREATE VIEW" in sql else "UNKNOWN_RELATION")
