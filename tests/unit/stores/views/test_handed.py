"""Views that nobody sees, over streams and other views: what batches hand on to a sink is every change, each once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from penstock.stores.views import BatchChanges
from penstock.stores.views.view_table import KEPT_BATCHES, TIDY_EVERY
from tests.unit.stores.views.chaining import Chained
from tests.unit.stores.views.finishing import Row, add_rows, row_text

SUMS = "SELECT k, COUNT(*) AS n FROM l GROUP BY k"
JOINED = "SELECT r.id, r.k, a.n FROM r LEFT JOIN a ON r.k = a.k"
Changes = list[tuple[str, tuple[object, ...]]]


def told(changes: BatchChanges) -> Changes:
    """The changes as rows that come and go."""
    found: Changes = []
    rows = zip(changes.operations, changes.before.to_pylist(), changes.after.to_pylist(), strict=True)
    for operation, before, after in rows:
        if operation != "insert":
            found.append(("-", tuple(before.values())))
        if operation != "delete":
            found.append(("+", tuple(after.values())))
    return found


def stage(found: Chained, number: int, rows: list[Row]) -> Changes:
    core = found.cores["h"].rows({"r": rows})
    return told(found.store.stage("job", "h", number, core))


def test_a_batch_hands_on_what_views_have_changed_since_the_one_before(tmp_path: Path) -> None:
    found = Chained({"a": SUMS, "h": JOINED}, tmp_path / "views.duckdb")
    found.make()
    found.add("a", 0, {"l": [(1, 1, 1, "x")]})
    assert stage(found, 0, [(1, 10, 0, "x"), (2, 11, 0, "x")]) in (
        [("+", (10, 1, 1)), ("+", (11, 2, None))],
        [("+", (11, 2, None)), ("+", (10, 1, 1))],
    )
    assert found.store.handed("h") == found.store.last_seq("h") == 2
    found.add("a", 1, {"l": [(1, 2, 1, "x"), (2, 3, 1, "x")]})
    assert found.store.last_seq("h") > found.store.handed("h")
    second = stage(found, 1, [(1, 12, 0, "x")])
    assert Counter(second) == Counter(
        [("-", (10, 1, 1)), ("+", (10, 1, 2)), ("-", (11, 2, None)), ("+", (11, 2, 1)), ("+", (12, 1, 2))]
    )
    # It broke off behind the sink; before it is run again, the view changes once more.
    found.add("a", 2, {"l": [(2, 4, 1, "x")]})
    assert stage(found, 1, [(1, 12, 0, "x")]) == second
    found.reopen()
    assert stage(found, 1, [(1, 12, 0, "x")]) == second
    assert Counter(stage(found, 2, [])) == Counter([("-", (11, 2, 1)), ("+", (11, 2, 2))])
    assert stage(found, 3, []) == []
    found.store.close()


KEYED = "SELECT a.n, COUNT(*) AS m FROM r JOIN a ON r.k = a.k GROUP BY a.n"
OVERALL = "SELECT COUNT(*) AS m, SUM(a.n) AS n FROM r JOIN a ON r.k = a.k"


@pytest.mark.parametrize("query", [JOINED, KEYED, OVERALL])
def test_what_several_commits_have_changed_is_told_as_one_change(query: str) -> None:
    """So upserts can be written with the deletions first, and nothing is taken back that a sink does not know."""
    found = Chained({"a": SUMS, "h": query})
    found.make()
    shown: Counter[tuple[object, ...]] = Counter()
    for number in range(12):
        for turn in range(3):  # keys of the answer come, change and go again
            found.add("a", number * 3 + turn, {"l": [(turn % 2, 1, 1, "x"), (number % 3, 1, 1, "x")]})
        rows: list[Row] = [(number % 3, number, 0, "x"), (number % 3, number, 0, "x")] if number % 2 else []
        add_rows(found.all, "r", rows)
        changes = found.store.stage("job", "h", number, found.cores["h"].rows({"r": rows}))
        for sign, row in sorted(told(changes), key=lambda each: each[0], reverse=True):  # what is taken back first
            shown[row] += 1 if sign == "+" else -1
            assert shown[row] >= 0, f"{row} is taken back and is not there"
        if query is KEYED:
            both = zip(changes.operations, changes.before.to_pylist(), changes.after.to_pylist(), strict=True)
            keys = [(before if operation == "delete" else after)["n"] for operation, before, after in both]
            assert len({*keys}) == len(keys), "a key has one change"
        assert query is not OVERALL or len(changes.operations) <= 1
        expected = Counter({row_text(row): count for row, count in (+shown).items()})
        assert expected == found.view("h") == found.answer("h")
    assert shown


def test_a_job_that_begins_anew_hands_on_all_of_it(tmp_path: Path) -> None:
    found = Chained({"a": SUMS, "h": JOINED}, tmp_path / "views.duckdb")
    found.make()
    found.add("a", 0, {"l": [(1, 1, 1, "x")]})
    assert stage(found, 0, [(1, 10, 0, "x")]) == [("+", (10, 1, 1))]
    found.store.drop_view("h")
    found.store.forget_job("job")
    found.make("h")
    assert found.store.handed("h") == 0
    assert stage(found, 0, [(1, 10, 0, "x")]) == [("+", (10, 1, 1))]
    found.store.close()


@pytest.mark.parametrize("query", [JOINED, "SELECT r.id, r.k FROM r UNION ALL SELECT v, k FROM b"])
def test_the_log_is_tidied_behind_what_is_handed_on(query: str) -> None:
    found = Chained({"a": SUMS, "b": "SELECT k, v FROM l WHERE v >= 0", "h": query})
    found.make()
    fold: Counter[str] = Counter()
    for number in range(KEPT_BATCHES + 2 * TIDY_EVERY + 1):
        if number % 7 == 0:  # also in front of a batch that tidies up
            found.add("a", number // 7, {"l": [(1, number, number, "x")]})
            found.commit("b", number // 7, {"l": [(1, number, number, "x")]})
        rows: list[Row] = [(1, 1000 + number, 0, "x")] if number % 50 == 0 else []
        add_rows(found.all, "r", rows)
        for sign, row in stage(found, number, rows):
            fold[row_text(row)] += 1 if sign == "+" else -1
            assert fold[row_text(row)] >= 0, f"{row} is taken back and is not there"
    assert +fold == found.view("h") == found.answer("h")
    assert found.store.last_seq("h") == found.store.handed("h")
