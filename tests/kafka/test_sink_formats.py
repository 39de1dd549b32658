"""What sinks write in other formats than flat JSON, and how the batches of records are compressed."""

from __future__ import annotations

import json
import struct
from typing import Final

import pytest

import penstock
from penstock.runtime.kafka_broker import KafkaBroker
from tests.kafka.conftest import Cluster

pytestmark = pytest.mark.kafka

# The last bits of a batch's attributes, by the protocol of Kafka.
CODECS: Final = {0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}


def test_csv_raw_and_nested_json(cluster: Cluster, db: penstock.Database) -> None:
    """SC31: what is written is what stands in the topic, and what is read back is what was written."""
    topics = {name: cluster.topic() for name in ("nested", "json", "csv", "csv_exact", "raw", "bytes")}
    rows = [
        {
            "n": n,
            "text": text,
            "counts": {"a": n, "b": None},
            "place": {"city": text, "streets": [{"name": f"{n}th", "numbers": [n, n + 1]}]},
            "points": [{"x": n / 2}, {"x": None}],
        }
        for n, text in enumerate(("plain", 'with "quotes"', "comma, semicolon;", "line\nbreak", "ü €", "", None))
    ]
    cluster.send(topics["nested"], [json.dumps(row) for row in rows])
    columns = (
        "n INT, text STRING, counts MAP<STRING, INT>, "
        "place STRUCT<city STRING, streets ARRAY<STRUCT<name STRING, numbers ARRAY<INT>>>>, points ARRAY<STRUCT<x DOUBLE>>"
    )
    db.execute(f"""
        CREATE STREAM nested ({columns}) WITH (connector = 'kafka', topic = '{topics["nested"]}', start = 'earliest');
        CREATE SINK json_out ({columns}) WITH (connector = 'kafka', topic = '{topics["json"]}');
        CREATE SINK csv_out (n INT, text STRING, half DOUBLE)
          WITH (connector = 'kafka', topic = '{topics["csv"]}', format = 'csv', 'key.fields' = 'n');
        CREATE SINK csv_exact (n INT, text STRING, half DOUBLE)
          WITH (connector = 'kafka', topic = '{topics["csv_exact"]}', format = 'csv', delivery = 'exactly_once');
        CREATE SINK raw_out (text STRING) WITH (connector = 'kafka', topic = '{topics["raw"]}', format = 'raw');
        CREATE SINK bytes_out (b BINARY)
          WITH (connector = 'kafka', topic = '{topics["bytes"]}', format = 'raw', delivery = 'exactly_once');
        INSERT INTO json_out SELECT n, text, counts, place, points FROM nested;
        INSERT INTO csv_out SELECT n, text, n / 2.0 FROM nested WHERE n <> 3;
        INSERT INTO csv_exact SELECT n, text, n / 2.0 FROM nested WHERE n <> 3;
        INSERT INTO raw_out SELECT text FROM nested WHERE text IS NOT NULL;
        INSERT INTO bytes_out SELECT unhex('00ff' || lpad(hex(n), 2, '0')) FROM nested;
        CREATE STREAM json_back ({columns}) WITH (connector = 'kafka', topic = '{topics["json"]}', start = 'earliest');
        CREATE MATERIALIZED VIEW nested_again AS SELECT n, text, counts, place, points FROM json_back;
        CREATE MATERIALIZED VIEW parts AS
          SELECT n, counts['a'] AS a, place.streets[1].numbers[2] AS number, points[1].x AS x FROM json_back;
        CREATE STREAM csv_back (n INT, text STRING, half DOUBLE)
          WITH (connector = 'kafka', topic = '{topics["csv"]}', start = 'earliest', format = 'csv');
        CREATE MATERIALIZED VIEW csv_again AS SELECT n, text, half FROM csv_back;
    """)
    db.settle(180)

    def without_nulls(value: object) -> object:
        """Fields that are NULL may be left out of a JSON object."""
        if isinstance(value, dict):
            return {name: without_nulls(each) for name, each in value.items() if each is not None}
        return [without_nulls(each) for each in value] if isinstance(value, list) else value

    written = sorted((json.loads(value) for value in cluster.values(topics["json"])), key=lambda row: row["n"])
    assert without_nulls(written) == without_nulls(rows)
    again = db.sql("SELECT n, text, counts, place, points FROM nested_again ORDER BY n").rows()
    assert [(row[0], row[1], dict(row[2]), row[3], row[4]) for row in again] == [tuple(row.values()) for row in rows]
    assert db.sql("SELECT n, a, number, x FROM parts ORDER BY n").rows() == [(n, n, n + 1, n / 2) for n in range(7)]

    kept = [row for row in rows if row["n"] != 3]
    lines = {
        0: "0,plain,0.0",
        1: '1,"with ""quotes""",0.5',
        2: '2,"comma, semicolon;",1.0',
        4: "4,ü €,2.0",
        5: '5,"",2.5',
        6: "6,,3.0",
    }
    for topic in (topics["csv"], topics["csv_exact"]):
        assert sorted(cluster.values(topic)) == [lines[n] for n in sorted(lines)], topic
    assert {record.key() for record in cluster.records(topics["csv"])} == {str(row["n"]).encode() for row in kept}
    assert db.sql("SELECT n, text, half FROM csv_again ORDER BY n").rows() == [
        (row["n"], row["text"], int(str(row["n"])) / 2) for row in kept
    ]
    assert sorted(cluster.values(topics["raw"])) == sorted(str(row["text"]) for row in rows if row["text"] is not None)
    assert sorted(record.value() for record in cluster.records(topics["bytes"])) == [
        b"\x00\xff" + bytes([n]) for n in range(7)
    ]
    assert db.sql("SELECT COUNT(*) FROM penstock.dead_letters").rows() == [(0,)]


