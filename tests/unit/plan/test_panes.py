"""Which windows are kept as panes, and what a job does for them (D4, D19, P2)."""

from __future__ import annotations

import pytest

from penstock.plan.explain import plan_text
from penstock.plan.fingerprint import describe_difference
from penstock.plan.job_plan import JobPlan, plan_job
from penstock.plan.pane_plan import PanePlan
from tests.unit.plan.analysis import planned

SECOND = 1_000_000
HOP = "HOP(ts, INTERVAL '2' SECOND, INTERVAL '10' SECOND)"
TABLE = "HOP(TABLE trades, DESCRIPTOR(ts), INTERVAL '4' SECOND, INTERVAL '10' SECOND, INTERVAL '5' SECOND)"


def job(query: str, state: str | None = None) -> JobPlan:
    return plan_job(planned(f"CREATE MATERIALIZED VIEW v AS {query};"), state=state)


def flat(text: str | None) -> str:
    return " ".join((text or "").split())


def test_a_row_counts_in_one_pane() -> None:
    """Spark computes the pane, not the windows; FILTER goes into the arguments, HAVING and what is computed from
    aggregates to the store."""
    made = job(f"""
        SELECT symbol, HOP_END(ts, INTERVAL '2' SECOND, INTERVAL '10' SECOND) AS e, COUNT(*) AS n,
               SUM(volume) FILTER (WHERE price > 1) + 1 AS total
        FROM trades WHERE volume > 0 GROUP BY symbol, {HOP} HAVING MAX(price) > 5
    """)
    assert made.kind == "panes"
    assert made.panes == PanePlan(10 * SECOND, 2 * SECOND, 0, (("count", "__p0"), ("max", "__p2"), ("sum", "__p1")))
    assert made.panes.windows == 5
    core = flat(made.core)
    assert "window(" not in core
    assert "( unix_micros(`trades`.`ts`) - pmod(unix_micros(`trades`.`ts`), 2000000) ) AS `__pane`" in core
    assert "WHERE `trades`.`volume` > 0" in core
    assert flat(made.batch).endswith("FROM `__batch` GROUP BY `__pane`, `__k0`")
    assert made.merge is not None
    assert [column.expression for column in made.merge.columns][:3] == ['"__k0"', '"__end"', '"__p0"']
    assert made.merge.keep is not None
    assert '"__p2"' in made.merge.keep
    assert (made.uses_event_time, made.spread_us, made.kept) == (True, 10 * SECOND, ())
    assert made.late is not None
    assert "window(" in made.late, "late rows are told window by window"


def test_windows_of_a_relation() -> None:
    """The pane takes the place of the window below the GROUP BY; a size that is no multiple of the slide, an offset."""
    made = job(f"""
        SELECT * FROM (
            SELECT window_start, window_end, window_time, AVG(price) AS mean FROM {TABLE} WHERE volume > 1
            GROUP BY window_start, window_end, window_time
        ) WHERE mean > 3
    """)
    assert made.kind == "panes"
    assert made.panes == PanePlan(10 * SECOND, 4 * SECOND, SECOND, (("count", "__p1"), ("sum", "__p0")))
    assert made.panes.pane_us == 2 * SECOND
    core = flat(made.core)
    assert "pmod(unix_micros(`trades`.`ts`) - 1000000, 2000000) ) AS `__window`" in core
    assert "`trades`.`__window` AS `__pane`" in core
    assert "window(" not in core
    assert made.merge is not None
    assert [column.expression for column in made.merge.columns][:3] == ['"__start"', '"__end"', '"__time"']
    whole = job(
        "SELECT hop(interval '2 seconds', interval '10 seconds') AS window, COUNT(*) AS n FROM trades GROUP BY window"
    )
    assert whole.merge is not None
    assert whole.merge.columns[0].expression == '"__window"'


