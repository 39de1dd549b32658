"""Views and batches that the tests of the view store share, and what the answer must be, told in plain Python."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.plan.merge_plan import MergeColumn, MergeKey, MergePlan, Partial
from penstock.stores.duckdb_types import out_type
from penstock.stores.views.model import BatchCommit, Kind, StoredChange, ViewSpec
from penstock.types import BIGINT, DOUBLE, STRING, SqlType

if TYPE_CHECKING:
    from penstock.stores.views.store import ViewStore

Row = tuple[Any, ...]

# SELECT k, f, count(*) AS n, sum(x) AS total, min(x) AS low, max(x) AS high, avg(x) AS mean … GROUP BY k, f HAVING sum(x) > 0
MERGE = MergePlan(
    keys=(MergeKey("k", STRING), MergeKey("f", DOUBLE)),
    partials=(
        Partial("__n", BIGINT, "count"),
        Partial("__x", BIGINT, "count"),
        Partial("__sum", BIGINT, "sum"),
        Partial("__min", DOUBLE, "min"),
        Partial("__max", DOUBLE, "max"),
    ),
    columns=(
        MergeColumn("k", STRING, '"k"'),
        MergeColumn("f", DOUBLE, '"f"'),
        MergeColumn("n", BIGINT, '"__n"'),
        MergeColumn("total", BIGINT, '"__sum"'),
        MergeColumn("low", DOUBLE, '"__min"'),
        MergeColumn("high", DOUBLE, '"__max"'),
        MergeColumn("mean", DOUBLE, 'CAST("__sum" AS DOUBLE) / nullif("__x", 0)'),
    ),
    keep='"__sum" > 0',
)
MERGE_COLUMNS = tuple((column.name, column.type or STRING) for column in MERGE.columns)
MERGE_BATCH = (
    ("k", STRING),
    ("f", DOUBLE),
    ("__n", BIGINT),
    ("__x", BIGINT),
    ("__sum", BIGINT),
    ("__min", DOUBLE),
    ("__max", DOUBLE),
)
PLAIN_COLUMNS = (("k", STRING), ("f", DOUBLE), ("x", BIGINT))
UPDATE_BATCH = (*PLAIN_COLUMNS, ("__id", BIGINT), ("__keep", SqlType("BOOLEAN")))


def merge_view(name: str = "merged", retention_us: int | None = None) -> ViewSpec:
    return ViewSpec(name, MERGE_COLUMNS, "merge", ("k", "f"), MERGE, retention_us)


def update_view(name: str = "updated") -> ViewSpec:
    """Replaced by a visible and a hidden column."""
    return ViewSpec(name, PLAIN_COLUMNS, "update", ("k", "__id"), hidden=(("__id", BIGINT),))


def append_view(name: str = "added", retention_us: int | None = None) -> ViewSpec:
    return ViewSpec(name, PLAIN_COLUMNS, retention_us=retention_us)


def view_of(kind: Kind, name: str) -> ViewSpec:
    return {"merge": merge_view, "update": update_view, "append": append_view}[kind](name)


def arrow(columns: Iterable[tuple[str, SqlType]], rows: Iterable[Row]) -> pa.Table:
    """Rows as an Arrow table of the columns."""
    columns, rows = list(columns), list(rows)
    arrays = [pa.array([row[place] for row in rows], out_type(kind)) for place, (_, kind) in enumerate(columns)]
    return pa.Table.from_arrays(arrays, names=[name for name, _ in columns])


def batch_table(kind: Kind, rows: list[Row]) -> pa.Table:
    """What Spark would hand over for input rows (k, f, x, id, keep): one row a key where the view has keys."""
    if kind == "append":
        return arrow(PLAIN_COLUMNS, [row[:3] for row in rows])
    if kind == "update":
        last = {plain((row[0], row[3])): row for row in rows}
        return arrow(UPDATE_BATCH, last.values())
    groups: dict[Row, list[Row]] = {}
    for row in rows:
        groups.setdefault(plain(row[:2]), []).append(row)
    return arrow(MERGE_BATCH, [(*found[0][:2], len(found), *_of(found)) for found in groups.values()])


def _of(rows: list[Row]) -> Row:
    values = [row[2] for row in rows if row[2] is not None]
    return (len(values), sum(values) if values else None, *_ends(values))


def _ends(values: list[int]) -> Row:
    # 13 stands for a NaN: the largest of all numbers.
    numbers = sorted((math.nan if value == 13 else float(value) for value in values), key=order)
    return (numbers[0], numbers[-1]) if numbers else (None, None)


def expected(kind: Kind, batches: list[list[Row]]) -> list[Row]:
    """The view after the batches, computed from all input at once; in the form of `plain`, sorted."""
    every = [row for batch in batches for row in batch]
    if kind == "append":
        return sorted((plain(row[:3]) for row in every), key=repr)
    if kind == "update":
        last = {plain((row[0], row[3])): row for row in every}
        return sorted((plain(row[:3]) for row in last.values() if row[4]), key=repr)
    groups: dict[Row, list[Row]] = {}
    for row in every:
        groups.setdefault(plain(row[:2]), []).append(row)
    result = []
    for rows in groups.values():
        count, total, low, high = _of(rows)
        if total is not None and total > 0:
            result.append(plain((*rows[0][:2], len(rows), total, low, high, total / count)))
    return sorted(result, key=repr)


def order(value: float) -> tuple[bool, float]:
    return (math.isnan(value), 0.0 if math.isnan(value) else value)


def plain(row: Iterable[Any]) -> Row:
    """A row that equals another as GROUP BY compares: NaN is itself, and the zeros are one."""
    return tuple(
        "NaN" if isinstance(value, float) and math.isnan(value) else value + 0.0 if isinstance(value, float) else value
        for value in row
    )


def shown(store: ViewStore, view: str) -> list[Row]:
    """The view as a reader sees it, sorted."""
    quoted = view.replace('"', '""')
    return sorted((plain(row.values()) for row in store.read(f'SELECT * FROM "{quoted}"').table.to_pylist()), key=repr)


def folded(changes: Iterable[StoredChange], start: Iterable[Row] = ()) -> list[Row]:
    """What the changes make of a view; each must fit what was there before it."""
    rows = list(start)
    for change in changes:
        assert (change.before is None) == (change.op == "insert")
        assert (change.row is None) == (change.op == "delete")
        if change.before is not None:
            rows.remove(plain(change.before.values()))
        if change.row is not None:
            rows.append(plain(change.row.values()))
        if change.before is not None and change.row is not None:
            assert plain(change.before.values()) != plain(change.row.values())
    return sorted(rows, key=repr)


def commit(view: str | None, number: int, rows: pa.Table | None, **more: Any) -> BatchCommit:
    """A batch of the job that has the view's name."""
    facts: Mapping[str, Any] = {
        "job": view or "job",
        "batch_id": number,
        "offsets_hash": f"hash {number}",
        "watermark_us": number * 1_000_000,
        "tracker": f'{{"batch": {number}}}',
        "view": view,
        "rows": rows,
        "counters": {"rows": 0 if rows is None else rows.num_rows},
    }
    return BatchCommit(**{**facts, **more})
