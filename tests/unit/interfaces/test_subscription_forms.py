"""The changes of a view as a subscription tells them: every form folds to the view, without violation (A6, G16)."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import InvalidArgument
from penstock.interfaces.changes import Change, checked_form
from penstock.interfaces.cli.change_tables import change_table
from penstock.interfaces.subscription import told
from tests.unit.stores.views.chaining import Chained
from tests.unit.stores.views.finishing import VIEW, Finished, random_batch

TOTALS = "SELECT k, COUNT(DISTINCT v) AS n, MIN(s) AS s FROM l GROUP BY k HAVING COUNT(*) < 6"
JOINED = "SELECT l.id, l.v, r.w FROM l LEFT JOIN r ON l.k = r.k"


def kept(found: Any) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in found.store.read(f"SELECT * FROM {VIEW}").table.to_pylist())


@pytest.mark.parametrize(("query", "key"), [(TOTALS, ("k",)), (JOINED, ())])
def test_every_form_folds_to_the_view(query: str, key: tuple[str, ...], tmp_path: Path) -> None:
    rnd = random.Random(f"told {query}")  # noqa: S311
    found = Finished(query, tmp_path)
    bag: Counter[tuple[Any, ...]] = Counter()
    envelopes: Counter[tuple[Any, ...]] = Counter()
    latest: dict[Any, tuple[Any, ...]] = {}
    since = deleted = 0
    for number in range(8):
        found.commit(number, random_batch(rnd, 10 * number))
        logged = found.store.logged(VIEW, since)
        assert [change.seq for change in told(logged, None)] == logged.seqs
        assert set(logged.batches) <= {number}
        for change in told(logged, "retract"):
            row = change.before if change.op == "delete" else change.row
            assert row is not None
            bag[tuple(row.values())] += -1 if change.op == "delete" else 1
            assert bag[tuple(row.values())] >= 0, "a row is taken back that is not there"
        for change in told(logged, "debezium"):
            assert change.row is not None
            assert change.row["op"] == {"insert": "c", "update": "u", "delete": "d"}[change.op]
            envelopes.update([tuple(change.row["after"].values())] if change.row["after"] else [])
            envelopes.subtract([tuple(change.row["before"].values())] if change.row["before"] else [])
        for change in told(logged, "upsert", key) if key else ():
            if change.op == "delete":
                assert change.row is None
                assert list(change.before or {}) == ["k"], "a tombstone is the key alone"
                del latest[change.before["k"]]  # type: ignore[index]
                deleted += 1
            else:
                assert (change.op, change.before) == ("upsert", None)
                assert latest.get(change.row["k"]) != tuple(change.row.values()), "what is there is told again"  # type: ignore[index, union-attr]
                latest[change.row["k"]] = tuple(change.row.values())  # type: ignore[index, union-attr]
        since = logged.seqs[-1] if logged.seqs else since
        assert +bag == kept(found) == +envelopes
        assert not key or Counter(latest.values()) == kept(found)
    assert not key or deleted, "no key has gone: the rows are not such that this proves anything"
    assert found.store.logged(VIEW, since).seqs == []
    found.store.close()


def test_rows_that_are_only_added() -> None:
    """Also of a view that has no log beside its rows."""
    found = Chained({"a": "SELECT k, id FROM l WHERE v > 1"})
    found.make("a")
    found.add("a", 0, {"l": [(1, 1, 5, "a"), (1, 2, 0, "a"), (2, 3, 7, "b")]})
    found.add("a", 1, {"l": [(2, 4, 9, "a")]})
    logged = found.store.logged("a", 1)
    for form in ("append", "retract", None):
        assert [(each.seq, each.op, each.before, each.row, each.batch_id) for each in told(logged, form)] == [
            (2, "insert", None, {"k": 2, "id": 3}, 0), (3, "insert", None, {"k": 2, "id": 4}, 1),
        ]  # fmt: skip
    assert [each.row for each in told(logged, "debezium")] == [
        {"before": None, "after": {"k": 2, "id": 3}, "op": "c"}, {"before": None, "after": {"k": 2, "id": 4}, "op": "c"},
    ]  # fmt: skip
    found.store.close()


def test_an_update_that_is_two_rows_is_told_in_one_piece() -> None:
    found = Finished(TOTALS, None)
    found.commit(0, {"l": [(1, 1, 5, "b"), (2, 2, 5, "b")]})
    found.commit(1, {"l": [(1, 3, 6, "a"), (2, 4, 7, "a"), (3, 5, 1, "c")]})
    told_ = [(each.seq, each.op) for each in told(found.store.logged(VIEW, 2), "retract")]
    pairs = [seq for seq, op in told_ if op == "delete"]
    assert len(pairs) == 2
    assert all(told_[told_.index((seq, "delete")) + 1] == (seq, "insert") for seq in pairs)
    found.store.close()


@pytest.mark.parametrize("form", ["changelog", 5, "", b"upsert"])
def test_a_form_that_there_is_not(form: object) -> None:
    with pytest.raises(InvalidArgument, match="changes cannot be told as") as refused:
        checked_form(form)
    assert "upsert" in str(refused.value.hint)
    assert checked_form("upsert") == "upsert"
    assert checked_form(None) is None


def test_the_command_line_prints_rows_of_the_view() -> None:
    changes = [Change(4, "upsert", None, {"k": 1, "n": 2}, 3), Change(5, "delete", {"k": 2}, None, 3)]
    assert change_table(changes, "upsert", ("k", "n")).to_pylist() == [
        {"seq": 4, "_op": "upsert", "k": 1, "n": 2}, {"seq": 5, "_op": "delete", "k": 2, "n": None},
    ]  # fmt: skip
    assert change_table([Change(1, "insert", None, {"k": 1}, 0)], "append", ("k",)).to_pylist() == [{"seq": 1, "k": 1}]
    envelope = {"before": None, "after": {"k": "ä"}, "op": "c"}
    assert change_table([Change(1, "insert", None, envelope, 0)], "debezium", ("k",)).to_pylist() == [
        {"seq": 1, "value": '{"before":null,"after":{"k":"ä"},"op":"c"}'}
    ]
    assert change_table([], "upsert", ("k",)).column_names == ["seq", "_op", "k"]
