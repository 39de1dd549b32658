"""A view with a key, whose rows change: running aggregates that the store merges, and rows that replace each other.

The row of a key is kept once, as keys, partial results and the columns that are neither. For every batch the log has
one row a touched key, with what was stored before it: so the log tells readers what changed, and takes the view back
to an earlier batch exactly, partial results and rows that are not shown included. Keys are compared as GROUP BY does:
NULL equals NULL and NaN equals NaN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import InternalError
from penstock.stores.duckdb_types import quoted
from penstock.stores.views.database import one_row, run_with
from penstock.stores.views.keyed_layout import SEEN, KeyedLayout, layout_of
from penstock.stores.views.model import ViewSpec
from penstock.stores.views.view_table import BATCH, BatchMark, ViewTable, picked

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


class KeyedView:
    """The tables of a keyed view: v<n> with its rows and l<n> with its log."""

    keyed = True
    parents: tuple[ViewTable, ...] = ()

    def __init__(self, number: int, spec: ViewSpec, layout: KeyedLayout | None = None) -> None:
        self.id = number
        self.spec = spec
        self._table = f"store.v{number}"
        self._log = f"store.l{number}"
        self._layout = layout or layout_of(spec)
        self._texts = _texts(self._layout, self._table)

    def create(self, writer: duckdb.DuckDBPyConnection) -> None:
        kept = self._layout
        columns = "".join(f"{name} {kind}, " for name, kind in kept.stored)
        writer.execute(f"CREATE TABLE {self._table} ({columns}shown BOOLEAN)")
        keys = "".join(f", {name} {kind}" for name, kind in kept.keys)
        before = "".join(f", o_{name} {kind}" for name, kind in kept.values)
        after = "".join(f", n_{name} {kind}" for name, kind in kept.values if name in kept.visible_values)
        writer.execute(
            f"CREATE TABLE {self._log} (seq BIGINT, op VARCHAR, batch BIGINT, done BIGINT, wm BIGINT, "
            f"o_shown BOOLEAN{keys}{before}{after})"
        )

    def drop(self, writer: duckdb.DuckDBPyConnection) -> None:
        writer.execute(f"DROP TABLE {self._table}")
        writer.execute(f"DROP TABLE {self._log}")

    def apply(self, writer: duckdb.DuckDBPyConnection, rows: pa.Table, mark: BatchMark) -> int:
        gone = 0
        if self.spec.ttl_us is not None:
            # First: a row that comes for a key that is too old begins anew, whether or not a batch ran in between.
            gone = self._forget(writer, mark, mark.clock_us - self.spec.ttl_us)
            writer.execute(f"CREATE OR REPLACE TEMP TABLE cl AS SELECT CAST({mark.clock_us} AS BIGINT) AS clock")
        if not rows.num_rows:
            return gone
        texts = self._texts
        names, stored = self._layout.batch_columns(rows.column_names)
        batch = picked(rows, self.spec.name, names, stored)
        staged = self._layout.staging(stored)
        run_with(writer, f"CREATE OR REPLACE TEMP TABLE st AS SELECT {staged} FROM {quoted(BATCH)}", BATCH, batch)
        for statement in ("old", "new", "insert"):
            writer.execute(texts[statement])
        counted = one_row(writer, texts["count"])
        assert counted is not None
        changes, twice = counted
        if twice:
            raise InternalError(f"a batch of view {self.spec.name} has two rows of one key")
        # Changes stand first in `nw`, in the order of their keys: a row's place there is its place in the log.
        writer.execute(
            f"INSERT INTO {self._log} "
            f"SELECT CASE WHEN op IS NOT NULL THEN {mark.first_seq + gone - 1} + row_number() OVER () END, op, "
            f"{mark.batch}, {mark.at_us}, {mark.watermark_text}, {texts['logged']} FROM nw WHERE touched"
        )
        return gone + int(changes)

    def _forget(self, writer: duckdb.DuckDBPyConnection, mark: BatchMark, upto_us: int) -> int:
        """Keys that no row came for since then leave the view; how many of them were shown."""
        kept = self._layout
        keys = [name for name, _ in kept.keys]
        gone = f"DELETE FROM {self._table} WHERE {SEEN[0]} <= {upto_us} RETURNING *"
        order = ", ".join(("NOT shown", *keys))
        writer.execute(f"CREATE OR REPLACE TEMP TABLE od AS WITH o AS ({gone}) FROM o ORDER BY {order}")
        counted = one_row(writer, "SELECT count(*) FILTER (WHERE shown) FROM od")
        assert counted is not None
        before = ", ".join(
            ("shown", *keys, *(name for name, _ in kept.values), *(("NULL",) * len(kept.visible_values)))
        )
        writer.execute(
            f"INSERT INTO {self._log} "
            f"SELECT CASE WHEN shown THEN {mark.first_seq - 1} + row_number() OVER () END, "
            f"CASE WHEN shown THEN 'delete' END, {mark.batch}, {mark.at_us}, {mark.watermark_text}, {before} FROM od"
        )
        return int(counted[0])

    def undo(self, writer: duckdb.DuckDBPyConnection, batch: int) -> None:
        kept = self._layout
        keys = ", ".join(name for name, _ in kept.keys)
        by = f"PARTITION BY {keys} " if keys else ""
        writer.execute(
            f"CREATE OR REPLACE TEMP TABLE st AS SELECT * FROM {self._log} WHERE batch > {batch} "
            f"QUALIFY row_number() OVER ({by}ORDER BY batch, rowid) = 1"  # one batch can forget a key and bring it back
        )
        writer.execute(self._texts["remove"])
        before = "".join(f"{name}, " for name, _ in kept.keys) + "".join(f"o_{name}, " for name, _ in kept.values)
        writer.execute(f"INSERT INTO {self._table} SELECT {before}o_shown FROM st WHERE o_shown IS NOT NULL")
        writer.execute(f"DELETE FROM {self._log} WHERE batch > {batch}")

    def select(self) -> str:
        shown = ", ".join(f"{stored} AS {quoted(name)}" for name, stored in self._layout.visible)
        return f"SELECT {shown} FROM {self._table} WHERE shown"

    def whole(self) -> str:
        keys = ", ".join(f"v{self.id}.{name}" for name, _ in self._layout.keys)
        return f"{self.select()} ORDER BY {keys}" if keys else self.select()

    def changes(self, since: int, limit: int) -> str:
        columns = ""
        for place, (_, stored) in enumerate(self._layout.visible):
            key = stored not in self._layout.visible_values
            columns += f", {stored if key else f'o_{stored}'} AS b{place}"
            columns += f", {stored if key else f'n_{stored}'} AS a{place}"
        return (
            f"SELECT seq, op, batch, wm, done{columns} FROM {self._log} WHERE seq > {since} ORDER BY seq LIMIT {limit}"
        )

    def log(self) -> str:
        return self._log


def _texts(kept: KeyedLayout, table: str) -> dict[str, str]:
    """The statements of a commit that are the same for every batch. `st` is the batch, `od` the rows it replaces."""
    keys = [name for name, _ in kept.keys]
    same = " AND ".join(f"st.{name} IS NOT DISTINCT FROM v.{name}" for name in keys) or "true"
    stored = "".join(f"{name}, " for name, _ in kept.stored)
    grouped = f"GROUP BY {', '.join(keys)}" if keys else ""
    differs = " OR ".join(f"{name} IS DISTINCT FROM o_{name}" for name, _ in kept.values) or "false"
    seen = " OR ".join(f"{name} IS DISTINCT FROM o_{name}" for name in kept.visible_values) or "false"
    operation = (
        "CASE WHEN shown AND o_shown IS NOT TRUE THEN 'insert' WHEN o_shown AND NOT shown THEN 'delete' "
        f"WHEN shown AND ({seen}) THEN 'update' END"
    )
    # A row that is not in the view needs no place where nothing has to be merged into it later.
    only_shown = "" if kept.keeps_hidden_rows else " WHERE shown"
    new = "true" if kept.keeps_hidden_rows else "shown"
    remove = f"DELETE FROM {table} AS v WHERE EXISTS (FROM st WHERE {same})"
    return {
        "count": f"SELECT count(op), EXISTS (SELECT 1 FROM st {grouped} HAVING count(*) > 1) FROM nw",
        "remove": remove,
        "old": f"CREATE OR REPLACE TEMP TABLE od AS WITH o AS ({remove} RETURNING *) FROM o",
        "new": (
            f"CREATE OR REPLACE TEMP TABLE nw AS SELECT *, {operation} AS op, "
            f"CASE WHEN o_shown IS NULL THEN {new} ELSE shown <> o_shown OR {differs} END AS touched "
            f"FROM ({kept.merged(same)}) ORDER BY {', '.join(('op IS NULL', *keys))}"
        ),
        "insert": f"INSERT INTO {table} SELECT {stored}shown FROM nw{only_shown}",
        "logged": ", ".join(("o_shown", *keys, *(f"o_{name}" for name, _ in kept.values), *kept.visible_values)),
    }
