"""The statements of a view that is answered from kept rows.

In the tables of the store the columns of the view are c0, c1, …, those that only carry a key k0, k1, …, and those of
kept rows r0, r1, …: names of ours never meet names of the user, who is only in the text of the plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import InternalError
from penstock.plan.finish_plan import SIDE
from penstock.stores.duckdb_types import duckdb_type, quoted

if TYPE_CHECKING:
    from penstock.plan.finish_plan import FinishPlan, Leaf
    from penstock.stores.views.model import ViewSpec


class FinishText:
    """Writes the statements. `st` is the batch, `ck` the touched keys, `nw` their rows now, `od` before, `df` both."""

    def __init__(self, number: int, spec: ViewSpec, plan: FinishPlan) -> None:
        self._plan = plan
        self._table = f"store.v{number}"
        self.log = f"store.l{number}"
        self._rows = [f"store.r{number}_{place}" for place in range(len(plan.rows))]
        names = [name for name, _ in spec.columns]
        self._visible = [f"c{place}" for place in range(len(names))]
        self._stored = dict(zip(names, self._visible, strict=True))
        self._stored |= {name: f"k{place}" for place, (name, _) in enumerate(plan.hidden)}
        self._types = [duckdb_type(kind) for _, kind in (*spec.columns, *plan.hidden)]
        shown = ", ".join(f"{self._stored[name]} AS {quoted(name)}" for name in names)
        self.shown = f"SELECT {shown} FROM {self._table}"
        self._kept: list[dict[str, str]] = []
        self._kept_types: list[list[str]] = []
        for rows in plan.rows:
            self._kept.append({entry.name: f"r{place}" for place, entry in enumerate(rows.columns)})
            self._kept_types.append([])
            for entry in rows.columns:
                if entry.type is None:
                    raise InternalError(f"the type of {entry.name} of view {spec.name} is not known")
                self._kept_types[-1].append(duckdb_type(entry.type))
        self.logged = ", ".join(f"{side}{place}" for side in "ba" for place in range(len(names)))

    @property
    def tables(self) -> list[str]:
        return [self._table, self.log, *self._rows]

    @property
    def given(self) -> tuple[list[str], list[str]]:
        """The columns to take from a batch, and the names they get."""
        names, stored = [SIDE], ["side"]
        for place, columns in enumerate(self._kept):
            names += columns
            stored += [_staged(place, kept) for kept in columns.values()]
        return names, stored

    def creates(self) -> list[str]:
        columns = ", ".join(f"{name} {kind}" for name, kind in zip(self._stored.values(), self._types, strict=True))
        logged = "".join(
            f", {side}{place} {kind}" for side in "ba" for place, kind in enumerate(self._types[: len(self._visible)])
        )
        made = [
            f"CREATE TABLE {self._table} ({columns})",
            f"CREATE TABLE {self.log} (seq BIGINT, op VARCHAR, batch BIGINT, done BIGINT, wm BIGINT{logged})",
        ]
        for table, kept, types in zip(self._rows, self._kept, self._kept_types, strict=True):
            listed = "".join(f", {name} {kind}" for name, kind in zip(kept.values(), types, strict=True))
            made.append(f"CREATE TABLE {table} (batch BIGINT{listed})")
        return made

    def adds(self, batch: int) -> list[str]:
        """The rows of the batch become kept ones."""
        return [
            f"INSERT INTO {table} SELECT {batch}{''.join(f', {_staged(place, name)}' for name in kept.values())} "
            f"FROM st WHERE side = {place}"
            for place, (table, kept) in enumerate(zip(self._rows, self._kept, strict=True))
        ]

    def touched(self) -> str:
        """The keys of the rows of the batch."""
        return self._keys([(f"st WHERE side = {leaf.rows}", leaf, True) for leaf in self._plan.leaves])

    def touched_after(self, batch: int) -> str:
        """The keys of the rows that came after a batch."""
        return self._keys(
            [(f"{self._rows[leaf.rows]} WHERE batch > {batch}", leaf, False) for leaf in self._plan.leaves]
        )

    def _keys(self, sources: list[tuple[str, Leaf, bool]]) -> str:
        queries = []
        for source, leaf, staged in sources:
            kept = self._kept[leaf.rows]
            columns = [
                f"{_staged(leaf.rows, kept[name]) if staged else kept[name]} AS t{place}"
                for place, name in enumerate(leaf.key)
            ]
            queries.append(f"SELECT {', '.join(columns) or '1 AS nothing'} FROM {source}")
        return f"CREATE OR REPLACE TEMP TABLE ck AS {' UNION '.join(queries)}"

    def forgets(self, batch: int) -> list[str]:
        return [f"DELETE FROM {table} WHERE batch > {batch}" for table in self._rows]

    def answers(self) -> list[str]:
        """The rows of the touched keys leave the view, and come into it as they are now."""
        leaves = ", ".join(f"{quoted(leaf.name)} AS ({self._leaf(leaf)})" for leaf in self._plan.leaves)
        listed = ", ".join(self._stored.values())
        keys = [f"v.{self._stored[name]}" for name in self._plan.keys]
        gone = f"DELETE FROM {self._table} AS v{_matching(keys)}"
        return [
            f"CREATE OR REPLACE TEMP TABLE nw AS WITH {leaves} SELECT * FROM ({self._plan.text}) AS answer ({listed})",
            f"CREATE OR REPLACE TEMP TABLE od AS WITH o AS ({gone} RETURNING *) FROM o",
            f"INSERT INTO {self._table} SELECT {listed} FROM nw",
        ]

    def _leaf(self, leaf: Leaf) -> str:
        kept = self._kept[leaf.rows]
        columns = ", ".join(f"r.{kept[name]} AS {quoted(shown)}" for shown, name in leaf.columns)
        return (
            f"SELECT {columns} FROM {self._rows[leaf.rows]} AS r{_matching([f'r.{kept[name]}' for name in leaf.key])}"
        )

    def differences(self) -> str:
        """What has changed, in an order of its own: deletes, then updates, then inserts."""
        unique = self._plan.unique
        return self._bag() if unique is None else self._by_key([self._stored[name] for name in unique])

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


def _matching(keys: list[str]) -> str:
    """The condition that a row belongs to a touched key; NULL is one too."""
    if not keys:
        return ""
    same = " AND ".join(f"ck.t{place} IS NOT DISTINCT FROM {key}" for place, key in enumerate(keys))
    return f" WHERE EXISTS (FROM ck WHERE {same})"


def _staged(rows: int, kept: str) -> str:
    return f"s{rows}_{kept}"
