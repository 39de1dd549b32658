"""A running aggregate that the view store keeps: what one batch is reduced to, and how the store merges it.

Spark aggregates a batch by key to partial results, one row a key. The store keeps the partials of every key, merges
those of a batch into them, and computes the columns of the view from keys and partials. Nothing is kept twice.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from penstock.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.types import SqlType

MergeHow = Literal["sum", "count", "min", "max", "list", "set", "function"]
# What the parts of an aggregate of the user's are called in texts, before its name; no user can write such names.
PARTIAL: Final = "__partial_"
MERGE: Final = "__merge_"
FINISH: Final = "__finish_"


@frozen
class MergeKey:
    """A group key as the batch gives it and the store keeps it. None as type: the one that Spark finds."""

    name: str
    type: SqlType | None


@frozen
class Partial:
    """A partial result of one group.

    `how` tells the store to merge: `sum` adds and leaves NULLs out (NULL only while both are NULL), `count` adds and is
    never NULL, `min` and `max` keep the smaller or larger one and leave NULLs out; NaN is the largest number. A sum
    that no longer fits its type is an error, as it is in Spark. `list` keeps all values but NULLs, `set` each of them
    once. `function` calls the user's aggregate of that name.
    """

    name: str
    type: SqlType | None
    how: MergeHow
    function: str | None = None


@frozen
class Reduction:
    """How a batch gives a partial result: `how` over the column `argument` of its rows."""

    partial: str
    how: MergeHow
    argument: str


@frozen
class MergeColumn:
    """A column of the view: a DuckDB expression over the names of keys and partials, cast to `type`."""

    name: str
    type: SqlType | None
    expression: str


@frozen
class Best:
    """Of each window, the groups with the largest value, or with the smallest one: all of them where several have it,
    and none where there is no value.

    `value` is a DuckDB expression over keys and partials; `by` are those that a window is divided by before. What is
    left is shown where `keep` is true. `rows`: what is kept are rows as they came, not groups; two that are equal stay
    two, there are no partials, and `value` and `by` are keys.
    """

    value: str
    largest: bool
    by: tuple[str, ...] = ()
    keep: str | None = None
    rows: bool = False

    def first_among(self, pane: str) -> str:
        """The condition that a row has the wanted value of its pane, or that there is none, for DuckDB."""
        order = f"{self.value} {'DESC' if self.largest else 'ASC'} NULLS LAST"
        return f"rank() OVER (PARTITION BY {', '.join((pane, *self.by))} ORDER BY {order}) = 1"


@frozen
class MergePlan:
    """How a view is kept by the store.

    A view without keys has one row, which is there from the first row of the input on. `keep` is the HAVING as a DuckDB
    condition over keys and partials: a group is in the view while it is true, and keeps its partials in any case.
    `derived` are names that expressions may use as well, each with its DuckDB expression over the keys. `best`: of the
    groups of a window for which `keep` is true, only those are in the view.
    """

    keys: tuple[MergeKey, ...]
    partials: tuple[Partial, ...]
    columns: tuple[MergeColumn, ...]
    keep: str | None = None
    derived: tuple[tuple[str, str], ...] = ()
    best: Best | None = None

    @property
    def how_values(self) -> str:
        """In words, behind who keeps what: that values are kept one by one, where they are."""
        kept = any(part.how in ("list", "set") for part in self.partials)
        return " with every value of aggregates that do not merge" if kept else ""

    def with_types(self, found: Mapping[str, SqlType]) -> MergePlan:
        """The plan with the types that Spark found for the columns of a batch in the place of unknown ones."""
        keys = tuple(key if key.type is not None else replace(key, type=found[key.name]) for key in self.keys)
        partials = tuple(
            part if part.type is not None else replace(part, type=found[part.name]) for part in self.partials
        )
        plain = _plain(keys, partials)
        columns = tuple(
            entry if entry.type is not None else replace(entry, type=plain.get(entry.expression))
            for entry in self.columns
        )
        return replace(self, keys=keys, partials=partials, columns=columns)


def _plain(keys: tuple[MergeKey, ...], partials: tuple[Partial, ...]) -> dict[str, SqlType | None]:
    """The types of expressions that are only a key or a partial."""
    found = {f'"{key.name}"': key.type for key in keys}
    return found | {f'"{part.name}"': part.type for part in partials}
