"""The statements of a view that is answered from kept rows.

In the tables of the store the columns of kept rows are r0, r1, …, and those of the answer of a stage c0, c1, …: names
of ours never meet names of the user, who is only in the texts of the plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.plan.finish_plan import SIDE
from penstock.stores.duckdb_types import duckdb_type, quoted
from penstock.stores.views.bag_table import BagTable
from penstock.stores.views.changed_table import ChangedTable
from penstock.stores.views.finish_sources import KeptTable, Source
from penstock.stores.views.view_rows import ViewRows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.plan.finish_plan import FinishPlan, KeptRows, Leaf, Stage
    from penstock.stores.views.model import ViewSpec
    from penstock.stores.views.view_table import ViewTable


class StageText:
    """Writes the statements of one stage. `ck` are the touched keys, `nw` their rows now, `od` before."""

    def __init__(self, table: str, changed: str, stage: Stage, below: Sequence[Source]) -> None:
        self._stage = stage
        self._below = below
        self.source = Source(table, changed, {name: f"c{place}" for place, (name, _) in enumerate(stage.columns)})
        self._listed = ", ".join(self.source.columns.values())

    @property
    def keyed(self) -> bool:
        return bool(self._stage.keys)

    def create(self) -> str:
        types = [duckdb_type(kind) for _, kind in self._stage.columns]
        columns = ", ".join(f"c{place} {kind}" for place, kind in enumerate(types))
        return f"CREATE TABLE {self.source.table} ({columns})"

    def touched(self) -> str:
        """The keys of the rows that have changed below."""
        queries = []
        for leaf in self._stage.leaves:
            below = self._below[leaf.source]
            columns = [f"{below.columns[name]} AS t{place}" for place, name in enumerate(leaf.key)]
            query = f"SELECT {', '.join(columns) or '1 AS nothing'} FROM {below.changed}"
            if query not in queries:
                queries.append(query)
        listed = queries if len(queries) > 1 else [query.replace("SELECT", "SELECT DISTINCT", 1) for query in queries]
        return f"CREATE OR REPLACE TEMP TABLE ck AS {' UNION '.join(listed)}"

    def answers(self, *, whole: bool = False) -> list[str]:
        """The rows of the touched keys leave the answer, and come into it as they are now; `whole`: of all keys."""
        keys = [] if whole else [f"v.{self.source.columns[name]}" for name in self._stage.keys]
        gone = f"DELETE FROM {self.source.table} AS v{_matching(keys)}"
        return [
            f"CREATE OR REPLACE TEMP TABLE nw AS {self.asked(whole=whole)}",
            f"CREATE OR REPLACE TEMP TABLE od AS WITH o AS ({gone} RETURNING *) FROM o",
            f"INSERT INTO {self.source.table} SELECT {self._listed} FROM nw",
        ]

    def asked(self, *, whole: bool) -> str:
        """The query of the stage, for the touched keys or for all."""
        leaves = ", ".join(f"{quoted(leaf.name)} AS ({self._leaf(leaf, whole)})" for leaf in self._stage.leaves)
        return f"WITH {leaves} SELECT * FROM ({self._stage.text}) AS answer ({self._listed})"

    def changes(self) -> str:
        """The rows that differ, as they were and as they are, for the stages above."""
        both = f"SELECT {self._listed}, 1 AS one FROM nw UNION ALL SELECT {self._listed}, -1 FROM od"
        differing = f"SELECT {self._listed} FROM ({both}) GROUP BY {self._listed} HAVING sum(one) <> 0"
        return f"CREATE OR REPLACE TEMP TABLE {self.source.changed} AS {differing}"

    def unchanged(self) -> str:
        """As `changes`, where nothing is touched."""
        return f"CREATE OR REPLACE TEMP TABLE {self.source.changed} AS FROM {self.source.table} LIMIT 0"

    def _leaf(self, leaf: Leaf, whole: bool) -> str:
        below = self._below[leaf.source]
        columns = ", ".join(f"r.{below.columns[name]} AS {quoted(shown)}" for shown, name in leaf.columns)
        keys = [] if whole else [f"r.{below.columns[name]}" for name in leaf.key]
        return f"SELECT {columns} FROM {below.table} AS r{_matching(keys)}"


class FinishText:
    """Writes the statements of a view. `st` is the batch, `df` what it has changed in the view."""

    def __init__(self, number: int, spec: ViewSpec, plan: FinishPlan, views: Mapping[str, ViewTable]) -> None:
        self.log = f"store.l{number}"
        self.kept: list[KeptTable] = []
        self.views: list[ViewRows] = []
        sources: list[Source] = []
        for place, rows in enumerate(plan.rows):
            if rows.read is None:
                self.kept.append(_kept(f"store.r{number}_{place}", place, rows))
                sources.append(self.kept[-1].source)
            else:
                self.views.append(ViewRows(place, rows, views[rows.relation]))
                sources.append(self.views[-1].source)
        self.stages: list[StageText] = []
        for place, stage in enumerate(plan.stages, start=1):
            table = f"store.v{number}" if place == len(plan.stages) else f"store.g{number}_{place}"
            self.stages.append(StageText(table, f"x{len(sources)}", stage, tuple(sources)))
            sources.append(self.stages[-1].source)
        self._view = self.stages[-1].source
        self._unique = plan.unique
        self._visible = [self._view.columns[name] for name, _ in spec.columns]
        self._types = [duckdb_type(kind) for _, kind in spec.columns]
        shown = ", ".join(f"{self._view.columns[name]} AS {quoted(name)}" for name, _ in spec.columns)
        self.shown = f"SELECT {shown} FROM {self._view.table}"
        self.logged = ", ".join(f"{side}{place}" for side in "ba" for place in range(len(self._visible)))

    @property
    def tables(self) -> list[str]:
        return [
            self.log,
            *(table for kept in self.kept for table in kept.tables),
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
        kept = [statement for rows in self.kept for statement in rows.creates()]
        return [log, *kept, *(stage.create() for stage in self.stages)]

    def differences(self) -> str:
        """What has changed in the view, in an order of its own: deletes, then updates, then inserts."""
        return (
            self._bag() if self._unique is None else self._by_key([self._view.columns[name] for name in self._unique])
        )

    def _bag(self) -> str:
        """The same row may be there several times, so they are counted."""
        names = ", ".join(self._visible)
        before = ", ".join(f"CASE WHEN n < 0 THEN {name} END AS b{place}" for place, name in enumerate(self._visible))
        after = ", ".join(f"CASE WHEN n > 0 THEN {name} END AS a{place}" for place, name in enumerate(self._visible))
        both = f"SELECT {names}, 1 AS one FROM nw UNION ALL SELECT {names}, -1 FROM od"
        counted = f"SELECT {names}, CAST(sum(one) AS BIGINT) AS n FROM ({both}) GROUP BY {names} HAVING sum(one) <> 0"
        return (
            "CREATE OR REPLACE TEMP TABLE df AS "
            f"SELECT CASE WHEN n > 0 THEN 'insert' ELSE 'delete' END AS op, {before}, {after} "
            f"FROM ({counted}), range(abs(n)) ORDER BY n > 0, {names}"
        )

    def _by_key(self, unique: list[str]) -> str:
        same = " AND ".join(f"od.{name} IS NOT DISTINCT FROM nw.{name}" for name in unique) or "true"
        differs = " OR ".join(f"od.{name} IS DISTINCT FROM nw.{name}" for name in self._visible)
        before = ", ".join(f"od.{name} AS b{place}" for place, name in enumerate(self._visible))
        after = ", ".join(f"nw.{name} AS a{place}" for place, name in enumerate(self._visible))
        operation = "CASE WHEN od.here IS NULL THEN 'insert' WHEN nw.here IS NULL THEN 'delete' ELSE 'update' END"
        order = ", ".join(f"coalesce(nw.{name}, od.{name})" for name in unique) or "op"
        return (
            f"CREATE OR REPLACE TEMP TABLE df AS SELECT {operation} AS op, {before}, {after} "
            f"FROM (SELECT *, 1 AS here FROM od) AS od FULL JOIN (SELECT *, 1 AS here FROM nw) AS nw ON {same} "
            f"WHERE od.here IS NULL OR nw.here IS NULL OR {differs} ORDER BY op, {order}"
        )


def _kept(table: str, place: int, rows: KeptRows) -> KeptTable:
    if rows.changes is None:
        return KeptTable(table, place, rows)
    return (ChangedTable if rows.changes.key else BagTable)(table, place, rows, rows.changes)


def _matching(keys: list[str]) -> str:
    """The condition that a row belongs to a touched key; NULL is one too."""
    if not keys:
        return ""
    same = " AND ".join(f"ck.t{place} IS NOT DISTINCT FROM {key}" for place, key in enumerate(keys))
    return f" WHERE EXISTS (FROM ck WHERE {same})"
