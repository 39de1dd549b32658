"""A whole database without Spark: the views over streams are given their batches by hand, everything above them runs.

DuckDB stands in for Spark, as in the tests of the view store; the jobs of these views are paused, so nobody starts it.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import penstock
from penstock.plan.script import read_script, report_statement
from penstock.runtime.job_statements import make_view_spec
from penstock.stores.views import BatchCommit
from tests.unit.stores.views.chaining import Core, jobs_of, spec_of
from tests.unit.stores.views.finishing import STREAMS, random_batch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.runtime.engine import Engine
    from penstock.stores.views import ViewStore

# One that rows are only added to, and one whose rows change.
VIEWS = {
    "added": "SELECT k, id, v, s FROM l WHERE id >= 0",
    "sums": "SELECT k, COUNT(*) AS n, SUM(v) AS t FROM l GROUP BY k",
}


class Fed:
    """An open database, made where it is not there yet."""

    def __init__(self, path: Path, views: Mapping[str, str] = VIEWS) -> None:
        self.jobs = jobs_of(views)
        self._cores = {name: Core(job) for name, job in self.jobs.items()}
        if not path.exists():
            with penstock.connect(path) as db:
                db.execute(STREAMS)
                for name, query in views.items():
                    self._make(db._engine, name, query)
        self.db = penstock.connect(path)

    def _make(self, engine: Engine, name: str, query: str) -> None:
        parsed, source = read_script(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        report, session = report_statement(parsed[0], source, engine.session)
        assert report.analysis is not None
        assert report.plan is not None
        spec = make_view_spec(report.analysis.definition, report.plan, session)  # type: ignore[arg-type]
        engine.put_catalog(session)
        engine.home.views.create_view(spec_of(name, self.jobs[name]))
        engine.home.views.save_job(name, fingerprint=spec.plan.state, first={}, statement=None, state="paused")

    @property
    def store(self) -> ViewStore:
        return self.db._engine.home.views

    def feed(self, number: int) -> None:
        """The batch of this number, always the same, into each view that does not have it yet."""
        batch = random_batch(random.Random(f"fed {number}"), 10 * number)  # noqa: S311
        for name, core in self._cores.items():
            entry = self.store.ledger(name)
            if (-1 if entry is None else entry.batch_id) < number:
                mark = number * 1_000_000
                rows = core.rows(batch)
                self.store.commit(BatchCommit(name, number, f"hash {number}", mark, view=name, rows=rows))

    def close(self) -> None:
        self.db.close()
