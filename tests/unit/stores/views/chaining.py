"""Views on views without Spark: DuckDB runs the cores of the jobs below, and plain views over all rows are the oracle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import duckdb
import sqlglot

from penstock.plan.job_plan import BATCH_VIEW, JobPlan, plan_job
from penstock.plan.script import analyze_script
from penstock.stores.duckdb_types import quoted
from penstock.stores.views import ViewStore
from penstock.stores.views.model import BatchCommit, CommitResult, ViewSpec
from penstock.types import SqlType
from tests.unit.stores.views.finishing import NULLS, STREAMS, TABLES, Row, add_rows, row_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pyarrow as pa

Batch = dict[str, list[Row]]
NONE: Mapping[str, str] = MappingProxyType({})


def jobs_of(views: Mapping[str, str], declared: str = "") -> dict[str, JobPlan]:
    """The jobs of views, each over the streams, what else is declared, and the views before it."""
    text = (
        STREAMS
        + declared
        + "".join(f"CREATE MATERIALIZED VIEW {quoted(name)} AS {query};" for name, query in views.items())
    )
    found: dict[str, JobPlan] = {}
    for name, report in zip(views, analyze_script(text)[-len(views) :], strict=True):
        assert report.error is None, report.error
        assert report.plan is not None
        found[name] = plan_job(report.plan)
    return found


class Chained:
    """Views on views beside a database that holds all rows so far and knows the same views."""

    def __init__(
        self,
        views: Mapping[str, str],
        path: Path | None = None,
        oracle: Mapping[str, str] = NONE,
        tables: str = "",
        declared: str = "",
    ) -> None:
        """`oracle` are the queries of views whose answer is not that of the query itself, over more `tables`; `declared`
        is what they may read beside the streams."""
        self.jobs = jobs_of(views, declared)
        self.path = path
        self.all = duckdb.connect()
        self.all.execute(NULLS)
        self.all.execute(TABLES + tables)
        for name, query in {**views, **oracle}.items():
            self.all.execute(f"CREATE VIEW {quoted(name)} AS {query}")
        self.store = ViewStore.open(path)
        self.failed: list[tuple[str, str]] = []
        self.store.on_failed = lambda view, reason: self.failed.append((view, reason.condition))
        self.folds: dict[str, Counter[str]] = {name: Counter() for name in views}
        self.seqs = dict.fromkeys(views, 0)
        self.made: list[str] = []
        self.cores = {name: Core(job) for name, job in self.jobs.items() if job.scans}

    def make(self, *names: str) -> None:
        for name in names or self.jobs:
            self.store.create_view(spec_of(name, self.jobs[name]))
            self.made.append(name)

    def spec(self, name: str) -> ViewSpec:
        return spec_of(name, self.jobs[name])

    def reopen(self) -> None:
        self.store.close()
        self.store = ViewStore.open(self.path)
        self.store.on_failed = lambda view, reason: self.failed.append((view, reason.condition))

    def add(self, name: str, number: int, batch: Batch, at: Callable[[str], None] | None = None) -> CommitResult:
        """A batch of the job of a view; the rows of streams that it reads are there for the oracle."""
        for relation in {scan.relation for scan in self.jobs[name].scans}:
            add_rows(self.all, relation, batch.get(relation, []))
        return self.commit(name, number, batch, at)

    def commit(self, name: str, number: int, batch: Batch, at: Callable[[str], None] | None = None) -> CommitResult:
        rows = self.cores[name].rows(batch)
        return self.store.commit(
            BatchCommit(name, number, f"hash {number}", watermark_us=number * 1000, view=name, rows=rows), at=at
        )

    def check(self, *names: str) -> None:
        """The views, and their folded changes, are what the oracle says."""
        for name in names or self.made:
            expected = self.answer(name)
            assert self.view(name) == expected, name
            self.follow(name)
            assert +self.folds[name] == expected, f"the folded changes of {name}"

    def follow(self, name: str) -> None:
        """Fold the changes since the last time, which must fit each other."""
        fold = self.folds[name]
        for change in self.store.changes(name, self.seqs[name]):
            if change.before is not None:
                fold[row_text(change.before.values())] -= 1
                assert fold[row_text(change.before.values())] >= 0, f"{change} takes back what is not there"
            if change.row is not None:
                fold[row_text(change.row.values())] += 1
            assert change.before != change.row, f"{change} changes nothing"
            assert change.seq == self.seqs[name] + 1
            self.seqs[name] = change.seq

    def view(self, name: str) -> Counter[str]:
        return counted(self.store.read(f"SELECT * FROM {quoted(name)}").table)

    def answer(self, name: str) -> Counter[str]:
        return counted(self.all.sql(f"SELECT * FROM {quoted(name)}").to_arrow_table())


class Core:
    """Stands in for Spark in one job."""

    def __init__(self, job: JobPlan) -> None:
        self._spark = duckdb.connect()
        self._spark.execute(TABLES)
        for scan in job.scans:
            self._spark.execute(f"CREATE VIEW {quoted(scan.view)} AS FROM {scan.relation}")
        self._text = sqlglot.transpile(job.core, read="spark", write="duckdb")[0]
        if job.batch is not None:
            self._spark.execute(f"CREATE VIEW {BATCH_VIEW} AS {self._text}")
            self._text = sqlglot.transpile(job.batch, read="spark", write="duckdb")[0]

    def rows(self, batch: Batch) -> pa.Table:
        """What Spark hands over for a batch."""
        for name in ("l", "r", "u"):
            self._spark.execute(f"DELETE FROM {name}")
            add_rows(self._spark, name, batch.get(name, []))
        return self._spark.sql(self._text).to_arrow_table()


def spec_of(name: str, job: JobPlan) -> ViewSpec:
    """The view that the store keeps for a job."""
    return ViewSpec(
        name,
        tuple((column.name, _known(column.type)) for column in job.columns),
        job.kind,
        job.key,
        merge=job.merge.with_types({}) if job.merge is not None else None,
        finish=job.finish.with_types({}) if job.finish is not None else None,
    )


def counted(table: pa.Table) -> Counter[str]:
    return Counter(row_text(row.values()) for row in table.to_pylist())


def _known(kind: SqlType | None) -> SqlType:
    assert kind is not None
    return kind


def as_of(found: Any) -> dict[str, int | None]:
    return {view: batch for view, (batch, _) in found.as_of.items()}
