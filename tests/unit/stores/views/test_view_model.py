"""Random batches: after each one the view, and the fold of its change log, are what all input together gives."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.stores.views.model import Kind
from penstock.stores.views.store import ViewStore
from tests.unit.stores.views.making import batch_table, commit, expected, folded, shown, view_of

KINDS: tuple[Kind, ...] = ("append", "merge", "update")

ROWS = st.tuples(
    st.sampled_from([None, "", "a", "b", "é'\"", "x\x00y"]),
    st.sampled_from([None, 0.0, -0.0, 1.5, math.nan, math.inf, -math.inf]),
    st.none() | st.integers(-20, 20),
    st.sampled_from([None, 1, 2]),
    st.sampled_from([True, True, False, None]),
)
BATCHES = st.lists(st.lists(ROWS, max_size=8), min_size=1, max_size=6)


COUNT = itertools.count()


@pytest.fixture(scope="module")
def store() -> Iterator[ViewStore]:
    """One store for all examples: each has a view of its own."""
    with ViewStore.open(None, clock=lambda: 5, threads=1) as opened:
        yield opened


@contextmanager
def fresh(store: ViewStore, kind: Kind) -> Iterator[str]:
    """A new view, which goes away again."""
    name = f"v {next(COUNT)}"
    store.create_view(view_of(kind, name))
    try:
        yield name
    finally:
        store.drop_view(name)
        store.forget_job(name)


def state(store: ViewStore, view: str) -> tuple[Any, ...]:
    """Everything a rollback must bring back."""
    entry = store.ledger(view)
    table = store._views[view]
    names = [f"v{table.id}", f"l{table.id}"] if table.keyed else [f"v{table.id}"]
    writer = store._database.writer
    kept = [sorted(repr(row) for row in writer.execute(f"SELECT * FROM store.{name}").fetchall()) for name in names]
    about = None if entry is None else (entry.batch_id, entry.offsets_hash, entry.tracker, entry.watermark_us)
    counters = None if entry is None else dict(entry.counters)
    return (shown(store, view), kept, about, counters, store.last_seq(view))


@pytest.mark.parametrize("kind", KINDS)
@given(batches=BATCHES)
def test_view_and_log_equal_the_answer_over_all_input(store: ViewStore, kind: Kind, batches: list[list[Any]]) -> None:
    with fresh(store, kind) as view:
        last, want = 0, expected(kind, [])
        for number, rows in enumerate(batches):
            result = store.commit(commit(view, number, batch_table(kind, rows)))
            before, want = want, expected(kind, batches[: number + 1])
            assert shown(store, view) == want
            new = store.changes(view, last, 10_000)
            assert folded(new, before) == want
            assert [change.seq for change in new] == list(range(last + 1, last + len(new) + 1))
            assert {(change.batch_id, change.watermark_us) for change in new} <= {(number, number * 1_000_000)}
            assert (result.changes, result.first_seq, result.last_seq) == (len(new), last + 1, last + len(new))
            last = result.last_seq
        snapshot = store.snapshot(view)
        assert (snapshot.seq, snapshot.batch_id) == (last, len(batches) - 1)
        assert folded(store.changes(view, 0, 10_000)) == folded(store.changes(view, None)) == want


@pytest.mark.parametrize("kind", KINDS)
@given(batches=BATCHES, data=st.data())
@settings(max_examples=20)
def test_rollback_and_replay_give_the_same(
    store: ViewStore, kind: Kind, batches: list[list[Any]], data: st.DataObject
) -> None:
    """K7: back to any earlier batch everything is as it was, and the batches after it lead to the same end."""
    with fresh(store, kind) as view:
        states = [state(store, view)]
        for number, rows in enumerate(batches):
            store.commit(commit(view, number, batch_table(kind, rows)))
            states.append(state(store, view))
        for _ in range(2):
            target = data.draw(st.integers(-1, len(batches) - 1))
            store.save_tracker(view, '{"moved": true}', 7)
            store.rollback(view, target)
            assert state(store, view) == states[target + 1]
            for number in range(target + 1, len(batches)):
                store.commit(commit(view, number, batch_table(kind, batches[number])))
                assert state(store, view) == states[number + 1]
