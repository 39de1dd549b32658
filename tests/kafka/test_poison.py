"""Broken records among good ones: all of them and only they are dead letters, with their place and their bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

import penstock
from tests.kafka.conftest import Cluster

pytestmark = pytest.mark.kafka

_PARTITIONS = 2

GOOD = {
    "json": [json.dumps({"n": n, "s": f"s{n}", "d": n / 4}).encode() for n in range(1_000)],
    "csv": [f'{n},"s{n}",{n / 4}'.encode() for n in range(1_000)],
}
# As many as make one record of a hundred, each broken in its own way.
POISON: dict[str, list[bytes | None]] = {
    "json": [
        b"{broken",
        b"",
        None,
        b"\xff\xfe\x00",
        b'{"n": 1, "s": "a", "d": 1.0',
        b"[1, 2]",
        b'{"n": 99999999999}',
        b'{"n": "many"}',
        b"\x00\x01\x02",
        b'{"n": 1} trailing',
    ],
    "csv": [
        b"x,a,1.0",
        b"",
        None,
        b"\xff\xfe,a,1.0",
        b"1",
        b"1,a,1.0,more",
        b"99999999999,a,1.0",
        b'1,"never closed,1.0',
        b"1,a,1.0\n2,b,2.0",
        b"1,a,not a number",
    ],
}


def mixed(good: Sequence[bytes], poison: Sequence[bytes | None]) -> list[list[tuple[bytes | None, bool]]]:
    """What is sent to each partition, and whether it is broken: every hundredth record, in one partition or the other."""
    sent: list[list[tuple[bytes | None, bool]]] = [[] for _ in range(_PARTITIONS)]
    each = len(good) // len(poison)
    for number, record in enumerate(good):
        sent[number % _PARTITIONS].append((record, False))
        if number % each == each // 2:
            place = number // each
            sent[place % _PARTITIONS].append((poison[place], True))
    return sent


def test_one_record_of_a_hundred_is_broken(cluster: Cluster, db: penstock.Database) -> None:
    """SC31: topic, partition, offset and bytes of each; with bad_data = 'null' it is a row without values."""
    sent = {name: mixed(GOOD[name], POISON[name]) for name in GOOD}
    topics = {name: cluster.topic(_PARTITIONS) for name in GOOD}
    for name, topic in topics.items():
        for partition, records in enumerate(sent[name]):
            cluster.send(topic, [record for record, _ in records], partition=partition)
        db.execute(f"""
            CREATE STREAM of_{name} (n INT, s STRING, d DOUBLE)
              WITH (connector = 'kafka', topic = '{topic}', start = 'earliest', format = '{name}');
            CREATE STREAM nulls_{name} (n INT, s STRING, d DOUBLE)
              WITH (connector = 'kafka', topic = '{topic}', start = 'earliest', format = '{name}', bad_data = 'null');
            CREATE MATERIALIZED VIEW {name}_rows AS SELECT n, s, d FROM of_{name};
            CREATE MATERIALIZED VIEW {name}_nulls AS SELECT n, s, d FROM nulls_{name};
        """)
    db.settle(180)
    for name, topic in topics.items():
        expected = [
            (topic, partition, offset, record, "malformed")
            for partition, records in enumerate(sent[name])
            for offset, (record, broken) in enumerate(records)
            if broken
        ]
        assert len(expected) == len(GOOD[name]) // 100
        found = db.sql(
            "SELECT topic, topic_partition, offset, raw, reason FROM penstock.dead_letters "
            f"WHERE job = '{name}_rows' ORDER BY topic_partition, offset"
        ).rows()
        assert found == expected, name
        rows = db.sql(f"SELECT n, s, d FROM {name}_rows ORDER BY n").rows()
        assert rows == [(n, f"s{n}", n / 4) for n in range(1_000)], name
        whole = f"SELECT COUNT(*), COUNT(DISTINCT n), COUNT(*) FILTER (WHERE n IS NULL OR s IS NULL OR d IS NULL) FROM {name}_nulls"
        assert db.sql(whole).rows() == [(1_010, 1_000, 10)], name
        assert db.sql(f"SELECT COUNT(*) FROM penstock.dead_letters WHERE job = '{name}_nulls'").rows() == [(0,)]
