"""Windows of two streams that the store joins when they close, held against windows computed one row at a time (G9,
D4, F5, H1)."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.plan.finish_plan import SIDE
from penstock.plan.job_plan import plan_job
from penstock.plan.pane_plan import PANE
from penstock.stores.views import closed_marks
from penstock.stores.views.model import ViewSpec
from penstock.stores.views.spec_text import spec_from_text, spec_to_text
from penstock.stores.views.store import ViewStore
from penstock.types import BIGINT, INT, STRING
from tests.unit.plan.analysis import planned
from tests.unit.stores.views.making import arrow, commit, folded, shown

SECOND = 1_000_000
SIZE = 10
COUNT = itertools.count()
SIDE_OF = """(SELECT symbol AS k, window_start AS s, window_end AS e, COUNT(*) AS n
    FROM TUMBLE(TABLE {0}, DESCRIPTOR({1}), INTERVAL '10' SECOND) GROUP BY symbol, window_start, window_end)"""
PLAN = plan_job(
    planned(f"""
        CREATE MATERIALIZED VIEW v AS
        SELECT COALESCE(a.s, b.s) AS s, a.k, b.k AS other, a.n, b.n AS m
        FROM {SIDE_OF.format("trades", "ts")} AS a FULL JOIN {SIDE_OF.format("quotes", "at")} AS b
        ON a.k = b.k AND a.s = b.s AND a.e = b.e
    """)
)
BATCH = (
    (SIDE, INT),
    (PANE, BIGINT),
    ("__s0__k0", STRING),
    ("__s1__k0", STRING),
    ("__s0__p0", BIGINT),
    ("__s1__p0", BIGINT),
)

Rows = list[tuple[int, str | None, int]]  # side, key, second
ROWS = st.lists(st.tuples(st.integers(0, 1), st.sampled_from([None, "a", "b"]), st.integers(0, 60)), max_size=8)


SPEC = ViewSpec(
    "v",
    tuple((column.name, column.type) for column in PLAN.columns if column.type is not None),
    "panes",
    merge=PLAN.merge,
    panes=PLAN.panes,
    joined=PLAN.joined,
)


def batch_of(rows: Rows) -> Any:
    """What Spark makes of the rows of a batch."""
    groups = Counter((side, second - second % SIZE, key) for side, key, second in rows)
    table = [
        (side, start * SECOND, *((key, None, n, 0) if side == 0 else (None, key, 0, n)))
        for (side, start, key), n in groups.items()
    ]
    return arrow(BATCH, table)


class Joined:
    """The FULL JOIN of windows as Spark gives it: a row counts if its window is open under the last watermark."""

    def __init__(self) -> None:
        self.open: Counter[tuple[int, int, str | None]] = Counter()
        self.shown: Counter[tuple[Any, ...]] = Counter()
        self.watermark = 0

    def take(self, rows: Rows, step: int) -> None:
        for side, key, second in rows:
            start = second - second % SIZE
            if start + SIZE > self.watermark:
                self.open[side, start, key] += 1
        self.watermark += step
        closed = {group: n for group, n in self.open.items() if group[1] + SIZE <= self.watermark}
        for group in closed:
            del self.open[group]
        for (side, start, key), n in closed.items():
            partner = closed.get((1 - side, start, key)) if key is not None else None
            if side == 0:
                self.shown[start * SECOND, key, key if partner else None, n, partner] += 1
            elif partner is None:
                self.shown[start * SECOND, None, key, None, n] += 1


@pytest.fixture(scope="module")
def store() -> Iterator[ViewStore]:
    with ViewStore.open(None, clock=lambda: 5, threads=1) as opened:
        yield opened


@pytest.fixture(params=[False, True], ids=["kept", "tidied"], scope="module")
def tidied(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Whether old panes are merged every second batch, behind which nobody goes back then."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param:
            patch.setattr(closed_marks, "KEPT_BATCHES", 1)
            patch.setattr(closed_marks, "TIDY_EVERY", 2)
        yield request.param


def answer(store: ViewStore, view: str) -> Counter[tuple[Any, ...]]:
    table = store.read(f'SELECT * FROM "{view}"').table
    table = table.set_column(0, "s", table.column(0).cast(pa.int64()))
    return Counter(tuple(row.values()) for row in table.to_pylist())


@settings(max_examples=40, deadline=None)
@given(batches=st.lists(st.tuples(ROWS, st.integers(0, 25)), max_size=8), back=st.integers(0, 8))
def test_joined_when_they_close(store: ViewStore, tidied: bool, batches: list[tuple[Rows, int]], back: int) -> None:
    """Late rows are left out, each window is joined once, what is closed is let go of, the changes are the view, and a
    batch gone back to gives the same again."""
    view = replace(SPEC, name=f"v {next(COUNT)}")
    store.create_view(view)
    model, after, steps = Joined(), [], [*batches, ([], 1_000)]
    for number, (rows, step) in enumerate(steps):
        model.take(rows, step)
        store.commit(commit(view.name, number, batch_of(rows), closing_us=model.watermark * SECOND))
        after.append((model.watermark, +model.shown))
        assert answer(store, view.name) == +model.shown
        live = store.open_windows(view.name)
        assert live is not None
        groups = Counter((row["key"], row["count"]) for row in live.to_pylist())
        assert groups == Counter((key, n) for (_, _, key), n in model.open.items())
    assert store.kept_panes(view.name) == 0, "the last batch closes all"
    assert folded(store.changes(view.name, 0)) == shown(store, view.name)
    if not tidied:
        back = min(back, len(batches))
        store.rollback(view.name, back - 1)
        assert answer(store, view.name) == (after[back - 1][1] if back else Counter())
        for number in range(back, len(steps)):
            watermark, want = after[number]
            store.commit(commit(view.name, number, batch_of(steps[number][0]), closing_us=watermark * SECOND))
            assert answer(store, view.name) == want
    store.drop_view(view.name)
    store.forget_job(view.name)


def test_windows_stand_in_order(store: ViewStore) -> None:
    """F5: windows that close at once come into the view one after the other; the definition is what was written."""
    view = replace(SPEC, name=f"v {next(COUNT)}")
    assert spec_from_text(spec_to_text(view)) == view
    store.create_view(view)
    rows: Rows = [(side, key, second) for second in (45, 5, 31, 12, 22) for side, key in ((1, "b"), (0, "a"), (0, "b"))]
    store.commit(commit(view.name, 0, batch_of(rows), closing_us=100 * SECOND))
    starts = [change.row["s"].timestamp() for change in store.changes(view.name, 0) if change.row is not None]
    assert starts == sorted(starts)
    assert len(starts) == 10
