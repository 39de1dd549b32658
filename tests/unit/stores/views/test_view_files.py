"""The file of the store: private, ours alone, and told plainly where it cannot be used."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from penstock.errors import PenstockError
from penstock.stores.views.database import ViewDatabase
from penstock.stores.views.model import BatchCommit, ViewSpec
from penstock.stores.views.store import ViewStore
from penstock.types import BIGINT
from tests.project import ROOT
from tests.unit.stores.views.making import batch_table, commit, expected, merge_view, shown, update_view

ROWS = [("a", 1.0, 3, 1, True)]


def condition_at(state_path: Path) -> tuple[str, str]:
    with pytest.raises(PenstockError) as refused:
        ViewStore.open(state_path)
    return refused.value.condition, refused.value.message


def test_files_are_private_all_the_time(tmp_path: Path) -> None:
    state = tmp_path / "state"

    def modes() -> set[int]:
        return {stat.S_IMODE(path.stat().st_mode) for path in state.iterdir()}

    with ViewStore.open(state) as store:
        store.create_view(merge_view("v"))
        assert modes() == {0o600}
        for number in range(51):
            store.commit(commit("v", number, batch_table("merge", ROWS)))
        store.maintain()
        store.commit(commit("v", 51, batch_table("merge", ROWS)))
        assert {path.name for path in state.iterdir()} == {"views.duckdb", "views.duckdb.wal"}
        assert modes() == {0o600}
    assert modes() == {0o600}
    with ViewStore.open(state):
        assert modes() == {0o600}


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"\x00" * 20_000])
def test_a_file_that_is_no_database_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "views.duckdb").write_bytes(content)
    condition, message = condition_at(tmp_path)
    assert condition == "STATE_PATH_UNUSABLE"
    assert "views.duckdb" in message
    assert (tmp_path / "views.duckdb").read_bytes() == content


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    with ViewStore.open(tmp_path) as store:
        store.create_view(merge_view("v"))
        store.commit(commit("v", 0, batch_table("merge", ROWS)))
    path = tmp_path / "views.duckdb"
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\x5a" * (len(whole) - 4096))
    assert condition_at(tmp_path)[0] == "STATE_PATH_UNUSABLE"


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "views.duckdb")) as other:
        other.execute("CREATE TABLE mine (a INT)")
    condition, message = condition_at(tmp_path)
    assert (condition, "another program" in message) == ("STATE_PATH_UNUSABLE", True)
    with duckdb.connect(str(tmp_path / "views.duckdb")) as other:
        assert other.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("mine",)]


def test_a_newer_layout_is_refused(tmp_path: Path) -> None:
    ViewStore.open(tmp_path).close()
    with duckdb.connect(str(tmp_path / "views.duckdb")) as newer:
        newer.execute("UPDATE store.meta SET layout = 99")
    condition, message = condition_at(tmp_path)
    assert (condition, "layout 99" in message) == ("STATE_PATH_UNUSABLE", True)


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    text = (
        "import sys; from pathlib import Path; from penstock.stores.views.store import ViewStore\n"
        "try: ViewStore.open(Path(sys.argv[1]))\n"
        "except Exception as error: print(error.condition)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with ViewStore.open(tmp_path):
        told = subprocess.run(
            [sys.executable, "-c", text, str(tmp_path)], capture_output=True, text=True, check=True, env=environment
        )
    assert told.stdout.strip() == "ENGINE_ALREADY_RUNNING"


def test_a_closed_store_says_so() -> None:
    store = ViewStore.open(None)
    store.close()
    store.close()
    for call in (lambda: store.read("SELECT 1"), lambda: store.commit(BatchCommit("j", 0)), store.maintain):
        with pytest.raises(PenstockError) as refused:
            call()
        assert refused.value.condition == "DATABASE_CLOSED"


@pytest.mark.parametrize(
    ("error", "condition"),
    [
        (duckdb.IOException("IO Error: Could not write file: No space left on device"), "STORAGE_FULL"),
        (duckdb.FatalException("FATAL Error: … No space left on device"), "STORAGE_FULL"),
        (duckdb.OutOfMemoryException("Out of Memory Error: could not allocate"), "STORAGE_FULL"),
        (duckdb.IOException("IO Error: Corrupt database file: computed checksum"), "STATE_PATH_UNUSABLE"),
        (duckdb.FatalException("FATAL Error: database has been invalidated"), "STATE_PATH_UNUSABLE"),
        (duckdb.ConversionException("Conversion Error: Could not convert"), "DATA_ERROR"),
        (duckdb.BinderException("Binder Error: no such column"), "INTERNAL_ERROR"),
    ],
)
def test_what_duckdb_says_is_told_in_our_words(tmp_path: Path, error: duckdb.Error, condition: str) -> None:
    database = ViewDatabase.open(tmp_path)
    try:
        with pytest.raises(PenstockError) as told, database.errors():
            raise error
        assert told.value.condition == condition
        assert "Error:" not in told.value.message
    finally:
        database.close()


def test_a_view_is_dropped_with_all_it_kept(tmp_path: Path) -> None:
    with ViewStore.open(tmp_path) as store:
        store.create_view(merge_view("v"))
        store.commit(commit("v", 0, batch_table("merge", ROWS)))
        store.drop_view("v")
        store.drop_view("v")
        store.forget_job("v")
        store.create_view(update_view("v"))
        store.commit(commit("v", 0, batch_table("update", ROWS)))
    with ViewStore.open(tmp_path) as store:
        assert store.specs() == (update_view("v"),)
        assert shown(store, "v") == expected("update", [ROWS])
        assert store.last_seq("v") == 1
        tables = store._database.writer.execute(
            "SELECT table_name FROM duckdb_tables() WHERE table_name SIMILAR TO '[vl][0-9]+'"
        )
        assert len(tables.fetchall()) == 2


def test_another_definition_under_the_same_name_is_refused() -> None:
    with ViewStore.open(None) as store:
        store.create_view(merge_view("v"))
        store.create_view(merge_view("v"))
        with pytest.raises(PenstockError) as refused:
            store.create_view(ViewSpec("v", (("x", BIGINT),)))
        assert refused.value.condition == "OBJECT_EXISTS"