def codecs(broker: KafkaBroker, topic: str) -> list[str]:
    """How each batch of records of a topic is compressed, as it lies on the disk of the broker."""
    found: list[str] = []
    for file in sorted((broker.directory / "data" / f"{topic}-0").glob("*.log")):
        log, place = file.read_bytes(), 0
        while place < len(log):
            length, attributes = (
                struct.unpack_from(">i", log, place + 8)[0],
                struct.unpack_from(">h", log, place + 21)[0],
            )
            found.append(CODECS[attributes & 7])
            place += 12 + length
    return found


def test_compressed_batches(cluster: Cluster, broker: KafkaBroker, db: penstock.Database) -> None:
    """SC31: both clients compress as they are told, Spark's and our own, and what arrives is equal."""
    source = cluster.topic()
    texts = [f"{n} " + "again and again " * 40 for n in range(60)]
    cluster.send(source, [json.dumps({"text": text}) for text in texts])
    assert set(codecs(broker, source)) == {"none"}
    db.execute(f"CREATE STREAM s (text STRING) WITH (connector = 'kafka', topic = '{source}', start = 'earliest')")
    topics = {codec: (cluster.topic(), cluster.topic()) for codec in ("gzip", "snappy", "lz4", "zstd")}
    values = ", ".join(f"('{text}')" for text in texts)
    for codec, (by_spark, by_us) in topics.items():
        db.execute(f"""
            CREATE SINK {codec}_often (text STRING)
              WITH (connector = 'kafka', topic = '{by_spark}', 'properties.compression.type' = '{codec}');
            INSERT INTO {codec}_often SELECT text FROM s;
            CREATE SINK {codec}_once (text STRING) WITH (
              connector = 'kafka', topic = '{by_us}', 'kafka.compression.type' = '{codec}', delivery = 'exactly_once');
            INSERT INTO {codec}_once VALUES {values};
        """)
    db.settle(180)
    for codec, written in topics.items():
        for topic in written:
            assert set(codecs(broker, topic)) == {codec}, topic
            assert [json.loads(value)["text"] for value in cluster.values(topic)] == texts
    # And a source reads each of them.
    everything = ";".join(topic for written in topics.values() for topic in written)
    db.execute(f"""
        CREATE TABLE compressed (text STRING)
          WITH (connector = 'kafka', topic = '{everything}', start = 'earliest', 'end' = 'latest')
    """)
    assert db.sql("SELECT COUNT(*), COUNT(DISTINCT text) FROM compressed").rows() == [(60 * 8, 60)]
