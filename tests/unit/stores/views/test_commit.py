"""One batch, one transaction: all of it or nothing, once, and only in its turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.catalog.system import find_system
from penstock.errors import InternalError, PenstockError
from penstock.plan.merge_plan import MergeColumn, MergeKey, MergePlan, Partial
from penstock.stores.views.model import BatchCommit, JobTransition, Kind, PartitionOffset, ViewSpec
from penstock.stores.views.store import ViewStore
from penstock.types import BIGINT, STRING
from tests.unit.stores.views.making import arrow, batch_table, commit, expected, folded, merge_view, shown, view_of

ROWS = [("a", 1.0, 3, 1, True), (None, None, 4, None, True), ("b", 2.0, -9, 2, False)]
TIME = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


class Crash(Exception):
    """Stands for a process that dies."""


@pytest.fixture
def store() -> Iterator[ViewStore]:
    with ViewStore.open(None, threads=1) as opened:
        yield opened


def crash_at(wanted: str) -> Callable[[str], None]:
    def reached(name: str) -> None:
        if name == wanted:
            raise Crash

    return reached


def late_rows(count: int) -> pa.Table:
    return pa.table(
        {
            "stream": ["s"] * count,
            "partition": pa.array([0] * count, pa.int32()),
            "offset": list(range(count)),
            "event_time": pa.array([TIME] * count, pa.timestamp("us", "UTC")),
            "watermark": pa.array([TIME + timedelta(days=2, microseconds=7)] * count, pa.timestamp("us", "UTC")),
            "lateness": pa.array([timedelta(days=2, microseconds=7)] * count, pa.duration("us")),
            "row": ["{}"] * count,
        }
    )


def dead_letters() -> pa.Table:
    return pa.table(
        {
            "stream": ["s"],
            "partition": pa.array([1], pa.int32()),
            "offset": [7],
            "raw": [b"\x00\xff"],
            "reason": ["malformed"],
            "error": ["malformed json"],
            "recorded_at": pa.array([TIME], pa.timestamp("us", "UTC")),
        }
    )


def everything(store: ViewStore) -> list[list[dict[str, Any]] | None]:
    names = ("checkpoints", "connector_offsets", "late_rows", "dead_letters", "metrics")
    tables = [store.system_table(f"penstock.{name}") for name in names]
    return [None if table is None else table.to_pylist() for table in tables]


@pytest.mark.parametrize("kind", ["append", "merge", "update"])
def test_a_batch_that_is_in_the_ledger_is_skipped(store: ViewStore, kind: Kind) -> None:
    store.create_view(view_of(kind, "v"))
    batch = commit("v", 0, batch_table(kind, ROWS), late=late_rows(2), dead=dead_letters())
    first = store.commit(batch)
    before = everything(store)
    again = store.commit(batch)
    assert (first.skipped, again.skipped, again.changes, again.last_seq) == (False, True, 0, first.last_seq)
    assert shown(store, "v") == expected(kind, [ROWS])
    assert everything(store) == before


def test_the_same_batch_with_other_offsets_is_refused(store: ViewStore) -> None:
    store.create_view(merge_view("v"))
    store.commit(commit("v", 0, batch_table("merge", ROWS)))
    with pytest.raises(PenstockError) as refused:
        store.commit(commit("v", 0, batch_table("merge", ROWS), offsets_hash="other"))
    assert refused.value.condition == "CHECKPOINT_DAMAGED"
    assert shown(store, "v") == expected("merge", [ROWS])


@pytest.mark.parametrize(("committed", "number"), [(0, 1), (2, 0), (2, 3), (2, 7)])
def test_a_batch_out_of_turn_is_refused(store: ViewStore, committed: int, number: int) -> None:
    store.create_view(merge_view("v"))
    for done in range(committed):
        store.commit(commit("v", done, None))
    with pytest.raises(PenstockError) as refused:
        store.commit(commit("v", number, batch_table("merge", ROWS)))
    assert refused.value.condition == "CHECKPOINT_DAMAGED"
    assert f"batch {number}" in refused.value.message
    assert shown(store, "v") == []


@pytest.mark.parametrize("kind", ["append", "merge", "update"])
@pytest.mark.parametrize("point", ["view.before_write", "view.before_commit"])
def test_a_crash_before_the_commit_leaves_nothing(store: ViewStore, kind: Kind, point: str) -> None:
    store.create_view(view_of(kind, "v"))
    store.commit(commit("v", 0, batch_table(kind, ROWS)))
    before = everything(store)
    more = [("c", 1.0, 8, 1, True), *ROWS]
    batch = commit("v", 1, batch_table(kind, more), late=late_rows(1), dead=dead_letters(), counters={"other": 1.0})
    with pytest.raises(Crash):
        store.commit(batch, crash_at(point))
    assert everything(store) == before
    assert shown(store, "v") == folded(store.changes("v", 0)) == expected(kind, [ROWS])
    entry = store.ledger("v")
    assert entry is not None
    assert entry.batch_id == 0
    assert not store.commit(batch).skipped
    assert shown(store, "v") == folded(store.changes("v", 0)) == expected(kind, [ROWS, more])


def test_a_crash_after_the_commit_leaves_everything(store: ViewStore) -> None:
    store.create_view(merge_view("v"))
    batch = commit("v", 0, batch_table("merge", ROWS))
    with pytest.raises(Crash):
        store.commit(batch, crash_at("view.after_commit"))
    assert shown(store, "v") == expected("merge", [ROWS])
    assert store.commit(batch).skipped


@pytest.mark.parametrize("kind", ["merge", "update"])
def test_two_rows_of_one_key_in_a_batch_are_a_bug(store: ViewStore, kind: Kind) -> None:
    store.create_view(view_of(kind, "v"))
    rows = batch_table(kind, [ROWS[1]])
    with pytest.raises(InternalError, match="two rows of one key"):
        store.commit(commit("v", 0, pa.concat_tables([rows, rows])))
    assert (shown(store, "v"), store.changes("v", 0)) == ([], [])


def test_a_view_without_keys_has_one_row(store: ViewStore) -> None:
    columns = (MergeColumn("n", BIGINT, '"__n"'), MergeColumn("fixed", STRING, "'x'"))
    plan = MergePlan((), (Partial("__n", BIGINT, "count"),), columns)
    store.create_view(ViewSpec("v", (("n", BIGINT), ("fixed", STRING)), "merge", (), plan))
    assert shown(store, "v") == []
    for number, count in enumerate((2, 0, 5)):
        store.commit(commit("v", number, arrow((("__n", BIGINT),), [(count,)])))
    assert shown(store, "v") == [(7, "x")]
    assert [(change.op, change.row) for change in store.changes("v", 0)] == [
        ("insert", {"n": 2, "fixed": "x"}),
        ("update", {"n": 7, "fixed": "x"}),
    ]
    with pytest.raises(InternalError, match="two rows of one key"):
        store.commit(commit("v", 3, arrow((("__n", BIGINT),), [(1,), (1,)])))


def test_a_plan_may_use_any_names(store: ViewStore) -> None:
    keys = (MergeKey("k0", STRING), MergeKey("old_", BIGINT), MergeKey('sh"own', BIGINT))
    partials = (Partial("o_shown", BIGINT, "sum"), Partial("op", BIGINT, "max"))
    columns = (
        MergeColumn("c0", STRING, "\"k0\" || '!'"),
        MergeColumn("seq", BIGINT, '"old_" + "o_shown" + "op" + "sh""own"'),
    )
    plan = MergePlan(keys, partials, columns, '"o_shown" > 0')
    store.create_view(ViewSpec("v", (("c0", STRING), ("seq", BIGINT)), "merge", ("k0", "old_", 'sh"own'), plan))
    given = (("k0", STRING), ("old_", BIGINT), ('sh"own', BIGINT), ("o_shown", BIGINT), ("op", BIGINT))
    store.commit(commit("v", 0, arrow(given, [("a", 1, 2, 3, 4)])))
    store.commit(commit("v", 1, arrow(given, [("a", 1, 2, 10, 1)])))
    assert shown(store, "v") == [("a!", 1 + 13 + 4 + 2)]


def test_a_sum_that_no_longer_fits_is_an_error_and_changes_nothing(store: ViewStore) -> None:
    plan = MergePlan((), (Partial("__n", BIGINT, "sum"),), (MergeColumn("n", BIGINT, '"__n"'),))
    store.create_view(ViewSpec("v", (("n", BIGINT),), "merge", (), plan))
    rows = arrow((("__n", BIGINT),), [(2**62,)])
    store.commit(commit("v", 0, rows))
    with pytest.raises(PenstockError) as refused:
        store.commit(commit("v", 1, rows))
    assert (refused.value.condition, "BIGINT" in refused.value.message) == ("DATA_ERROR", True)
    assert "wider type" in str(refused.value.hint)
    assert shown(store, "v") == [(2**62,)]


def test_what_a_batch_leaves_behind_survives_a_restart(tmp_path: Path) -> None:
    """H, J: late rows, dead letters, offsets, counters, checkpoints and history with their columns."""
    store = ViewStore.open(tmp_path / "state", clock=lambda: 1_000_000)
    store.create_view(merge_view("v"))
    first = (PartitionOffset("s", 0, 4, 11), PartitionOffset("s", 1, 9))
    store.commit(commit("v", 0, batch_table("merge", ROWS), late=late_rows(1), dead=dead_letters(), offsets=first))
    store.commit(
        commit("v", 1, None, offsets=(PartitionOffset("s", 1, 12),), started_at_us=5, size_bytes=77, input_rows=3)
    )
    store.save_tracker("v", '{"advanced": 1}', 42)
    store.save_tracker("early", '{"early": 1}', None)
    store.save_job("v", state="running", restarts=1)
    store.save_job("v", restarts=2)
    store.add_transition(JobTransition("v", 12, None, "created"))
    kept = everything(store)
    specs = store.specs()
    store.close()
    with ViewStore.open(tmp_path / "state") as again:
        assert everything(again) == kept
        assert again.specs() == specs
        assert again.tracker("v") == ('{"advanced": 1}', 42)
        assert again.tracker("early") == ('{"early": 1}', None)
        assert again.tracker("nobody") is None
        entry = again.ledger("v")
        assert entry is not None
        assert (entry.batch_id, entry.input_rows, entry.watermark_us, entry.offsets_hash) == (1, 3, 42, "hash 1")
        assert entry.offsets == (PartitionOffset("s", 0, 4, 11), PartitionOffset("s", 1, 12))
        assert entry.counters == {"rows": 3.0}
        assert again.job_facts("v") == {"state": "running", "restarts": 2}
        assert again.job_facts("nobody") == {}
        assert again.job_names() == ("v",)
        late = again.system_table("penstock.late_rows")
        assert late is not None
        assert late.to_pylist()[0]["lateness"] == timedelta(days=2, microseconds=7)
        answer = again.read('SELECT max(lateness) AS "most" FROM "penstock.late_rows"', {"penstock.late_rows": late})
        assert answer.table.to_pylist() == [{"most": timedelta(days=2, microseconds=7)}]
        history = again.system_table("penstock.JOB_HISTORY")
        assert history is not None
        assert history.to_pylist() == [
            {
                "job": "v",
                "at": datetime(1970, 1, 1, 0, 0, 0, 12, UTC),
                "from_state": None,
                "to_state": "created",
                "reason": None,
            }
        ]
        points = again.system_table("penstock.checkpoints")
        assert points is not None
        assert [row["batch_id"] for row in points.to_pylist()] == [0, 1]
        assert points.to_pylist()[1]["size_bytes"] == 77
        assert again.commit(commit("v", 1, None)).skipped
        assert not again.commit(commit("v", 2, None)).skipped
        assert again.tracker("v") == ('{"batch": 2}', 2_000_000)


@pytest.mark.parametrize(
    "name", ["job_history", "connector_offsets", "checkpoints", "late_rows", "dead_letters", "metrics"]
)
def test_system_tables_have_the_columns_of_the_catalog(store: ViewStore, name: str) -> None:
    table = store.system_table(f"penstock.{name}")
    defined = find_system(f"penstock.{name}")
    assert table is not None
    assert defined is not None
    assert table.column_names == [column.name for column in defined.columns]


def test_other_system_tables_are_not_kept_here(store: ViewStore) -> None:
    assert store.system_table("penstock.jobs") is None
    assert store.system_table("jobs") is None


def test_rollback_takes_late_rows_dead_letters_offsets_and_counters_back(store: ViewStore) -> None:
    """K7."""
    store.create_view(merge_view("v"))
    seen = []
    for number in range(3):
        offsets = (PartitionOffset("s", 0, number * 10),)
        rows = batch_table("merge", ROWS)
        store.commit(commit("v", number, rows, late=late_rows(number), dead=dead_letters(), offsets=offsets))
        seen.append(everything(store))
    store.commit(BatchCommit("other", 0, "x", late=late_rows(1)))
    store.rollback("v", 1)
    store.forget_job("other")
    assert everything(store) == seen[1]
    assert store.tracker("v") == ('{"batch": 1}', 1_000_000)


@pytest.mark.parametrize("number", [-2, 2, 3])
def test_rollback_to_an_unknown_batch_is_refused(store: ViewStore, number: int) -> None:
    store.create_view(merge_view("v"))
    for done in range(2):
        store.commit(commit("v", done, batch_table("merge", ROWS)))
    with pytest.raises(PenstockError) as refused:
        store.rollback("v", number)
    assert refused.value.condition == "UNKNOWN_CHECKPOINT"
    assert shown(store, "v") == expected("merge", [ROWS, ROWS])


def test_a_commit_outside_a_batch_moves_only_the_tracker(store: ViewStore) -> None:
    store.commit(BatchCommit("j", 0, "h", 1, "{}"))
    for number in (None, -1):
        store.commit(BatchCommit("j", number, tracker="moved", watermark_us=9))
    entry = store.ledger("j")
    assert entry is not None
    assert (entry.batch_id, entry.tracker, entry.watermark_us) == (0, "moved", 9)
    with pytest.raises(InternalError):
        store.commit(BatchCommit("j", None, late=late_rows(1)))


def test_a_batch_with_rows_and_no_view_is_a_bug(store: ViewStore) -> None:
    with pytest.raises(InternalError):
        store.commit(BatchCommit("j", 0, "h", rows=late_rows(1)))


def test_a_batch_that_lacks_a_column_is_a_bug(store: ViewStore) -> None:
    store.create_view(merge_view("v"))
    with pytest.raises(InternalError, match="no column"):
        store.commit(commit("v", 0, pa.table({"k": ["a"]})))


def test_dead_letters_that_a_batch_has_read_are_none_until_it_is_taken_back(store: ViewStore) -> None:
    """K7, I11."""
    store.create_view(merge_view("v"))
    store.commit(commit("v", 0, batch_table("merge", ROWS), dead=dead_letters()))
    before = everything(store)[3]
    place = ("s", 1, 7)
    assert store.dead_places("v") == [place]
    assert store.dead_places("other") == []
    store.commit(commit("v", 1, batch_table("merge", ROWS), retried=(("s", 1, 8), ("t", 1, 7))))
    assert store.dead_places("v") == [place]
    store.commit(commit("v", 2, batch_table("merge", ROWS), retried=(place,)))
    assert (store.dead_places("v"), everything(store)[3]) == ([], [])
    store.rollback("v", 2)
    assert store.dead_places("v") == []
    store.rollback("v", 1)
    assert (store.dead_places("v"), everything(store)[3]) == ([place], before)
