"""The change log of a view: what is in it, what is read from it, and what is trimmed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import RuntimeFailure
from penstock.frozen import frozen
from penstock.stores.arrow_values import python_dicts
from penstock.stores.duckdb_types import from_duckdb, typed
from penstock.stores.views.database import fetched, one_row
from penstock.stores.views.model import Snapshot, StoredChange
from penstock.stores.views.reading import as_of

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from penstock.stores.views.model import Operation
    from penstock.stores.views.view_table import ViewTable
    from penstock.types import SqlType


@frozen
class LogExtent:
    """Which sequence numbers a view has: those that are kept go from `first_seq` to `last_seq`."""

    first_seq: int
    last_seq: int


def extent(reader: duckdb.DuckDBPyConnection, view: ViewTable) -> LogExtent:
    """The extent of a view's log. Where everything was trimmed, the numbers still go on from where they were."""
    row = one_row(
        reader, f"SELECT first_seq, (SELECT max(seq) FROM {view.log()}) FROM store.views WHERE id = {view.id}"
    )
    assert row is not None
    first, last = row
    return LogExtent(first, max(first - 1, last or 0))


def read_changes(reader: duckdb.DuckDBPyConnection, view: ViewTable, since: int, limit: int) -> list[StoredChange]:
    """The changes after `since`, oldest first; CHANGELOG_EXPIRED where the next one is no longer kept."""
    found = _after(reader, view, since, limit)
    if found is None:
        return []
    heads = zip(*(found.column(place).to_pylist() for place in range(5)), strict=True)
    columns = view.spec.columns
    after = _rows(found, "a", columns)
    before = _rows(found, "b", columns) if view.keyed else []
    result: list[StoredChange] = []
    for place, (seq, op, batch, watermark_us, at_us) in enumerate(heads):
        operation: Operation = op
        old = before[place] if operation != "insert" else None
        new = after[place] if operation != "delete" else None
        result.append(StoredChange(seq, operation, old, new, batch, watermark_us, at_us))
    return result


def read_logged(reader: duckdb.DuckDBPyConnection, view: ViewTable, since: int, limit: int) -> LoggedChanges:
    """The same as columns."""
    found = _after(reader, view, since, limit)
    if found is None:
        nothing = typed(from_duckdb(fetched(reader, f"{view.select()} LIMIT 0")), view.spec.columns)
        return LoggedChanges([], [], [], BatchChanges([], nothing, nothing))
    seqs, batches, marks = (found.column(name).to_pylist() for name in ("seq", "batch", "wm"))
    return LoggedChanges(seqs, batches, marks, _changes(found, view))


def _after(reader: duckdb.DuckDBPyConnection, view: ViewTable, since: int, limit: int) -> pa.Table | None:
    """The log after `since`; None where nothing has come."""
    kept = extent(reader, view)
    if since + 1 < kept.first_seq:
        raise RuntimeFailure(
            "CHANGELOG_EXPIRED",
            f"the changes of view {view.spec.name} after {since} are no longer kept; the oldest to go on from is "
            f"{kept.first_seq - 1}",
            hint="subscribe without SINCE to begin with the whole view",
        )
    return None if since >= kept.last_seq else fetched(reader, view.changes(since, limit))


def read_snapshot(reader: duckdb.DuckDBPyConnection, view: ViewTable) -> Snapshot:
    """The whole view, and the sequence number of the last change in it."""
    kept = extent(reader, view)
    table = typed(from_duckdb(fetched(reader, view.whole())), view.spec.columns)
    batch_id, watermark_us = as_of(reader, {view.spec.name: view})[view.spec.name]
    return Snapshot(kept.last_seq, batch_id, watermark_us, table)


@frozen
class BatchChanges:
    """Changes in their order: what stands before an insert and after a delete means nothing."""

    operations: list[Operation]
    before: pa.Table
    after: pa.Table


@frozen
class LoggedChanges:
    """Changes of a view in their order, with the number, the batch and the watermark of each."""

    seqs: list[int]
    batches: list[int | None]
    watermarks: list[int | None]
    changes: BatchChanges


def batch_changes(reader: duckdb.DuckDBPyConnection, view: ViewTable, batch: int) -> BatchChanges:
    """What a batch has changed in a view."""
    row = one_row(reader, f"SELECT coalesce(min(seq), 1), count(seq) FROM {view.log()} WHERE batch = {batch}")
    assert row is not None
    first, count = row
    return logged_changes(reader, view, first - 1, count)


def logged_changes(reader: duckdb.DuckDBPyConnection, view: ViewTable, since: int, count: int) -> BatchChanges:
    """So many changes of a view behind one of them."""
    return _changes(fetched(reader, view.changes(since, count)), view)


