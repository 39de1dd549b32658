"""How far a job is behind, partition by partition, while it waits and while it is held up."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

import penstock
from tests.kafka.conftest import Cluster
from tests.kafka.held import held_batch

pytestmark = pytest.mark.kafka


def numbers(found: Iterable[int]) -> list[bytes | str | None]:
    return [json.dumps({"n": n}) for n in found]


def test_lag_of_a_job_that_waits_and_of_one_that_is_behind(
    cluster: Cluster, db: penstock.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I20, M13: what is there and not committed, by partition in connector_offsets and as a sum in SHOW JOBS."""
    topic = cluster.topic(3)
    for partition in range(3):
        cluster.send(topic, numbers(range(4)), partition=partition)

    def by_partition() -> list[tuple[Any, ...]]:
        return db.sql(
            "SELECT partition, offset, end_offset, lag FROM penstock.connector_offsets WHERE job = 'v' ORDER BY partition"
        ).rows()

    def shown() -> int | None:
        jobs = db.execute("SHOW JOBS")
        assert jobs is not None
        lags: dict[str, int | None] = {row[0]: row[jobs.columns.index("lag")] for row in jobs.rows()}
        return lags["v"]

    db.execute(f"""
        CREATE STREAM s (n INT) WITH (connector = 'kafka', topic = '{topic}', start = 'earliest');
        CREATE MATERIALIZED VIEW v AS SELECT n FROM s;
    """)
    db.settle(120)
    assert by_partition() == [(0, 3, 3, 0), (1, 3, 3, 0), (2, 3, 3, 0)]
    assert shown() == 0

    db.execute("PAUSE JOB v")
    for partition, count in ((0, 5), (2, 7)):
        cluster.send(topic, numbers(range(count)), partition=partition)
    waiting = [(0, 3, 8, 5), (1, 3, 3, 0), (2, 3, 10, 7)]
    assert by_partition() == waiting
    assert shown() == 12

    db.execute("RESUME JOB v")
    db.settle(120)
    assert by_partition() == [(0, 8, 8, 0), (1, 3, 3, 0), (2, 10, 10, 0)]
    assert shown() == 0

    # Under way is not committed: the rows of a batch that is held up count as long as it is, with those that come then.
    with held_batch(monkeypatch) as held:
        cluster.send(topic, numbers(range(3)), partition=0)
        assert held.wait(120)
        cluster.send(topic, numbers(range(2)), partition=1)
        behind, sum_of_lags = by_partition(), shown()
    assert behind == [(0, 8, 11, 3), (1, 3, 5, 2), (2, 10, 10, 0)]
    assert sum_of_lags == 5
    db.settle(120)
    assert by_partition() == [(0, 11, 11, 0), (1, 5, 5, 0), (2, 10, 10, 0)]
    assert shown() == 0
