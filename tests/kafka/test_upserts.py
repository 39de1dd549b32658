"""Tables of upserts in topics of a real broker: read by key, and written with tombstones, exactly once."""

from __future__ import annotations

import json
from typing import Any

import pytest

import penstock
from penstock.failpoints import enabled
from tests.kafka.conftest import Cluster

pytestmark = pytest.mark.kafka


def put(cluster: Cluster, topic: str, number: int, row: dict[str, Any] | None) -> None:
    """A record as other tools write it: the key beside the value, and no value for a row that is gone."""
    key = json.dumps({"id": number})
    cluster.send(topic, [None if row is None else json.dumps({"id": number, **row})], partition=number % 2, key=key)


def folded(cluster: Cluster, topic: str) -> dict[str, Any]:
    """The table that a topic of upserts means; a tombstone must have something to delete, and a row must be new."""
    found: dict[str, Any] = {}
    for record in cluster.records(topic):
        key = json.loads(record.key())["owner"]
        if record.value() is None:
            assert key in found, f"{key} is deleted and was never there"
            del found[key]
        else:
            row = json.loads(record.value())
            assert found.get(key) != row, f"{row} is there already"
            found[key] = row
    return found


def test_upserts_from_a_topic_to_another(cluster: Cluster, db: penstock.Database) -> None:
    """SC40, G16: a keyed aggregate over a compacted topic is a compacted topic again, each change in it once although a
    batch is broken off behind its transaction."""
    given, made = cluster.topic(2), cluster.topic(2)
    put(cluster, given, 1, {"owner": "ada", "balance": 10})
    put(cluster, given, 2, {"owner": "bob", "balance": 5})
    put(cluster, given, 3, {"owner": "ada", "balance": 7})
    put(cluster, given, 9, None)  # never there
    cluster.send(given, ["{broken"], key='{"id": 4}')
    cluster.send(given, ['{"owner": "nobody", "balance": 1}'])  # without a key
    options = "'key.format' = 'json', 'value.format' = 'json'"
    db.execute(f"""
        CREATE TABLE accounts (id BIGINT, owner STRING, balance BIGINT, PRIMARY KEY (id) NOT ENFORCED)
        WITH ('connector' = 'upsert-kafka', 'topic' = '{given}', {options});
        CREATE TABLE totals (owner STRING, n BIGINT, total BIGINT, PRIMARY KEY (owner) NOT ENFORCED)
        WITH ('connector' = 'upsert-kafka', 'topic' = '{made}', {options}, 'sink.delivery-guarantee' = 'exactly-once');
        INSERT INTO totals SELECT owner, COUNT(*), SUM(balance) FROM accounts GROUP BY owner;
        CREATE MATERIALIZED VIEW totals_again AS SELECT owner, total FROM totals;
    """)
    db.settle(120)
    assert folded(cluster, made) == {
        "ada": {"owner": "ada", "n": 2, "total": 17},
        "bob": {"owner": "bob", "n": 1, "total": 5},
    }
    dead = db.sql(
        "SELECT partition, reason FROM penstock.dead_letters WHERE job = 'insert_totals' ORDER BY offset"
    ).rows()
    assert sorted(reason for _, reason in dead) == ["malformed", "not_null"]
    with enabled("sink.after_write", "error@1"):
        put(cluster, given, 2, None)
        put(cluster, given, 3, {"owner": "eve", "balance": 1})
        db.settle(120)
    assert folded(cluster, made) == {
        "ada": {"owner": "ada", "n": 1, "total": 10},
        "eve": {"owner": "eve", "n": 1, "total": 1},
    }
    db.settle(120)
    assert sorted(db.sql("SELECT * FROM totals_again").rows()) == [("ada", 10), ("eve", 1)]
