"""A broker that is killed and comes back: the job waits for it, and goes on without losing or repeating a row."""

from __future__ import annotations

import json
import logging
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import penstock
from penstock.runtime.kafka_broker import KafkaBroker
from tests.kafka.conftest import Cluster

pytestmark = [pytest.mark.kafka, pytest.mark.chaos, pytest.mark.soak]


def wait_for_state(db: penstock.Database, states: set[str], seconds: float = 150.0) -> None:
    end = time.monotonic() + seconds
    while True:
        found = db.sql("SELECT state, name, error FROM penstock.jobs").rows()
        if {row[0] for row in found} <= states:
            return
        assert time.monotonic() < end, f"jobs are {found}"
        time.sleep(0.2)


@pytest.mark.timeout(400)
def test_a_job_waits_for_a_broker_that_was_killed(
    opened: Callable[..., penstock.Database], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broker = KafkaBroker(tmp_path / "broker")
    state = broker.start(0)
    assert state.pid is not None
    assert state.port is not None
    try:
        cluster = Cluster(str(state.address))
        topic, out = cluster.topic(), cluster.topic()
        cluster.send(topic, [json.dumps({"n": n}) for n in range(10)])
        db = opened(**{"kafka.bootstrap_servers": cluster.address})
        db.execute(f"""
            CREATE STREAM numbers (n INT) WITH (connector = 'kafka', topic = '{topic}', start = 'earliest');
            CREATE MATERIALIZED VIEW seen AS SELECT n FROM numbers;
            CREATE SINK exact (n INT) WITH (connector = 'kafka', topic = '{out}', delivery = 'exactly_once');
            INSERT INTO exact SELECT n FROM numbers;
        """)
        db.settle(120)
        with caplog.at_level(logging.WARNING, logger="penstock"):
            os.kill(state.pid, signal.SIGKILL)
            wait_for_state(db, {"restarting", "starting"})
            # Views answer all the while, and nobody has to guess the lag.
            assert db.sql("SELECT COUNT(*) FROM seen").rows() == [(10,)]
            jobs = db.execute("SHOW JOBS")
            assert jobs is not None
            assert {row[jobs.columns.index("lag")] for row in jobs.rows()} == {None}
            time.sleep(3)
            broker.start(state.port)
            cluster.send(topic, [json.dumps({"n": n}) for n in range(10, 20)])
            wait_for_state(db, {"running"})
        db.settle(120)
        assert sorted(row[0] for row in db.sql("SELECT n FROM seen").rows()) == list(range(20))
        assert sorted(json.loads(value)["n"] for value in cluster.values(out)) == list(range(20))
        # One warning for an outage of each job, not one for each try.
        told = [record.getMessage() for record in caplog.records if "SOURCE_UNAVAILABLE" in record.getMessage()]
        assert len(told) == len(set(told)) <= 2
        db.close()  # while there is a broker: Spark ends a query when its question to the broker has ended
    finally:
        broker.stop(delete=True)
