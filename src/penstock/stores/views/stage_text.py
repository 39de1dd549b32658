"""The statements of one stage of a view that is answered from kept rows."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from penstock.stores.duckdb_types import duckdb_type, quoted
from penstock.stores.views.finish_sources import Source
from penstock.stores.views.touched_keys import Keys, counting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.plan.finish_plan import Leaf, Stage


NOTHING: Final[Mapping[int, str]] = MappingProxyType({})


class StageText:
    """Writes the statements of one stage. `ck` are the touched keys, `nw` their rows now, `od` before."""

    def __init__(self, table: str, changed: str, stage: Stage, below: Sequence[Source]) -> None:
        self._stage = stage
        self._below = below
        self.source = Source(table, changed, {name: f"c{place}" for place, (name, _) in enumerate(stage.columns)})
        self._listed = ", ".join(self.source.columns.values())

    @property
    def timed(self) -> bool:
        return self._stage.timed

    @property
    def keyed(self) -> bool:
        return bool(self._stage.keys)

    @property
    def meets(self) -> bool:
        return self._stage.meets

    def create(self) -> str:
        types = [duckdb_type(kind) for _, kind in self._stage.columns]
        columns = ", ".join(f"c{place} {kind}" for place, kind in enumerate(types))
        return f"CREATE TABLE {self.source.table} ({columns})"

    def touched(self) -> str:
        """The keys of the rows that have changed below."""
        queries = []
        for leaf in self._stage.leaves:
            if self.meets and not leaf.key:
                continue  # what the rows in front meet; its changes touch none of them
            below = self._below[leaf.source]
            columns = [f"{below.columns[name]} AS t{place}" for place, name in enumerate(leaf.key)]
            query = f"SELECT {', '.join(columns) or '1 AS nothing'} FROM {below.changed}"
            if query not in queries:
                queries.append(query)
        listed = queries if len(queries) > 1 else [query.replace("SELECT", "SELECT DISTINCT", 1) for query in queries]
        return f"CREATE OR REPLACE TEMP TABLE ck AS {' UNION '.join(listed)}"

    def counted(self) -> str:
        """What `Keys.counted` wants to know of the touched keys."""
        return counting(len(self._stage.keys))

    def answers(self, keys: Keys) -> list[str]:
        """The rows of the keys leave the answer, and come into it as they are now."""
        gone = keys.delete(self.source.table, [self.source.columns[name] for name in self._stage.keys])
        return [
            # Not inserted by the same statement: DuckDB plans that without statistics, which takes twice as long.
            f"CREATE OR REPLACE TEMP TABLE nw AS {self.asked(keys)}",
            f"CREATE OR REPLACE TEMP TABLE od AS WITH o AS ({gone} RETURNING {self._listed}) FROM o",
            f"INSERT INTO {self.source.table} SELECT {self._listed} FROM nw",
        ]

    def asked(self, keys: Keys, fresh: Mapping[int, str] = NOTHING) -> str:
        """The query of the stage, for the keys; `fresh` are the rows that the batch brings, by their sources."""
        leaves = ", ".join(f"{quoted(leaf.name)} AS ({self._leaf(leaf, keys, fresh)})" for leaf in self._stage.leaves)
        given = f"WITH {leaves} " if leaves else ""  # rows that are written out read nothing
        return f"{given}SELECT * FROM ({self._stage.text}) AS answer ({self._listed})"

    def changes(self) -> str:
        """The rows that differ, as they were and as they are, for the stages above."""
        both = f"SELECT {self._listed}, 1 AS one FROM nw UNION ALL SELECT {self._listed}, -1 FROM od"
        differing = f"SELECT {self._listed} FROM ({both}) GROUP BY {self._listed} HAVING sum(one) <> 0"
        return f"CREATE OR REPLACE TEMP TABLE {self.source.changed} AS {differing}"

    def unchanged(self) -> str:
        """As `changes`, where nothing is touched."""
        return f"CREATE OR REPLACE TEMP TABLE {self.source.changed} AS FROM {self.source.table} LIMIT 0"

    def _leaf(self, leaf: Leaf, keys: Keys, fresh: Mapping[int, str]) -> str:
        below = self._below[leaf.source]
        columns = ", ".join(f"r.{below.columns[name]} AS {quoted(shown)}" for shown, name in leaf.columns)
        table = fresh[leaf.source] if leaf.fresh else below.table
        return f"SELECT {columns} FROM {keys.read(table, [below.columns[name] for name in leaf.key])}"
