"""The text that finds late rows; tests/spark holds it against rows (F3)."""

from __future__ import annotations

import pytest

from penstock.errors import InternalError
from penstock.plan.job_plan import JobPlan, plan_job
from penstock.plan.late_plan import late_sql
from tests.unit.plan.analysis import planned


def job(sql: str) -> JobPlan:
    return plan_job(planned(f"{sql};"))


def text(sql: str) -> str:
    return " ".join(late_sql(job(sql), 123).split())


def test_the_source_is_carried_to_the_window() -> None:
    """Through a projection with its filter, under the aliases of the query, up to the aggregate and no further."""
    found = text(
        "SELECT s, COUNT(*) AS n FROM (SELECT symbol AS s, ts FROM trades WHERE price > 1) AS t "
        "GROUP BY s, TUMBLE(ts, INTERVAL '1' MINUTE) HAVING COUNT(*) > 9"
    )
    assert "`trades`.`__source` AS `__source` FROM `__scan_0` AS `trades` WHERE `trades`.`price` > 1" in found
    assert "window(`t`.`ts`, '1 minute') AS `__window`, `t`.`__source` AS `__source`, `t`.`ts` AS `__time`" in found
    assert "> 9" not in found
    assert "`end` <= timestamp_micros(123)" in found


def test_a_window_in_the_from_clause_carries_its_time() -> None:
    found = text(
        "SELECT window_start, COUNT(*) AS n FROM TUMBLE(TABLE trades, DESCRIPTOR(ts), INTERVAL '1' MINUTE) "
        "GROUP BY window_start, window_end"
    )
    assert "`trades`.`ts` AS `__time` FROM `__scan_0`" in found
    assert "`trades`.`__time` AS `__time`" in found


def test_every_windowed_branch_is_asked() -> None:
    """Each branch of a union has late rows of its own; one without a window has none."""
    found = text(
        "SELECT COUNT(*) AS n FROM trades GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE) UNION ALL "
        "SELECT COUNT(*) FROM quotes GROUP BY TUMBLE(at, INTERVAL '1' MINUTE) UNION ALL SELECT volume FROM trades"
    )
    assert found.count("UNION ALL") == 1
    assert "__scan_0" in found
    assert "__scan_1" in found
    assert "__scan_2" not in found


def test_only_the_lowest_window_drops_source_rows() -> None:
    found = text(
        "SELECT COUNT(*) AS n FROM (SELECT TUMBLE_ROWTIME(ts, INTERVAL '1' SECOND) AS rt, symbol FROM trades "
        "GROUP BY symbol, TUMBLE(ts, INTERVAL '1' SECOND)) AS t GROUP BY TUMBLE(rt, INTERVAL '1' MINUTE)"
    )
    assert "1 second" in found
    assert "1 minute" not in found


@pytest.mark.parametrize(
    "sql", ["SELECT symbol FROM trades", "SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol"]
)
def test_nothing_is_late_without_windows(sql: str) -> None:
    found = job(sql)
    assert found.late is None
    with pytest.raises(InternalError, match="without windows"):
        late_sql(found, 1)


def test_the_core_is_left_as_it_was() -> None:
    assert "__source" not in job("SELECT COUNT(*) AS n FROM trades GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)").core


INTERVAL = "t.symbol = q.symbol AND q.at BETWEEN t.ts AND t.ts + INTERVAL '1' MINUTE"


def test_each_side_of_a_join_is_asked() -> None:
    """A row is late for a join when its time is not after the watermark; what can match nothing is not missed."""
    found = text(
        f"SELECT t.symbol, q.bid FROM trades AS t JOIN quotes AS q ON {INTERVAL} AND q.bid > 1 WHERE t.price > 5"
    )
    left, right = found.split("UNION ALL")
    assert "`t`.`ts` AS `__time` FROM `__scan_0` AS `t` WHERE" in left
    assert "count_if(`__rows`.`__time` <= timestamp_micros(123))" in left
    assert "NOT ( `t`.`symbol` ) IS NULL" in left
    assert "`t`.`price` > 5" in left
    assert "`bid`" not in left
    assert "`q`.`at` AS `__time` FROM `__scan_1` AS `q` WHERE" in right
    assert "`q`.`bid` > 1" in right
    assert "`price`" not in right


