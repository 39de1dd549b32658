"""Rows in the time of their records: windows over METADATA timestamps and ROWTIME, brokers that date, headers."""

from __future__ import annotations

import json
import time
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

import penstock
from tests.kafka.conftest import Cluster

pytestmark = pytest.mark.kafka


def test_windows_in_the_time_of_records(cluster: Cluster, db: penstock.Database) -> None:
    """B12: nothing in the value says when; the record does, to a stream of ours and to one of ksqlDB."""
    topic = cluster.topic(1, **{"message.timestamp.type": "CreateTime"})
    begin = datetime(2026, 1, 1, 10, tzinfo=UTC)
    for user, second in (("ann", 1), ("bob", 4), ("ann", 9), ("ann", 11), ("bob", 25)):
        at = begin + timedelta(seconds=second)
        cluster.send(
            topic,
            [json.dumps({"page": "/"})],
            key=user,
            headers={"trace": f"{user}{second}".encode(), "": b"\x00\xff"},
            timestamp_ms=int(at.timestamp() * 1000),
        )
    db.execute(f"""
        CREATE STREAM visits (
          page STRING, who STRING METADATA FROM 'key', at TIMESTAMP METADATA FROM 'timestamp',
          headers ARRAY<STRUCT<key STRING, value BINARY>> METADATA, by_name MAP<STRING, BINARY> METADATA FROM 'headers',
          WATERMARK FOR at
        ) WITH (connector = 'kafka', topic = '{topic}', start = 'earliest', format = 'json');
        CREATE MATERIALIZED VIEW told AS
          SELECT who, at, headers, CAST(by_name['trace'] AS STRING) AS trace, size(headers) AS n FROM visits;
        CREATE MATERIALIZED VIEW counted AS
          SELECT who, window_start, COUNT(*) AS n FROM TUMBLE(TABLE visits, DESCRIPTOR(at), INTERVAL '10' SECOND)
          GROUP BY who, window_start;
        CREATE STREAM pageviews (user_id VARCHAR KEY, page VARCHAR)
          WITH (KAFKA_TOPIC = '{topic}', VALUE_FORMAT = 'JSON', START = 'earliest');
        CREATE TABLE by_rowtime AS
          SELECT user_id, WINDOWSTART AS began, COUNT(*) AS n FROM pageviews
          WINDOW TUMBLING (SIZE 10 SECONDS) GROUP BY user_id EMIT FINAL;
        CREATE MATERIALIZED VIEW rowtimes AS SELECT user_id, ROWTIME AS at FROM pageviews;
    """)
    db.settle(120)
    seen = db.sql("SELECT who, at, headers, trace, n FROM told ORDER BY at").rows()
    assert seen[0] == (
        "ann",
        begin + timedelta(seconds=1),
        [{"key": "trace", "value": b"ann1"}, {"key": "", "value": b"\x00\xff"}],
        "ann1",
        2,
    )
    assert [(row[0], row[1], row[3]) for row in seen] == [
        (user, begin + timedelta(seconds=second), f"{user}{second}")
        for user, second in (("ann", 1), ("bob", 4), ("ann", 9), ("ann", 11), ("bob", 25))
    ]
    # The record of second 25 has closed what is before 20, and nothing else.
    second_window = begin + timedelta(seconds=10)
    closed = [("ann", begin, 2), ("ann", second_window, 1), ("bob", begin, 1)]
    assert sorted(db.sql("SELECT who, window_start, n FROM counted").rows()) == closed
    assert sorted(db.sql("SELECT user_id, began, n FROM by_rowtime").rows()) == closed
    assert db.sql("SELECT user_id, at FROM rowtimes ORDER BY at").rows() == [row[:2] for row in seen]


def test_a_broker_that_dates_records(cluster: Cluster, db: penstock.Database) -> None:
    """E25: with LogAppendTime the time is the broker's own, whatever the producer says; windows are in it too."""
    topic = cluster.topic(1, **{"message.timestamp.type": "LogAppendTime"})
    db.execute(f"""
        CREATE STREAM events (
          n INT, at TIMESTAMP METADATA FROM 'timestamp', ms BIGINT METADATA FROM 'timestamp',
          kind STRING METADATA FROM 'timestamp-type', place BIGINT METADATA FROM 'offset', WATERMARK FOR at
        ) WITH (connector = 'kafka', topic = '{topic}', start = 'earliest', format = 'json');
        CREATE MATERIALIZED VIEW told AS SELECT place, kind, at, ms FROM events;
        CREATE MATERIALIZED VIEW counted AS
          SELECT window_start, COUNT(*) AS n FROM TUMBLE(TABLE events, DESCRIPTOR(at), INTERVAL '1' SECOND)
          GROUP BY window_start;
    """)
    # The producer says 1970. Records come until they lie in three different seconds of the broker's clock.
    while True:
        cluster.send(topic, [json.dumps({"n": 1})], timestamp_ms=1_000)
        dated = [record.timestamp()[1] for record in cluster.records(topic)]
        if len({ms // 1000 for ms in dated}) >= 3:
            break
        time.sleep(0.1)
    db.settle(120)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    moments = [epoch + timedelta(milliseconds=ms) for ms in dated]
    assert min(dated) > 1_700_000_000_000
    assert db.sql("SELECT place, kind, at, ms FROM told ORDER BY place").rows() == [
        (place, "LogAppendTime", moment, ms) for place, (moment, ms) in enumerate(zip(moments, dated, strict=True))
    ]
    windows = Counter(moment.replace(microsecond=0) for moment in moments)
    open_one = max(windows)
    expected = sorted((start, n) for start, n in windows.items() if start != open_one)
    assert len(expected) >= 2
    assert db.sql("SELECT window_start, n FROM counted ORDER BY window_start").rows() == expected
