"""Windows that show each change, held against windows computed one row at a time (D4, D7, D19, F5, G5, G6, G7, H1)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InternalError
from penstock.frozen import frozen
from penstock.plan.changing import bounds_text, derived_bounds
from penstock.plan.merge_plan import MergeColumn, MergeKey, MergePlan, Partial
from penstock.plan.pane_plan import END, START
from penstock.plan.relation import WINDOW_TYPE
from penstock.plan.windows import WindowSpec
from penstock.plan.windows_plan import ROW_TIME, WindowsPlan
from penstock.stores.views import closed_marks
from penstock.stores.views.model import ViewSpec
from penstock.stores.views.store import ViewStore
from penstock.types import BIGINT, DOUBLE, STRING, TIMESTAMP
from tests.unit.stores.views.making import arrow, commit, folded, order, plain, shown

COUNT = itertools.count()
PARTIALS = (
    Partial("__n", BIGINT, "count"),
    Partial("__sum", BIGINT, "sum"),
    Partial("__min", DOUBLE, "min"),
    Partial("__max", DOUBLE, "max"),
)
SHOWN = (("count", "__n"), ("max", "__max"), ("min", "__min"), ("sum", "__sum"))

Row = tuple[str | None, float | None, int | None, int]  # k, f, x, time
Key = tuple[Any, ...]


@frozen
class Batch:
    """Rows, and how far past the batch before it windows are closed."""

    rows: list[Row] = field(default_factory=list)
    step: int = 0


def merge_of(spec: WindowSpec) -> MergePlan:
    """SELECT k, f, window_start, window_end, window_time, COUNT(*), SUM(x) + 0, MIN(x), MAX(x) … HAVING COUNT(*) <> 2"""
    session = spec.kind == "SESSION"
    return MergePlan(
        keys=(MergeKey(ROW_TIME if session else END, TIMESTAMP), MergeKey("__k0", STRING), MergeKey("__k1", DOUBLE)),
        partials=PARTIALS,
        columns=(
            MergeColumn("k", STRING, '"__k0"'),
            MergeColumn("f", DOUBLE, '"__k1"'),
            MergeColumn("s", TIMESTAMP, '"__start"'),
            MergeColumn("e", TIMESTAMP, '"__end"'),
            MergeColumn("t", TIMESTAMP, '"__time"'),
            MergeColumn("w", WINDOW_TYPE, '"__window"'),
            MergeColumn("n", BIGINT, '"__n"'),
            MergeColumn("total", BIGINT, '"__sum" + 0'),
            MergeColumn("low", DOUBLE, '"__min"'),
            MergeColumn("high", DOUBLE, '"__max"'),
        ),
        keep='"__n" <> 2',
        derived=bounds_text(f'"{START}"')[1:] if session else derived_bounds(spec),
    )


def view_of(spec: WindowSpec) -> ViewSpec:
    merge = merge_of(spec)
    columns = tuple((column.name, column.type or STRING) for column in merge.columns)
    windows = WindowsPlan(merge.keys[0].name, spec.gap_us, SHOWN)
    return ViewSpec(f"v {next(COUNT)}", columns, "windows", merge=merge, windows=windows)


def windows_of(spec: WindowSpec, time: int) -> list[tuple[int, int]]:
    """The windows of a row of this time, by their meaning."""
    if spec.kind == "CUMULATE":
        start = time - (time - spec.offset_us) % spec.size_us
        ends = range(start + spec.step_us, start + spec.size_us + 1, spec.step_us)
        return [(start, end) for end in ends if end > time]
    slide = spec.slide_us or spec.size_us
    first = time - (time - spec.offset_us) % slide
    return [(start, start + spec.size_us) for start in range(first, time - spec.size_us, -slide)]


class Model:
    """Windows and sessions as Spark keeps them, with all that are in the view."""

    def __init__(self, spec: WindowSpec) -> None:
        self.spec = spec
        self.groups: dict[Key, list[int | None]] = {}  # (start, end, k, f)
        self.watermark = 0

    def take(self, batch: Batch) -> None:
        for k, f, x, time in batch.rows:
            if self.spec.kind == "SESSION":
                self._extend(plain((k, f)), x, time)
                continue
            for start, end in windows_of(self.spec, time):
                if end > self.watermark:
                    self.groups.setdefault((start, end, *plain((k, f))), []).append(x)
        self.watermark += batch.step

    def _extend(self, key: Key, x: int | None, time: int) -> None:
        if time + self.spec.gap_us <= self.watermark:
            return
        start, end, values = time, time + self.spec.gap_us, [x]
        for group in [group for group in self.groups if group[2:] == key and group[1] > self.watermark]:
            if group[0] <= end and start <= group[1]:
                values = self.groups.pop(group) + values
                start, end = min(start, group[0]), max(end, group[1])
        self.groups[(start, end, *key)] = values

    def rows(self) -> list[Key]:
        found = [
            (*group[2:], group[0], group[1], group[1] - 1000, group[0], group[1], len(values), *numbers(values))
            for group, values in self.groups.items()
            if len(values) != 2
        ]
        return sorted(map(plain, found), key=repr)

    def open(self) -> list[Key]:
        """What penstock.window_aggregates shows, without the key."""
        found = [
            (group[0], group[1], len(values), *numbers(values))
            for group, values in self.groups.items()
            if group[1] > self.watermark
        ]
        return sorted(((*row[:3], None if row[3] is None else float(row[3]), *row[4:]) for row in found), key=repr)


def numbers(values: list[int | None]) -> Key:
    """Sum, smallest and largest; 13 stands for a NaN, the largest of all."""
    given = [value for value in values if value is not None]
    ends = sorted((math.nan if value == 13 else float(value) for value in given), key=order)
    return plain((sum(given), ends[0], ends[-1])) if given else (None, None, None)


def reduced(spec: WindowSpec, rows: list[Row]) -> pa.Table:
    """What Spark hands over for a batch: one row a key and window, or of sessions a key and time."""
    groups: dict[Key, list[int | None]] = {}
    for k, f, x, time in rows:
        marks = [time] if spec.kind == "SESSION" else [end for _, end in windows_of(spec, time)]
        for mark in marks:
            groups.setdefault((mark, *plain((k, f))), []).append(x)
    made = []
    for (mark, k, f), values in groups.items():
        total, low, high = numbers(values)
        ends = (math.nan if end == "NaN" else end for end in (low, high))
        made.append((mark, k, math.nan if f == "NaN" else f, len(values), total, *ends))
    keys = [(key.name, key.type or STRING) for key in merge_of(spec).keys]
    return arrow([*keys, *((part.name, part.type or STRING) for part in PARTIALS)], made)


def answer(store: ViewStore, view: str) -> list[Key]:
    """The view, with its times in microseconds, and the fields of the window one by one."""
    table = store.read(
        f'SELECT k, f, epoch_us(s), epoch_us(e), epoch_us(t), epoch_us(w.start), epoch_us(w."end"), n, total, low, high '
        f'FROM "{view}"'
    ).table
    return sorted((plain(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)), key=repr)


def told(store: ViewStore, view: str) -> list[Key]:
    found = store.open_windows(view)
    assert found is not None
    assert found.column_names == ["key", "window_start", "window_end", "count", "sum", "min", "max"]
    for place in (1, 2):
        found = found.set_column(place, found.column_names[place], found.column(place).cast(pa.int64()))
    return sorted((plain(list(row.values())[1:]) for row in found.to_pylist()), key=repr)


@pytest.fixture(scope="module")
def store() -> Iterator[ViewStore]:
    with ViewStore.open(None, clock=lambda: 5, threads=1) as opened:
        yield opened


SPECS = st.one_of(
    st.builds(lambda size, offset: WindowSpec("TUMBLE", size, offset_us=offset % size), st.integers(1, 30), st.integers(0, 9)),
    st.builds(
        lambda slide, more, offset: WindowSpec("HOP", slide + more, slide, offset_us=offset % slide),
        st.integers(1, 12), st.integers(0, 30), st.integers(0, 20),
    ),
    st.builds(
        lambda step, times, offset: WindowSpec("CUMULATE", step * times, step_us=step, offset_us=offset % (step * times)),
        st.integers(1, 9), st.integers(1, 5), st.integers(0, 20),
    ),
    st.builds(lambda gap: WindowSpec("SESSION", gap_us=gap), st.integers(1, 12)),
)  # fmt: skip
ROWS = st.tuples(
    st.sampled_from([None, "", "a", "é'\""]),
    st.sampled_from([None, 0.0, 1.5, math.nan]),
    st.none() | st.integers(-20, 20),
    st.integers(0, 120),
)
FEW = st.tuples(st.sampled_from([None, "a"]), st.just(1.5), st.integers(0, 3), st.integers(0, 60))
BATCHES = st.lists(
    st.builds(Batch, st.lists(ROWS | FEW, max_size=8), st.sampled_from([0, 0, 1, 7, 15, 40])), max_size=8
)


@settings(max_examples=60, deadline=None)
@given(spec=SPECS, batches=BATCHES, back=st.integers(0, 8))
def test_windows_show_each_change(store: ViewStore, spec: WindowSpec, batches: list[Batch], back: int) -> None:
    """D4, D7, D19, F5, E12, E21, G5, G7, G18, H1, K7: after each batch the view has every group of every window, with the rows that
    were in time and no others; its changes fold to it, and a batch gone back to gives it again."""
    view = view_of(spec)
    store.create_view(view)
    model = Model(spec)
    after: list[list[Key]] = []
    every = [*batches, Batch([], 10_000), Batch([("a", 1.5, 1, 50)])]  # the last row is late, whatever its window
    for number, batch in enumerate(every):
        model.take(batch)
        store.commit(commit(view.name, number, reduced(spec, batch.rows), closing_us=model.watermark))
        after.append(model.rows())
        assert answer(store, view.name) == after[-1]
        assert folded(store.changes(view.name, 0)) == shown(store, view.name)
        assert told(store, view.name) == model.open()
        assert store.kept_panes(view.name) == len(model.open())
    assert after[-1] == after[-2]
    back = min(back, len(batches))
    store.rollback(view.name, back - 1)
    assert answer(store, view.name) == (after[back - 1] if back else [])
    assert folded(store.changes(view.name, 0)) == shown(store, view.name)
    watermark = sum(batch.step for batch in every[:back])
    for number in range(back, len(every)):
        watermark += every[number].step
        store.commit(commit(view.name, number, reduced(spec, every[number].rows), closing_us=watermark))
        assert answer(store, view.name) == after[number]
    store.drop_view(view.name)
    store.forget_job(view.name)


@settings(max_examples=30, deadline=None)
@given(gap=st.integers(1, 12), batches=BATCHES, back=st.integers(0, 8))
def test_sessions_that_are_shown_once(store: ViewStore, gap: int, batches: list[Batch], back: int) -> None:
    """D7, E21, F5, K7: each session comes once, when it has ended, as it is then; nothing is ever taken back."""
    spec = WindowSpec("SESSION", gap_us=gap)
    view = view_of(spec)
    assert view.windows is not None
    view = replace(view, windows=replace(view.windows, final=True))
    store.create_view(view)
    model = Model(spec)
    after: list[list[Key]] = []
    every = [*batches, Batch([], 10_000)]
    for number, batch in enumerate(every):
        model.take(batch)
        store.commit(commit(view.name, number, reduced(spec, batch.rows), closing_us=model.watermark))
        after.append([row for row in model.rows() if row[3] <= model.watermark])
        assert answer(store, view.name) == after[-1]
        assert told(store, view.name) == model.open()
    assert {change.op for change in store.changes(view.name, 0)} <= {"insert"}
    assert folded(store.changes(view.name, 0)) == shown(store, view.name)
    back = min(back, len(batches))
    store.rollback(view.name, back - 1)
    assert answer(store, view.name) == (after[back - 1] if back else [])
    watermark = sum(batch.step for batch in every[:back])
    for number in range(back, len(every)):
        watermark += every[number].step
        store.commit(commit(view.name, number, reduced(spec, every[number].rows), closing_us=watermark))
        assert answer(store, view.name) == after[number]
    store.drop_view(view.name)
    store.forget_job(view.name)


def changes(store: ViewStore, view: str, since: int) -> list[tuple[str, Key | None, Key | None]]:
    """Changes as operation, and start, end and count before and after."""

    def told_of(row: dict[str, Any] | None) -> Key | None:
        return None if row is None else (row["s"].microsecond, row["e"].microsecond, row["n"])

    return [(change.op, told_of(change.before), told_of(change.row)) for change in store.changes(view, since)]


def test_a_session_takes_the_place_of_those_it_joins(store: ViewStore) -> None:
    """D7, G5: the log of two sessions that become one, of one that grows, and of one that takes in an earlier row."""
    spec = WindowSpec("SESSION", gap_us=10)
    view = replace(view_of(spec), merge=replace(merge_of(spec), keep=None))
    store.create_view(view)
    a: list[Row] = [("a", 1.5, 1, 20), ("a", 1.5, 1, 40), ("b", 1.5, 1, 40)]
    store.commit(commit(view.name, 0, reduced(spec, a), closing_us=0))
    assert changes(store, view.name, 0) == [
        ("insert", None, (20, 30, 1)), ("insert", None, (40, 50, 1)), ("insert", None, (40, 50, 1)),
    ]  # fmt: skip
    store.commit(commit(view.name, 1, reduced(spec, [("a", 1.5, 1, 30)]), closing_us=0))
    assert changes(store, view.name, 3) == [("update", (20, 30, 1), (20, 50, 3)), ("delete", (40, 50, 1), None)]
    store.commit(commit(view.name, 2, reduced(spec, [("a", 1.5, 1, 12)]), closing_us=50))
    assert changes(store, view.name, 5) == [("insert", None, (12, 50, 4)), ("delete", (20, 50, 3), None)]
    # the session has ended at the watermark: a row at its end begins another one, a row inside is late
    store.commit(commit(view.name, 3, reduced(spec, [("a", 1.5, 1, 50), ("a", 1.5, 1, 39)]), closing_us=50))
    assert changes(store, view.name, 7) == [("insert", None, (50, 60, 1))]


def test_no_keys_and_no_aggregates(store: ViewStore) -> None:
    """G18: a window by itself has a row where it has rows."""
    for spec, column, ends in (
        (WindowSpec("TUMBLE", 10), END, [10, 30]),
        (WindowSpec("SESSION", gap_us=5), ROW_TIME, [15, 35]),
    ):
        derived = merge_of(spec).derived
        merge = MergePlan(
            (MergeKey(column, TIMESTAMP),), (), (MergeColumn("e", TIMESTAMP, '"__end"'),), derived=derived
        )
        name = f"bare {spec.kind}"
        windows = WindowsPlan(column, spec.gap_us)
        store.create_view(ViewSpec(name, (("e", TIMESTAMP),), "windows", merge=merge, windows=windows))
        store.commit(commit(name, 0, arrow([(column, TIMESTAMP)], [(10,), (30,)]), closing_us=0))
        table = store.read(f'SELECT epoch_us(e) AS e FROM "{name}" ORDER BY e').table
        assert table.column("e").to_pylist() == ends
        found = store.open_windows(name)
        assert found is not None
        assert found.column("key").to_pylist() == [None, None]


def test_a_batch_again_and_a_watermark_that_moves_back(store: ViewStore) -> None:
    """K14, E12"""
    spec = WindowSpec("TUMBLE", 10)
    view = view_of(spec)
    store.create_view(view)
    batch = commit(view.name, 0, reduced(spec, [("a", 1.5, 3, 7)]), closing_us=12)
    assert not store.commit(batch).skipped
    before = answer(store, view.name)
    assert store.commit(batch).skipped
    assert answer(store, view.name) == before
    with pytest.raises(InternalError, match="moved back"):
        store.commit(commit(view.name, 1, reduced(spec, []), closing_us=11))


@pytest.mark.parametrize("spec", [WindowSpec("TUMBLE", 10), WindowSpec("SESSION", gap_us=4)], ids=["tumble", "session"])
def test_closed_windows_are_forgotten(spec: WindowSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """G6, E20: what is merged into stays small over thousands of windows, and the view has all of them, also after it
    was opened again; behind the batches that can be gone back to, nothing can."""
    monkeypatch.setattr(closed_marks, "KEPT_BATCHES", 3)
    monkeypatch.setattr(closed_marks, "TIDY_EVERY", 2)
    view = view_of(spec)
    model = Model(spec)
    path = tmp_path / "views.duckdb"

    def batch(number: int) -> Batch:
        return Batch([("a", 1.5, x, number * 200 + x * 10) for x in range(20)], 200)

    with ViewStore.open(path) as store:
        store.create_view(view)
        for number in range(60):
            model.take(batch(number))
            store.commit(commit(view.name, number, reduced(spec, batch(number).rows), closing_us=model.watermark))
            kept = store._database.writer.execute("SELECT count(*) FROM store.v1").fetchall()[0][0]
            assert kept <= 120, "what is closed goes"
        assert answer(store, view.name) == model.rows()
        assert len(model.rows()) == 1_200
        assert folded(store.changes(view.name, 0)) == shown(store, view.name)
        with pytest.raises(Exception, match="cannot go back"):
            store.rollback(view.name, 50)
        store.rollback(view.name, 57)
    with ViewStore.open(path) as store:
        store.create_view(view)  # as a job that goes on does
        for number in (58, 59):
            store.commit(commit(view.name, number, reduced(spec, batch(number).rows), closing_us=(number + 1) * 200))
        assert answer(store, view.name) == model.rows()
        assert [row.values() for row in store.snapshot(view.name).table.to_pylist()]
        store.drop_view(view.name)
        left = store._database.writer.execute("SELECT table_name FROM duckdb_tables() WHERE table_name LIKE '%1'")
        assert left.fetchall() == []
