"""Which joins of windows the view store answers when they close, and what a job does for them (G9, D4, P2)."""

from __future__ import annotations

import pytest

from penstock.plan.explain import plan_text
from penstock.plan.job_plan import JobPlan, plan_job
from penstock.plan.pane_plan import PanePlan
from tests.unit.plan.analysis import last, planned

SECOND = 1_000_000
TRADED = """(SELECT symbol, window_start, window_end, COUNT(*) AS n FROM TUMBLE(TABLE trades, DESCRIPTOR(ts), INTERVAL '10' SECOND)
    WHERE volume > 0 GROUP BY symbol, window_start, window_end)"""
QUOTED = """(SELECT symbol, window_start, window_end, MAX(bid) AS most FROM TUMBLE(TABLE quotes, DESCRIPTOR(at), INTERVAL '10' SECOND)
    GROUP BY symbol, window_start, window_end)"""
ON = "a.symbol = b.symbol AND a.window_start = b.window_start AND a.window_end = b.window_end"


def job(query: str, state: str | None = None) -> JobPlan:
    return plan_job(planned(f"CREATE MATERIALIZED VIEW v AS {query};"), state=state)


def flat(text: str | None) -> str:
    return " ".join((text or "").split())


def test_both_sides_are_reduced_by_pane() -> None:
    """One batch has the rows of both sides, each in columns of its own; the store joins what closes."""
    query = f"SELECT a.symbol, a.window_start, n + 1 AS more, most FROM {TRADED} AS a JOIN {QUOTED} AS b ON {ON} WHERE n < most"
    made = job(query)
    assert (made.kind, made.panes) == ("panes", PanePlan(10 * SECOND, 10 * SECOND))
    core = flat(made.core)
    assert "window(" not in core
    assert core.startswith("SELECT 0 AS `__side`, `trades`.`__window` AS `__pane`, `trades`.`symbol` AS `__s0__k0`")
    assert "UNION ALL SELECT 1 AS `__side`, `quotes`.`__window` AS `__pane`, NULL AS `__s0__k0`" in core
    assert "JOIN" not in core
    assert flat(made.batch).endswith(
        "count(`__s0__a0`) AS `__s0__p0`, max(`__s1__a0`) AS `__s1__p0` FROM `__batch` "
        "GROUP BY `__side`, `__pane`, `__s0__k0`, `__s1__k0`"
    )
    assert [(each.partial, each.how, each.argument) for each in made.reductions] == [
        ("__s0__p0", "count", "__s0__a0"),
        ("__s1__p0", "max", "__s1__a0"),
    ]
    assert made.joined is not None
    assert [side.name for side in made.joined.sides] == ["__closed_0", "__closed_1"]
    assert [side.panes.shown for side in made.joined.sides] == [(("count", "__p0"),), (("max", "__p0"),)]
    assert '"__closed_0" AS "a" JOIN "__closed_1" AS "b" ON' in made.joined.text
    assert "WHERE" in made.joined.text
    assert [str(column.type) for column in made.columns] == ["STRING", "TIMESTAMP", "BIGINT", "DOUBLE"]
    assert (made.uses_event_time, made.spread_us, made.kept, made.rests) == (True, 10 * SECOND, (), True)
    assert flat(made.late).count("window(") == 2, "late rows are told of both streams"
    told = plan_text(planned(f"CREATE MATERIALIZED VIEW v AS {query};"))
    assert "keeps the windows of both sides of the join, and joins them when they close" in told
    assert "WindowJoin  kind inner, strategy view store" in told
    assert "state       WindowJoin" not in told
    assert told.count("state       Aggregate") == 2
    told = plan_text(planned(f"CREATE MATERIALIZED VIEW v WITH (state = 'spark') AS {query};"))
    assert "state       WindowJoin" in told
    spark = job(query, state="spark")
    assert (spark.kind, spark.joined) == ("append", None)
    assert spark.how.endswith("windows close there")
    assert spark.fingerprint != made.fingerprint
    assert job(query.replace("n + 1", "n + 2")).fingerprint == made.fingerprint, "what is shown is no state"
    assert job(query.replace("volume > 0", "volume > 1")).fingerprint != made.fingerprint


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("LEFT JOIN", 'LEFT JOIN "__closed_1"'),
        ("RIGHT JOIN", 'RIGHT JOIN "__closed_1"'),
        ("FULL JOIN", 'FULL JOIN "__closed_1"'),
        ("SEMI JOIN", 'SEMI JOIN "__closed_1"'),
        ("ANTI JOIN", 'WHERE ("b"."__window" IS NULL)'),
    ],
)
def test_each_kind_of_join(kind: str, text: str) -> None:
    """A window is complete on both sides when it closes, so what has no partner has none for good."""
    made = job(f"SELECT a.symbol, a.n FROM {TRADED} AS a {kind} {QUOTED} AS b ON {ON}")
    assert made.joined is not None
    assert text in made.joined.text


