"""Nexmark: every query is planned for a job, also as Flink and RisingWave write it, and its oracle has an answer."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest

from penstock.interfaces.nexmark.events import NexmarkEvents
from penstock.interfaces.nexmark.oracle import Oracle
from penstock.interfaces.nexmark.queries import NAMES, nexmark_query
from penstock.plan.job_plan import JobPlan, plan_job
from penstock.plan.spark_text import spark_sql
from tests.project import ROOT
from tests.unit.nexmark.plans import APART, FLINK_DDL, FUNCTION, planned, query_plan, spellings

# The queries that the view store answers, and the keys of their stages: by what it answers them for a batch. To joins of
# rows that are only added it adds what is new.
FINISHED: dict[str, tuple[tuple[str, ...], ...]] = {
    "q3": ((),),
    "q4": (("__key0",), ("category",)),
    "q6": (("id",), ("seller",)),
    "q9": (("id",),),
    "q15": (("day",),),
    "q16": (("day", "channel"),),
    "q18": (("auction", "bidder"),),
    "q19": (("auction",),),
    "q20": ((),),
    "q23": ((),),
}
# Where a spelling means the same and says it otherwise: MOD and %, a join in WHERE, CASE, functions of other names.
OTHERWISE = {"flink": {"q2", "q4", "q6", "q9", "q13", "q21", "q22"}, "risingwave": {"q14", "q21"}}


def job_of(name: str, relations: str | None = None) -> JobPlan:
    return plan_job(query_plan(name, relations))


def test_benchmarks_holds_the_queries_of_the_package() -> None:
    assert {path.name for path in (ROOT / "benchmarks" / "nexmark").iterdir()} == {
        "setup.sql",
        *(f"{name}.sql" for name in NAMES),
        *(f"{name}.oracle.sql" for name in NAMES),
    }


@pytest.mark.parametrize(
    "relations", [None, APART, FLINK_DDL], ids=["views over one stream", "streams", "Flink's declaration"]
)
def test_every_query_is_planned_and_has_its_keys(relations: str | None) -> None:
    """A view that takes one kind of events out of all of them is as good as a stream of its own."""
    for name in NAMES:
        job = job_of(name, relations)
        assert (job.kind == "finish") == (name in FINISHED), f"{name}: {job.how}"
        if job.finish is not None:
            assert tuple(stage.keys for stage in job.finish.stages) == FINISHED[name], f"{name}: {job.how}"


@pytest.mark.parametrize("dialect", ["flink", "risingwave"])
def test_other_spellings_are_the_same_queries(dialect: str) -> None:
    for name, text in spellings(dialect).items():
        ours, theirs = query_plan(name), planned(f"{FUNCTION} CREATE MATERIALIZED VIEW q AS {text}")
        same = spark_sql(ours.spark).casefold() == spark_sql(theirs.spark).casefold()
        assert same == (name not in OTHERWISE[dialect]), name
        assert [(one.name, one.type) for one in ours.columns] == [(one.name, one.type) for one in theirs.columns], name
        mine, other = plan_job(ours), plan_job(theirs)
        assert mine.kind == other.kind or name == "q10", name
        if mine.finish is not None and other.finish is not None:
            assert [len(stage.keys) for stage in mine.finish.stages] == [
                len(stage.keys) for stage in other.finish.stages
            ], name


def test_the_declaration_of_flink_has_the_same_columns_and_jobs() -> None:
    """Its event time is a CASE over the records without a CAST: the type is found, not declared."""
    for name in NAMES:
        ours, theirs = query_plan(name), query_plan(name, FLINK_DDL)
        assert [(one.name, one.type) for one in ours.columns] == [(one.name, one.type) for one in theirs.columns], name
        assert plan_job(ours).kind == plan_job(theirs).kind, name
    for name, text in spellings("flink").items():
        job = plan_job(planned(f"{FUNCTION} CREATE MATERIALIZED VIEW q AS {text}", FLINK_DDL))
        assert (job.kind == "finish") == (name in FINISHED), name


@pytest.fixture(scope="module")
def events() -> NexmarkEvents:
    return NexmarkEvents(6_000, seed=2, out_of_order=0.2)


def test_every_oracle_has_an_answer_and_sees_each_kind_of_difference(events: NexmarkEvents) -> None:
    with Oracle(events) as oracle:
        arrived = [datetime(2026, 1, 1, 10, 0, second) for second in (1, 2, 12)]  # noqa: DTZ001
        oracle.add("arrivals", pa.table({"bidder": pa.array([1, 1, 1], pa.int64()), "arrived": arrived}))
        for name in NAMES:
            text = nexmark_query(name).oracle
            answer = oracle.answer(text)
            assert answer.num_rows > 1, name
            assert oracle.compare(text, answer).none, name
            less, more = answer.slice(1), pa.concat_tables([answer, answer.slice(0, 1)])
            assert (oracle.compare(text, less).missing, oracle.compare(text, less).more) == (1, 0), name
            assert (oracle.compare(text, more).missing, oracle.compare(text, more).more) == (0, 1), name
            assert len(oracle.compare(text, more).first_more) == 1
            renamed = answer.rename_columns(["x", *answer.column_names[1:]])
            assert "the columns are x" in oracle.compare(text, renamed).columns, name
        labels = oracle.answer(nexmark_query("q14").oracle).column("bidTimeType").unique().to_pylist()
        assert sorted(labels) == ["dayTime", "nightTime", "otherTime"]
        assert oracle.answer(nexmark_query("q15").oracle).num_rows == 2  # midnight is among the events


def test_events_are_never_later_than_the_watermark_allows(events: NexmarkEvents) -> None:
    times = events.table("all").column("dateTime").cast(pa.int64()).to_numpy()
    late = np.maximum.accumulate(times) - times
    assert 2_500_000 < late.max() <= 3_000_000
    parts = pa.Table.from_batches([*events.rows("all", 0, 2_500), *events.rows("all", 2_500, 9_999)])
    assert parts.equals(events.table("all"))
    bids = events.table("all").column("bid").combine_chunks().drop_null()
    assert pa.Table.from_batches([pa.RecordBatch.from_struct_array(bids)]).equals(events.table("bid"))
