"""Records that DuckDB reads: what stands first must not decide what becomes of the others."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.quick_json import FEWEST, SURE, QuickJson

COLUMNS = {"n": "BIGINT", "s": "STRING"}
PLAIN = b'{"n": 1, "s": "a"}'


@pytest.mark.parametrize(
    "first",
    [
        None,
        b"",
        b"not json",
        b"\xff",
        b"[1]",
        b"7" * 5_000,
        b'{"n":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
        b'{"\\ud800": 1}',
        b'{"\\u0000": 1}',
        b'{"n": 1, "n": 2}',
    ],
)
def test_a_strange_first_record_is_left_to_spark_and_the_others_are_read(first: bytes | None) -> None:
    found = QuickJson(COLUMNS)(pa.array([first, *[PLAIN] * FEWEST], pa.binary()))
    assert found.field(SURE).to_pylist() == [False, *[True] * FEWEST]
    assert found[1].as_py() == {SURE: True, "n": 1, "s": "a"}


def test_a_first_record_with_names_of_its_own() -> None:
    made = [b'{"it\'s": 1, "{records}": 2}', *[PLAIN] * FEWEST]
    reader = QuickJson(COLUMNS)
    assert reader(pa.array(made, pa.binary())).field(SURE).true_count == len(made)
    assert reader(pa.array(made[1:], pa.binary())).field(SURE).true_count == FEWEST, "the usual names have changed"