def test_more_sides_and_windows_that_overlap() -> None:
    """One stream twice, a join over a join, the windows of HOP; the ends of the windows alone are enough."""
    hop = TRADED.replace("TUMBLE", "HOP").replace("INTERVAL '10'", "INTERVAL '4' SECOND, INTERVAL '10'")
    made = job(f"""
        SELECT j.symbol, j.n, c.n AS third FROM (
            SELECT a.symbol, a.n, b.window_end FROM {hop} AS a JOIN {hop} AS b ON a.n < b.n AND a.window_end = b.window_end
        ) AS j LEFT JOIN {hop} AS c ON j.window_end = c.window_end AND j.symbol = c.symbol
    """)
    assert made.joined is not None
    assert made.panes == PanePlan(10 * SECOND, 4 * SECOND)
    assert len(made.joined.sides) == len(made.scans) == 3
    assert "by pane of 2 seconds, the view store makes windows of the panes of all 3 sides of the join" in made.how


@pytest.mark.parametrize(
    ("query", "why"),
    [
        (f"SELECT md5(a.symbol) AS s, b.symbol || most AS t FROM {TRADED} AS a JOIN {QUOTED} AS b ON {ON}", "only Spark knows"),
        (f"SELECT a.n FROM {TRADED.replace('COUNT(*)', 'STDDEV(price)')} AS a JOIN {QUOTED} AS b ON {ON}", "does not merge"),
        (f"SELECT a.n FROM {TRADED.replace('COUNT(*)', 'COUNT(DISTINCT price)')} AS a JOIN {QUOTED} AS b ON {ON}",
         "does not merge"),
        (f"SELECT DISTINCT a.n, a.window_start, a.window_end FROM {TRADED} AS a JOIN {QUOTED} AS b ON {ON}",
         "columns and conditions"),
        (f"SELECT a.price FROM TUMBLE(TABLE trades, DESCRIPTOR(ts), INTERVAL '10' SECOND) AS a JOIN {QUOTED} AS b ON {ON}",
         "one GROUP BY"),
        (f"SELECT a.n, d.name FROM {TRADED} AS a JOIN {QUOTED} AS b ON {ON} JOIN names AS d ON d.id = a.symbol",
         "one GROUP BY"),
        (f"SELECT COUNT(*) AS k FROM {TRADED} AS a JOIN {QUOTED} AS b ON {ON} GROUP BY a.window_start, a.window_end",
         "one GROUP BY"),
    ],
)  # fmt: skip
def test_what_spark_joins(query: str, why: str) -> None:
    """P2: EXPLAIN says that Spark joins the windows, and why."""
    made = job(query)
    assert (made.kind, made.joined) == ("append", None)
    assert "windows close there" in made.how
    assert why in made.how


def test_a_sink_is_left_to_spark() -> None:
    """Its rows need not come together in one place."""
    made = plan_job(planned(f"""
        CREATE STREAM found (symbol STRING, n BIGINT) WITH (connector = 'topic');
        INSERT INTO found SELECT a.symbol, a.n FROM {TRADED} AS a JOIN {QUOTED} AS b ON {ON};
    """))  # fmt: skip
    assert (made.kind, made.joined) == ("append", None)


