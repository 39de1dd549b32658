"""The changes of a batch as rows for a sink, each with what becomes of it (`_op`).

A view has at most one change a key and batch, so they are merged already: nothing is deleted that was not there, and
nothing inserted that is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from penstock.connectors.sink import OPERATION, RECORD
from penstock.formats import encode_envelopes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from penstock.stores.views import BatchChanges

UPSERT: Final = "upsert"
INSERT: Final = "insert"
DELETE: Final = "delete"


def upserts(changes: BatchChanges, key: Sequence[str], fit: Callable[[pa.Table], pa.Table]) -> pa.Table:
    """The new row of each key, and deletions: those first. A row whose key in the sink changes is deleted under the
    old one."""
    before, after = fit(changes.before), fit(changes.after)
    moved = _moved(before, after, key)
    gone = [
        at
        for at, (op, away) in enumerate(zip(changes.operations, moved, strict=True))
        if op == DELETE or (op == "update" and away)
    ]
    there = [at for at, op in enumerate(changes.operations) if op != DELETE]
    return _marked(before, gone, after, there, UPSERT)


def retractions(changes: BatchChanges, fit: Callable[[pa.Table], pa.Table]) -> pa.Table:
    """The rows that are taken back, then those that are added: an update is both."""
    gone = [at for at, op in enumerate(changes.operations) if op != INSERT]
    there = [at for at, op in enumerate(changes.operations) if op != DELETE]
    return _marked(fit(changes.before), gone, fit(changes.after), there, INSERT)


def in_turn(changes: BatchChanges) -> pa.Table:
    """The changes in their order, an update as a deletion and the insertion behind it."""
    import pyarrow as pa

    steps = [
        (step, at)
        for at, op in enumerate(changes.operations)
        for step in ((DELETE, INSERT) if op == "update" else (op,))
    ]
    added = changes.before.num_rows
    both = pa.concat_tables([changes.before, changes.after])
    rows = _taken(both, [at if step == DELETE else added + at for step, at in steps])
    return rows.add_column(0, OPERATION, pa.array([step for step, _ in steps], pa.string()))


def envelopes(
    changes: BatchChanges,
    fit: Callable[[pa.Table], pa.Table],
    options: Mapping[str, object],
    key: Sequence[str] | None = (),
) -> pa.Table:
    """Each change as Debezium writes it, beside the row that it is about. An update that gives a row another key is a
    deletion and a creation, which belong to different keys; so is each one where no key holds the two together (None).
    """
    import pyarrow as pa

    before, after = fit(changes.before), fit(changes.after)
    moved = [True] * before.num_rows if key is None else _moved(before, after, key)
    steps = [
        (step, at)
        for at, (op, away) in enumerate(zip(changes.operations, moved, strict=True))
        for step in ((DELETE, INSERT) if op == "update" and away else (op,))
    ]
    operations, places = [step for step, _ in steps], [at for _, at in steps]
    written = encode_envelopes(operations, _taken(before, places), _taken(after, places), options)
    rows = _taken(
        pa.concat_tables([before, after]), [at + (0 if step == DELETE else before.num_rows) for step, at in steps]
    )
    return rows.add_column(0, OPERATION, pa.array(operations, pa.string())).append_column(
        RECORD, pa.array(written, pa.binary())
    )


def _moved(before: pa.Table, after: pa.Table, key: Sequence[str]) -> list[bool]:
    names = [name for name in before.column_names if name.casefold() in {each.casefold() for each in key}]
    one, other = before.select(names).to_pylist(), after.select(names).to_pylist()
    return [old != new for old, new in zip(one, other, strict=True)]


def _marked(before: pa.Table, gone: list[int], after: pa.Table, there: list[int], word: str) -> pa.Table:
    import pyarrow as pa

    rows = pa.concat_tables([_taken(before, gone), _taken(after, there)])
    operations = pa.array([DELETE] * len(gone) + [word] * len(there), pa.string())
    return rows.add_column(0, OPERATION, operations)


def _taken(rows: pa.Table, places: list[int]) -> pa.Table:
    import pyarrow as pa

    return rows.take(pa.array(places, pa.int64()))