@pytest.mark.parametrize(
    ("query", "why"),
    [
        (f"SELECT COUNT(DISTINCT symbol) AS n FROM trades GROUP BY {HOP}", "does not merge"),
        (f"SELECT PERCENTILE(price, 0.5) AS n FROM trades GROUP BY {HOP}", "does not merge"),
        (f"SELECT STDDEV(price) AS n FROM trades GROUP BY {HOP}", "does not merge"),
        (f"SELECT max_by(symbol, price) AS n FROM trades GROUP BY {HOP}", "does not merge"),
        (f"SELECT md5(MAX(symbol)) AS n FROM trades GROUP BY {HOP}", "in a way that only Spark knows"),
        (f"SELECT COUNT(*) AS n FROM {TABLE} WHERE window_end > TIMESTAMP '2020-01-01' GROUP BY window_start, window_end",
         "the window is read before"),
        (f"SELECT MAX(window_end) AS n FROM {TABLE} GROUP BY window_start, window_end", "the window is read before"),
        (f"SELECT COUNT(*) AS n FROM trades JOIN quotes ON trades.symbol = quotes.symbol AND at = ts GROUP BY {HOP}",
         "one stream"),
        (f"SELECT COUNT(*) AS n FROM (SELECT DISTINCT symbol, ts FROM trades) GROUP BY {HOP}", "one stream"),
    ],
)  # fmt: skip
def test_what_spark_keeps(query: str, why: str) -> None:
    """P2: EXPLAIN says that Spark keeps the windows, and why."""
    made = job(query)
    assert made.kind == "append"
    assert made.panes is None
    assert "windows close there" in made.how
    assert why in made.how


@pytest.mark.parametrize(
    "query",
    [
        "SELECT COUNT(*) AS n FROM trades GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)",
        "SELECT COUNT(*) AS n FROM trades GROUP BY HOP(ts, INTERVAL '10' SECOND, INTERVAL '10' SECOND)",
    ],
)
def test_a_window_that_does_not_overlap_is_one_pane(query: str) -> None:
    """EXPLAIN speaks of windows then."""
    made = job(query)
    assert (made.kind, made.panes) == ("panes", PanePlan(10 * SECOND, 10 * SECOND, 0, (("count", "__p0"),)))
    assert "by window of 10 seconds, the view store keeps the windows until they close" in made.how
    assert job(query, state="spark").how == "Spark; windows close there"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT COUNT(*) AS n FROM trades GROUP BY SESSION(ts, INTERVAL '10' SECOND)",
        f"SELECT symbol, COUNT(*) AS n FROM trades GROUP BY GROUPING SETS ((symbol, {HOP}), ({HOP}))",
    ],
)
def test_other_windows_stay(query: str) -> None:
    """Sessions have no bounds that are known before, and a row is in several groupings."""
    made = job(query)
    assert (made.kind, made.panes) == ("append", None)


def test_only_views_have_panes() -> None:
    """A result that is handed out, and a view that asks for Spark, have no store to keep panes in."""
    query = f"SELECT COUNT(*) AS n FROM trades GROUP BY {HOP}"
    assert plan_job(planned(f"{query};")).kind == "append"
    assert job(query, state="spark").kind == "append"
    assert job(query).kind == "panes"
    asked = planned(f"CREATE MATERIALIZED VIEW v WITH (state = 'spark') AS {query};")
    assert plan_job(asked).kind == "append"
    assert "engine      Spark; windows close there" in plan_text(asked)


@pytest.mark.parametrize(
    ("window", "kind"),
    [("TUMBLE(ts, INTERVAL '10' SECOND)", "append"), ("HOP(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND)", "append"),
     (HOP, "panes")],
)  # fmt: skip
def test_spark_writes_windows_of_sinks_that_hardly_overlap(window: str, kind: str) -> None:
    """Its executors do, each its share; a view of the same windows is in the store anyway."""
    query = f"SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol, {window}"
    sink = planned(f"CREATE SINK s WITH (connector = 'console') AS {query};")
    assert (plan_job(sink).kind, job(query).kind) == (kind, "panes")


def test_explain_tells_of_panes() -> None:
    """P2: who keeps what."""
    plan = planned(f"CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM trades GROUP BY {HOP};")
    assert (
        "engine      Spark aggregates each batch by pane of 2 seconds, the view store keeps the panes and closes "
        "windows: a row counts in one pane instead of 5 windows" in plan_text(plan)
    )


def test_state_of_spark_is_not_taken_for_panes() -> None:
    """Whoever kept the windows before, a job does not go on from the state of the other."""
    query = f"SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol, {HOP}"
    ours, sparks = job(query), job(query, state="spark")
    assert ours.fingerprint != sparks.fingerprint
    assert describe_difference(sparks.state, ours.state) == ("its state was kept by Spark and is now by the view store")
    assert job(query.replace("COUNT(*)", "COUNT(*) + 1")).fingerprint == ours.fingerprint


def test_a_sink_is_given_what_the_store_closes() -> None:
    """Of a sink Spark keeps the windows only where that is asked for."""
    query = f"SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol, {HOP}"
    plan = planned(f"CREATE SINK k WITH (connector = 'kafka', topic = 't', format = 'json') AS {query};")
    assert plan_job(plan).kind == "panes"
    assert "the view store keeps the panes and closes windows" in plan_text(plan)
    assert plan_job(plan, state="spark").kind == "append"
