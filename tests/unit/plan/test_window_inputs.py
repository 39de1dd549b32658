"""Windows in GROUP BY that name no time, and windows over views of windows."""

from __future__ import annotations

import pytest

from penstock.plan.job_plan import plan_job
from penstock.plan.relation import Mode
from tests.unit.plan.analysis import last, planned

SCRIPT = """
CREATE STREAM s (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'topic');
CREATE TABLE up (id BIGINT, v INT, ts TIMESTAMP, PRIMARY KEY (id) NOT ENFORCED, WATERMARK FOR ts AS ts)
WITH (connector = 'topic', changes = 'upsert');
CREATE MATERIALIZED VIEW best AS SELECT k, MAX(v) AS v, MAX(ts) AS ts FROM s GROUP BY k;
CREATE MATERIALIZED VIEW w AS SELECT window_start, window_end, k, COUNT(*) AS n
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, k;
"""


@pytest.mark.parametrize(
    ("short", "long"),
    [
        (
            "SELECT v, COUNT(*) AS n FROM up WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY v",
            "SELECT v, COUNT(*) AS n FROM up GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE), v",
        ),
        (
            (
                "SELECT v, WINDOWSTART AS b, COUNT(*) AS n FROM up WINDOW HOPPING (SIZE 1 MINUTE, ADVANCE BY 30 SECONDS) "
                "GROUP BY v"
            ),
            (
                "SELECT v, HOP_START(ts, INTERVAL '30' SECOND, INTERVAL '1' MINUTE) AS b, COUNT(*) AS n FROM up "
                "GROUP BY HOP(ts, INTERVAL '30' SECOND, INTERVAL '1' MINUTE), v"
            ),
        ),
        (
            "SELECT v, COUNT(*) AS n FROM best WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY v",
            "SELECT v, COUNT(*) AS n FROM best GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE), v",
        ),
    ],
)
def test_a_window_without_a_time_stands_on_that_of_its_rows(short: str, long: str) -> None:
    """ksqlDB's windows over rows that change: the same as the time of the source, or of the view, written out."""
    one, other = (plan_job(planned(f"{SCRIPT} CREATE MATERIALIZED VIEW x AS {query};")) for query in (short, long))
    assert one.finish is not None
    assert (one.finish, one.core, one.columns) == (other.finish, other.core, other.columns)


def test_a_view_with_no_time_or_several_is_told() -> None:
    error = last(
        f"{SCRIPT} CREATE MATERIALIZED VIEW x AS SELECT k, COUNT(*) AS c FROM w WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY k;"
    ).error
    assert error is not None
    assert error.condition == "MISSING_EVENT_TIME"


@pytest.mark.parametrize("emit", ["", " EMIT CHANGES"])
def test_windows_stand_on_the_bounds_of_windows_below(emit: str) -> None:
    """Though the rows of the new windows have such columns too."""
    plan = planned(
        f"{SCRIPT} CREATE MATERIALIZED VIEW x AS SELECT k, TUMBLE_START(window_start, INTERVAL '5' MINUTE) AS began, "
        f"SUM(n) AS n FROM w WHERE w.window_start IS NOT NULL GROUP BY k, TUMBLE(window_start, INTERVAL '5' MINUTE){emit};"
    )
    assert plan.mode is not Mode.APPEND
    job = plan_job(plan)
    assert job.views == ("w",)
    assert [column.name for column in job.columns] == ["k", "began", "n"]
    assert "300000000" in job.how
