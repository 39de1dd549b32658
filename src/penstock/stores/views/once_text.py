"""The statements of a stage that is answered once, for the rows that a batch brings: see plan.met_once.

Its answer only grows. Each row has the batch that brought it, so that an earlier batch can be gone back to: what those
after it brought is taken away, and never made anew from what is there by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.stores.duckdb_types import duckdb_type
from penstock.stores.views.stage_text import StageText
from penstock.stores.views.touched_keys import ALL_KEYS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.plan.finish_plan import Stage
    from penstock.stores.views.finish_sources import KeptTable, Source


class OnceText(StageText):
    """Writes the statements of such a stage: `nw` are the rows that come into the answer, `od` those that go."""

    def __init__(
        self, table: str, changed: str, stage: Stage, below: Sequence[Source], kept: Mapping[int, KeptTable]
    ) -> None:
        """`kept` are the rows that batches bring, by their places among the sources."""
        super().__init__(table, changed, stage, below)
        self._arrived = {leaf.source: kept[leaf.source] for leaf in stage.leaves if leaf.fresh}

    def create(self) -> str:
        types = [duckdb_type(kind) for _, kind in self._stage.columns]
        columns = "".join(f", c{place} {kind}" for place, kind in enumerate(types))
        return f"CREATE TABLE {self.source.table} (batch BIGINT{columns})"

    def comes(self, batch: int, over: int | None = None) -> list[str]:
        """The rows of a batch come into the answer, and those of batches up to one, which are too old, leave it."""
        fresh = {source: kept.arrived(batch) for source, kept in self._arrived.items()}
        gone = [] if over is None else self.goes(f"batch <= {over}")[1:]
        return [
            f"CREATE OR REPLACE TEMP TABLE nw AS {self.asked(ALL_KEYS, fresh)}",
            *(gone or [f"CREATE OR REPLACE TEMP TABLE od AS {self._none}"]),
            f"INSERT INTO {self.source.table} SELECT {batch}, {self._listed} FROM nw",
        ]

    def stays(self) -> list[str]:
        """No rows come into the answer, and none go."""
        return [f"CREATE OR REPLACE TEMP TABLE {name} AS {self._none}" for name in ("nw", "od")]

    def goes(self, where: str) -> list[str]:
        """The rows of some batches leave the answer, and no others come."""
        gone = f"DELETE FROM {self.source.table} WHERE {where} RETURNING {self._listed}"
        return [
            f"CREATE OR REPLACE TEMP TABLE nw AS {self._none}",
            f"CREATE OR REPLACE TEMP TABLE od AS WITH o AS ({gone}) FROM o",
        ]

    @property
    def _none(self) -> str:
        return f"SELECT {self._listed} FROM {self.source.table} LIMIT 0"

    def unchanged(self) -> str:
        return f"CREATE OR REPLACE TEMP TABLE {self.source.changed} AS {self._none}"
