"""Which columns a keyed view is kept in, and how a batch becomes its rows.

Names of ours never meet names of the user: what is stored is called k0, k1, … (keys), p0, … (partial results) and
c0, … (other columns). A column of the view that is only a key or a partial result is not kept twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from penstock.errors import InternalError
from penstock.frozen import frozen
from penstock.plan.merge_plan import MERGE
from penstock.stores.duckdb_types import duckdb_type, quoted
from penstock.stores.views.model import KEEP, ViewSpec

if TYPE_CHECKING:
    from penstock.plan.merge_plan import MergePlan, Partial
    from penstock.types import SqlType

# When a row last came for a key, by the clock of batches, which stands in `cl`: where keys are forgotten.
SEEN: Final = ("seen", "BIGINT")
_MERGES: Final[dict[str, Callable[[str, str], str]]] = {
    "sum": lambda old, new: f"CASE WHEN {old} IS NULL THEN {new} WHEN {new} IS NULL THEN {old} ELSE {old} + {new} END",
    "count": lambda old, new: f"coalesce({old}, 0) + coalesce({new}, 0)",
    # Both leave NULLs out, and take NaN for the largest number.
    "min": lambda old, new: f"least({old}, {new})",
    "max": lambda old, new: f"greatest({old}, {new})",
    "list": lambda old, new: f"list_concat({old}, {new})",  # no list is the empty list
    "set": lambda old, new: f"list_distinct(list_concat({old}, {new}))",
}


@frozen
class KeyedLayout:
    """The stored columns, and the texts that compute them."""

    keys: tuple[tuple[str, str], ...]
    values: tuple[tuple[str, str], ...]
    visible: tuple[tuple[str, str], ...]
    sources: tuple[tuple[str, str], ...]
    keeps_hidden_rows: bool
    merged: Callable[[str], str]

    @property
    def stored(self) -> tuple[tuple[str, str], ...]:
        return (*self.keys, *self.values)

    @property
    def visible_values(self) -> tuple[str, ...]:
        """The stored columns, keys left out, that a reader sees; each once."""
        shown = {stored for _, stored in self.visible}
        return tuple(name for name, _ in self.values if name in shown)

    def batch_columns(self, given: Sequence[str]) -> tuple[list[str], list[str]]:
        """The columns to take from a batch, and the names they get."""
        names = [name for name, _ in self.sources]
        stored = [stored for _, stored in self.sources]
        if not self.keeps_hidden_rows and KEEP in given:
            return [*names, KEEP], [*stored, "shown"]
        return names, stored

    def staging(self, given: Sequence[str]) -> str:
        """The select list that brings a batch into its stored types."""
        types = dict(self.stored)
        items = [f"CAST({name} AS {types[name]}) AS {name}" for name in given if name != "shown"]
        if not self.keeps_hidden_rows:
            items.append(f"{'shown IS TRUE' if 'shown' in given else 'true'} AS shown")
        return ", ".join(items) or "1 AS nothing"


def layout_of(spec: ViewSpec) -> KeyedLayout:
    """The layout of a merge or update view."""
    return _of_update(spec) if spec.merge is None else _of_merge(spec, spec.merge)


def _of_update(spec: ViewSpec) -> KeyedLayout:
    every = (*spec.columns, *spec.hidden)
    for name in spec.key:
        if name not in dict(every):
            raise InternalError(f"view {spec.name} has no column {name}, which is in its key")
    keys: list[tuple[str, str]] = []
    values: list[tuple[str, str]] = []
    places: list[tuple[str, str]] = []
    for name, kind in every:
        column = (f"k{len(keys)}" if name in spec.key else f"c{len(values)}", duckdb_type(kind))
        (keys if name in spec.key else values).append(column)
        places.append((name, column[0]))

    def merged(same: str) -> str:
        # A key stays as it came first: 0.0 and -0.0 are one key.
        now = "".join(f"coalesce(v.{name}, st.{name}) AS {name}, " for name, _ in keys)
        now += ", ".join(f"st.{name}" for name in (*(name for name, _ in values), "shown"))
        before = ", ".join(f"v.{name} AS o_{name}" for name in (*(name for name, _ in values), "shown"))
        return f"SELECT {now}, {before} FROM st LEFT JOIN od AS v ON {same}"

    return KeyedLayout(
        tuple(keys),
        tuple(values),
        tuple(places[: len(spec.columns)]),
        tuple(places),
        keeps_hidden_rows=False,
        merged=merged,
    )


def _of_merge(spec: ViewSpec, plan: MergePlan) -> KeyedLayout:
    keys = [(f"k{place}", duckdb_type(_known(spec, key.name, key.type))) for place, key in enumerate(plan.keys)]
    partials = [
        (f"p{place}", duckdb_type(_known(spec, part.name, part.type))) for place, part in enumerate(plan.partials)
    ]
    sources = [(key.name, stored) for key, (stored, _) in zip(plan.keys, keys, strict=True)]
    sources += [(part.name, stored) for part, (stored, _) in zip(plan.partials, partials, strict=True)]
    types = dict((*keys, *partials))
    plain = {quoted(name): stored for name, stored in sources}
    given = dict(spec.columns)
    computed: list[tuple[str, str]] = []
    expressions: list[str] = []
    visible: list[tuple[str, str]] = []
    for column in plan.columns:
        kind = duckdb_type(_known(spec, column.name, column.type or given.get(column.name)))
        same = plain.get(column.expression)
        if same is not None and types[same] == kind:
            visible.append((column.name, same))
            continue
        stored = f"c{len(computed)}"
        computed.append((stored, kind))
        expressions.append(f"CAST({column.expression} AS {kind}) AS {stored}")
        visible.append((column.name, stored))
    values = (*partials, *computed, *((SEEN,) if spec.ttl_us is not None else ()))
    mine = _prefix([name for name, _ in sources])

    def merged(same: str) -> str:
        # Inside, keys and merged partials have the plan's own names, for its expressions.
        inner = [f"coalesce(v.{stored}, st.{stored}) AS {quoted(name)}" for name, stored in sources[: len(keys)]]
        for part, (stored, kind) in zip(plan.partials, partials, strict=True):
            both = _both(part, f"v.{stored}", f"st.{stored}")
            inner.append(f"CAST({both} AS {kind}) AS {quoted(part.name)}")
        inner += [f"v.{name} AS {mine}{name}" for name in (*(name for name, _ in values), "shown")]
        outer = [f"{quoted(name)} AS {stored}" for name, stored in sources]
        outer += expressions
        if spec.ttl_us is not None:
            outer.append(f"(SELECT clock FROM cl) AS {SEEN[0]}")
        outer.append("true AS shown" if plan.keep is None else f"coalesce(({plan.keep}), false) AS shown")
        outer += [f"{mine}{name} AS o_{name}" for name in (*(name for name, _ in values), "shown")]
        rows = f"SELECT {', '.join(inner)} FROM st LEFT JOIN od AS v ON {same}"
        return f"SELECT {', '.join(outer)} FROM ({with_derived(plan, rows)})"

    return KeyedLayout(
        tuple(keys), tuple(values), tuple(visible), tuple(sources), keeps_hidden_rows=True, merged=merged
    )


def with_derived(plan: MergePlan, rows: str) -> str:
    """A query that gives the keys of a plan by name, with what is derived from them."""
    if not plan.derived:
        return rows
    added = ", ".join(f"{expression} AS {quoted(name)}" for name, expression in plan.derived)
    return f"SELECT *, {added} FROM ({rows})"


def _both(part: Partial, old: str, new: str) -> str:
    """What was kept of a partial result and what a batch brings, as one."""
    if part.function is None:
        return _MERGES[part.how](old, new)
    merge = quoted(MERGE + part.function)
    return f"CASE WHEN {old} IS NULL THEN {new} WHEN {new} IS NULL THEN {old} ELSE {merge}({old}, {new}) END"


def _prefix(names: Sequence[str]) -> str:
    """A beginning for names of ours that no name of the plan has."""
    prefix = "old_"
    while any(name.lower().startswith(prefix) for name in names):
        prefix += "_"
    return prefix


def _known(spec: ViewSpec, name: str, kind: SqlType | None) -> SqlType:
    if kind is None:
        raise InternalError(f"the type of {name} of view {spec.name} is not known")
    return kind
