"""What is gone from a broker before a job has read it: SOURCE_DATA_LOST with its name, or counted where it is skipped."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

import penstock
from penstock.errors import PenstockError
from tests.databases import Opened
from tests.kafka.conftest import Cluster
from tests.kafka.held import held_batch

pytestmark = pytest.mark.kafka


def wait_until(holds: Callable[[], bool], otherwise: Callable[[], object], seconds: float = 180.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, otherwise()
        time.sleep(0.05)


def numbers(found: Iterable[int]) -> list[bytes | str | None]:
    return [json.dumps({"n": n}) for n in found]


def delete(cluster: Cluster, *topics: str) -> None:
    """Delete topics, and wait until the broker does not list them any more."""
    from confluent_kafka.admin import AdminClient

    admin = AdminClient(cluster.client())
    for future in admin.delete_topics(list(topics), operation_timeout=60).values():
        future.result(60)
    wait_until(lambda: not set(topics) & set(admin.list_topics(timeout=30).topics), lambda: topics)


def jobs(db: penstock.Database) -> dict[str, tuple[str, str]]:
    rows = db.sql("SELECT name, state, error FROM penstock.jobs").rows()
    return {str(name): (str(state), str(error)) for name, state, error in rows}


def test_a_topic_that_is_deleted_while_jobs_run_and_while_they_wait(cluster: Cluster, db: penstock.Database) -> None:
    """C2: a job that runs fails by itself, one that waits when it goes on; the other topic of a job is named not."""
    gone, kept = cluster.topic(), cluster.topic()
    for topic in (gone, kept):
        cluster.send(topic, numbers(range(10)))
    db.execute(f"""
        CREATE STREAM s (n INT) WITH (connector = 'kafka', topic = '{gone}', start = 'earliest', on_data_loss = 'fail');
        CREATE STREAM pair (n INT) WITH (connector = 'kafka', topic = '{kept};{gone}', start = 'earliest');
        CREATE STREAM other (n INT) WITH (connector = 'kafka', topic = '{kept}', start = 'earliest');
        CREATE MATERIALIZED VIEW running AS SELECT n FROM s;
        CREATE MATERIALIZED VIEW of_two AS SELECT n FROM pair;
        CREATE MATERIALIZED VIEW waiting AS SELECT n FROM s;
        CREATE MATERIALIZED VIEW untouched AS SELECT n FROM other;
    """)
    db.settle(120)
    db.execute("PAUSE JOB waiting")
    delete(cluster, gone)
    wait_until(
        lambda: {jobs(db)[name][0] for name in ("running", "of_two")} == {"failed"},
        lambda: db.sql("SELECT name, state, error, restarts FROM penstock.jobs").rows(),
    )
    for name in ("running", "of_two"):
        error = jobs(db)[name][1]
        assert "SOURCE_DATA_LOST" in error, error
        assert f"topic {gone} " in error, error
        assert kept not in error, error
    with pytest.raises(PenstockError, match=f"topic {gone} at .* is gone") as raised:
        db.execute("RESUME JOB waiting")
    assert raised.value.condition == "SOURCE_DATA_LOST"
    with pytest.raises(PenstockError, match=f"topic {gone} at .* is gone"):
        db.execute("RESUME JOB running")
    # What was read stays, and a job that has nothing to do with it goes on.
    assert [db.sql(f"SELECT COUNT(*) FROM {name}").rows() for name in ("running", "of_two", "waiting")] == [
        [(10,)], [(20,)], [(10,)]
    ]  # fmt: skip
    cluster.send(kept, numbers([10]))
    db.drain("untouched", 120)
    assert db.sql("SELECT COUNT(*) FROM untouched").rows() == [(11,)]


def test_records_that_expire_while_a_job_runs_behind(
    cluster: Cluster, db: penstock.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C2, RELIABILITY test 6: the job is in one batch while what would be in the next ones is removed."""
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    admin = AdminClient(cluster.client())
    topics = {"skip": cluster.topic(), "fail": cluster.topic()}  # the one that fails comes last
    for loss, topic in topics.items():
        cluster.send(topic, numbers(range(10)))
        db.execute(f"""
            CREATE STREAM s_{loss} (n INT) WITH (connector = 'kafka', topic = '{topic}', start = 'earliest',
              max_rows_per_batch = 5, on_data_loss = '{loss}', 'kafka.max.partition.fetch.bytes' = 1);
            CREATE MATERIALIZED VIEW v_{loss} AS SELECT n FROM s_{loss};
        """)
        db.settle(120)
        with held_batch(monkeypatch) as held:
            # A consumer gets these five at a time: else it would have them all already.
            for first in range(10, 60, 5):
                cluster.send(topic, numbers(range(first, first + 5)))
            assert held.wait(120)
            for future in admin.delete_records([TopicPartition(topic, 0, 40)]).values():
                future.result(60)
        if loss == "fail":
            wait_until(lambda: jobs(db)["v_fail"][0] == "failed", lambda: jobs(db))
            error = jobs(db)["v_fail"][1]
        else:
            db.settle(120)

    read = {loss: [n for (n,) in db.sql(f"SELECT n FROM v_{loss} ORDER BY n").rows()] for loss in topics}
    before = {loss: [n for n in found if n < 40] for loss, found in read.items()}
    for found in before.values():
        assert found == [*range(len(found))]
        assert 10 < len(found) < 40
    assert read["fail"] == before["fail"]
    assert "SOURCE_DATA_LOST" in error
    assert f"topic {topics['fail']}, partition 0, offsets {len(before['fail'])} to 39 are gone" in error
    assert read["skip"] == [*before["skip"], *range(40, 60)]
    lost = db.sql("SELECT value FROM penstock.metrics WHERE job = 'v_skip' AND name = 'lost_offsets'").rows()
    # What was removed in the middle of the batch that had it, or from behind a consumer that had it, may be counted too.
    assert 40 - len(before["skip"]) <= lost[0][0] <= 40 - 10


