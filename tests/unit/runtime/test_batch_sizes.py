"""How many rows a batch had, and how many it may have, as SHOW JOBS tells."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import penstock
from penstock.catalog.model import MaterializedViewDefinition
from penstock.interfaces.job_answers import jobs_table
from penstock.plan.script import analyze_script
from penstock.runtime.batch_sizes import max_batch_rows
from penstock.runtime.job_spec import JobSpec
from penstock.runtime.job_statements import make_insert_spec, make_view_spec
from penstock.runtime.states import JobState
from penstock.runtime.system_rows import job_rows
from penstock.sql.statements import Insert
from penstock.stores.views import BatchCommit

RELATIONS = """
    CREATE STREAM s (n INT) WITH (connector = 'kafka', topic = 't');
    CREATE STREAM small (n INT) WITH (connector = 'kafka', topic = 'u', max_rows_per_batch = 500);
    CREATE MATERIALIZED VIEW below AS SELECT n, COUNT(*) AS c FROM s GROUP BY n;
    CREATE SINK out (n BIGINT) WITH (connector = 'kafka', topic = 'o');
"""


def spec_of(statement: str) -> JobSpec:
    *_, report = analyze_script(RELATIONS + statement)
    assert report.analysis is not None, report.error
    assert report.plan is not None, report.error
    if isinstance(report.statement, Insert):
        return make_insert_spec(report.statement, report.plan, report.analysis.session)
    definition = report.analysis.definition
    assert isinstance(definition, MaterializedViewDefinition)
    return make_view_spec(definition, report.plan, report.analysis.session)


@pytest.mark.parametrize(
    ("statement", "most"),
    [
        ("INSERT INTO out SELECT n FROM s", 1_000_000),
        ("INSERT INTO out SELECT n FROM small", 500),
        ("INSERT INTO out SELECT n FROM small UNION ALL SELECT n FROM s", 1_000_500),
        ("CREATE MATERIALIZED VIEW v WITH (max_rows_per_batch = 70) AS SELECT n FROM small", 70),
        ("INSERT INTO out WITH (mode = 'realtime') SELECT n FROM s", None),
        ("CREATE MATERIALIZED VIEW v AS SELECT SUM(c) AS total FROM below", None),
    ],
)
def test_the_most_rows_of_a_batch(statement: str, most: int | None) -> None:
    assert max_batch_rows(spec_of(statement)) == most


def test_the_rows_of_the_last_batch_with_rows(tmp_path: Path) -> None:
    """Batches without rows, which only close windows or move time, do not count; nor does another job."""
    with penstock.connect(tmp_path) as db:
        engine = db._engine
        for name in ("a", "b", "new"):
            job: Any = SimpleNamespace(
                name=name,
                state=JobState.PAUSED,
                spec=spec_of("INSERT INTO out SELECT n FROM small"),
                last=None,
                restarts=0,
                error=None,
                started_at_us=None,
                tracker=None,
                run=None,
                close=lambda: None,
                begin_no_batch=lambda: None,
            )
            engine.jobs[name] = job
        for name, sizes in (("a", (500, 37, 0)), ("b", (3,))):
            for batch_id, rows in enumerate(sizes):
                engine.home.views.commit(
                    BatchCommit(job=name, batch_id=batch_id, offsets_hash=str(batch_id), tracker="{}", input_rows=rows)
                )
        shown = jobs_table(job_rows(engine))
        assert shown.column_names[-2:] == ["batch_rows", "max_batch_rows"]
        assert shown.select(["name", "batch_id", "batch_rows", "max_batch_rows"]).to_pylist() == [
            {"name": "a", "batch_id": 2, "batch_rows": 37, "max_batch_rows": 500},
            {"name": "b", "batch_id": 0, "batch_rows": 3, "max_batch_rows": 500},
            {"name": "new", "batch_id": None, "batch_rows": None, "max_batch_rows": 500},
        ]
        engine.jobs.clear()
