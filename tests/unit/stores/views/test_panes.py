"""Hopping windows that the store keeps as panes, held against windows computed one row at a time (D4, D19, F5, H1)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InternalError
from penstock.frozen import frozen
from penstock.plan.merge_plan import MergeColumn, MergeKey, MergePlan, Partial
from penstock.plan.pane_plan import PANE, PanePlan
from penstock.plan.relation import WINDOW_TYPE
from penstock.stores.views import closed_marks
from penstock.stores.views.model import ViewSpec
from penstock.stores.views.store import ViewStore
from penstock.types import BIGINT, DOUBLE, STRING, TIMESTAMP
from tests.unit.stores.views.making import arrow, commit, folded, order, plain, shown

COUNT = itertools.count()
BATCH = (
    (PANE, BIGINT),
    ("__k0", STRING),
    ("__k1", DOUBLE),
    ("__n", BIGINT),
    ("__sum", BIGINT),
    ("__min", DOUBLE),
    ("__max", DOUBLE),
)
# SELECT k, f, window_start, window_end, window_time, COUNT(*), SUM(x), MIN(x), MAX(x) … HAVING COUNT(*) <> 2
MERGE = MergePlan(
    keys=(MergeKey(PANE, BIGINT), MergeKey("__k0", STRING), MergeKey("__k1", DOUBLE)),
    partials=(
        Partial("__n", BIGINT, "count"),
        Partial("__sum", BIGINT, "sum"),
        Partial("__min", DOUBLE, "min"),
        Partial("__max", DOUBLE, "max"),
    ),
    columns=(
        MergeColumn("k", STRING, '"__k0"'),
        MergeColumn("f", DOUBLE, '"__k1"'),
        MergeColumn("s", TIMESTAMP, '"__start"'),
        MergeColumn("e", TIMESTAMP, '"__end"'),
        MergeColumn("t", TIMESTAMP, '"__time"'),
        MergeColumn("n", BIGINT, '"__n"'),
        MergeColumn("total", BIGINT, '"__sum" + 0'),
        MergeColumn("low", DOUBLE, '"__min"'),
        MergeColumn("high", DOUBLE, '"__max"'),
    ),
    keep='"__n" <> 2',
)
COLUMNS = tuple((column.name, column.type or STRING) for column in MERGE.columns)
SHOWN = (("count", "__n"), ("max", "__max"), ("min", "__min"), ("sum", "__sum"))

Row = tuple[str | None, float | None, int | None, int]  # k, f, x, time
Key = tuple[Any, ...]


@frozen
class Batch:
    """Rows, and how far past the batch before it they are closed."""

    rows: list[Row] = field(default_factory=list)
    step: int = 0


class Windows:
    """Windows as Spark keeps them: a row goes into each of its windows that is open under the last watermark."""

    def __init__(self, plan: PanePlan) -> None:
        self.plan = plan
        self.open: dict[Key, list[int | None]] = {}
        self.closed: list[Key] = []
        self.watermark = 0

    def take(self, batch: Batch) -> None:
        plan = self.plan
        for k, f, x, time in batch.rows:
            start = time - (time - plan.offset_us) % plan.slide_us
            while start > time - plan.size_us:
                if start + plan.size_us > self.watermark:
                    self.open.setdefault((start, *plain((k, f))), []).append(x)
                start -= plan.slide_us
        self.watermark += batch.step
        for group in [group for group in self.open if group[0] + plan.size_us <= self.watermark]:
            values = self.open.pop(group)
            if len(values) != 2:
                end = group[0] + plan.size_us
                self.closed.append((*group[1:], group[0], end, end - 1000, len(values), *numbers(values)))

    def groups(self) -> list[Key]:
        """What penstock.window_aggregates shows."""
        found = [(start, len(values), *numbers(values)) for (start, _, _), values in self.open.items()]
        return sorted(((*row[:2], None if row[2] is None else float(row[2]), *row[3:]) for row in found), key=repr)


def numbers(values: list[int | None]) -> Key:
    """Sum, smallest and largest; 13 stands for a NaN, the largest of all."""
    given = [value for value in values if value is not None]
    ends = sorted((math.nan if value == 13 else float(value) for value in given), key=order)
    return plain((sum(given), ends[0], ends[-1])) if given else (None, None, None)


def reduced(plan: PanePlan, rows: list[Row]) -> pa.Table:
    """What Spark hands over for a batch: one row a key and pane."""
    groups: dict[Key, list[int | None]] = {}
    for k, f, x, time in rows:
        pane = time - (time - plan.offset_us) % plan.pane_us
        groups.setdefault((pane, *plain((k, f))), []).append(x)
    made = []
    for (pane, k, f), values in groups.items():
        total, low, high = numbers(values)
        ends = (math.nan if end == "NaN" else end for end in (low, high))
        made.append((pane, k, math.nan if f == "NaN" else f, len(values), total, *ends))
    return arrow(BATCH, made)


def view_of(plan: PanePlan) -> ViewSpec:
    plan = PanePlan(plan.size_us, plan.slide_us, plan.offset_us, SHOWN, plan.cumulates)
    return ViewSpec(f"v {next(COUNT)}", COLUMNS, "panes", merge=MERGE, panes=plan)


def answer(store: ViewStore, view: str) -> list[Key]:
    """The view, with its times in microseconds."""
    table = store.read(f'SELECT * FROM "{view}"').table
    for place in (2, 3, 4):
        table = table.set_column(place, table.column_names[place], table.column(place).cast(pa.int64()))
    return sorted((plain(row.values()) for row in table.to_pylist()), key=repr)


def told(store: ViewStore, view: str) -> list[Key]:
    found = store.open_windows(view)
    assert found is not None
    assert found.column_names == ["key", "window_start", "window_end", "count", "sum", "min", "max"]
    starts, ends = (found.column(name).cast(pa.int64()) for name in ("window_start", "window_end"))
    assert len(set(pc.subtract(ends, starts).to_pylist())) <= 1
    found = found.drop_columns(["window_end"]).set_column(1, "window_start", starts)
    return [plain(row.values()) for row in found.to_pylist()]


@pytest.fixture(scope="module")
def store() -> Iterator[ViewStore]:
    with ViewStore.open(None, clock=lambda: 5, threads=1) as opened:
        yield opened


PLANS = st.builds(
    lambda slide, more, offset: PanePlan(slide + more, slide, offset % slide),
    st.integers(1, 12),
    st.integers(0, 30),
    st.integers(0, 20),
)
ROWS = st.tuples(
    st.sampled_from([None, "", "a", "é'\""]),
    st.sampled_from([None, 0.0, -0.0, 1.5, math.nan]),
    st.none() | st.integers(-20, 20),
    st.integers(0, 120),
)
BATCHES = st.lists(st.builds(Batch, st.lists(ROWS, max_size=8), st.sampled_from([0, 0, 1, 7, 40])), max_size=8)


@settings(max_examples=60, deadline=None)
@given(plan=PLANS, batches=BATCHES, back=st.integers(0, 8))
def test_panes_are_windows(store: ViewStore, plan: PanePlan, batches: list[Batch], back: int) -> None:
    """D4, D19, F5, E12, E21, H1, K7: whatever comes late in part, a view of panes has the rows of plain windows after each batch,
    its changes fold to them, and a batch gone back to gives them again."""
    view = view_of(plan)
    store.create_view(view)
    model = Windows(plan)
    after: list[list[Key]] = []
    for number, batch in enumerate([*batches, Batch([], 10_000)]):
        model.take(batch)
        result = store.commit(
            commit(view.name, number, reduced(plan, batch.rows), closing_us=model.watermark, watermark_us=None)
        )
        after.append(sorted(map(plain, model.closed), key=repr))
        assert answer(store, view.name) == after[-1]
        assert result.last_seq == len(model.closed)
        entry = store.ledger(view.name)
        assert entry is not None
        assert entry.counters["output_rows"] == len(model.closed)
        assert sorted((row[1:] for row in told(store, view.name)), key=repr) == model.groups()
    assert folded(store.changes(view.name, 0)) == shown(store, view.name)
    last = len(batches)
    back = min(back, last)
    store.rollback(view.name, back - 1)
    assert answer(store, view.name) == (after[back - 1] if back else [])
    watermark = sum(batch.step for batch in batches[:back])
    for number in range(back, last + 1):
        batch = [*batches, Batch([], 10_000)][number]
        watermark += batch.step
        store.commit(commit(view.name, number, reduced(plan, batch.rows), closing_us=watermark))
        assert answer(store, view.name) == after[number]
    store.drop_view(view.name)
    store.forget_job(view.name)


CUMULATING = st.builds(
    lambda step, times, offset: PanePlan(step * times, step, offset % (step * times), cumulates=True),
    st.integers(1, 9),
    st.integers(1, 5),
    st.integers(0, 40),
)


@settings(max_examples=30, deadline=None)
@given(plan=CUMULATING, batches=BATCHES)
def test_cumulating_windows(store: ViewStore, plan: PanePlan, batches: list[Batch]) -> None:
    """D1, D19: windows that begin together, each shown at every step of it, with all of its rows so far."""
    view = view_of(plan)
    store.create_view(view)
    kept: dict[Key, list[int | None]] = {}
    closed: list[Key] = []
    watermark = 0
    for number, batch in enumerate([*batches, Batch([], 10_000)]):
        for k, f, x, time in batch.rows:
            start = time - (time - plan.offset_us) % plan.size_us
            for end in range(start + plan.slide_us, start + plan.size_us + 1, plan.slide_us):
                if time < end and end > watermark:
                    kept.setdefault((*plain((k, f)), start, end), []).append(x)
        watermark += batch.step
        store.commit(commit(view.name, number, reduced(plan, batch.rows), closing_us=watermark))
        for group in [group for group in kept if group[3] <= watermark]:
            values = kept.pop(group)
            if len(values) != 2:
                closed.append((*group, group[3] - 1000, len(values), *numbers(values)))
        assert answer(store, view.name) == sorted(map(plain, closed), key=repr)
        shown_open = store.open_windows(view.name)
        assert shown_open is not None
        assert shown_open.num_rows == len(kept)
    store.drop_view(view.name)
    store.forget_job(view.name)


def test_open_windows(store: ViewStore) -> None:
    """H1, E20: what is open is shown by key and window, with the first count, sum, min and max of the query."""
    plan = PanePlan(10, 5)
    view = view_of(plan)
    store.create_view(view)
    rows: list[Row] = [("a", 1.5, 3, 7), ("a", 1.5, 4, 8), ("a", 1.5, None, 11), (None, 1.5, 9, 8)]
    store.commit(commit(view.name, 0, reduced(plan, rows), closing_us=0))
    assert sorted(told(store, view.name), key=repr) == sorted(
        [
            ("a,1.5", 0, 2, 7.0, 3.0, 4.0),
            ("1.5", 0, 1, 9.0, 9.0, 9.0),
            ("a,1.5", 5, 3, 7.0, 3.0, 4.0),
            ("1.5", 5, 1, 9.0, 9.0, 9.0),
            ("a,1.5", 10, 1, None, None, None),
        ],
        key=repr,
    )
    assert store.kept_panes(view.name) == 3
    store.commit(commit(view.name, 1, reduced(plan, []), closing_us=15))
    assert told(store, view.name) == [("a,1.5", 10, 1, None, None, None)]
    assert store.kept_panes(view.name) == 1
    assert store.kept_panes("another") == 0
    assert store.open_windows("another") is None
    with pytest.raises(InternalError, match="moved back"):
        store.commit(commit(view.name, 2, reduced(plan, []), closing_us=14))


def test_a_batch_again(store: ViewStore) -> None:
    """K14: a batch that is committed a second time changes nothing."""
    plan = PanePlan(10, 5)
    view = view_of(plan)
    store.create_view(view)
    batch = commit(view.name, 0, reduced(plan, [("a", 1.5, 3, 7)]), closing_us=12)
    assert not store.commit(batch).skipped
    before = answer(store, view.name), told(store, view.name)
    assert store.commit(batch).skipped
    assert (answer(store, view.name), told(store, view.name)) == before


def test_no_keys_and_no_aggregates(store: ViewStore) -> None:
    """A window by itself has a row where it has rows, and none where it has none."""
    columns = (MergeColumn("e", TIMESTAMP, '"__end"'), MergeColumn("w", WINDOW_TYPE, '"__window"'))
    merge = MergePlan((MergeKey(PANE, BIGINT),), (), columns)
    view = ViewSpec("bare", (("e", TIMESTAMP), ("w", WINDOW_TYPE)), "panes", merge=merge, panes=PanePlan(4, 2))
    store.create_view(view)
    store.commit(commit("bare", 0, arrow([(PANE, BIGINT)], [(2,), (20,)]), closing_us=30))
    ends = store.read("SELECT * FROM bare ORDER BY e").table.column("e").cast(pa.int64()).to_pylist()
    assert ends == [4, 6, 22, 24]
    first = store.read("SELECT w FROM bare ORDER BY e").table.to_pylist()[0]["w"]
    assert {name: time.microsecond for name, time in first.items()} == {"start": 0, "end": 4}
    assert told(store, "bare") == []


def test_old_panes_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """E20: panes that no window needs are deleted and the others merged, behind the batches that can be gone back to;
    what is read after the store was opened again is the same."""
    monkeypatch.setattr(closed_marks, "KEPT_BATCHES", 3)
    monkeypatch.setattr(closed_marks, "TIDY_EVERY", 2)
    plan = PanePlan(40, 10)
    view = view_of(plan)
    model = Windows(plan)
    path = tmp_path / "views.duckdb"
    with ViewStore.open(path) as store:
        store.create_view(view)
        for number in range(30):
            # the second row of each batch is behind the watermark, in the windows of it that are open
            batch = Batch([("a", 1.5, number, number * 10 + 5), ("a", 1.5, 1, max(0, number * 10 - 20))], 10)
            model.take(batch)
            store.commit(commit(view.name, number, reduced(plan, batch.rows), closing_us=model.watermark))
            kept = store._database.writer.execute("SELECT count(*) FROM store.p1").fetchall()[0][0]
            assert kept <= 20, "what is closed goes"
        with pytest.raises(Exception, match="cannot go back"):
            store.rollback(view.name, 20)
        store.rollback(view.name, 27)
    with ViewStore.open(path) as store:
        again = Windows(plan)
        for number in range(30):
            batch = Batch([("a", 1.5, number, number * 10 + 5), ("a", 1.5, 1, max(0, number * 10 - 20))], 10)
            again.take(batch)
            if number > 27:
                store.commit(commit(view.name, number, reduced(plan, batch.rows), closing_us=again.watermark))
        assert answer(store, view.name) == sorted(map(plain, again.closed), key=repr)
        assert len(told(store, view.name)) == len(again.open)


@settings(max_examples=100, deadline=None)
@given(plan=PLANS, time=st.integers(-100, 100))
def test_bounds_of_panes(plan: PanePlan, time: int) -> None:
    """D19: every time of a pane is in the windows that its pane is in, also before 1970."""
    pane = time - (time - plan.offset_us) % plan.pane_us
    start = time - (time - plan.offset_us) % plan.slide_us
    starts = [start - n * plan.slide_us for n in range(plan.windows) if start - n * plan.slide_us > time - plan.size_us]
    assert plan.last_end(pane) == starts[0] + plan.size_us
    assert plan.first_end(pane) == starts[-1] + plan.size_us
    assert len(starts) <= plan.windows
