"""The partition of a key is the same everywhere and for ever."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import PenstockError
from penstock.stores.topics.partition_choice import choose_partitions, key_partition

# Never change these: rows of one key would move to another partition.
PINNED = [
    ("AAPL", 9),
    (None, 14),
    (0, 4),
    (-1, 4),
    (Decimal("1.50"), 3),
    (b"x", 10),
    (True, 12),
    (0.5, 14),
    (dt.date(2021, 1, 1), 5),
]


@pytest.mark.parametrize(("key", "partition"), PINNED)
def test_partitions_of_keys_are_pinned(key: Any, partition: int) -> None:
    assert key_partition([key], 16) == partition


def test_equal_keys_of_other_types_go_to_the_same_partition() -> None:
    for one, other in [(5, Decimal("5.00")), (0.0, -0.0), (100, Decimal("1E+2"))]:
        assert key_partition([one], 1009) == key_partition([other], 1009)
    assert key_partition(["a", "bc"], 1009) != key_partition(["ab", "c"], 1009)


@given(
    st.lists(st.tuples(st.none() | st.text(max_size=3), st.none() | st.integers(-5, 5)), max_size=40),
    st.integers(1, 9),
)
def test_each_row_is_in_the_partition_of_its_key(rows: list[tuple[str | None, int | None]], partitions: int) -> None:
    table = pa.table(
        {"a": pa.array([a for a, _ in rows], pa.string()), "b": pa.array([b for _, b in rows], pa.int32())}
    )
    table = pa.concat_tables([table.slice(0, 7), table.slice(7)])
    for names, keys in ((["a"], [(a,) for a, _ in rows]), (["b", "a"], [(b, a) for a, b in rows])):
        chosen = choose_partitions(table, partitions, names)
        expected: dict[int, list[int]] = {}
        for place, key in enumerate(keys):
            expected.setdefault(key_partition(key, partitions), []).append(place)
        assert {partition: rows.to_pylist() for partition, rows in chosen.items()} == expected


def test_keys_of_every_plain_type_are_taken() -> None:
    now = dt.datetime(2021, 1, 1, tzinfo=dt.UTC)
    for column in (
        pa.array([Decimal("1.10"), None]),
        pa.array([now, None], pa.timestamp("us", tz="UTC")),
        pa.array([now.date(), None]),
        pa.array([b"x", None]),
        pa.array([True, None]),
        pa.array([0.5, None]),
    ):
        chosen = choose_partitions(pa.table({"k": column}), 1009, ["k"])
        assert sorted(place for rows in chosen.values() for place in rows.to_pylist()) == [0, 1]
        for place, key in enumerate(column.to_pylist()):
            assert place in chosen[key_partition([key], 1009)].to_pylist()


@pytest.mark.parametrize(
    ("name", "said"), [("x", "there is no column x to be the key"), ("l", "column l is list<item: int64> and cannot")]
)
def test_a_key_that_cannot_be_one_is_refused(name: str, said: str) -> None:
    with pytest.raises(PenstockError, match=said) as caught:
        choose_partitions(pa.table({"l": [[1]]}), 2, [name])
    assert caught.value.condition == "INVALID_ROWS"
