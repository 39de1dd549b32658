"""The clock beside materialized views: each of their rows has the time at which it came there (G3)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from penstock.stores.views.model import BatchCommit
from tests.unit.stores.views.chaining import Batch, Chained

SECOND: Final = 1_000_000
VIEWS: Final = {
    "m": "SELECT k, COUNT(*) AS n FROM l GROUP BY k",
    "rows": "SELECT id, k FROM l",
    "came": "SELECT k, n, NOW() AS t FROM m",
    "newest": "SELECT k % 2 AS p, COUNT(*) AS c, CURRENT_TIMESTAMP AS t, CURRENT_DATE AS d FROM m GROUP BY k % 2",
    "twice": "SELECT k, NOW() AS t FROM rows",
    "pairs": "SELECT r.id, m.n, NOW() AS t FROM r LEFT JOIN m ON r.k = m.k",
}


class Timed(Chained):
    """Views whose batches have times."""

    def commit_at(self, name: str, number: int, second: int, batch: Batch) -> None:
        rows = self.cores[name].rows(batch)
        self.store.commit(BatchCommit(name, number, f"hash {number}", view=name, rows=rows, clock_us=second * SECOND))

    def shown(self, name: str) -> list[tuple[Any, ...]]:
        """The rows of a view, with times as seconds since the beginning."""
        found = self.store.read(f"SELECT * FROM {name}").table.to_pylist()
        begin = datetime(2100, 1, 1, tzinfo=UTC)
        return sorted(
            tuple(
                round((value - begin).total_seconds()) if isinstance(value, datetime) else value
                for value in row.values()
            )
            for row in found
        )


BEGIN: Final = round(datetime(2100, 1, 1, tzinfo=UTC).timestamp())


def test_a_row_has_the_time_at_which_it_came_into_the_view(tmp_path: Path) -> None:
    """One that stays as it is keeps its time, also over a restart and where all is answered anew; one that is another
    row now has come now. What is made of several has the time of the newest."""
    found = Timed({name: query for name, query in VIEWS.items() if name != "pairs"}, tmp_path)
    found.make()
    found.commit_at("m", 0, BEGIN + 1, {"l": [(1, 1, 0, "a"), (2, 2, 0, "a"), (3, 3, 0, "a")]})
    found.commit_at("rows", 0, BEGIN + 2, {"l": [(1, 1, 0, "a"), (1, 2, 0, "a")]})
    assert found.shown("came") == [(1, 1, 1), (2, 1, 1), (3, 1, 1)]
    assert found.shown("twice") == [(1, 2), (1, 2)]
    found.commit_at("m", 1, BEGIN + 5, {"l": [(1, 4, 0, "a"), (4, 5, 0, "a")]})
    found.commit_at("rows", 1, BEGIN + 6, {"l": [(1, 3, 0, "a")]})
    assert found.shown("came") == [(1, 2, 5), (2, 1, 1), (3, 1, 1), (4, 1, 5)]
    assert [(p, c, t) for p, c, t, _ in found.shown("newest")] == [(0, 2, 5), (1, 2, 5)]
    assert {str(day) for *_, day in found.shown("newest")} == {"2100-01-01"}
    assert found.shown("twice") == [(1, 2), (1, 2), (1, 6)]
    found.reopen()
    found.commit_at("m", 2, BEGIN + 9, {"l": [(3, 6, 0, "a")]})
    assert found.shown("came") == [(1, 2, 5), (2, 1, 1), (3, 2, 9), (4, 1, 5)]
    found.store.hold("came")
    found.store.follow("came")  # filled anew
    assert found.shown("came") == [(1, 2, 5), (2, 1, 1), (3, 2, 9), (4, 1, 5)]
    found.store.rollback("rows", 0)
    assert found.shown("twice") == [(1, 2), (1, 2)]
    found.store.drop_view("came")
    found.store.close()


def test_beside_a_stream_the_later_of_both_counts() -> None:
    """The rows of the stream came today, those of the view will have come in 2100."""
    found = Timed({name: VIEWS[name] for name in ("m", "pairs")})
    found.make()

    def pairs() -> list[tuple[Any, ...]]:
        return [(identity, n, t if t > 0 else "today") for identity, n, t in found.shown("pairs")]

    found.commit_at("m", 0, BEGIN + 1, {"l": [(1, 1, 0, "a")]})
    found.commit_at("pairs", 0, BEGIN + 3, {"r": [(1, 10, 0, "a"), (2, 11, 0, "a")]})
    assert pairs() == [(10, 1, 1), (11, None, "today")]
    found.commit_at("m", 1, BEGIN + 5, {"l": [(2, 2, 0, "a")]})
    assert pairs() == [(10, 1, 1), (11, 1, 5)]
    found.commit_at("pairs", 1, BEGIN + 7, {"r": [(2, 12, 0, "a")]})
    assert pairs() == [(10, 1, 1), (11, 1, 5), (12, 1, 5)]
    found.store.rollback("pairs", 0)
    assert pairs() == [(10, 1, 1), (11, 1, 5)]
    found.store.close()
