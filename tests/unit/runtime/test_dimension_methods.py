"""How dimensions are joined, by size, limits and keys (L8, L14, L18, L19, DEC10)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from penstock.catalog.dimensions import define_dimension
from penstock.runtime.dimension_methods import JoinMethods, Looked
from penstock.runtime.dimension_rows import columns_of_table
from penstock.sql.statements import Name
from penstock.stores.dimensions import DimensionStore, DimensionVersion
from tests.unit.plan.test_job_dimensions import job

ROWS = pa.table({"instrumentId": ["A", "B", "C"], "NAME": ["a", "a", "c"], "SECTOR": ["x", "y", None]})
BY_ID = "SELECT t.price, s.NAME FROM trades t LEFT JOIN securities s ON t.symbol = s.instrumentId"
BY_NAME = "SELECT t.price, s.SECTOR FROM trades t LEFT JOIN securities s ON t.symbol = s.NAME"
ANTI = "SELECT t.price FROM trades t LEFT ANTI JOIN securities s ON t.symbol = s.instrumentId"


class Case:
    """A dimension with versions, and the settings in force."""

    def __init__(self, directory: Path, *, broadcast: bool = True, key: tuple[str, ...] = ()) -> None:
        self.store = DimensionStore(directory)
        self.settings: dict[str, object] = {}
        self.methods = JoinMethods(self.store, lambda: self.settings)
        self.definition: Looked = define_dimension(
            Name("securities"), columns_of_table(ROWS), broadcast=broadcast, key=key
        )

    def add(self, rows: pa.Table) -> DimensionVersion:
        return self.store.add("securities", rows, 0)

    def of(self, sql: str, *versions: DimensionVersion) -> str:
        found = self.methods.of(job(sql), {"securities": self.definition}, {"securities": versions})
        return found["securities"]


def test_by_size(tmp_path: Path) -> None:
    case = Case(tmp_path)
    version = case.add(ROWS)
    assert case.of(BY_ID, version) == "broadcast"
    case.methods.lookup_rows = 4
    assert case.of(BY_ID, version) == "broadcast"
    case.methods.lookup_rows = 3
    assert case.of(BY_ID, version) == "lookup"
    assert case.of(ANTI, version) == "broadcast", "only joins by one key are calls"
    case.settings["broadcast_max_bytes"] = version.bytes
    assert case.of(BY_ID, version) == "lookup"
    case.settings["broadcast_max_bytes"] = version.bytes - 1
    assert case.of(BY_ID, version) == "shuffle"
    assert "over broadcast_max_bytes" in str(case.methods.why_shuffle(case.definition, version))
    case.settings = {"broadcast_max_rows": 2}
    assert case.methods.why_shuffle(case.definition, version) == "3 rows are over broadcast_max_rows (2)"


def test_what_is_not_to_be_broadcast_is_shuffled(tmp_path: Path) -> None:
    case = Case(tmp_path, broadcast=False)
    case.methods.lookup_rows = 1
    assert case.of(BY_ID, case.add(ROWS)) == "shuffle"


def test_repeated_keys_are_joined(tmp_path: Path) -> None:
    """In the newest version, and in one whose batch may run again."""
    case = Case(tmp_path)
    case.methods.lookup_rows = 1
    once, twice = case.add(ROWS.slice(1)), case.add(ROWS)
    assert case.of(BY_NAME, once) == "lookup"
    assert case.of(BY_NAME, twice) == "broadcast"
    assert case.of(BY_NAME, twice, once) == "broadcast"
    assert case.of(BY_ID, twice, once) == "lookup"
    case.methods.forget("securities")
    case.store.forget("securities")
    assert case.of(BY_NAME, case.add(ROWS)) == "broadcast", "numbers begin anew"


def test_a_declared_key_is_not_looked_at(tmp_path: Path) -> None:
    case = Case(tmp_path, key=("NAME",))
    case.methods.lookup_rows = 1
    assert case.of(BY_NAME, case.add(ROWS.slice(1))) == "lookup"


def test_one_dimension_of_two_that_is_shuffled(tmp_path: Path) -> None:
    """The text with calls has calls for all: where one of them is shuffled, all are joined."""
    case = Case(tmp_path)
    case.methods.lookup_rows = 2
    plan = job(
        "SELECT t.price, s.NAME, n.name AS other FROM trades t LEFT JOIN securities s ON t.symbol = s.instrumentId "
        "LEFT JOIN names n ON n.id = t.side"
    )
    small = pa.table({"id": ["x"]})
    versions = {"securities": [case.add(ROWS)], "names": [case.store.add("names", small, 0)]}
    other = define_dimension(Name("names"), columns_of_table(small))
    definitions: dict[str, Looked] = {"securities": case.definition, "names": other}
    assert case.methods.of(plan, definitions, versions) == {"securities": "lookup", "names": "lookup"}
    definitions["names"] = define_dimension(Name("names"), columns_of_table(small), broadcast=False)
    assert case.methods.of(plan, definitions, versions) == {"securities": "broadcast", "names": "shuffle"}