def test_no_name_of_the_plan_is_told() -> None:
    """A window that outlives the join by it is copied, which is no column of the user's."""
    counted = """(SELECT window_start, COUNT(*) AS n FROM TUMBLE(TABLE trades, DESCRIPTOR(ts), INTERVAL '10' SECOND)
        GROUP BY window_start, window_end)"""
    query = (
        f"SELECT x.window_start, y.n AS b, z.n AS c FROM {counted} AS x FULL JOIN {counted} AS y "
        f"ON x.window_start = y.window_start JOIN {counted} AS z ON z.window_start = y.window_start"
    )
    told = plan_text(planned(f"CREATE MATERIALIZED VIEW v AS {query};"))
    assert "the window is computed in a way that only Spark knows" in told
    assert "__" not in told


def test_an_event_time_is_told_once() -> None:
    told = plan_text(
        planned("SELECT symbol FROM trades WHERE volume > 1 UNION ALL SELECT symbol FROM trades WHERE volume < 1")
    )
    assert told.count("event time  trades.ts") == 1
    assert told.count("Scan  trades") == 2


SPANS = {
    "a": "TUMBLE(TABLE trades, DESCRIPTOR(ts), INTERVAL '10' SECOND)",
    "b": "HOP(TABLE quotes, DESCRIPTOR(at), INTERVAL '5' SECOND, INTERVAL '20' SECOND, INTERVAL '1' SECOND)",
}


def counted(side: str) -> str:
    return (
        f"(SELECT symbol, window_start AS s, window_end AS e, COUNT(*) AS n FROM {SPANS[side]} "
        f"GROUP BY symbol, window_start, window_end) AS {side}"
    )


@pytest.mark.parametrize(
    "rows",
    [
        f"{counted('a')} JOIN {counted('b')} ON a.e = b.e AND a.symbol = b.symbol",
        f"{counted('a')}, {counted('b')} WHERE b.e = a.e AND a.n < b.n",
    ],
)
def test_windows_of_different_kinds_that_end_together_are_joined_when_they_close(rows: str) -> None:
    made = job(f"SELECT a.symbol, a.e, b.s, b.n FROM {rows}")
    assert made.kind == "panes"
    assert made.joined is not None
    panes = [PanePlan(side.panes.size_us, side.panes.slide_us, side.panes.offset_us) for side in made.joined.sides]
    assert panes == [
        PanePlan(10 * SECOND, 10 * SECOND),
        PanePlan(20 * SECOND, 5 * SECOND, 1 * SECOND),
    ]
    assert (made.uses_event_time, made.spread_us, made.kept, made.rests) == (True, 20 * SECOND, (), True)
    assert flat(made.late).count("window(") == 2
    told = plan_text(planned(f"CREATE MATERIALIZED VIEW v AS SELECT a.symbol, a.e, b.s, b.n FROM {rows};"))
    assert "by pane of 10 seconds or 5 seconds" in told
    assert "for ever" not in told
    assert "state       Join" not in told


@pytest.mark.parametrize(
    ("join", "on", "target"),
    [
        ("JOIN", "a.s = b.s", "MATERIALIZED VIEW v"),
        ("LEFT JOIN", "a.e = b.e", "MATERIALIZED VIEW v"),
        ("JOIN", "a.e = b.e", "SINK v WITH (connector = 'blackhole')"),
        ("JOIN", "a.e = b.e", "MATERIALIZED VIEW v WITH (state = 'spark')"),
    ],
)
def test_elsewhere_they_are_joined_as_rows_that_stay(join: str, on: str, target: str) -> None:
    """What no watermark lets go of is told."""
    query = f"SELECT a.symbol, a.e, b.n FROM {counted('a')} {join} {counted('b')} ON {on} AND a.symbol = b.symbol"
    plan = planned(f"CREATE {target} AS {query};")
    assert plan_job(plan).joined is None
    assert "for ever" in plan_text(plan)


def test_rows_that_are_not_grouped_by_their_windows_have_to_be_in_the_same() -> None:
    error = last(
        f"CREATE MATERIALIZED VIEW v AS SELECT a.symbol FROM {SPANS['a']} AS a JOIN {SPANS['b']} AS b "
        "ON a.window_end = b.window_end"
    ).error
    assert error is not None
    assert error.condition == "WINDOW_MISMATCH"
    assert "group both by their windows" in str(error.hint)