def test_an_outer_join_misses_every_row_of_the_side_it_keeps() -> None:
    """Also one that can match nothing: it would have come out by itself."""
    found = text(f"SELECT t.symbol FROM trades AS t LEFT JOIN quotes AS q ON {INTERVAL} AND t.price > 5")
    left, right = found.split("UNION ALL")
    assert "WHERE" not in left
    assert "NOT ( `q`.`symbol` ) IS NULL" in right
    anti = text(f"SELECT t.symbol FROM trades AS t LEFT ANTI JOIN quotes AS q ON {INTERVAL}")
    assert "`at` IS NULL" not in anti


def test_a_chain_of_joins_asks_every_stream_once() -> None:
    """What comes out of a join is in time for the next; a window over it drops no source rows."""
    found = text(
        f"SELECT COUNT(*) AS n FROM trades AS t JOIN quotes AS q ON {INTERVAL} JOIN trades AS u ON u.symbol = t.symbol "
        "AND u.ts BETWEEN t.ts AND t.ts + INTERVAL '1' SECOND GROUP BY TUMBLE(t.ts, INTERVAL '1' HOUR)"
    )
    assert found.count("UNION ALL") == 2
    assert all(f"__scan_{number}" in found for number in range(3))
    assert "1 hour" not in found


def test_windows_of_a_join_are_counted() -> None:
    """Rows of windows can miss some of theirs; aggregated windows have dropped theirs below."""
    hop = "HOP(TABLE {}, DESCRIPTOR({}), INTERVAL '1' MINUTE, INTERVAL '2' MINUTE) AS {}"
    sides = hop.format("trades", "ts", "l"), hop.format("quotes", "at", "r")
    found = text(
        f"SELECT l.symbol FROM {sides[0]} JOIN {sides[1]} ON l.symbol = r.symbol AND l.window_end = r.window_end"
    )
    assert found.count("`__rows`.`__window`.`end` <= timestamp_micros(123)") == 4
    assert "`l`.`__time` AS `__time`" in found


def test_distinct_misses_what_is_not_after_the_watermark() -> None:
    found = text("SELECT DISTINCT symbol, ts FROM trades WHERE price > 1")
    assert "`trades`.`ts` AS `__time` FROM `__scan_0` AS `trades` WHERE `trades`.`price` > 1" in found
    assert "DISTINCT" not in found
    assert "`end` <=" in text(
        "SELECT DISTINCT symbol, window_end FROM TUMBLE(TABLE trades, DESCRIPTOR(ts), INTERVAL '1' HOUR)"
    )


def test_branches_that_have_waited_are_left_out() -> None:
    """What a window or join below lets through is in time; the other branch of the union is asked."""
    inner = "SELECT TUMBLE_ROWTIME(ts, INTERVAL '1' SECOND) AS t FROM trades GROUP BY TUMBLE(ts, INTERVAL '1' SECOND)"
    found = text(
        f"SELECT COUNT(*) AS n FROM ({inner} UNION ALL SELECT at FROM quotes) AS u GROUP BY TUMBLE(t, INTERVAL '1' HOUR)"
    )
    first, second = found.split("UNION ALL")
    assert "'1 hour'" in first
    assert "__scan_1" in first
    assert "__scan_0" not in first
    assert "'1 second'" in second


def test_steps_of_a_cumulating_window_are_windows() -> None:
    """No column of the text has a name that the hidden ones have."""
    found = text(
        "SELECT window_end, COUNT(*) AS n FROM CUMULATE(TABLE trades, DESCRIPTOR(ts), INTERVAL '5' SECOND, "
        "INTERVAL '20' SECOND) GROUP BY window_start, window_end"
    )
    assert found.count("AS `__time` FROM `__scan_0`") == 1
    assert "AS `__time`, `trades`.`__source`" not in found
