"""Windows joined with their own largest value: before and after, from `tests/fixtures/best_rows` (G11, P1, P2, Q1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.plan.best_rows import best_rows
from penstock.plan.explain import plan_text
from penstock.plan.fingerprint import describe_difference
from penstock.plan.job_plan import JobPlan, plan_job
from penstock.plan.merge_plan import Best
from penstock.plan.pane_plan import PanePlan
from penstock.plan.spark_text import spark_sql
from tests.unit.nexmark.plans import planned as nexmark_plan
from tests.unit.nexmark.plans import query_plan, spellings
from tests.unit.plan.analysis import planned

FIXTURES = Path(__file__).parents[2] / "fixtures" / "best_rows"
SECOND = 1_000_000
ROWS = "TUMBLE(TABLE trades, DESCRIPTOR(ts), INTERVAL '10' SECOND)"
SAME = "l.window_start = m.window_start AND l.window_end = m.window_end"


def texts(name: str) -> list[str]:
    return [text.strip() for text in (FIXTURES / f"{name}.sql").read_text(encoding="utf-8").split("\n---\n")]


def pairs() -> list[tuple[str, str, bool]]:
    found = [(text, of_rows) for name, of_rows in (("rows", True), ("groups", False)) for text in texts(name)]
    return [(*map(str.strip, text.split("\n>>>\n")), of_rows) for text, of_rows in found]  # type: ignore[misc]


def job(query: str, options: str = "") -> JobPlan:
    return plan_job(planned(f"CREATE MATERIALIZED VIEW v {options} AS {query};"))


def largest(value: str = "volume", rows: str = ROWS, more: str = "") -> str:
    """Rows joined with a largest value of theirs."""
    best = f"SELECT window_start, window_end, MAX({value}) AS best FROM {rows} GROUP BY window_start, window_end"
    return f"SELECT l.symbol, l.volume FROM {rows} AS l JOIN ({best}) AS m ON {SAME} AND l.{value} = m.best{more}"


@pytest.mark.parametrize(("before", "after", "of_rows"), pairs())
def test_in_one_pass(before: str, after: str, of_rows: bool) -> None:
    plan = planned(f"CREATE MATERIALIZED VIEW v AS {before};")
    made = best_rows(plan.spark)
    assert made is not None
    assert spark_sql(made.tree, pretty=False).replace("`", "") == after
    assert made.rows == of_rows
    found = plan_job(plan)
    assert found.kind == "panes"
    assert found.merge is not None
    assert found.merge.best is not None
    assert found.merge.best.rows == of_rows
    assert [scan.id for scan in found.scans] == ["trades"], "it is read once"
    assert found.kept == ()


@pytest.mark.parametrize("query", texts("left_alone"))
def test_joins_that_stay(query: str) -> None:
    """What is surely not the same, and what might not be, is left to the join."""
    plan = planned(f"CREATE MATERIALIZED VIEW v AS {query};")
    assert best_rows(plan.spark) is None
    assert "JOIN" in plan_job(plan).core


def test_of_a_batch_only_the_best_rows_are_kept() -> None:
    """The rows of a pane that can be the best of a window; late rows are told window by window."""
    made = job(largest(more=" AND l.price > 1"))
    assert made.panes == PanePlan(10 * SECOND, 10 * SECOND, 0, (("max", "__k1"),))
    assert made.merge is not None
    best = Best('"__k1"', largest=True, keep="(\"__k2\" > CAST('1' AS DOUBLE))", rows=True)
    assert (made.merge.best, made.merge.keep, made.merge.partials) == (best, None, ())
    assert " ".join((made.batch or "").split()) == (
        "SELECT `__pane`, `__k0`, `__k1`, `__k2` FROM ( SELECT *, rank() OVER (PARTITION BY `__pane` ORDER BY `__k1` DESC) "
        "AS `__place` FROM `__batch` ) AS `__place` WHERE `__place` = 1"
    )
    smallest = job(largest().replace("MAX", "MIN")).batch or ""
    assert "ORDER BY `__k1` ASC NULLS LAST" in smallest, "NULL is no value, and the smallest in Spark's order"
    assert (made.uses_event_time, made.spread_us) == (True, 10 * SECOND)
    assert made.late is not None
    assert "window(" in made.late


@pytest.mark.parametrize("name", ["q5", "q7"])
def test_nexmark(name: str) -> None:
    """Q1: ours, Flink's and RisingWave's spelling of the queries."""
    plans = [query_plan(name)]
    plans += [
        nexmark_plan(f"CREATE MATERIALIZED VIEW q AS {spellings(each)[name]}") for each in ("flink", "risingwave")
    ]
    for made in map(plan_job, plans):
        assert made.kind == "panes"
        assert len(made.scans) == 1
        assert made.merge is not None
        assert made.merge.best is not None


def test_who_has_no_store_joins() -> None:
    """A result that is handed out, and a view that asks for Spark."""
    query = largest()
    assert plan_job(planned(f"{query};")).kind == "append"
    asked = job(query, "WITH (state = 'spark')")
    assert (asked.kind, len(asked.scans)) == ("append", 2)


def test_explain_tells_of_it() -> None:
    """P2: what is done, and why it is not where the store cannot do it."""
    told = plan_text(planned(f"CREATE MATERIALIZED VIEW v AS {largest()};"))
    assert (
        "engine      Spark keeps of each batch the rows with MAX(volume) of every 10 seconds, the view store closes "
        "windows and shows of each the rows with MAX(volume): both sides of the join are the same rows, which are read once"
    ) in told
    assert "└─ WindowBest  rows with MAX(volume), on l.window_start = m.window_start" in told
    assert "state       WindowBest: of each open window the rows that may have MAX(volume); dropped" in told
    assert (told.count("Scan"), told.count("Join"), told.count("event time  trades.ts")) == (1, 0, 1)
    turned = next(before for before, _, _ in pairs() if "AS m\nJOIN TUMBLE" in before)  # the rows are the right side
    told = plan_text(planned(f"CREATE MATERIALIZED VIEW v AS {turned};"))
    assert "Aggregate" not in told
    assert told.count("Scan") == 1
    counted = f"(SELECT symbol, window_start, window_end, COUNT(*) AS {{}} FROM {ROWS} GROUP BY symbol, window_start, window_end)"
    told = plan_text(planned(f"CREATE MATERIALIZED VIEW v AS {largest('volume', counted.format('volume'))};"))
    assert "Spark aggregates each batch by pane of 10 seconds, the view store closes windows and shows of each" in told
    for other, why in (
        (counted.replace("COUNT(*)", "COUNT(DISTINCT price)").format("volume"), "does not merge"),
        (
            counted.replace("GROUP BY symbol,", "GROUP BY GROUPING SETS ((symbol), ()),").format("volume"),
            "grouping sets",
        ),
        (ROWS.replace("TUMBLE", "CUMULATE").replace("ts),", "ts), INTERVAL '5' SECOND,"), "TUMBLE and HOP"),
    ):
        made = job(largest("volume", other))
        assert made.kind == "append"
        assert "WindowJoin" in plan_text(planned(f"CREATE MATERIALIZED VIEW v AS {largest('volume', other)};"))
        assert made.how.startswith("Spark; joined rows are kept there")
        assert "; the rows with MAX(volume) are found by a join: " in made.how
        assert why in made.how


def test_what_is_compared_is_part_of_the_state() -> None:
    """Of rows only those are kept that can be the best: with another value a job does not go on. Groups are all kept."""
    one, other = job(largest("volume")), job(largest("symbol"))
    assert one.fingerprint != other.fingerprint
    assert describe_difference(one.state, other.state) == "what the view store answers over the rows that it keeps"
    spark = job(largest("volume"), "WITH (state = 'spark')")
    assert spark.fingerprint != one.fingerprint
