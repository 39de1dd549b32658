"""The statements over the panes of a view. What is stored is called pane, k0, k1, … (keys) and p0, … (partials)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from penstock.errors import InternalError
from penstock.plan.pane_plan import END, PANE, START, TIME, TIME_BEFORE_END_US, WINDOW
from penstock.stores.duckdb_types import duckdb_type, quoted
from penstock.stores.views.merges import MERGES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.plan.merge_plan import MergePlan
    from penstock.plan.pane_plan import PanePlan
    from penstock.types import SqlType

_WINDOW: Final = "w"  # the end of a window that a pane lies in


class PaneText:
    """The statements over the panes of one GROUP BY; `panes` is the table they stand in, `types` are those of its
    columns."""

    def __init__(self, view: str, panes: str, plan: PanePlan, merge: MergePlan, types: Sequence[SqlType]) -> None:
        self._panes = panes
        self._plan = plan
        self._merge = merge
        keys = [key for key in merge.keys if key.name != PANE]
        self._keys = [(f"k{place}", key.name, _type(view, key.type)) for place, key in enumerate(keys)]
        self._partials = [
            (f"p{place}", part.name, _type(view, part.type), MERGES[part.how].format(f"p{place}"))
            for place, part in enumerate(merge.partials)
        ]
        self._columns = [
            f"CAST({column.expression} AS {duckdb_type(kind)})"
            for column, kind in zip(merge.columns, types, strict=True)
        ]
        self.stored = [
            ("pane", "BIGINT"),
            *((stored, kind) for stored, _, kind in self._keys),
            *((stored, kind) for stored, _, kind, _ in self._partials),
        ]
        self._best = merge.best
        self._rows = self._best is not None and self._best.rows
        self.given = [PANE, *(name for _, name, _ in self._keys), *(name for _, name, _, _ in self._partials)]
        self.staged = ", ".join(f"CAST({name} AS {kind})" for name, kind in self.stored)

    @property
    def last_end(self) -> str:
        """The end of the last window that a pane lies in."""
        by = self._plan.size_us if self._plan.cumulates else self._plan.slide_us
        return f"(pane - {_over('pane', self._plan.offset_us, by)} + {self._plan.size_us})"

    def _first_end(self, time: str) -> str:
        """The first end of a window after a time."""
        over = _over(time, self._plan.offset_us + self._plan.size_us, self._plan.slide_us)
        return f"({time} - {over} + {self._plan.slide_us})"

    @property
    def _start(self) -> str:
        """Where a window begins."""
        if not self._plan.cumulates:
            return f"{_WINDOW} - {self._plan.size_us}"
        last = f"({_WINDOW} - 1)"  # the end of a step belongs to the next one
        return f"{last} - {_over(last, self._plan.offset_us, self._plan.size_us)}"

    def _of_windows(self, after: str, upto: int | None) -> str:
        """Every pane once for each window of it that ends after a watermark and not after another one."""
        stored = ", ".join(name for name, _ in self.stored if name != "pane")
        first = f"greatest({self._first_end('pane')}, {self._first_end(after)})"
        last = self.last_end if upto is None else f"least({self.last_end}, {upto})"
        within = f"pane > {after} - {self._plan.size_us}" + ("" if upto is None else f" AND pane < {upto}")
        ends = f"unnest(range({first}, {last} + 1, {self._plan.slide_us})) AS {_WINDOW}"
        return f"SELECT {stored + ', ' if stored else ''}{ends} FROM {self._panes} WHERE {within}"

    def _merged(self) -> str:
        return "".join(f", CAST({merge} AS {kind}) AS {quoted(name)}" for _, name, kind, merge in self._partials)

    def closing(self, after: int, upto: int) -> str:
        """The rows of the windows that end after one watermark and not after the next, window by window, as the view
        stores them."""
        order = ", ".join((quoted(END), *(quoted(name) for _, name, _ in self._keys)))
        return f"{self.closed(after, upto)} ORDER BY {order}"

    def closed(self, after: int, upto: int) -> str:
        """The same in any order: c0, c1, … are the columns."""
        names = "".join(f"{stored} AS {quoted(name)}, " for stored, name, _ in self._keys)
        bounds = {START: self._start, END: _WINDOW, TIME: f"{_WINDOW} - {TIME_BEFORE_END_US}"}
        times = ", ".join(f"make_timestamp({value}) AS {quoted(name)}" for name, value in bounds.items())
        whole = f'struct_pack(start := make_timestamp({bounds[START]}), "end" := make_timestamp({_WINDOW}))'
        times += f", {whole} AS {quoted(WINDOW)}"
        by = ", ".join((*(stored for stored, _, _ in self._keys), _WINDOW))
        groups = f"SELECT {names}{times}{self._merged()} FROM ({self._of_windows(str(after), upto)})"
        groups += "" if self._rows else f" GROUP BY {by}"
        shown = ", ".join(f"{column} AS c{place}" for place, column in enumerate(self._columns))
        keep = _where(self._merge.keep)
        if self._best is not None:
            by = ", ".join((quoted(END), *self._best.by))
            wanted = f"{'max' if self._best.largest else 'min'}({self._best.value}) OVER (PARTITION BY {by})"
            groups = f"SELECT * FROM ({groups}){keep} QUALIFY {self._best.value} = {wanted}"
            keep = _where(self._best.keep)
        return f"SELECT {shown} FROM ({groups}){keep}"

    def tidied(self, floor: int, closed_us: int) -> str:
        """What is left of the panes of batches up to `floor`, which are taken out, for windows that end later."""
        by = ", ".join(("pane", *(stored for stored, _, _ in self._keys)))
        merged = "".join(f", CAST({merge} AS {kind})" for _, _, kind, merge in self._partials)
        gone = f"DELETE FROM {self._panes} WHERE batch <= {floor} RETURNING *"
        left = f"WITH gone AS ({gone}) SELECT {by}{merged} FROM gone WHERE {self.last_end} > {closed_us}"
        return f"{left} QUALIFY {self._first_of_pane()}" if self._rows else f"{left} GROUP BY {by}"

    def _first_of_pane(self) -> str:
        """Of the rows of a pane, those that can be the best of a window."""
        assert self._best is not None
        stored = {quoted(name): own for own, name, _ in self._keys}
        best = replace(self._best, value=stored[self._best.value], by=tuple(stored[key] for key in self._best.by))
        return best.first_among("pane")

    def open_groups(self, after: str) -> str:
        """The groups of windows that end after a watermark: key, window_start, window_end, count, sum, min, max."""
        keys = [] if self._rows else [stored for stored, _, _ in self._keys]
        texts = [f"CAST({stored} AS VARCHAR)" for stored in keys]
        key = (
            f"concat_ws(',', {', '.join(texts)})" if len(texts) > 1 else texts[0] if texts else "CAST(NULL AS VARCHAR)"
        )
        shown = dict(self._plan.shown)
        numbers = {part.name for part in self._merge.partials if part.type is not None and part.type.numeric}
        merges = {name: merge for _, name, _, merge in self._partials if name in numbers}
        if self._rows:  # the value that is compared is a key
            merges = {name: f"{kind}({own})" for own, name, _ in self._keys for kind in shown if shown[kind] == name}
        values = "".join(
            f", CAST({merges.get(shown.get(name, ''), 'NULL')} AS {kind}) AS {quoted(name)}"
            for name, kind in (("count", "BIGINT"), ("sum", "DOUBLE"), ("min", "DOUBLE"), ("max", "DOUBLE"))
        )
        bounds = f"make_timestamp({self._start}) AS window_start, make_timestamp({_WINDOW}) AS window_end"
        return (
            f"SELECT {key} AS key, {bounds}{values} FROM ({self._of_windows(after, None)}) "
            f"GROUP BY {', '.join((*keys, _WINDOW))}"
        )


def _where(condition: str | None) -> str:
    return "" if condition is None else f" WHERE coalesce(({condition}), false)"


def _over(time: str, offset_us: int, by: int) -> str:
    """How far a time lies behind the last slide; DuckDB's remainder has the sign of the time."""
    return f"((({time} - {offset_us % by}) % {by} + {by}) % {by})"


def _type(view: str, kind: SqlType | None) -> str:
    if kind is None:
        raise InternalError(f"a type of view {view} is not known")
    return duckdb_type(kind)
