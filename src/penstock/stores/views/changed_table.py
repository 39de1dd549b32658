"""Kept rows that replace each other: the latest row of each key of a source whose rows change.

Of a batch, `cn<n>` are the rows that it brings, one a key, and `co<n>` those that they replace. With a version, deleted
keys stay in the table as rows that are gone. A second table, the history, has for each batch and key what was there
before it, so that an earlier batch can be gone back to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.stores.views.finish_sources import KeptTable, Source

if TYPE_CHECKING:
    from penstock.plan.finish_plan import KeptRows, RowChanges


class ChangedTable(KeptTable):
    """The latest rows of one relation, and their history."""

    def __init__(self, table: str, place: int, rows: KeptRows, changes: RowChanges) -> None:
        super().__init__(table, place, rows)
        self._history = f"{table}_h"
        self._changes = changes
        self._versioned = changes.version is not None
        self._columns = list(self.source.columns.values())
        self._key = [self.source.columns[key] for key in changes.key]
        self._new, self._old = f"cn{place}", f"co{place}"
        self.source = Source(self.shown.now(self._present(table)), self.source.changed, self.source.columns)

    @property
    def tables(self) -> list[str]:
        return [self._table, self._history]

    @property
    def seen(self) -> str:
        return f"(SELECT 1 FROM {self._table} UNION ALL SELECT 1 FROM {self._history})"

    @property
    def present(self) -> str:
        return self._present(self._table)

    @property
    def given(self) -> dict[str, str]:
        names = (self._changes.gone, self._changes.partition, self._changes.offset)
        more = {name: self._staged(own) for name, own in zip(names, ("gone", "part", "off"), strict=True)}
        return {**super().given, **more}

    def creates(self) -> list[str]:
        listed = "".join(f", {name} {kind}" for name, kind in zip(self._columns, self._types, strict=True))
        if self._changes.version is not None:
            kind = dict(zip(self.source.columns, self._types, strict=True))[self._changes.version]
            listed += f", gone BOOLEAN, ver {kind}"
        return [
            f"CREATE TABLE {self._table} (batch BIGINT{listed})",
            f"CREATE TABLE {self._history} (since BIGINT, had BOOLEAN, batch BIGINT{listed})",
        ]

    def adds(self, batch: int) -> list[str]:
        stored = self._stored()
        gone = f"DELETE FROM {self._table} AS r WHERE EXISTS (FROM {self._new} AS n WHERE {self._same('n', 'r')})"
        both = f"{self._new} AS n LEFT JOIN {self._old} AS o ON {self._same('n', 'o')}"
        before = "".join(f", {'n' if name in self._key else 'o'}.{name}" for name in stored)
        listed = "".join(f", {name}" for name in stored)
        present = "" if self._versioned else " WHERE NOT gone"
        return [
            f"CREATE OR REPLACE TEMP TABLE {self._new} AS {self._newest() if self._versioned else self._last()}",
            f"CREATE OR REPLACE TEMP TABLE {self._old} AS WITH o AS ({gone} RETURNING *) FROM o",
            f"INSERT INTO {self._history} SELECT {batch}, o.batch IS NOT NULL, o.batch{before} FROM {both}",
            f"INSERT INTO {self._table} SELECT {batch}{listed} FROM {self._new}{present}",
            self._changed(f"(FROM {self._new} WHERE NOT gone)", self._present(self._old)),
        ]

    def forgets(self, batch: int) -> list[str]:
        first = f"QUALIFY row_number() OVER (PARTITION BY {', '.join(self._key)} ORDER BY since) = 1"
        touched = f"{self._table} AS r WHERE EXISTS (FROM {self._old} AS o WHERE {self._same('o', 'r')})"
        listed = "".join(f", {name}" for name in self._stored())
        return [
            f"CREATE OR REPLACE TEMP TABLE {self._old} AS SELECT * FROM {self._history} WHERE since > {batch} {first}",
            f"CREATE OR REPLACE TEMP TABLE {self._new} AS WITH o AS (DELETE FROM {touched} RETURNING *) FROM o",
            f"INSERT INTO {self._table} SELECT batch{listed} FROM {self._old} WHERE had",
            f"DELETE FROM {self._history} WHERE since > {batch}",
            self._changed(self._present(self._new), self._present(f"(FROM {self._old} WHERE had)")),
        ]

    def expires(self, batch: int) -> list[str]:
        gone = f"DELETE FROM {self._table} WHERE batch <= {batch} RETURNING *"
        return [
            f"CREATE OR REPLACE TEMP TABLE ex AS WITH o AS ({gone}) FROM o",
            f"INSERT INTO {self.source.changed} SELECT {', '.join(self._columns)} FROM {self._present('ex')}",
        ]

    def tidies(self, floor: int, clock_us: int) -> list[str]:
        return [f"DELETE FROM {self._history} WHERE since <= {floor}"]

    def _changed(self, one: str, other: str) -> str:
        listed = ", ".join(self._columns)
        both = f"SELECT {listed} FROM {one} UNION ALL SELECT {listed} FROM {other}"
        return f"CREATE OR REPLACE TEMP TABLE {self.source.changed} AS {both}"

    def _stored(self) -> list[str]:
        return [*self._columns, *(("gone", "ver") if self._versioned else ())]

    def _present(self, table: str) -> str:
        """The rows of a table without those that only remember a deletion."""
        return f"(FROM {table} WHERE NOT gone)" if self._versioned else table

    def _same(self, one: str, other: str) -> str:
        return " AND ".join(f"{one}.{name} IS NOT DISTINCT FROM {other}.{name}" for name in self._key)

    def _batch(self) -> str:
        """The rows of the batch, under the names they are stored by; of deleted ones only the key."""
        gone = f"coalesce({self._staged('gone')}, true)"
        items = [
            f"{self._staged(name)} AS {name}"
            if name in self._key
            else f"CASE WHEN NOT {gone} THEN {self._staged(name)} END AS {name}"
            for name in self._columns
        ]
        items += [f"{gone} AS gone", f"{self._staged('part')} AS part", f"{self._staged('off')} AS off"]
        if self._changes.version is not None:
            items.append(f"{self._staged(self.source.columns[self._changes.version])} AS ver")
        return f"SELECT {', '.join(items)} FROM bt WHERE side = {self._place}"

    def _last(self) -> str:
        by = ", ".join(self._key)
        return (
            f"SELECT * EXCLUDE (part, off) FROM ({self._batch()}) "
            f"QUALIFY row_number() OVER (PARTITION BY {by} ORDER BY part DESC, off DESC) = 1"
        )

    def _newest(self) -> str:
        """A row without a version, as a deletion often is, is as new as the newest row that came before it."""
        by = ", ".join(f"b.{name}" for name in self._key)
        before = f"max(b.ver) OVER (PARTITION BY {by} ORDER BY b.part, b.off ROWS UNBOUNDED PRECEDING)"
        listed = "".join(f"b.{name}, " for name in (*self._columns, "gone", "part", "off"))
        numbered = (
            f"SELECT {listed}coalesce(b.ver, greatest({before}, r.ver)) AS ver, r.ver AS was "
            f"FROM ({self._batch()}) AS b LEFT JOIN {self._table} AS r ON {self._same('b', 'r')}"
        )
        return (
            f"SELECT * EXCLUDE (part, off, was) FROM ({numbered}) WHERE was IS NULL OR ver >= was QUALIFY row_number() "
            f"OVER (PARTITION BY {', '.join(self._key)} ORDER BY ver DESC NULLS LAST, part DESC, off DESC) = 1"
        )

    def _staged(self, stored: str) -> str:
        return f"s{self._place}_{stored}"
