"""Which rows the view store need not keep, and which of them Spark leaves out of a batch.

Where rows are only added there are two kinds. A row that is there already adds nothing to an answer that does not count
rows: each distinct one is kept, with the batch that first brought it. And a row that is behind the best of its key is
behind them for ever. What stays is as if every row were kept; see counted_rows and best_of_key.

Spark takes such rows out of a large batch where that is cheaper than to hand them over: duplicates, and all but the
first rows of an order without a key. It needs one pass for all of a batch: where rows of another relation are all kept,
it would have to read the batch a second time. The best rows of each key are found by the store, several times as fast.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.plan.best_of_key import best_of_scan
from penstock.plan.counted_rows import counted_scans
from penstock.plan.merging import BATCH_VIEW
from penstock.plan.spark_text import spark_sql
from penstock.plan.trees import column, number, select

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.plan.finish_plan import FinishPlan, KeptRows, Stage
    from penstock.types import SqlType

_PLAIN: Final = frozenset(
    {"STRING", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "UTINYINT", "USMALLINT", "UINT", "UBIGINT", "FLOAT",
     "DOUBLE", "DECIMAL", "BINARY", "DATE", "TIMESTAMP"}
)  # fmt: skip
_NESTED: Final = frozenset({"ARRAY", "STRUCT"})


def kept_fewer(rows: tuple[KeptRows, ...], stages: Sequence[Stage], trees: Sequence[exp.Query]) -> tuple[KeptRows, ...]:
    """The rows that are kept, marked where not all of them have to be; `trees` are those of the stages."""
    counted = _counted(len(rows), stages, trees)
    made: list[KeptRows] = []
    for place, each in enumerate(rows):
        read = [(leaf, stage, tree) for stage, tree in zip(stages, trees, strict=True) for leaf in stage.leaves]
        read = [one for one in read if one[0].source == place]
        if not _only_added(each) or any(stage.once or stage.pairs for _, stage, _ in read):
            made.append(each)
        elif all(leaf.name not in counted for leaf, _, _ in read):
            alike = all(_told_apart_alike(entry.type) for entry in each.columns)
            made.append(replace(each, distinct=alike))
        elif len(read) == 1:
            leaf, _, tree = read[0]
            made.append(replace(each, best=best_of_scan(tree, leaf.name, dict(leaf.columns))))
        else:
            made.append(each)
    return tuple(made)


def _counted(first: int, stages: Sequence[Stage], trees: Sequence[exp.Query]) -> set[str]:
    """The leaves of whose rows it is counted how often they are there. A stage below counts rows where one above it, or
    who reads the view, does so with its own; `first` is its place among the sources."""
    found: set[str] = set()
    for place in reversed(range(len(stages))):
        above = [leaf.name for stage in stages[place + 1 :] for leaf in stage.leaves if leaf.source == first + place]
        counts = stages[place] is stages[-1] or any(name in found for name in above)
        found |= counted_scans(trees[place], counts=counts)
    return found


def batch_text(plan: FinishPlan) -> str | None:
    """Spark's text that takes out of a large batch what the store would not keep; None: there is no such part."""
    of_streams = [rows for rows in plan.rows if rows.read is None]
    if of_streams and all(rows.distinct for rows in of_streams):
        return spark_sql(select([exp.Star()], exp.Table(this=column(BATCH_VIEW).this), distinct=exp.Distinct()))
    if len(of_streams) != 1 or of_streams[0].best is None:
        return None
    best = of_streams[0].best
    ordered = {each.column for each in best.order}
    types = [entry.type for entry in of_streams[0].columns if entry.name in ordered]
    if best.by or best.number != "row_number" or any(kind is None or kind.name not in _PLAIN for kind in types):
        return None
    order = exp.Order(
        expressions=[
            exp.Ordered(this=column(each.column), desc=each.descending, nulls_first=each.nulls_first)
            for each in best.order
        ]
    )
    limit = exp.Limit(expression=number(best.count))
    return spark_sql(select([exp.Star()], exp.Table(this=column(BATCH_VIEW).this), order=order, limit=limit))


def _only_added(rows: KeptRows) -> bool:
    """Whether rows come and stay: none replaces another, and no clock takes one away."""
    return rows.changes is None and rows.read is None and not (rows.since or rows.until or rows.stamps or rows.passing)


def _told_apart_alike(kind: SqlType | None) -> bool:
    """Whether DISTINCT means the same in Spark and in the store."""
    if kind is None:
        return False
    inner = [*kind.elements, *(field.type for field in kind.fields)]
    return (kind.name in _PLAIN or kind.name in _NESTED) and all(map(_told_apart_alike, inner))
