"""EMIT FINAL where nothing is ever final is refused with its place, whatever makes the answer change."""

from __future__ import annotations

import pytest

from penstock.plan.relation import Mode
from tests.unit.plan.analysis import last, planned

WINDOWS = "SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol, TUMBLE(ts, INTERVAL '1' MINUTE)"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT DISTINCT symbol FROM trades",
        "SELECT symbol FROM trades UNION SELECT symbol FROM quotes",
        "SELECT symbol FROM trades EXCEPT SELECT symbol FROM quotes",
        "SELECT DISTINCT ON (symbol) symbol, price FROM trades ORDER BY symbol, price",
        "SELECT symbol, ROW_NUMBER() OVER (PARTITION BY symbol ORDER BY price) AS place FROM trades",
        "SELECT t.symbol, q.bid FROM trades AS t LEFT JOIN quotes AS q ON t.symbol = q.symbol",
        "SELECT symbol FROM trades ORDER BY price LIMIT 3",
        "SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol",
    ],
)
def test_an_answer_that_changes_for_ever_has_no_final_rows(query: str) -> None:
    for statement in (f"CREATE MATERIALIZED VIEW mv AS {query}", query):
        error = last(f"{statement} EMIT FINAL").error
        assert error is not None
        assert error.condition == "UNSUPPORTED_CLAUSE"
        assert error.message.startswith("EMIT FINAL needs a window")
        assert "EMIT CHANGES" in (error.hint or "")
        assert error.span is not None
        assert error.span.length == len("EMIT FINAL")
        assert last(f"{statement} EMIT CHANGES").error is None


@pytest.mark.parametrize(
    ("query", "mode"),
    [
        ("SELECT symbol, price FROM trades", Mode.APPEND),
        ("SELECT DISTINCT symbol, ts FROM trades", Mode.APPEND),
        (WINDOWS, Mode.APPEND),
        (f"SELECT DISTINCT symbol FROM ({WINDOWS})", Mode.UPSERT),
        (f"SELECT symbol, n FROM ({WINDOWS}) ORDER BY n DESC LIMIT 3", Mode.RETRACT),
        ("SELECT DISTINCT id FROM names", Mode.UPSERT),
    ],
)
def test_rows_of_windows_and_of_what_ends_are_final(query: str, mode: Mode) -> None:
    """Over windows that close, EMIT FINAL says which rows count; a bounded table has a last row."""
    assert planned(f"CREATE MATERIALIZED VIEW mv AS {query} EMIT FINAL").mode is mode


CLOSING = "(SELECT window_start AS s, bid, COUNT(*) AS n FROM TUMBLE(TABLE quotes, DESCRIPTOR(at), INTERVAL '1' MINUTE) GROUP BY window_start, window_end, bid)"
OPEN = "(SELECT window_start AS s, COUNT(*) AS m FROM TUMBLE(TABLE trades, DESCRIPTOR(ts), INTERVAL '1' MINUTE) WHERE price < {} GROUP BY window_start, window_end)"


@pytest.mark.parametrize(
    ("query", "others"),
    [
        (f"SELECT q.s, w.m FROM {CLOSING} AS q CROSS JOIN LATERAL {OPEN.format('q.bid')} AS w", True),
        (f"SELECT q.symbol, w.m FROM quotes AS q CROSS APPLY {OPEN.format('q.bid')} AS w", False),
    ],
)
def test_windows_that_go_by_the_rows_in_front_show_each_change_and_say_so(query: str, others: bool) -> None:
    """Nothing closes a window whose rows go by what stands in front of LATERAL: it is told, and never final."""
    notices = planned(f"CREATE MATERIALIZED VIEW mv AS {query}").warnings
    told = [text for text in notices if text.startswith("windows over trades show each change, also of late rows")]
    assert len(told) == 1
    assert ("; other windows are emitted once" in told[0]) is others
    assert not any(text.startswith("windows are emitted once") for text in notices)
    changes = planned(f"CREATE MATERIALIZED VIEW mv AS {query} EMIT CHANGES").warnings
    assert not any("windows" in text for text in changes)
    error = last(f"CREATE MATERIALIZED VIEW mv AS {query} EMIT FINAL").error
    assert error is not None
    assert error.condition == "UPDATING_SUBQUERY"
    assert "a subquery that sees nothing of what stands in front" in (error.hint or "")