def merged_changes(reader: duckdb.DuckDBPyConnection, view: ViewTable, since: int, count: int) -> BatchChanges:
    """What so many changes of a view behind one of them come to: of what several commits have changed, what differs
    between before the first and behind the last. So nothing is taken back that was not there before them."""
    places = range(len(view.spec.columns))
    listed = ", ".join(f"c{place}" for place in places)

    def side(name: str) -> str:
        return ", ".join(f"{name}{place} AS c{place}" for place in places)

    net = (
        f"WITH log AS ({view.changes(since, count)}), steps AS ("
        f"SELECT {side('a')}, 1 AS n FROM log WHERE op <> 'delete' UNION ALL "
        f"SELECT {side('b')}, -1 FROM log WHERE op <> 'insert'), "
        f"net AS (SELECT {listed}, CAST(sum(n) AS BIGINT) AS n FROM steps GROUP BY {listed} "
        "HAVING sum(n) <> 0) "
    )
    key = None if view.spec.finish is None else view.spec.finish.unique
    if key is None:
        shown = ", ".join(f"c{place} AS {name}{place}" for name in ("a", "b") for place in places)
        rest = (
            f"SELECT CASE WHEN n < 0 THEN 'delete' ELSE 'insert' END AS op, {shown} "
            f"FROM (SELECT *, unnest(range(abs(n))) FROM net) ORDER BY op, {listed}"
        )
    else:
        names = [name for name, _ in view.spec.columns]
        same = " AND ".join(f"g.c{names.index(name)} IS NOT DISTINCT FROM e.c{names.index(name)}" for name in key)
        shown = ", ".join(f"{own}.c{place} AS {name}{place}" for own, name in ("ea", "gb") for place in places)
        order = "".join(f", coalesce(e.c{names.index(name)}, g.c{names.index(name)})" for name in key)
        rest = (
            "SELECT CASE WHEN g.n IS NULL THEN 'insert' WHEN e.n IS NULL THEN 'delete' ELSE 'update' END AS op, "
            f"{shown} FROM (FROM net WHERE n < 0) AS g FULL JOIN (FROM net WHERE n > 0) AS e ON {same or 'true'} "
            f"ORDER BY op{order}"
        )
    return _changes(fetched(reader, net + rest), view)


def _changes(found: pa.Table, view: ViewTable) -> BatchChanges:
    """Rows of the log; a view that rows are only added to has none before."""
    columns = view.spec.columns
    after = _side(found, "a", columns)
    before = _side(found, "b", columns) if view.keyed else after
    return BatchChanges(found.column("op").to_pylist(), before, after)


def trim_batches(writer: duckdb.DuckDBPyConnection, view: ViewTable, floor: int) -> None:
    """Let go of the changes of a batch and of those before it."""
    writer.execute(f"DELETE FROM {view.log()} WHERE batch <= {floor}")
    kept = extent(writer, view)
    row = one_row(writer, f"SELECT min(seq) FROM {view.log()}")
    first = kept.last_seq + 1 if row is None or row[0] is None else row[0]
    writer.execute(
        "UPDATE store.views SET first_seq = greatest(first_seq, ?), floor = greatest(floor, ?) WHERE id = ?",
        [first, floor, view.id],
    )


def trim(writer: duckdb.DuckDBPyConnection, view: ViewTable, before_us: int) -> None:
    """Let go of the changes that were committed before a time. The rows of an append view stay, of course."""
    kept = extent(writer, view)
    row = one_row(writer, f"SELECT min(seq) FROM {view.log()} WHERE done >= {before_us}")
    first = kept.last_seq + 1 if row is None or row[0] is None else max(row[0], kept.first_seq)
    if view.keyed:
        gone = one_row(writer, f"SELECT max(batch) FROM {view.log()} WHERE done < {before_us}")
        if gone is None or gone[0] is None:
            return
        writer.execute(f"DELETE FROM {view.log()} WHERE done < {before_us}")
        writer.execute(
            "UPDATE store.views SET first_seq = ?, floor = greatest(floor, ?) WHERE id = ?", [first, gone[0], view.id]
        )
    elif first != kept.first_seq:
        writer.execute("UPDATE store.views SET first_seq = ? WHERE id = ?", [first, view.id])


def _side(found: pa.Table, side: str, columns: tuple[tuple[str, SqlType], ...]) -> pa.Table:
    import pyarrow as pa

    arrays = [found.column(f"{side}{place}") for place in range(len(columns))]
    return typed(from_duckdb(pa.Table.from_arrays(arrays, names=[name for name, _ in columns])), columns)


def _rows(found: pa.Table, side: str, columns: tuple[tuple[str, object], ...]) -> list[dict[str, object]]:
    import pyarrow as pa

    arrays = [found.column(f"{side}{place}") for place in range(len(columns))]
    plain = pa.Table.from_arrays(arrays, names=[name for name, _ in columns])
    return python_dicts(from_duckdb(plain))
