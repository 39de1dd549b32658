"""Versions of dimension tables on disk, and which of them a job's batches see (L3, L10, L13, L20)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from penstock.errors import RuntimeFailure
from penstock.runtime.dimension_rows import columns_of_table, fitted_table
from penstock.stores.dimension_pins import pin, pinned, pins_file, read_pins, trim
from penstock.stores.dimensions import BATCH_ROWS, DimensionStore, as_given, version_file

ROWS = pa.table({"id": [1, 2], "name": ["a", None]})


def test_versions_are_kept_and_found_again(tmp_path: Path) -> None:
    store = DimensionStore(tmp_path)
    first = store.add("d / ü", ROWS, 5, text="t")
    second = store.add("d / ü", ROWS.slice(1), 6)
    assert (first.number, first.rows, first.bytes) == (1, 2, ROWS.nbytes)
    assert second.number == 2
    again = DimensionStore(tmp_path)
    assert again.versions("d / ü") == (first, second)
    assert again.names() == ("d / ü",)
    assert again.read("d / ü").equals(ROWS.slice(1))
    assert again.read("d / ü", 1).equals(ROWS), "a version never changes"


def test_no_rows_and_many_rows(tmp_path: Path) -> None:
    store = DimensionStore(tmp_path)
    assert store.add("none", ROWS.slice(0, 0), 0).rows == 0
    assert store.read("none").schema.equals(ROWS.schema)
    many = pa.table({"id": pa.array(range(BATCH_ROWS + 1))})
    store.add("many", many, 0)
    assert store.read("many").equals(many)
    assert store.read("many").column("id").num_chunks == 2, "readers share a large one out"


def test_old_versions_go_and_numbers_do_not_come_back(tmp_path: Path) -> None:
    store = DimensionStore(tmp_path)
    for _ in range(4):
        store.add("d", ROWS, 0)
    store.keep_only("d", {2})
    assert [version.number for version in store.versions("d")] == [2, 4]
    assert [version_file(store.directory("d"), number).exists() for number in range(1, 5)] == [False, True, False, True]
    assert DimensionStore(tmp_path).add("d", ROWS, 0).number == 5
    store.forget("d")
    assert store.versions("d") == ()
    assert store.names() == ()


def test_what_is_missing_or_damaged_is_named(tmp_path: Path) -> None:
    store = DimensionStore(tmp_path)
    with pytest.raises(RuntimeFailure, match="rows of dimension d cannot be found"):
        store.latest("d")
    store.add("d", ROWS, 0)
    version_file(store.directory("d"), 1).unlink()
    with pytest.raises(RuntimeFailure, match="version 1 of dimension d"):
        store.read("d")
    (store.directory("d") / "versions.json").write_text("[{]")
    with pytest.raises(RuntimeFailure) as raised:
        DimensionStore(tmp_path).versions("d")
    assert raised.value.condition == "DIMENSION_MISSING"


def test_a_version_that_is_not_in_the_list_does_not_count(tmp_path: Path) -> None:
    """A program that is killed between the file and the list leaves a file that the next version writes over."""
    store = DimensionStore(tmp_path)
    store.add("d", ROWS, 0)
    version_file(store.directory("d"), 2).write_bytes(b"half")
    again = DimensionStore(tmp_path)
    assert again.latest("d").number == 1
    assert again.add("d", ROWS.slice(1), 0).number == 2
    assert again.read("d").equals(ROWS.slice(1))


def test_rows_come_back_as_they_were_given(tmp_path: Path) -> None:
    store = DimensionStore(tmp_path)
    given = pa.table({"id": pa.array([1], pa.uint8()), "name": pa.array(["a"], pa.large_string())})
    kept = given.cast(pa.schema([("id", pa.int16()), ("name", pa.string())]))
    version = store.add("d", kept, 0, given=given.schema)
    assert store.read("d").equals(kept)
    assert as_given(store.read("d"), version).equals(given)


@pytest.mark.parametrize("kind", [pa.binary_view(), pa.string_view(), pa.large_binary(), pa.binary(1)])
def test_every_arrow_type_of_texts_and_bytes_is_taken(tmp_path: Path, kind: pa.DataType) -> None:
    values = ["x", None] if pa.types.is_string_view(kind) else [b"x", None]
    given = pa.table({"v": pa.array(values, kind), "l": pa.array([values, []], pa.list_(kind))})
    kept = fitted_table(given, columns_of_table(given))
    store = DimensionStore(tmp_path)
    version = store.add("d", kept, 0, given=given.schema)
    assert store.read("d").equals(kept)
    assert as_given(store.read("d"), version).to_pylist() == given.to_pylist()


# pins


def test_a_planned_batch_keeps_its_version(tmp_path: Path) -> None:
    path = pins_file(tmp_path / "checkpoint")
    pin(path, "d", 7, 3)
    assert read_pins(path) == {"d": ((0, 3),)}, "a job that begins sees its first version from the beginning"
    pin(path, "d", 9, 3)
    pin(path, "d", 9, 4)
    pin(path, "d", 9, 5)
    pin(path, "e", 9, 1)
    pins = read_pins(path)
    assert pins == {"d": ((0, 3), (9, 5)), "e": ((0, 1),)}, "what no batch has seen yet is replaced"
    assert [pinned(pins, "d", batch) for batch in (0, 8, 9, 100)] == [3, 3, 5, 5]
    assert pinned(pins, "f", 1) is None


def test_a_job_that_goes_back_sees_the_newest_version_from_there(tmp_path: Path) -> None:
    path = pins_file(tmp_path / "checkpoint")
    for first, number in ((0, 1), (5, 2), (9, 3)):
        pin(path, "d", first, number)
    pin(path, "d", 6, 3)
    assert read_pins(path)["d"] == ((0, 1), (5, 2), (6, 3))


def test_what_no_batch_needs_is_forgotten(tmp_path: Path) -> None:
    path = pins_file(tmp_path / "checkpoint")
    for first, number in ((0, 1), (5, 2), (9, 3)):
        pin(path, "d", first, number)
    trim(path, 5)
    assert read_pins(path)["d"] == ((5, 2), (9, 3))
    trim(path, 8)
    assert read_pins(path)["d"] == ((5, 2), (9, 3)), "batch 8 still sees version 2"
    trim(path, 50)
    assert read_pins(path)["d"] == ((9, 3),)


def test_pins_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "dimensions.json"
    path.write_text('{"d": 3}')
    with pytest.raises(RuntimeFailure) as raised:
        read_pins(path)
    assert raised.value.condition == "CHECKPOINT_DAMAGED"
