"""Rows found by key in an ordered table, in every way that Arrow offers (L10, SC28)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.stores.dimensions import DimensionStore, index_file
from penstock.stores.key_index import KeyIndex, sorted_by

TEXTS = st.text(max_size=4)
NUMBERS = st.integers(-5, 5)


@given(keys=st.lists(TEXTS, unique=True), asked=st.lists(st.none() | TEXTS))
def test_texts(keys: list[str], asked: list[str | None]) -> None:
    check(pa.array(keys, pa.string()), pa.array(asked, pa.string()))


@given(keys=st.lists(NUMBERS, unique=True), asked=st.lists(st.none() | NUMBERS))
def test_numbers(keys: list[int], asked: list[int | None]) -> None:
    check(pa.array(keys, pa.int64()), pa.array(asked, pa.int64()))


def check(keys: pa.Array, asked: pa.Array) -> None:
    """Each key is answered as a dict would answer it."""
    table = pa.table({"key": keys, "place": pa.array(range(len(keys)), pa.int64())})
    index = KeyIndex(sorted_by(table, "key"), "key")
    wanted = {key: {"place": place, "key": key} for place, key in enumerate(keys.to_pylist())}
    assert index.rows(asked, ["place", "key"]).to_pylist() == [wanted.get(key) for key in asked.to_pylist()]


def test_without_a_search_of_arrows_own(monkeypatch: pytest.MonkeyPatch) -> None:
    if hasattr(pc, "search_sorted"):
        monkeypatch.delattr(pc, "search_sorted")
    check(pa.array([3, 1, 2]), pa.array([2, None, 0, 3, 9]))
    check(pa.array(["c", "a"]), pa.array(["a", None, "b", "d"]))


def test_keys_of_another_width_and_rows_without_a_key() -> None:
    table = pa.table({"key": pa.array([7, None, 5], pa.int32()), "name": ["seven", "nobody", "five"]})
    index = KeyIndex(sorted_by(table, "key"), "key")
    assert index.rows(pa.array([5, None, 7], pa.int64()), ["name"]).to_pylist() == [
        {"name": "five"},
        None,
        {"name": "seven"},
    ]
    assert KeyIndex(sorted_by(table.slice(0, 0), "key"), "key").rows(pa.array([5]), ["name"]).to_pylist() == [None]


def test_the_index_of_a_version_is_a_file(tmp_path: Path) -> None:
    store = DimensionStore(tmp_path)
    many = pa.table({"the key": pa.array(range(200_000)), "x": pa.array(range(200_000))})
    for _ in range(3):
        store.add("d", many, 0)
    store.index("d", 1, "the key")
    store.index("d", 1, "the key")
    path = index_file(store.directory("d"), 1, "the key")
    with pa.memory_map(str(path)) as source:
        assert pa.ipc.open_file(source).num_record_batches == 1
    store.keep_only("d", set())
    assert not path.exists(), "it goes with its version"
