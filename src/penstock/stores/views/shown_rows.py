"""Rows that are shown between times of their own: what the clock of a view brings in and takes out. See
plan.moving_clock.

The clock is a function of the connection, made anew with each batch: DuckDB sees a constant in its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.plan.finish_plan import CLOCK_CALL
from penstock.stores.duckdb_types import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.plan.finish_plan import KeptRows


def set_clock(clock_us: int) -> str:
    """The texts of a finish ask this clock from now on."""
    return f"CREATE OR REPLACE TEMP MACRO {quoted(CLOCK_CALL)}() AS {_moment(clock_us)}"


class ShownRows:
    """When the rows of one relation are shown; `columns` are the names in the plan, with those in the table."""

    def __init__(self, rows: KeptRows, columns: Mapping[str, str]) -> None:
        self._since = [columns[name] for name in rows.since]
        self._until = [columns[name] for name in rows.until]
        self._columns = list(columns.values())

    @property
    def bounded(self) -> bool:
        """Whether the clock has a say."""
        return bool(self._since or self._until)

    def now(self, table: str) -> str:
        """The rows of a table that are shown at the time of the clock; the table itself where all are."""
        clock = f"{quoted(CLOCK_CALL)}()"
        shown = [f"{name} <= {clock}" for name in self._since] + [f"{name} > {clock}" for name in self._until]
        return f"(FROM {table} WHERE {' AND '.join(shown)})" if shown else table

    def still(self, prefix: str) -> str:
        """The condition, behind another one, that rows of a batch can still be shown."""
        return "".join(f" AND {prefix}{name} > {quoted(CLOCK_CALL)}()" for name in self._until)

    def over(self, clock_us: int) -> list[str]:
        """The condition that rows are shown no more at a time, nor ever after; none where there is no such time."""
        return [" OR ".join(f"{name} <= {_moment(clock_us)}" for name in self._until)] if self._until else []

    def crosses(self, changed: str, table: str, before_us: int, now_us: int) -> list[str]:
        """Adds the rows of a table to what has changed that were shown at one of two times and not at the other."""
        if not self.bounded or before_us == now_us:
            return []
        first, last = sorted((before_us, now_us))
        times = [f"({name} > {_moment(first)} AND {name} <= {_moment(last)})" for name in (*self._since, *self._until)]
        listed = ", ".join(self._columns)
        return [f"INSERT INTO {changed} SELECT {listed} FROM {table} WHERE {' OR '.join(times)}"]

    def due(self, table: str, clock_us: int) -> str | None:
        """The query for the next time at which rows come in or go out; None where there is none."""
        moment = _moment(clock_us)
        times = [
            f"SELECT min({name}) AS t FROM {table} WHERE {name} > {moment}" for name in (*self._since, *self._until)
        ]
        return f"SELECT epoch_us(min(t)) FROM ({' UNION ALL '.join(times)})" if times else None


def _moment(clock_us: int) -> str:
    return f"make_timestamp({clock_us})"
