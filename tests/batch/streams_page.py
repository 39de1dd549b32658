"""docs/sql/streams.md: what a view over a stream has of SQL. `python -m tests.batch.streams_page` writes it."""

from __future__ import annotations

from penstock.errors import PenstockError
from penstock.plan.job_plan import JobPlan, plan_job
from penstock.plan.script import analyze_script
from tests.batch import test_operators as plain
from tests.batch.stream_operators import STREAMS, WINDOWED
from tests.project import ROOT

PAGE = ROOT / "docs" / "sql" / "streams.md"
_HEAD = """# What streams have

Every operator that the tests know, as a materialized view over a stream: how its rows change, and who keeps what it needs
to know of earlier rows. Nothing on this page is written by hand; a test fails when it is out of date:

    python -m tests.batch.streams_page

`append`: rows are only added. `upsert`: a later row takes the place of the one with the same key. `retract`: rows are taken
back one by one. What is refused is refused before anything starts, with a [condition](../reference/errors.md).

| operator | changes | kept by |
|---|---|---|
"""


def page() -> str:
    """The whole page."""
    found = [(name, plain.STREAMS, plain.over_a_stream(sql)) for name, (sql, _) in plain.OPERATORS.items()]
    found += [(name, STREAMS, sql) for name, (sql, _) in WINDOWED.items()]
    return _HEAD + "".join(f"| {name} | {_outcome(streams, sql)} |\n" for name, streams, sql in found)


def _outcome(streams: str, sql: str) -> str:
    report = analyze_script(f"{streams} CREATE MATERIALIZED VIEW v AS {sql}")[-1]
    if report.error is not None or report.analysis is None or report.analysis.plan is None:
        return f"refused: {_named(report.error)} | "
    plan = report.analysis.plan
    try:
        return f"{plan.mode.value} | {_keeper(plan_job(plan))}"
    except PenstockError as error:
        return f"refused: {_named(error)} | "


def _named(error: PenstockError | None) -> str:
    assert error is not None
    return f"[{error.condition}](../reference/errors.md#{error.condition.lower()})"


def _keeper(job: JobPlan) -> str:
    if job.kind == "append":
        return "Spark" if job.kept or job.steps else "nobody"
    words = {
        "merge": "the view store",
        "panes": "the view store",
        "windows": "the view store",
        "update": "Spark",
        "finish": "the view store, with the rows it reads",
    }
    return words[job.kind]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
