"""Which columns the sessions of a view are kept in, and how a batch becomes sessions.

A session is told apart by its keys and its start; its end, its partial results and what is computed from them are
values that change. In a batch each time of a key is a small session of its own, from the time to the gap after it.
Sessions that overlap or touch are one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from penstock.errors import InternalError
from penstock.frozen import frozen
from penstock.plan.pane_plan import END, START
from penstock.plan.windows_plan import ROW_TIME
from penstock.stores.duckdb_types import duckdb_type, quoted
from penstock.stores.views.keyed_layout import KeyedLayout, with_derived
from penstock.stores.views.merges import MERGES

if TYPE_CHECKING:
    from penstock.plan.merge_plan import MergePlan
    from penstock.stores.views.model import ViewSpec
    from penstock.types import SqlType

WANTED: Final = "wanted"  # of sessions that are shown when they have ended: whether one is to be shown then


@frozen
class SessionLayout(KeyedLayout):
    """The stored columns of sessions; `given` and `staged` say how a batch is brought into them."""

    given: tuple[tuple[str, str], ...]
    staged: str

    def batch_columns(self, given: Sequence[str]) -> tuple[list[str], list[str]]:
        return [name for name, _ in self.given], [stored for _, stored in self.given]

    def staging(self, given: Sequence[str]) -> str:
        return self.staged

    def same_keys(self) -> str:
        """Whether a row of the batch and a session have the same keys, as a condition."""
        names = [name for name, _ in self.keys if name != "s"]
        return "".join(f"st.{name} IS NOT DISTINCT FROM v.{name} AND " for name in names)


def session_layout(spec: ViewSpec) -> SessionLayout:
    """The layout of a view of sessions."""
    if spec.merge is None or spec.windows is None:
        raise InternalError(f"view {spec.name} has no sessions")
    plan = spec.merge
    by = [key for key in plan.keys if key.name != ROW_TIME]
    keys = [(f"k{place}", key.name, _type(spec, key.type)) for place, key in enumerate(by)]
    partials = [(f"p{place}", part.name, _type(spec, part.type)) for place, part in enumerate(plan.partials)]
    named = [("s", START, "TIMESTAMP"), ("e", END, "TIMESTAMP"), *keys, *partials]
    plain = {quoted(name): (stored, kind) for stored, name, kind in named}
    visible: list[tuple[str, str]] = []
    computed: list[tuple[str, str, str]] = []
    for column, (name, kind) in zip(plan.columns, spec.columns, strict=True):
        stored, known = plain.get(column.expression, ("", ""))
        if not stored or known != duckdb_type(kind):
            stored = f"c{len(computed)}"
            computed.append((stored, duckdb_type(kind), column.expression))
        visible.append((name, stored))
    if spec.windows.final:
        computed.append((WANTED, "BOOLEAN", "true" if plan.keep is None else f"coalesce(({plan.keep}), false)"))
    staged = [f"CAST({stored} AS {kind}) AS {stored}" for stored, _, kind in (*keys, *partials)]
    staged.append("CAST(t AS TIMESTAMP) AS s")
    staged.append(f"make_timestamp(epoch_us(CAST(t AS TIMESTAMP)) + {spec.windows.gap_us}) AS e")
    values = [("e", "TIMESTAMP"), *((stored, kind) for stored, _, kind in partials)]
    values += [(stored, kind) for stored, kind, _ in computed]
    return SessionLayout(
        (*((stored, kind) for stored, _, kind in keys), ("s", "TIMESTAMP")),
        tuple(values),
        tuple(visible),
        tuple((name, stored) for stored, name, _ in named),
        keeps_hidden_rows=True,
        merged=_merged(plan, keys, partials, computed, final=spec.windows.final),
        given=((ROW_TIME, "t"), *((name, stored) for stored, name, _ in (*keys, *partials))),
        staged=", ".join(staged),
    )


_Named = list[tuple[str, str, str]]


def _merged(plan: MergePlan, keys: _Named, partials: _Named, computed: _Named, *, final: bool) -> Callable[[str], str]:
    """The sessions that `st`, the batch, and `od`, the sessions it touches, make together, beside what they were."""
    by = [stored for stored, _, _ in keys]
    every = ", ".join([*by, "s", "e", *(stored for stored, _, _ in partials)])
    members = f"SELECT {every} FROM st UNION ALL SELECT {every} FROM od"
    over = (f"PARTITION BY {', '.join(by)} " if by else "") + "ORDER BY s, e"
    reached = f"max(e) OVER ({over} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    begins = f"SELECT *, CASE WHEN s <= {reached} THEN 0 ELSE 1 END AS begins FROM ({members})"
    islands = f"SELECT *, sum(begins) OVER ({over} ROWS UNBOUNDED PRECEDING) AS island FROM ({begins})"
    items = [f"{stored} AS {quoted(name)}" for stored, name, _ in keys]
    items += [f"min(s) AS {quoted(START)}", f"max(e) AS {quoted(END)}"]
    for part, (stored, name, kind) in zip(plan.partials, partials, strict=True):
        items.append(f"CAST({MERGES[part.how].format(stored)} AS {kind}) AS {quoted(name)}")
    sessions = f"SELECT {', '.join(items)} FROM ({islands}) GROUP BY {', '.join([*by, 'island'])}"
    outer = [f"{quoted(name)} AS {stored}" for stored, name, _ in (*keys, *partials)]
    outer += [f"{quoted(START)} AS s", f"{quoted(END)} AS e"]
    outer += [f"CAST({expression} AS {kind}) AS {stored}" for stored, kind, expression in computed]
    shown = "true" if plan.keep is None else f"coalesce(({plan.keep}), false)"
    outer.append(f"{'false' if final else shown} AS shown")
    found = f"SELECT {', '.join(outer)} FROM ({with_derived(plan, sessions)})"
    values = ["e", *(stored for stored, _, _ in (*partials, *computed))]
    both = [f"coalesce(n.{name}, v.{name}) AS {name}" for name in (*by, "s")]
    both += [f"n.{name} AS {name}" for name in values] + ["coalesce(n.shown, false) AS shown"]
    both += [f"v.{name} AS o_{name}" for name in (*values, "shown")]
    on = " AND ".join(f"n.{name} IS NOT DISTINCT FROM v.{name}" for name in (*by, "s"))
    text = f"SELECT {', '.join(both)} FROM ({found}) AS n FULL JOIN od AS v ON {on}"

    def merged(_: str) -> str:
        return text

    return merged


def _type(spec: ViewSpec, kind: SqlType | None) -> str:
    if kind is None:
        raise InternalError(f"a type of view {spec.name} is not known")
    return duckdb_type(kind)
