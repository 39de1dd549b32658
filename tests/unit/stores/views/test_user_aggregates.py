"""Q7: aggregates of the user's that the view store merges, with partial results as Spark's workers make them."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from penstock.errors import RuntimeFailure
from penstock.plan.merge_plan import FINISH, MergeColumn, MergeKey, MergePlan, Partial
from penstock.spark.function_call import FunctionCall
from penstock.spark.function_code import FunctionCode
from penstock.spark.merging_function import MergingFunction
from penstock.stores.views.model import ViewSpec
from penstock.stores.views.store import ViewStore
from penstock.types import BIGINT, DOUBLE, STRING
from tests.unit.stores.views.making import arrow, commit, shown


class Deviation:
    """The standard deviation, which sums alone lose digits of: count, mean and squares merge."""

    def partial(self, values: pa.Array) -> list[float]:
        numbers = values.drop_null().to_pylist()
        mean = sum(numbers) / len(numbers) if numbers else 0.0
        return [len(numbers), mean, sum((number - mean) ** 2 for number in numbers)]

    def merge(self, left: list[float], right: list[float]) -> list[float]:
        count = left[0] + right[0]
        if not count:
            return left
        off = right[1] - left[1]
        mean = left[1] + off * right[0] / count
        return [count, mean, left[2] + right[2] + off * off * left[0] * right[0] / count]

    def finish(self, kept: list[float]) -> float | None:
        return math.sqrt(kept[2] / kept[0]) if kept[0] else None


class Picky(Deviation):
    def merge(self, left: list[float], right: list[float]) -> list[float]:
        raise ValueError("no\nmore")


PLAN = MergePlan(
    (MergeKey("k", STRING),),
    (Partial("__p0", STRING, "function", "Deviation"), Partial("__p1", BIGINT, "count")),
    (
        MergeColumn("k", STRING, '"k"'),
        MergeColumn("d", DOUBLE, f'"{FINISH}Deviation"("__p0")'),
        MergeColumn("n", BIGINT, '"__p1"'),
    ),
    keep=f'"{FINISH}Deviation"("__p0") >= 0',
)
VIEW = ViewSpec("v", (("k", STRING), ("d", DOUBLE), ("n", BIGINT)), "merge", ("k",), PLAN)


def code(made: type) -> FunctionCode:
    return FunctionCode("pickle", "", made.__name__, cloudpickle.dumps(made))  # type: ignore[no-untyped-call]


def known(store: ViewStore, made: type = Deviation) -> None:
    store.add_aggregate("Deviation", MergingFunction("Deviation", code(made), pa.float64()), DOUBLE)


def batch(rows: list[tuple[str, float | None]]) -> pa.Table:
    """What Spark makes of the rows of a batch."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for key, value in rows:
        groups.setdefault(key, []).append({"a0": value})
    lists = pa.array(list(groups.values()), pa.list_(pa.struct([("a0", pa.float64())])))
    partials = FunctionCall("Deviation", code(Deviation), "arrow", pa.string(), aggregate=True, step="partial")(lists)
    counted = [len(found) for found in groups.values()]
    columns = (("k", STRING), ("__p0", STRING), ("__p1", BIGINT))
    return arrow(columns, zip(groups, partials.to_pylist(), counted, strict=True))


def check(store: ViewStore, rows: list[tuple[str, float | None]]) -> None:
    """The view is what the aggregate says of all rows of each key, computed at once."""
    groups: dict[str, list[float | None]] = {}
    for key, value in rows:
        groups.setdefault(key, []).append(value)
    made = Deviation()
    wanted = {key: made.finish(made.partial(pa.array(found, pa.float64()))) for key, found in groups.items()}
    found = {key: (value, count) for key, value, count in shown(store, "v")}
    assert {key: count for key, (_, count) in found.items()} == {
        key: len(groups[key]) for key, value in wanted.items() if value is not None
    }
    for key, (value, _) in found.items():
        assert value == pytest.approx(wanted[key], rel=1e-9, abs=1e-9)


def test_batches_merge(tmp_path: Path) -> None:
    """Any cut into batches gives the answer over all rows; it is kept over a restart and taken back with a batch."""
    source = random.Random(7)  # noqa: S311
    rows: list[list[tuple[str, float | None]]] = [
        [(source.choice("abc"), source.choice([None, 1e6 + source.random()])) for _ in range(source.randrange(1, 9))]
        for _ in range(12)
    ]
    rows[0].append(("d", None))  # nothing but NULL: no result yet, and so not shown
    with ViewStore.open(tmp_path) as store:
        known(store)
        known(store)  # again: the newer one
        store.create_view(VIEW)
        for number, each in enumerate(rows[:8]):
            assert not store.commit(commit("v", number, batch(each))).skipped
            check(store, [row for part in rows[: number + 1] for row in part])
        assert store.commit(commit("v", 7, batch(rows[7]))).skipped, "a batch counts once"
        check(store, [row for part in rows[:8] for row in part])
    with ViewStore.open(tmp_path) as store:
        known(store)
        store.create_view(VIEW)
        store.rollback("v", 4)
        check(store, [row for part in rows[:5] for row in part])
        for number, each in enumerate(rows[5:], start=5):
            store.commit(commit("v", number, batch(each)))
        store.commit(commit("v", len(rows), batch([("d", 3.0), ("d", 5.0)])))
        check(store, [*(row for part in rows for row in part), ("d", 3.0), ("d", 5.0)])


def test_a_failing_part_is_told() -> None:
    """Q6: by the name of the function; the batch leaves nothing behind."""
    with ViewStore.open(None, threads=1) as store:
        known(store, Picky)
        store.create_view(VIEW)
        store.commit(commit("v", 0, batch([("a", 1.0)])))
        with pytest.raises(RuntimeFailure) as raised:
            store.commit(commit("v", 1, batch([("a", 2.0), ("b", 1.0)])))
        assert raised.value.condition == "FUNCTION_FAILED"
        assert raised.value.message == "function Deviation failed: ValueError: no more"
        assert [row[0] for row in shown(store, "v")] == ["a"]
        known(store)  # mended
        store.commit(commit("v", 1, batch([("a", 2.0), ("b", 1.0)])))
        assert shown(store, "v") == [("a", 0.5, 2), ("b", 0.0, 1)]
