"""Nexmark: every query is planned for a job, also as Flink and RisingWave write it, and its oracle has an answer."""

from __future__ import annotations

import pytest

from penstock.interfaces.nexmark.events import NexmarkEvents
from penstock.interfaces.nexmark.oracle import Oracle
from penstock.interfaces.nexmark.queries import NAMES, nexmark_query
from penstock.plan.job_plan import plan_job
from penstock.plan.spark_text import spark_sql
from tests.project import ROOT
from tests.unit.nexmark.plans import APART, FUNCTION, planned, query_plan, spellings

# What cannot be planned yet; the test fails when one of them can.
NOT_YET: frozenset[str] = frozenset({"q4", "q5", "q6", "q12"})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("relations", ["views over one stream", "streams"])
def test_every_query_is_planned(name: str, relations: str) -> None:
    job = plan_job(query_plan(name, APART if relations == "streams" else None))
    assert job.core
