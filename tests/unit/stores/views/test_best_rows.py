"""Windows that show the rows, or the groups, with their largest or smallest value, held against windows in Python."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.plan.merge_plan import Best, MergeColumn, MergeKey, MergePlan, Partial
from penstock.plan.pane_plan import PANE, PanePlan
from penstock.stores.views import closed_marks
from penstock.stores.views.model import ViewSpec
from penstock.stores.views.small_batches import SmallBatches
from penstock.stores.views.spec_text import spec_from_text, spec_to_text
from penstock.stores.views.store import ViewStore
from penstock.types import BIGINT, DOUBLE, STRING
from tests.unit.stores.views.making import arrow, commit, order, plain

COUNT = itertools.count()
TYPES = {PANE: BIGINT, "__k0": STRING, "__k1": DOUBLE}
ROWS_BATCH = tuple(TYPES.items())
GROUPS_BATCH = ((PANE, BIGINT), ("__k0", STRING), ("__p0", BIGINT))

Row = tuple[str | None, float | None, int]  # k, x, time
Key = tuple[Any, ...]


def rows_view(plan: PanePlan, best: Best) -> ViewSpec:
    """SELECT k, x, window_end … of the rows with the best x."""
    columns = (MergeColumn("k", STRING, '"__k0"'), MergeColumn("x", DOUBLE, '"__k1"'), _END)
    keys = tuple(MergeKey(name, kind) for name, kind in TYPES.items())
    return _view(plan, MergePlan(keys, (), columns, best=best))


def groups_view(plan: PanePlan, best: Best) -> ViewSpec:
    """SELECT k, COUNT(*) AS n, window_end … GROUP BY k HAVING COUNT(*) <> 3, of which those with the best n."""
    columns = (MergeColumn("k", STRING, '"__k0"'), MergeColumn("n", BIGINT, '"__p0"'), _END)
    keys = (MergeKey(PANE, BIGINT), MergeKey("__k0", STRING))
    return _view(plan, MergePlan(keys, (Partial("__p0", BIGINT, "count"),), columns, '"__p0" <> 3', best=best))


_END = MergeColumn("e", BIGINT, 'epoch_us("__end")')


def _view(plan: PanePlan, merge: MergePlan) -> ViewSpec:
    columns = tuple((column.name, column.type or STRING) for column in merge.columns)
    view = ViewSpec(f"v {next(COUNT)}", columns, "panes", merge=merge, panes=plan)
    assert spec_from_text(spec_to_text(view)) == view
    return view


def pane_of(plan: PanePlan, time: int) -> int:
    return time - (time - plan.offset_us) % plan.pane_us


def ends_of(plan: PanePlan, time: int) -> list[int]:
    """The ends of the windows that a time is in."""
    last = time - (time - plan.offset_us) % plan.slide_us + plan.size_us
    return [end for end in range(last, time, -plan.slide_us) if end - plan.size_us <= time]


def best_of(rows: list[Key], *, largest: bool, keyed: bool) -> list[Key]:
    """Of rows (k, value, …) those with the largest or smallest value; with a key, of each key that is there."""
    found: list[Key] = []
    for key in {row[0] for row in rows} if keyed else {"all"}:
        if key is None:
            continue
        own = [row for row in rows if row[1] is not None and (not keyed or row[0] == key)]
        if own:
            ordered = sorted((row[1] for row in own), key=order)
            wanted = ordered[-1] if largest else ordered[0]
            found += [row for row in own if order(row[1]) == order(wanted)]
    return found


def answer(store: ViewStore, view: str) -> list[Key]:
    return sorted((plain(row.values()) for row in store.read(f'SELECT * FROM "{view}"').table.to_pylist()), key=repr)


@pytest.fixture(scope="module")
def store() -> Iterator[ViewStore]:
    with ViewStore.open(None, clock=lambda: 5, threads=1) as opened:
        yield opened


PLANS = st.builds(
    lambda slide, more, offset: PanePlan(slide + more, slide, offset % slide),
    st.integers(1, 12),
    st.sampled_from([0, 0, 3, 12, 30]),
    st.integers(0, 20),
)
ROWS = st.tuples(
    st.sampled_from([None, "", "a"]), st.sampled_from([None, 0.0, -0.0, 1.5, math.nan]), st.integers(0, 90)
)
BATCHES = st.lists(st.tuples(st.lists(ROWS, max_size=8), st.sampled_from([0, 0, 1, 7, 40])), max_size=8)


@settings(max_examples=60, deadline=None)
@given(plan=PLANS, batches=BATCHES, largest=st.booleans(), keyed=st.booleans())
def test_best_rows(
    store: ViewStore, plan: PanePlan, batches: list[tuple[list[Row], int]], largest: bool, keyed: bool
) -> None:
    """D4, F5: all rows with the best value of a window, two that are equal both; of a batch only those are kept that can
    be among them. A NULL is no value, and as a key it meets nothing."""
    by, keep = (('"__k0"',), '"__k0" = "__k0"') if keyed else ((), None)
    view = rows_view(plan, Best('"__k1"', largest, by, keep, rows=True))
    small = SmallBatches.of(view.merge, (), TYPES)
    assert small is not None
    store.create_view(view)
    open_rows: dict[int, list[Key]] = {}
    closed: list[Key] = []
    watermark = 0
    for number, (rows, step) in enumerate([*batches, ([], 10_000)]):
        for k, x, time in rows:
            for end in ends_of(plan, time):
                if end > watermark:
                    open_rows.setdefault(end, []).append((k, x, end))
        batch = arrow(ROWS_BATCH, [(pane_of(plan, time), k, x) for k, x, time in rows])
        given = small.reduced(batch) if number % 2 else batch
        assert {row["__pane"] for row in given.to_pylist()} == {row["__pane"] for row in batch.to_pylist()}
        watermark += step
        store.commit(commit(view.name, number, given, closing_us=watermark))
        for end in [end for end in open_rows if end <= watermark]:
            closed += best_of(open_rows.pop(end), largest=largest, keyed=keyed)
        assert answer(store, view.name) == sorted(map(plain, closed), key=repr)
    store.drop_view(view.name)
    store.forget_job(view.name)


@settings(max_examples=40, deadline=None)
@given(plan=PLANS, batches=BATCHES, largest=st.booleans())
def test_best_groups(store: ViewStore, plan: PanePlan, batches: list[tuple[list[Row], int]], largest: bool) -> None:
    """D4, F5: groups are compared when they are complete, and only those that fulfil HAVING; what is shown of the best may
    be less."""
    view = groups_view(plan, Best('"__p0"', largest, keep='"__k0" <> \'a\' OR "__k0" IS NULL'))
    store.create_view(view)
    open_rows: dict[int, dict[str | None, int]] = {}
    closed: list[Key] = []
    watermark = 0
    for number, (rows, step) in enumerate([*batches, ([], 10_000)]):
        made: dict[Key, int] = {}
        for k, _, time in rows:
            made[pane_of(plan, time), k] = made.get((pane_of(plan, time), k), 0) + 1
            for end in ends_of(plan, time):
                if end > watermark:
                    groups = open_rows.setdefault(end, {})
                    groups[k] = groups.get(k, 0) + 1
        watermark += step
        batch = arrow(GROUPS_BATCH, [(pane, k, n) for (pane, k), n in made.items()])
        store.commit(commit(view.name, number, batch, closing_us=watermark))
        for end in [end for end in open_rows if end <= watermark]:
            counted = [(k, n, end) for k, n in open_rows.pop(end).items() if n != 3]
            closed += [row for row in best_of(counted, largest=largest, keyed=False) if row[0] != "a"]
        assert answer(store, view.name) == sorted(map(plain, closed), key=repr)
    store.drop_view(view.name)
    store.forget_job(view.name)


def test_rows_that_are_beaten_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """E20, H1: behind the batches that can be gone back to, a pane keeps its best rows alone; what is open is told by
    its best value."""
    monkeypatch.setattr(closed_marks, "KEPT_BATCHES", 3)
    monkeypatch.setattr(closed_marks, "TIDY_EVERY", 2)
    plan = PanePlan(10, 10, 0, (("max", "__k1"),))
    view = rows_view(plan, Best('"__k1"', largest=True, rows=True))
    with ViewStore.open(tmp_path / "v.duckdb", clock=lambda: 5, threads=1) as store:
        store.create_view(view)
        for number in range(200):
            rows = [(20, "a", float(number % 50)), (20, "b", float(number % 50))]
            store.commit(commit(view.name, number, arrow(ROWS_BATCH, rows), closing_us=number // 100))
        assert store.kept_panes(view.name) < 200
        found = store.open_windows(view.name)
        assert found is not None
        assert found.select(["key", "count", "sum", "min", "max"]).to_pylist() == [
            {"key": None, "count": None, "sum": None, "min": None, "max": 49.0}
        ]
        store.commit(commit(view.name, 200, arrow(ROWS_BATCH, []), closing_us=30))
        assert answer(store, view.name) == [("a", 49.0, 30), ("a", 49.0, 30), ("a", 49.0, 30), ("a", 49.0, 30),
                                            ("b", 49.0, 30), ("b", 49.0, 30), ("b", 49.0, 30), ("b", 49.0, 30)]  # fmt: skip
