"""Small batches are reduced as Spark reduces them."""

from __future__ import annotations

import math
from decimal import Decimal

import pyarrow as pa
import pytest

from penstock.errors import PenstockError
from penstock.plan.merge_plan import MergeKey, MergePlan, Partial, Reduction
from penstock.stores.views.model import ViewSpec
from penstock.stores.views.small_batches import SmallBatches
from penstock.stores.views.store import ViewStore
from penstock.types import BIGINT, DOUBLE, STRING, SqlType
from tests.unit.stores.views.making import append_view, arrow, batch_table, commit, merge_view

DECIMAL = SqlType("DECIMAL", (38, 2))
TIMESTAMP = SqlType("TIMESTAMP")
TYPES = {
    "__k0": STRING, "__k1": DOUBLE, "__p0": BIGINT, "__p1": BIGINT, "__p2": DOUBLE, "__p3": DECIMAL, "__p4": TIMESTAMP,
    "__p5": DOUBLE,
}  # fmt: skip
REDUCTIONS = (
    Reduction("__p0", "count", "__a0"),
    Reduction("__p1", "sum", "__a0"),
    Reduction("__p2", "sum", "__a1"),
    Reduction("__p3", "sum", "__a2"),
    Reduction("__p4", "max", "__a3"),
    Reduction("__p5", "min", "__a1"),
)


def plan_of(keys: tuple[str, ...]) -> MergePlan:
    partials = tuple(Partial(each.partial, TYPES[each.partial], each.how) for each in REDUCTIONS)
    return MergePlan(tuple(MergeKey(key, TYPES[key]) for key in keys), partials, ())


def batch(rows: list[tuple[object, ...]]) -> pa.Table:
    kinds = (("__k0", STRING), ("__k1", DOUBLE), ("__a0", BIGINT), ("__a1", SqlType("FLOAT")))
    return arrow((*kinds, ("__a2", SqlType("DECIMAL", (10, 2))), ("__a3", TIMESTAMP)), rows)


def test_sums_counts_and_extremes_by_key() -> None:
    """NULLs form a group and are left out of aggregates; 0.0 is -0.0 and NaN is NaN; types are those of the view."""
    small = SmallBatches.of(plan_of(("__k0", "__k1")), REDUCTIONS, TYPES)
    assert small is not None
    rows: list[tuple[object, ...]] = [
        ("a", 0.0, 1, 0.5, Decimal("1.25"), 1_000_000),
        ("a", -0.0, 2, 0.25, Decimal("2.25"), 3_000_000),
        (None, math.nan, None, math.nan, None, None),
        (None, math.nan, 5, 1.0, Decimal("-0.01"), None),
        ("b", None, None, None, None, None),
    ]
    found = small.reduced(batch(rows))
    assert found.column("__p1").type == pa.int64()
    assert found.column("__p3").type == pa.decimal128(38, 2)
    by_key = {row["__k0"]: row for row in found.to_pylist()}
    assert len(found) == 3
    assert (by_key["a"]["__p0"], by_key["a"]["__p1"], by_key["a"]["__p2"]) == (2, 3, 0.75)
    assert by_key["a"]["__p3"] == Decimal("3.50")
    assert by_key["a"]["__p4"].second == 3
    assert (by_key["b"]["__p0"], by_key["b"]["__p1"], by_key["b"]["__p5"]) == (0, None, None)
    assert by_key[None]["__p5"] == 1.0
    assert math.isnan(by_key[None]["__p2"])


def test_without_keys_there_is_one_row_and_none_for_no_rows() -> None:
    small = SmallBatches.of(plan_of(()), REDUCTIONS, TYPES)
    assert small is not None
    assert small.reduced(batch([])).num_rows == 0
    assert small.reduced(batch([("a", 1.0, 7, 1.0, None, 0)] * 3)).to_pylist()[0]["__p1"] == 21


def test_a_sum_that_does_not_fit_is_an_error() -> None:
    small = SmallBatches.of(plan_of(()), REDUCTIONS, TYPES)
    assert small is not None
    with pytest.raises(PenstockError):
        small.reduced(batch([("a", 1.0, 2**62, 1.0, None, 0)] * 2))


def test_what_spark_has_to_reduce() -> None:
    """Nested keys and sums of lengths of time."""
    nested = TYPES | {"__k0": SqlType("ARRAY", elements=(DOUBLE,))}
    assert SmallBatches.of(plan_of(("__k0",)), REDUCTIONS, nested) is None
    assert SmallBatches.of(plan_of(()), REDUCTIONS, TYPES | {"__p1": SqlType("INTERVAL")}) is None
    assert SmallBatches.of(None, (), {}) is None


def test_the_whole_view_comes_in_order() -> None:
    """By key where there is one, as rows came otherwise; also where a column has a name of the store's own."""
    with ViewStore.open(None, threads=1) as store:
        store.create_view(merge_view("m"))
        rows = [("b", 1.0, 3, 1, True), ("a", 1.0, 3, 1, True), ("c", 1.0, 3, 1, True)]
        store.commit(commit("m", 0, batch_table("merge", rows)))
        assert store.snapshot("m").table.column("k").to_pylist() == ["a", "b", "c"]
        store.create_view(ViewSpec("s", (("seq", BIGINT),)))
        store.commit(commit("s", 0, arrow((("seq", BIGINT),), [(2,), (1,)])))
        store.create_view(append_view("p"))
        store.commit(commit("p", 0, batch_table("append", rows[:2])))
        assert store.snapshot("p").table.column("k").to_pylist() == ["b", "a"]
        assert store.snapshot("s").table.column("seq").to_pylist() == [2, 1]
