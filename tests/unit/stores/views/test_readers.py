"""Readers: whole batches only, names as they are, nothing but what they may see."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import pyarrow as pa
import pytest

from penstock.errors import InternalError, PenstockError
from penstock.stores.views.model import BatchCommit, ViewSpec
from penstock.stores.views.store import ViewStore
from penstock.types import BIGINT, STRING
from tests.unit.stores.views.making import append_view, arrow, batch_table, commit, expected, folded, merge_view, shown


@pytest.fixture
def store() -> Iterator[ViewStore]:
    with ViewStore.open(None, threads=1) as opened:
        yield opened


def test_readers_see_whole_batches_while_commits_run(tmp_path: Path) -> None:
    """View, ledger and log belong to one batch in every answer, whatever is committed meanwhile."""
    keys, batches = 40, 60
    rows = [(f"k{number}", None, 1, 1, True) for number in range(keys)]
    done = Event()
    wrong: list[str] = []
    checks = [0, 0, 0]

    with ViewStore.open(tmp_path) as store:
        store.create_view(merge_view("v"))

        def read(place: int) -> None:
            since, folding = 0, []
            while not done.is_set() or not checks[place]:
                answer = store.read('SELECT count(*) AS keys, min("n") AS low, max("n") AS high FROM "v"')
                batch, watermark_us = answer.as_of["v"]
                row = answer.table.to_pylist()[0]
                whole = None if batch is None else batch + 1
                if row != {"keys": 0 if batch is None else keys, "low": whole, "high": whole}:
                    wrong.append(f"batch {batch} shows {row}")
                if batch is not None and watermark_us != batch * 1_000_000:
                    wrong.append(f"batch {batch} has watermark {watermark_us}")
                snapshot = store.snapshot("v")
                if snapshot.seq != (0 if snapshot.batch_id is None else (snapshot.batch_id + 1) * keys):
                    wrong.append(f"batch {snapshot.batch_id} has sequence number {snapshot.seq}")
                folding += (got := store.changes("v", since))
                since += len(got)
                if since % keys:
                    wrong.append(f"{since} changes are no whole number of batches")
                checks[place] += 1
            folding += store.changes("v", since)
            if folded(folding) != expected("merge", [rows] * batches):
                wrong.append("the changes do not make the view")

        readers = [Thread(target=read, args=(place,)) for place in range(3)]
        for reader in readers:
            reader.start()
        try:
            for number in range(batches):
                store.commit(commit("v", number, batch_table("merge", rows)))
                store.maintain()
        finally:
            done.set()
            for reader in readers:
                reader.join(60)
    assert wrong == []
    assert min(checks) > 0


@pytest.mark.parametrize(
    "name", ["v", "V1", "we.ird", 'q"uo"te', "ümläut 😀", "ledger", "store", "select", "a b", "penstock.x"]
)
def test_any_name_works_for_views_and_columns(store: ViewStore, name: str) -> None:
    column = f"{name}'s"
    store.create_view(append_view("other"))
    store.create_view(ViewSpec(name, ((name, BIGINT), (column, STRING))))
    store.commit(BatchCommit(name, 0, "h", 5, view=name, rows=arrow(((name, BIGINT), (column, STRING)), [(1, "x")])))
    quoted = name.replace('"', '""')
    answer = store.read(f'SELECT x."{quoted}" FROM "{quoted}" AS x')
    assert answer.table.to_pylist() == [{name: 1}]
    assert answer.as_of == {name: (0, 5)}
    assert [change.row for change in store.changes(name, 0)] == [{name: 1, column: "x"}]
    store.drop_view(name)
    store.forget_job(name)
    store.create_view(merge_view(name))
    assert shown(store, name) == []
    assert store.ledger(name) is None
    assert store.last_seq(name) == 0


def test_names_that_differ_in_case_are_different_views(store: ViewStore) -> None:
    for number, name in enumerate(("Name", "name", "NAME")):
        store.create_view(ViewSpec(name, (("x", BIGINT),)))
        store.commit(commit(name, 0, arrow((("x", BIGINT),), [(number,)])))
    for number, name in enumerate(("Name", "name", "NAME")):
        answer = store.read(f'SELECT * FROM "{name}"')
        assert answer.table.to_pylist() == [{"x": number}]
        assert list(answer.as_of) == [name]


def test_an_answer_names_only_the_views_it_read(store: ViewStore) -> None:
    store.create_view(ViewSpec("v", (("w", BIGINT), ("x", BIGINT))))
    store.create_view(ViewSpec("w", (("x", BIGINT),)))
    store.create_view(ViewSpec("u", (("x", BIGINT),)))
    store.commit(commit("v", 0, arrow((("w", BIGINT), ("x", BIGINT)), [(1, 2)])))
    assert store.read('SELECT "w", \'u\' AS t FROM "v"').as_of == {"v": (0, 0)}
    both = store.read('SELECT 1 AS one FROM "v" JOIN "w" USING ("x") WHERE EXISTS (SELECT 1 FROM "u")')
    assert both.as_of == {"v": (0, 0), "w": (None, None), "u": (None, None)}
    assert store.read("SELECT 1 AS one").as_of == {}


def test_relations_are_there_for_one_query_only(store: ViewStore) -> None:
    store.create_view(append_view("v"))
    given = {"penstock.jobs": pa.table({"name": ["a"]}), "v": pa.table({"mine": [1]})}
    assert store.read('SELECT * FROM "penstock.jobs", "v"', given).table.to_pylist() == [{"name": "a", "mine": 1}]
    assert store.read('SELECT * FROM "penstock.jobs", "v"', given).as_of == {}
    with pytest.raises(InternalError):
        store.read('SELECT * FROM "penstock.jobs"')
    assert store.read('SELECT * FROM "v"').table.column_names == ["k", "f", "x"]


def test_a_sum_that_does_not_fit_is_told_in_our_words(store: ViewStore) -> None:
    store.create_view(append_view("v"))
    given = {"r": pa.table({"y": [2**62, 2**62]})}
    for over in ("", " OVER ()"):
        with pytest.raises(PenstockError) as refused:
            store.read(f'SELECT CAST(sum("y"){over} AS BIGINT) FROM "v" RIGHT JOIN "r" ON TRUE', given)
        assert refused.value.condition == "DATA_ERROR"
        assert refused.value.message == "overflow, in a sum: 9223372036854775808 does not fit into BIGINT"
        assert "TRY_SUM" in (refused.value.hint or "")


def test_a_query_that_fails_leaves_the_store_in_order(store: ViewStore) -> None:
    store.create_view(append_view("v"))
    store.commit(commit("v", 0, batch_table("append", [("word", 1.0, 2, 1, True)])))
    for _ in range(3):
        with pytest.raises(PenstockError) as refused:
            store.read('SELECT CAST("k" AS BIGINT) FROM "v", "r"', {"r": pa.table({"y": [1]})})
        assert refused.value.condition == "DATA_ERROR"
        assert "word" in refused.value.message
    assert shown(store, "v") == [("word", 1.0, 2)]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "COPY (SELECT 1) TO '/tmp/never.csv'",
        "ATTACH '/tmp/never.db'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "CREATE TABLE t (a INT)",
        "DELETE FROM store.ledger",
        "SELECT * FROM ledger",
        "SELECT * FROM text",
    ],
)
def test_a_query_reaches_nothing_else(store: ViewStore, text: str) -> None:
    store.commit(BatchCommit("j", 0, "h"))
    with pytest.raises(PenstockError):
        store.read(text)
    assert store.ledger("j") is not None
    assert store.commit(BatchCommit("j", 1, "h")).skipped is False


def test_several_views_are_read_in_one_snapshot() -> None:
    rows = [("a", 1.0, 1, 1, True), ("b", None, 5, 2, True)]
    with ViewStore.open(None, threads=1) as store:
        for name in ("one", "two"):
            store.create_view(append_view(name))
            store.commit(commit(name, 0, batch_table("append", rows)))

        def names() -> Iterator[str]:
            yield "one"
            store.commit(commit("two", 1, batch_table("append", rows)))
            yield "two"

        class Names(list[str]):
            def __iter__(self) -> Iterator[str]:
                return names()

        found = store.read_views(Names())
        assert [(each.table.num_rows, name, each.as_of[name][0]) for name, each in found.items()] == [
            (len(rows), "one", 0),
            (len(rows), "two", 0),
        ]
        assert store.read_views(["two"])["two"].table.num_rows == 2 * len(rows)
