"""Headers of records, from topic to topic: in their order, also where one name comes twice."""

from __future__ import annotations

import json

import pytest

import penstock
from tests.kafka.conftest import Cluster

pytestmark = pytest.mark.kafka

# A name that comes twice, one that has no value, one that has an empty one, and bytes that are no text.
HEADERS: list[tuple[str, bytes | None]] = [
    ("trace", b"a"),
    ("other", None),
    ("trace", b"b"),
    ("", b"\x00\xff"),
    ("trace", b"a"),
    ("empty", b""),
]


def test_names_that_come_twice_are_kept_in_order(cluster: Cluster, db: penstock.Database) -> None:
    """Both ways to write: by Spark's tasks, and by our own producer in transactions and with a time of the record."""
    source = cluster.topic()
    often, once, dated, by_name = (cluster.topic() for _ in range(4))
    cluster.send(source, [json.dumps({"n": 1})], headers=HEADERS)
    cluster.send(source, [json.dumps({"n": 2})])
    cluster.send(source, [json.dumps({"n": 3})], headers={"x": b"y"})
    db.execute(f"""
        CREATE STREAM s (
          n INT, at TIMESTAMP METADATA FROM 'timestamp', h ARRAY<STRUCT<key STRING, value BINARY>> METADATA FROM 'headers',
          m MAP<STRING, BINARY> METADATA FROM 'headers', trace STRING HEADER('trace')
        ) WITH (connector = 'kafka', topic = '{source}', start = 'earliest');
        CREATE SINK often (n INT, h ARRAY<STRUCT<key STRING, value BINARY>> METADATA FROM 'headers')
          WITH (connector = 'kafka', topic = '{often}');
        CREATE SINK once (n INT, h ARRAY<STRUCT<key STRING, value BINARY>> METADATA FROM 'headers')
          WITH (connector = 'kafka', topic = '{once}', delivery = 'exactly_once');
        CREATE SINK dated (
          n INT, at TIMESTAMP METADATA FROM 'timestamp', h ARRAY<STRUCT<key STRING, value BINARY>> METADATA FROM 'headers'
        ) WITH (connector = 'kafka', topic = '{dated}');
        CREATE SINK by_name (n INT, m MAP<STRING, BINARY> METADATA FROM 'headers')
          WITH (connector = 'kafka', topic = '{by_name}');
        CREATE MATERIALIZED VIEW seen AS SELECT n, h, trace FROM s;
        INSERT INTO often SELECT n, h FROM s;
        INSERT INTO once SELECT n, h FROM s;
        INSERT INTO dated SELECT n, at, h FROM s;
        INSERT INTO by_name SELECT n, m FROM s;
    """)
    db.settle(120)
    rows = db.sql("SELECT n, h, trace FROM seen ORDER BY n").rows()
    assert [(n, [(one["key"], one["value"]) for one in h or ()], trace) for n, h, trace in rows] == [
        (1, HEADERS, "a"), (2, [], None), (3, [("x", b"y")], None)
    ]  # fmt: skip
    expected: dict[int, list[tuple[str, bytes | None]]] = {1: HEADERS, 2: [], 3: [("x", b"y")]}
    for topic in (often, once, dated):
        written = {json.loads(record.value())["n"]: record.headers() or [] for record in cluster.records(topic)}
        assert written == expected, topic
    # A map has each name once, with its last value.
    named = {json.loads(record.value())["n"]: sorted(record.headers() or []) for record in cluster.records(by_name)}
    assert named == {n: sorted(dict(each).items()) for n, each in expected.items()}
