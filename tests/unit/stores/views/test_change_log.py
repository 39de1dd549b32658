"""Following a view: resuming, waiting, and what retention has let go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Thread, Timer

import pytest

from penstock.clock import ManualClock
from penstock.errors import PenstockError
from penstock.stores.views.model import Kind
from penstock.stores.views.store import ViewStore
from tests.unit.stores.views.making import (
    append_view,
    batch_table,
    commit,
    expected,
    folded,
    merge_view,
    shown,
    view_of,
)

BATCHES = [[("a", 1.0, number + 1, 1, True), ("b", None, 5, 2, True)] for number in range(4)]
DAY_US = 86_400_000_000


@pytest.fixture
def store() -> Iterator[ViewStore]:
    with ViewStore.open(None, threads=1) as opened:
        yield opened


@pytest.mark.parametrize("kind", ["append", "merge", "update"])
def test_a_reader_goes_on_from_where_it_stopped(store: ViewStore, kind: Kind) -> None:
    store.create_view(view_of(kind, "v"))
    for number, rows in enumerate(BATCHES):
        store.commit(commit("v", number, batch_table(kind, rows)))
    seen = []
    since = 0
    while got := store.changes("v", since, 3):
        assert len(got) <= 3
        seen += got
        since = got[-1].seq
    assert [change.seq for change in seen] == list(range(1, store.last_seq("v") + 1))
    assert folded(seen) == shown(store, "v") == expected(kind, BATCHES)
    assert store.changes("v", since, 3) == store.changes("v", since + 100, 3) == []


def test_the_whole_view_comes_first_and_then_its_changes(store: ViewStore) -> None:
    store.create_view(merge_view("v"))
    store.commit(commit("v", 0, batch_table("merge", BATCHES[0])))
    start = store.changes("v", None, 1)
    assert {(change.op, change.seq, change.before) for change in start} == {("insert", 2, None)}
    assert len(start) == 2
    store.commit(commit("v", 1, batch_table("merge", BATCHES[1])))
    rest = store.changes("v", start[-1].seq)
    assert folded([*start, *rest]) == shown(store, "v")


def test_an_empty_view_tells_where_its_changes_go_on(store: ViewStore) -> None:
    store.create_view(merge_view("v"))
    assert store.snapshot("v").seq == store.last_seq("v") == 0
    assert store.changes("v", None) == []


@pytest.mark.parametrize("kind", ["append", "merge"])
def test_changes_that_retention_let_go_are_an_error_that_says_which(tmp_path: Path, kind: Kind) -> None:
    clock = ManualClock(DAY_US)
    spec = (append_view if kind == "append" else merge_view)("v", retention_us=1_000)
    with ViewStore.open(tmp_path, clock.now_us) as store:
        store.create_view(spec)
        lasts = []
        for number, rows in enumerate(BATCHES[:3]):
            lasts.append(store.commit(commit("v", number, batch_table(kind, rows))).last_seq)
            clock.advance(us=600)
        store.trim()
        kept = lasts[1]
        with pytest.raises(PenstockError) as refused:
            store.changes("v", kept - 1)
        assert refused.value.condition == "CHANGELOG_EXPIRED"
        assert "view v" in refused.value.message
        assert f"after {kept - 1} " in refused.value.message
        assert f"go on from is {kept}" in refused.value.message
        assert [change.seq for change in store.changes("v", kept)] == list(range(kept + 1, lasts[2] + 1))
        clock.advance(us=5_000)
        store.trim()
        assert shown(store, "v") == expected(kind, BATCHES[:3])
    with ViewStore.open(tmp_path, clock.now_us) as again:
        # Everything is gone, and the numbers still go on from where they were.
        assert again.last_seq("v") == lasts[2]
        assert again.changes("v", lasts[2]) == []
        result = again.commit(commit("v", 3, batch_table(kind, BATCHES[3])))
        assert result.first_seq == lasts[2] + 1
        assert shown(again, "v") == expected(kind, BATCHES)
        again.rollback("v", 2)
        assert shown(again, "v") == expected(kind, BATCHES[:3])
        if kind == "merge":
            with pytest.raises(PenstockError) as too_far:
                again.rollback("v", 1)
            assert too_far.value.condition == "UNKNOWN_CHECKPOINT"
        else:
            again.rollback("v", 0)
        assert shown(again, "v") == expected(kind, BATCHES[:3] if kind == "merge" else BATCHES[:1])


def test_retention_can_be_changed(store: ViewStore) -> None:
    store.create_view(merge_view("v"))
    store.create_view(merge_view("v", retention_us=9))
    assert store.specs()[0].retention_us == 9


def test_the_ledger_keeps_its_last_batches(tmp_path: Path) -> None:
    with ViewStore.open(tmp_path, kept_batches=3) as store:
        store.create_view(merge_view("v"))
        for number in range(120):
            store.commit(commit("v", number, batch_table("merge", BATCHES[number % 4]) if number > 115 else None))
            store.maintain()
        store.trim()
        table = store.system_table("penstock.checkpoints")
        assert table is not None
        assert table.column("batch_id").to_pylist() == [117, 118, 119]
        store.rollback("v", 117)
        with pytest.raises(PenstockError) as refused:
            store.rollback("v", 116)
        assert refused.value.condition == "UNKNOWN_CHECKPOINT"
        with pytest.raises(PenstockError):
            store.rollback("v", -1)


def test_maintain_brings_the_log_into_the_file(tmp_path: Path) -> None:
    with ViewStore.open(tmp_path) as store:
        store.create_view(merge_view("v"))
        largest = 0
        for number in range(120):
            store.commit(commit("v", number, batch_table("merge", BATCHES[number % 4])))
            largest = max(largest, (tmp_path / "views.duckdb.wal").stat().st_size)
            store.maintain()
        now = (tmp_path / "views.duckdb.wal").stat().st_size
        assert now < largest / 2
        assert shown(store, "v") == expected("merge", BATCHES * 30)


def test_waiting_ends_with_the_next_change(store: ViewStore) -> None:
    store.create_view(merge_view("v"))
    assert not store.wait_for("v", 0, 0.01)
    timer = Timer(0.1, lambda: store.commit(commit("v", 0, batch_table("merge", BATCHES[0]))))
    timer.start()
    try:
        assert store.wait_for("v", 0, 60)
        assert store.last_seq("v") == 2
        assert store.wait_for("v", 1, 0)
        assert not store.wait_for("v", 2, 0.01)
    finally:
        timer.join()


def test_closing_ends_the_wait() -> None:
    store = ViewStore.open(None)
    store.create_view(merge_view("v"))
    answers: list[bool] = []
    waiting = Thread(target=lambda: answers.append(store.wait_for("v", 0, 60)))
    waiting.start()
    store.close()
    waiting.join(30)
    assert answers == [False]


def test_changes_of_an_unknown_view_are_refused(store: ViewStore) -> None:
    for call in (lambda: store.changes("v", 0), lambda: store.snapshot("v"), lambda: store.wait_for("v", 0, 0)):
        with pytest.raises(PenstockError) as refused:
            call()
        assert refused.value.condition == "UNKNOWN_RELATION"