def test_topics_that_are_made_anew_while_jobs_wait_are_read_from_their_start(
    cluster: Cluster, opened: Opened, tmp_path: Path
) -> None:
    """C2: shorter and longer than before, with other partitions, and beside a topic that stays what it is."""
    db = opened()
    short, long, kept = cluster.topic(2), cluster.topic(), cluster.topic()
    for topic in (short, long, kept):
        cluster.send(topic, numbers(range(10)))
    skip = "connector = 'kafka', start = 'earliest', on_data_loss = 'skip'"
    db.execute(f"""
        CREATE STREAM of_short (n INT) WITH ({skip}, topic = '{short}');
        CREATE STREAM of_long (n INT) WITH ({skip}, topic = '{long};{kept}');
        CREATE SINK out (n INT) WITH (connector = 'file', path = '{tmp_path}/out', format = 'json');
        CREATE MATERIALIZED VIEW short AS SELECT n FROM of_short;
        CREATE MATERIALIZED VIEW long AS SELECT n, COUNT(*) AS times FROM of_long GROUP BY n;
        INSERT INTO out SELECT n FROM of_short;
    """)
    db.settle(120)
    jobs_of_them = ("short", "long", "insert_out")
    db.execute("; ".join(f"PAUSE JOB {name}" for name in jobs_of_them))
    delete(cluster, short, long)
    cluster.create(short)
    cluster.send(short, numbers(range(100, 104)))
    cluster.create(long, 2)
    cluster.send(long, numbers(range(100, 125)), partition=1)
    cluster.send(kept, numbers([10]))
    db.execute("; ".join(f"RESUME JOB {name}" for name in jobs_of_them))
    db.settle(120)
    of_short, of_long = [*range(10), *range(100, 104)], [(n, 2) for n in range(10)] + [(10, 1)]
    of_long += [(n, 1) for n in range(100, 125)]

    def seen() -> tuple[list[object], list[object]]:
        rows = db.sql("SELECT n FROM short ORDER BY n").rows()
        return [n for (n,) in rows], list(db.sql("SELECT n, times FROM long ORDER BY n").rows())

    assert seen() == (of_short, of_long)
    # They go on from there, also in another process of the engine, and nothing of it is read again.
    cluster.send(short, numbers([104]))
    db.settle(120)
    db.close()
    cluster.send(long, numbers([125]))
    db = opened()
    db.settle(120)
    assert seen() == ([*of_short, 104], [*of_long, (125, 1)])
    assert db.sql("SELECT name FROM penstock.jobs WHERE state <> 'running'").rows() == []
    written = [
        json.loads(line)["n"]
        for file in (tmp_path / "out").glob("*.json")
        for line in file.read_text("utf-8").splitlines()
    ]
    assert sorted(written) == [*of_short, 104]


def test_a_topic_that_is_made_anew_behind_the_back_of_a_batch_is_read_from_its_start(
    cluster: Cluster, db: penstock.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C2: to Spark it is the topic that it knows, and longer than it was."""
    topic = cluster.topic()
    cluster.send(topic, numbers(range(10)))
    db.execute(f"""
        CREATE STREAM s (n INT) WITH (connector = 'kafka', topic = '{topic}', start = 'earliest', on_data_loss = 'skip');
        CREATE MATERIALIZED VIEW v AS SELECT n FROM s;
    """)
    db.settle(120)
    with held_batch(monkeypatch) as held:
        cluster.send(topic, numbers([10]))
        assert held.wait(120)
        delete(cluster, topic)
        cluster.create(topic)
        cluster.send(topic, numbers(range(100, 130)))
    wait_until(lambda: db.sql("SELECT MAX(n) FROM v").rows() == [(129,)], lambda: jobs(db))
    read = [n for (n,) in db.sql("SELECT n FROM v ORDER BY n").rows()]
    assert read == [*range(11), *range(100, 130)]
