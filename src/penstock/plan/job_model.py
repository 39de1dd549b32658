"""What a job runs, as it is planned: Spark's text, the scans below it, and what the view store does.

Six kinds of job. `append`: Spark only adds rows. `merge`: Spark aggregates each batch and the view store, which holds
the state, merges it. `panes`: the same for windows, which the view store closes, and may join then. `windows`: the same
for windows that show each change. `update`: Spark keeps the state, and its rows replace those of the same key.
`finish`: Spark hands rows over, and the view store, which keeps them, answers the query.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from penstock.frozen import frozen

if TYPE_CHECKING:
    from penstock.plan.distinct_steps import DistinctStep
    from penstock.plan.finish_plan import FinishPlan
    from penstock.plan.job_dimensions import DimensionPlan, StaticView
    from penstock.plan.job_scans import ScanPlan
    from penstock.plan.joined_pane_plan import JoinedPanes
    from penstock.plan.kept_state import Kept
    from penstock.plan.lookups import LookupTexts
    from penstock.plan.merge_plan import MergePlan, Reduction
    from penstock.plan.pane_plan import PanePlan
    from penstock.plan.processing_plan import ProcessingPlan
    from penstock.plan.windows_plan import WindowsPlan
    from penstock.types import SqlType

JobKind = Literal["append", "merge", "panes", "windows", "update", "finish"]


@frozen
class OutputColumn:
    """A column of the result. None as type: the one that Spark finds for it."""

    name: str
    type: SqlType | None


@frozen
class JobPlan:
    """What a job runs.

    `core` is Spark SQL over the views of `scans`. Its columns: for `append` those of the result; for `merge`, `panes`
    and `windows` what `batch` needs (`batch` reads one batch of it under the name `__batch`, and `reductions` say the
    same of a batch that is too small to trouble Spark with); for `finish` the rows of all relations that are kept, of
    which `batch`, if there is one, takes out what the store would not keep; for `update` those of the result, then
    hidden keys (`__k0`, …), then `__keep` where rows can leave the view: a row for which it is not true does.

    A running aggregate without keys has one row, from the first row of its input on.
    """

    kind: JobKind
    scans: tuple[ScanPlan, ...]
    core: str
    steps: tuple[DistinctStep, ...]  # views that the core reads beside those of the scans
    batch: str | None
    reductions: tuple[Reduction, ...]
    merge: MergePlan | None
    key: tuple[str, ...]  # columns that tell rows apart (merge, update), hidden ones included; empty: one row
    columns: tuple[OutputColumn, ...]
    uses_event_time: bool  # the watermark closes something: windows, bounded joins, DISTINCT
    spread_us: int  # a watermark so far past the largest event time, rounded up to milliseconds, closes all of it
    late: str | None  # see late_plan.late_sql
    kept: tuple[Kept, ...]  # what Spark keeps, from the result down
    fingerprint: str
    state: str  # what the fingerprint stands for, as JSON; see fingerprint.describe_difference
    how: str  # for EXPLAIN: who keeps the state
    functions: tuple[str, ...] = ()  # of the user, that the text calls
    dimensions: tuple[DimensionPlan, ...] = ()
    static: tuple[StaticView, ...] = ()  # views over those of dimensions, that the core reads too
    panes: PanePlan | None = None
    joined: JoinedPanes | None = None  # several sides of panes, and what is made of their windows when they close
    finish: FinishPlan | None = None  # of an append over a view: what is made of each of its rows, and nothing is kept
    ttl_us: int | None = None  # how long the view store keeps a key that no row comes for (merge), or a row (finish)
    views: tuple[str, ...] = ()  # materialized views that the view store reads for it
    lookup: LookupTexts | None = None  # the same over calls in the place of joins, where that can be
    windows: WindowsPlan | None = None
    processing: ProcessingPlan | None = None
    in_place: tuple[str, ...] = ()  # functions in SQL, whose bodies it holds
    limit: int | None = None  # of a query that somebody reads: after so many rows it has ended

    @property
    def follows_time(self) -> bool:
        """Whether something closes as time goes on: event time, or the job's own clock."""
        return self.uses_event_time or self.processing is not None

    @property
    def closed_by_store(self) -> bool:
        """Whether the view store closes windows: Spark keeps none, and runs no batch for the watermark alone."""
        final = self.finish is not None and self.finish.closing is not None
        return self.panes is not None or self.windows is not None or final

    @property
    def shows_closed(self) -> bool:
        """Whether rows are only added to what the view store keeps: windows when it has closed them, or rows that are
        answered once."""
        once = self.finish is not None and self.finish.only_adds
        return self.panes is not None or (self.windows is not None and self.windows.final) or once

    @property
    def rests(self) -> bool:
        """Whether a batch without input only closes windows of the view store, and gives no rows."""
        return self.closed_by_store and not self.kept and not self.steps

    @property
    def of_views(self) -> bool:
        """Whether it reads materialized views and nothing else, or is written out: then Spark has no part in it."""
        return not self.scans

    def with_lookups(self) -> JobPlan:
        """The plan that calls for the rows of dimensions instead of joining them; its state is the same."""
        assert self.lookup is not None
        return replace(self, core=self.lookup.core, steps=self.lookup.steps, late=self.lookup.late)
