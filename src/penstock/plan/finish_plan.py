"""A query that the view store answers anew for each batch: which rows it keeps for that, and the text of the answer.

Spark only ever adds rows to a stream. A query whose answer changes as rows come (the best three of a key, an outer
join without a bound) is cut: the core, in Spark, reads, filters and computes; the store keeps the rows that come out of
it, and the finish answers the query over them, inside the transaction of the batch. Where the query has a key, only the
keys that the batch touched are answered anew. What differs from the rows of the view is what has changed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from penstock.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.types import SqlType

SIDE: Final = "__side"  # in a batch: the place of the kept rows that a row belongs to


@frozen
class KeptColumn:
    """A column of kept rows, as a batch gives it. None as type: the one that Spark finds."""

    name: str
    type: SqlType | None


@frozen
class KeptRows:
    """The rows of one relation that the store keeps. `shown` are their columns in the user's words, for EXPLAIN."""

    relation: str
    columns: tuple[KeptColumn, ...]
    shown: tuple[str, ...]


@frozen
class Leaf:
    """A reading of kept rows in the text of the finish.

    `columns` are the names that the text uses, each with the name of the kept column; `key` are the kept columns by
    which rows belong to a touched key, in the order of the plan's `keys`.
    """

    name: str
    rows: int  # the place among the kept rows
    columns: tuple[tuple[str, str], ...]
    key: tuple[str, ...]


@frozen
class FinishPlan:
    """How the store answers a query.

    `text` is DuckDB's, over the names of the leaves; it gives the columns of the view, then those of `hidden`. `keys`
    are the names, of either, by which the answer falls into parts that do not see each other; none: it is answered as a
    whole. `unique` are the columns that tell the rows of the view apart; None: the same row may be there twice.
    """

    rows: tuple[KeptRows, ...]
    leaves: tuple[Leaf, ...]
    text: str
    keys: tuple[str, ...]
    hidden: tuple[tuple[str, SqlType], ...]
    unique: tuple[str, ...] | None

    def with_types(self, found: Mapping[str, SqlType]) -> FinishPlan:
        """The plan with the types that Spark found for the columns of a batch in the place of unknown ones."""
        rows = tuple(
            replace(
                kept,
                columns=tuple(
                    entry if entry.type is not None else replace(entry, type=found[entry.name])
                    for entry in kept.columns
                ),
            )
            for kept in self.rows
        )
        return replace(self, rows=rows)
