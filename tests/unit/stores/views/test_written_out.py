"""Views of rows that stand in their queries: they are there from the start, and other views are built on them."""

from __future__ import annotations

from pathlib import Path

from tests.unit.stores.views.chaining import Chained

VIEWS = {
    "one": "SELECT 1 AS a, 'x' AS b, CAST(NULL AS INT) AS c, DATE '2026-01-01' AS t",
    "few": "SELECT a, b FROM (VALUES (1, 'one'), (2, 'two'), (3, NULL)) AS s(a, b) WHERE a > 1",
    "counted": "SELECT COUNT(*) AS n, SUM(a) AS t FROM (VALUES (1), (2)) AS s(a)",
    "both": "SELECT 1 AS a UNION ALL SELECT 1",
    "above": "SELECT n, a FROM counted JOIN few ON few.a = counted.n",
    "beside": "SELECT l.id, few.b FROM l LEFT JOIN few ON l.k = few.a",
}


def test_they_hold_their_rows_and_keep_them(tmp_path: Path) -> None:
    found = Chained(VIEWS, tmp_path / "views.duckdb")
    found.make()
    constant = [name for name in VIEWS if name != "beside"]
    for name in constant:
        assert found.view(name) == found.answer(name), name
        assert found.view(name)
    found.add("beside", 0, {"l": [(1, 10, 0, "x"), (2, 11, 0, "x")]})
    found.reopen()
    found.store.hold("few")
    found.store.follow("few")
    found.add("beside", 1, {"l": [(3, 12, 0, "x"), (2, 13, 0, "x")]})
    found.check("beside")
    for name in constant:
        found.check(name)
    found.store.close()
