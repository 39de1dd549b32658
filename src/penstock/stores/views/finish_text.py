"""The statements of a view that is answered from kept rows.

In the tables of the store the columns of kept rows are r0, r1, …, and those of the answer of a stage c0, c1, …: names
of ours never meet names of the user, who is only in the texts of the plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.plan.finish_plan import SIDE
from penstock.stores.duckdb_types import duckdb_type, quoted
from penstock.stores.views.bag_table import BagTable
from penstock.stores.views.best_table import BestTable
from penstock.stores.views.changed_table import ChangedTable
from penstock.stores.views.dimension_table import DimensionTable
from penstock.stores.views.distinct_table import DistinctTable
from penstock.stores.views.finish_sources import KeptTable, Source
from penstock.stores.views.once_text import OnceText
from penstock.stores.views.passing_rows import PassingTable
from penstock.stores.views.stage_text import StageText
from penstock.stores.views.stamped_rows import StampedRows
from penstock.stores.views.view_rows import ViewRows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.plan.finish_plan import FinishPlan, KeptRows
    from penstock.stores.views.model import ViewSpec
    from penstock.stores.views.view_table import BatchMark, ViewTable


class FinishText:
    """Writes the statements of a view. `bt` is the batch."""

    def __init__(self, number: int, spec: ViewSpec, plan: FinishPlan, views: Mapping[str, ViewTable]) -> None:
        self.log = f"store.l{number}"
        self.kept: list[KeptTable] = []
        self.dimensions: list[DimensionTable] = []
        self.views: list[ViewRows] = []
        sources: list[Source] = []
        own: dict[int, KeptTable] = {}
        for place, rows in enumerate(plan.rows):
            if rows.dimension:
                self.dimensions.append(DimensionTable(f"store.r{number}_{place}", place, rows))
                sources.append(self.dimensions[-1].source)
            elif rows.read is None:
                self.kept.append(_kept(f"store.r{number}_{place}", place, rows))
                own[place] = self.kept[-1]
                sources.append(self.kept[-1].source)
            else:
                parent = views[rows.relation]
                table = f"store.r{number}_{place}"
                stamped = StampedRows(table, place, rows, parent, spec.ttl_us) if rows.stamps else None
                self.views.append(stamped or ViewRows(place, rows, parent))
                sources.append(self.views[-1].source)
        self.stages: list[StageText] = []
        # Places of sources that are not what they were when views below have stood still.
        refilled = {place for place, rows in enumerate(plan.rows) if rows.of_view}
        self.kept_as_they_are: list[StageText] = []
        for place, stage in enumerate(plan.stages, start=1):
            table = f"store.v{number}" if place == len(plan.stages) else f"store.g{number}_{place}"
            arguments = (table, f"x{len(sources)}", stage, tuple(sources))
            self.stages.append(OnceText(*arguments, own) if stage.once else StageText(*arguments))
            front = [leaf for leaf in stage.leaves if leaf.key or not stage.meets]
            if not refilled.isdisjoint(leaf.source for leaf in front):
                refilled.add(len(sources))
            elif stage.meets:
                self.kept_as_they_are.append(self.stages[-1])
            sources.append(self.stages[-1].source)
        self.clocked = plan.clocked
        self.closing = plan.closing
        self._view = self.stages[-1].source
        self._unique = plan.unique
        self._visible = [self._view.columns[name] for name, _ in spec.columns]
        self._types = [duckdb_type(kind) for _, kind in spec.columns]
        shown = ", ".join(f"{self._view.columns[name]} AS {quoted(name)}" for name, _ in spec.columns)
        self.shown = f"SELECT {shown} FROM {self._view.table}"
        self.logged = ", ".join(f"{side}{place}" for side in "ba" for place in range(len(self._visible)))

    @property
    def tables_of_rows(self) -> list[KeptTable]:
        """The rows that are kept here: those that batches bring, and those of dimensions."""
        return [*self.kept, *self.dimensions]

    @property
    def sources(self) -> list[KeptTable | ViewRows]:
        """Where rows come from."""
        return [*self.tables_of_rows, *self.views]

    @property
    def tables(self) -> list[str]:
        return [
            self.log,
            *(table for kept in self.sources for table in kept.tables),
            *(each.source.table for each in self.stages),
        ]

    @property
    def given(self) -> tuple[list[str], list[str]]:
        """The columns to take from a batch, and the names they get."""
        columns = {SIDE: "side"}
        for kept in self.kept:
            columns |= kept.given
        return list(columns), list(columns.values())

    def creates(self) -> list[str]:
        logged = "".join(f", {side}{place} {kind}" for side in "ba" for place, kind in enumerate(self._types))
        log = f"CREATE TABLE {self.log} (seq BIGINT, op VARCHAR, batch BIGINT, done BIGINT, wm BIGINT{logged})"
        kept = [statement for rows in self.sources for statement in rows.creates()]
        return [log, *kept, *(stage.create() for stage in self.stages)]

    def logs(self, mark: BatchMark) -> str:
        """What differs between `od` and `nw` becomes changes of the view: deletes, then inserts, then updates."""
        found = (
            self._bag() if self._unique is None else self._by_key([self._view.columns[name] for name in self._unique])
        )
        return (
            f"INSERT INTO {self.log} SELECT {mark.first_seq - 1} + row_number() OVER (), op, {mark.batch}, "
            f"{mark.at_us}, {mark.watermark_text}, {self.logged} FROM ({found})"
        )

    def _bag(self) -> str:
        """The same row may be there several times, so they are counted."""
        names = ", ".join(self._visible)
        before = ", ".join(f"CASE WHEN n < 0 THEN {name} END AS b{place}" for place, name in enumerate(self._visible))
        after = ", ".join(f"CASE WHEN n > 0 THEN {name} END AS a{place}" for place, name in enumerate(self._visible))
        both = f"SELECT {names}, 1 AS one FROM nw UNION ALL SELECT {names}, -1 FROM od"
        counted = f"SELECT {names}, CAST(sum(one) AS BIGINT) AS n FROM ({both}) GROUP BY {names} HAVING sum(one) <> 0"
        repeated = f"SELECT *, unnest(range(abs(n))) FROM ({counted})"
        return (
            f"SELECT CASE WHEN n > 0 THEN 'insert' ELSE 'delete' END AS op, {before}, {after} "
            f"FROM ({repeated}) ORDER BY n > 0, {names}"
        )

    def _by_key(self, unique: list[str]) -> str:
        same = " AND ".join(f"od.{name} IS NOT DISTINCT FROM nw.{name}" for name in unique) or "true"
        differs = " OR ".join(f"od.{name} IS DISTINCT FROM nw.{name}" for name in self._visible)
        before = ", ".join(f"od.{name} AS b{place}" for place, name in enumerate(self._visible))
        after = ", ".join(f"nw.{name} AS a{place}" for place, name in enumerate(self._visible))
        operation = "CASE WHEN od.here IS NULL THEN 'insert' WHEN nw.here IS NULL THEN 'delete' ELSE 'update' END"
        order = ", ".join(f"coalesce(nw.{name}, od.{name})" for name in unique) or "op"
        return (
            f"SELECT {operation} AS op, {before}, {after} "
            f"FROM (SELECT *, 1 AS here FROM od) AS od FULL JOIN (SELECT *, 1 AS here FROM nw) AS nw ON {same} "
            f"WHERE od.here IS NULL OR nw.here IS NULL OR {differs} ORDER BY op, {order}"
        )


def _kept(table: str, place: int, rows: KeptRows) -> KeptTable:
    if rows.distinct:
        return DistinctTable(table, place, rows)
    if rows.best is not None:
        return BestTable(table, place, rows, rows.best)
    if rows.changes is None:
        return (PassingTable if rows.passing else KeptTable)(table, place, rows)
    return (ChangedTable if rows.changes.key else BagTable)(table, place, rows, rows.changes)
