"""Changes of a batch as rows for sinks: golden logs of the classic shapes, and forms that fold to the view (G16)."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.sink import OPERATION, RECORD
from penstock.runtime.change_rows import envelopes, retractions, upserts
from penstock.stores.views import BatchChanges, BatchCommit
from tests.unit.stores.views.changing import Changing
from tests.unit.stores.views.finishing import VIEW, Finished, random_batch

TOP = (
    "SELECT k, rn, id, v FROM (SELECT k, id, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) AS rn FROM l) AS x "
    "WHERE rn <= 2"
)
OUTER = "SELECT l.id, l.v, r.w FROM l LEFT JOIN r ON l.k = r.k"
DISTINCT = "SELECT DISTINCT k, s FROM l"


def as_they_are(rows: pa.Table) -> pa.Table:
    return rows


def told(rows: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in rows.to_pylist()]


def staged(found: Finished, number: int, batch: dict[str, list[Any]]) -> BatchChanges:
    """A batch on its way to a sink: in the view, told, then in the ledger."""
    changes = found.store.stage("job", VIEW, number, found.core(batch))
    found.store.commit(BatchCommit("job", number, f"hash {number}", view=VIEW))
    return changes


def test_a_top_n_by_its_place() -> None:
    """The row number tells rows apart, so a new best row is an update of each place below it."""
    found = Finished(TOP, None)
    assert found.job.key == ("k", "rn")
    first = staged(found, 0, {"l": [(1, 1, 5, "a"), (1, 2, 7, "a"), (2, 3, 1, "a")]})
    assert told(upserts(first, ("k", "rn"), as_they_are)) == [
        ("upsert", 1, 1, 2, 7), ("upsert", 1, 2, 1, 5), ("upsert", 2, 1, 3, 1),
    ]  # fmt: skip
    second = staged(found, 1, {"l": [(1, 4, 6, "a"), (1, 5, 0, "a")]})
    assert second.operations == ["update"]
    assert told(retractions(second, as_they_are)) == [("delete", 1, 2, 1, 5), ("insert", 1, 2, 4, 6)]
    assert told(upserts(second, ("k", "rn"), as_they_are)) == [("upsert", 1, 2, 4, 6)]
    # By a key that is more than that of the query, the row moves.
    assert told(upserts(second, ("K", "rn", "id"), as_they_are)) == [("delete", 1, 2, 1, 5), ("upsert", 1, 2, 4, 6)]
    third = staged(found, 2, {"l": [(1, 6, 9, "a"), (2, 7, 4, "a")]})
    made = envelopes(third, as_they_are, {})
    assert [json.loads(record) for record in made.column(RECORD).to_pylist()] == [
        {"before": None, "after": {"k": 2, "rn": 2, "id": 3, "v": 1}, "op": "c"},
        {"before": {"k": 1, "rn": 1, "id": 2, "v": 7}, "after": {"k": 1, "rn": 1, "id": 6, "v": 9}, "op": "u"},
        {"before": {"k": 1, "rn": 2, "id": 4, "v": 6}, "after": {"k": 1, "rn": 2, "id": 2, "v": 7}, "op": "u"},
        {"before": {"k": 2, "rn": 1, "id": 3, "v": 1}, "after": {"k": 2, "rn": 1, "id": 7, "v": 4}, "op": "u"},
    ]
    assert made.column(OPERATION).to_pylist() == ["insert", "update", "update", "update"]
    assert made.column("id").to_pylist() == [3, 6, 2, 7]
    found.store.close()


def test_an_outer_join_and_a_distinct_are_taken_back() -> None:
    """A row without a partner goes when one comes; a distinct row comes once and goes with its last cause."""
    join = Finished(OUTER, None)
    assert told(retractions(staged(join, 0, {"l": [(1, 1, 5, "a"), (2, 2, 5, "a")]}), as_they_are)) == [
        ("insert", 1, 5, None), ("insert", 2, 5, None),
    ]  # fmt: skip
    assert told(retractions(staged(join, 1, {"r": [(1, 9, 3, "a"), (1, 8, 3, "a")]}), as_they_are)) == [
        ("delete", 1, 5, None), ("insert", 1, 5, 3), ("insert", 1, 5, 3),
    ]  # fmt: skip
    assert told(retractions(staged(join, 2, {"r": [(7, 9, 3, "a")]}), as_they_are)) == []
    join.store.close()
    distinct = Changing(DISTINCT, None, versioned=False)
    row = (None, False, 0)
    assert distinct.job.key == ("k", "s")
    both = staged(distinct, 0, {"l": [(1, 1, 5, "a", *row, 1), (1, 2, 6, "a", *row, 2)]})
    assert told(upserts(both, ("k", "s"), as_they_are)) == [("upsert", 1, "a")]
    one = staged(distinct, 1, {"l": [(1, 1, 5, "a", None, True, 0, 3)]})
    assert one.operations == []
    last = staged(distinct, 2, {"l": [(1, 2, 6, "b", *row, 4)]})
    assert told(upserts(last, ("k", "s"), as_they_are)) == [("delete", 1, "a"), ("upsert", 1, "b")]
    distinct.store.close()


@pytest.mark.parametrize(
    ("query", "key"),
    [
        (TOP, ("k", "rn")),
        (OUTER, None),
        (DISTINCT, ("k", "s")),
        ("SELECT k, COUNT(DISTINCT v) AS n FROM l GROUP BY k", ("k",)),
    ],
)
def test_every_form_folds_to_the_view_without_violation(
    query: str, key: tuple[str, ...] | None, tmp_path: Path
) -> None:
    """Also where a batch is broken off behind the sink, and run again after the store was opened anew."""
    rnd = random.Random(f"forms {query}")  # noqa: S311
    found = Finished(query, tmp_path / "views.duckdb")
    bag: Counter[tuple[Any, ...]] = Counter()
    latest: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for number in range(7):
        batch = random_batch(rnd, 10 * number)
        rows = found.core(batch)
        changes = found.store.stage("job", VIEW, number, rows)
        if number in (2, 5):
            found.reopen()
            again = found.store.stage("job", VIEW, number, rows)
            assert told(retractions(again, as_they_are)) == told(retractions(changes, as_they_are)), (
                "the same once more"
            )
        found.store.commit(BatchCommit("job", number, f"hash {number}", view=VIEW))
        for op, *row in told(retractions(changes, as_they_are)):
            bag[tuple(row)] += 1 if op == "insert" else -1
            assert bag[tuple(row)] >= 0, "a row is taken back that is not there"
        view = Counter(tuple(row.values()) for row in found.store.read(f"SELECT * FROM {VIEW}").table.to_pylist())
        assert +bag == view
        if key is not None:
            places = [
                found.store.spec(VIEW).columns.index(entry)
                for entry in found.store.spec(VIEW).columns
                if entry[0] in key
            ]
            for op, *row in told(upserts(changes, key, as_they_are)):
                own = tuple(row[place] for place in places)
                if op == "delete":
                    assert latest.pop(own) == tuple(row), "what was never there is deleted"
                else:
                    assert latest.get(own) != tuple(row), "what is there is inserted"
                    latest[own] = tuple(row)
            assert Counter(latest.values()) == view
    found.store.close()


def test_the_changes_of_old_batches_are_let_go_of() -> None:
    """Nobody follows the view behind a sink: its log is as long as it can be gone back."""
    found = Finished("SELECT k, COUNT(DISTINCT v) AS n FROM l GROUP BY k", None)
    for number in range(141):
        staged(found, number, {"l": [(1, number, number, "a")]})
    kept = {change.batch_id for change in found.store.changes(VIEW, found.store.last_seq(VIEW) - 50)}
    assert kept == set(range(91, 141))
    with pytest.raises(Exception, match="no longer kept"):
        found.store.changes(VIEW, 0)
    found.store.close()
