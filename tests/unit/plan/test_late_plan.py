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
