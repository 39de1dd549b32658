"""Topics in the words of ksqlDB, Materialize and Feldera, in and out of a real broker (C1, A1)."""

from __future__ import annotations

import json

import pytest

import penstock
from penstock.formats.registry import head
from tests.kafka.conftest import Cluster
from tests.schema_registry import running_registry

pytestmark = pytest.mark.kafka


def test_streams_and_tables_of_ksqldb(cluster: Cluster, db: penstock.Database) -> None:
    """Keys are in the key alone; a table is the newest row of each, and a record without a value takes it away."""
    views, users, home = cluster.topic(2), cluster.topic(), cluster.topic()
    for user, page in (("ann", "/"), ("bob", "/a"), ("ann", "/b"), (None, "/")):
        cluster.send(views, [json.dumps({"page": page})], key=user)
    for user, name in (("ann", "Ann"), ("bob", "Bob"), ("ann", "Anna")):
        cluster.send(users, [name], key=user)
    cluster.send(users, [None], key="bob")
    db.execute(f"""
        CREATE STREAM pageviews (user_id VARCHAR KEY, page VARCHAR)
          WITH (KAFKA_TOPIC = '{views}', VALUE_FORMAT = 'JSON', START = 'earliest');
        CREATE TABLE users (id VARCHAR PRIMARY KEY, name VARCHAR)
          WITH (KAFKA_TOPIC = '{users}', VALUE_FORMAT = 'DELIMITED', START = 'earliest');
        CREATE TABLE counts AS SELECT user_id, COUNT(*) AS n FROM pageviews GROUP BY user_id EMIT CHANGES;
        CREATE MATERIALIZED VIEW named AS SELECT * FROM users;
        CREATE MATERIALIZED VIEW places AS SELECT page, ROWPARTITION AS part, ROWOFFSET AS place FROM pageviews;
        CREATE STREAM home WITH (KAFKA_TOPIC = '{home}', VALUE_FORMAT = 'JSON', PARTITIONS = 2) AS
          SELECT user_id, page FROM pageviews WHERE page = '/' EMIT CHANGES;
    """)
    db.settle(120)
    assert sorted(db.sql("SELECT user_id, n FROM counts").rows(), key=str) == [("ann", 2), ("bob", 1), (None, 1)]
    assert db.sql("SELECT id, name FROM named").rows() == [("ann", "Anna")]
    places = {(record.partition(), record.offset()) for record in cluster.records(views)}
    assert {(part, place) for _, part, place in db.sql("SELECT page, part, place FROM places").rows()} == places
    written = sorted((json.loads(value) for value in cluster.values(home)), key=str)
    assert written == [{"user_id": "ann", "page": "/"}, {"user_id": None, "page": "/"}]


def test_a_stream_of_ksqldb_makes_its_topic(cluster: Cluster, db: penstock.Database) -> None:
    """PARTITIONS of a stream that is read: there is a topic when the first job looks."""
    topic = f"{cluster.topic()}-made"
    db.execute(f"""
        CREATE STREAM pages (page VARCHAR) WITH (KAFKA_TOPIC = '{topic}', VALUE_FORMAT = 'JSON', PARTITIONS = 3);
        CREATE MATERIALIZED VIEW seen AS SELECT page FROM pages;
    """)
    cluster.send(topic, [json.dumps({"page": "/"})])
    db.settle(120)
    assert db.sql("SELECT page FROM seen").rows() == [("/",)]
    assert len(db.sql("SELECT 1 FROM penstock.connector_offsets WHERE job = 'seen'").rows()) == 3


def test_schemas_of_ksqldbs_json(cluster: Cluster, db: penstock.Database) -> None:
    """JSON_SR writes the number of a schema before each record, and reads such records."""
    topic, again = cluster.topic(), cluster.topic()
    cluster.send(topic, [head(12345) + json.dumps({"page": f"/{n}", "n": n}).encode() for n in range(3)])
    with running_registry() as registry:
        db.execute(f"""
            CREATE STREAM pages (page VARCHAR, n INT) WITH (
              KAFKA_TOPIC = '{topic}', VALUE_FORMAT = 'JSON_SR', START = 'earliest', schema_registry.url = '{registry.url}'
            );
            CREATE STREAM again WITH (
              KAFKA_TOPIC = '{again}', VALUE_FORMAT = 'JSON_SR', PARTITIONS = 1, schema_registry.url = '{registry.url}'
            ) AS SELECT page, n FROM pages EMIT CHANGES;
        """)
        db.settle(120)
        written = [record.value() for record in cluster.records(again)]
        (schema,) = registry.subject(f"{again}-value")
        number = registry.put(f"{again}-value", schema)
    assert {value[:5] for value in written} == {head(number)}
    rows = sorted((json.loads(value[5:]) for value in written), key=lambda row: row["n"])
    assert rows == [{"page": f"/{n}", "n": n} for n in range(3)]
    assert list(json.loads(schema)["properties"]) == ["page", "n"]


def test_connections_sources_and_sinks_of_materialize(cluster: Cluster, db: penstock.Database) -> None:
    documents, users, out = cluster.topic(), cluster.topic(), cluster.topic()
    cluster.send(documents, [json.dumps({"a": n}) for n in range(3)])
    for user, name in (("ann", "Ann"), ("bob", "Bob"), ("ann", "Anna")):
        cluster.send(users, [json.dumps({"name": name})], key=user)
    cluster.send(users, [None], key="bob")
    db.execute(f"""
        CREATE CONNECTION broker TO KAFKA (BROKER '{cluster.address}', SECURITY PROTOCOL = 'PLAINTEXT');
        CREATE SOURCE documents FROM KAFKA CONNECTION broker (TOPIC '{documents}') FORMAT JSON INCLUDE OFFSET;
        CREATE SOURCE users (name VARCHAR) FROM KAFKA CONNECTION broker (TOPIC '{users}')
          KEY FORMAT TEXT VALUE FORMAT JSON INCLUDE KEY AS id ENVELOPE UPSERT;
        CREATE MATERIALIZED VIEW texts AS SELECT data, "offset" AS place FROM documents;
        CREATE SOURCE users_as_text FROM KAFKA CONNECTION broker (TOPIC '{users}')
          KEY FORMAT TEXT VALUE FORMAT JSON INCLUDE KEY AS id ENVELOPE UPSERT;
        CREATE MATERIALIZED VIEW named AS SELECT id, name FROM users;
        CREATE MATERIALIZED VIEW named_texts AS SELECT id, data FROM users_as_text;
        CREATE SINK named_out FROM named INTO KAFKA CONNECTION broker (TOPIC '{out}')
          KEY (id) FORMAT JSON ENVELOPE UPSERT;
    """)
    db.settle(120)
    assert sorted(db.sql("SELECT data, place FROM texts").rows()) == [(json.dumps({"a": n}), n) for n in range(3)]
    assert db.sql("SELECT id, name FROM named").rows() == [("ann", "Anna")]
    assert db.sql("SELECT id, data FROM named_texts").rows() == [("ann", json.dumps({"name": "Anna"}))]
    assert [json.loads(value) for value in cluster.values(out)] == [{"id": "ann", "name": "Anna"}]


def test_connectors_of_feldera(cluster: Cluster, db: penstock.Database) -> None:
    topic, out = cluster.topic(), cluster.topic()
    cluster.send(topic, [json.dumps({"id": n, "name": f"n{n}"}) for n in range(5)])

    def connector(way: str, name: str) -> str:
        config = {"topic": name, "bootstrap.servers": cluster.address}
        if way == "kafka_input":
            config["start_from"] = "earliest"
        update = {"update_format": "raw", "array": False} if way == "kafka_input" else {"update_format": "debezium"}
        told = {"transport": {"name": way, "config": config}, "format": {"name": "json", "config": update}}
        return json.dumps([told])

    db.execute(f"""
        CREATE TABLE people (id INT, name VARCHAR) WITH ('connectors' = '{connector("kafka_input", topic)}');
        CREATE MATERIALIZED VIEW known AS SELECT id, name FROM people;
        CREATE VIEW counted WITH ('connectors' = '{connector("kafka_output", out)}') AS
          SELECT id % 2 AS odd, COUNT(*) AS n FROM people GROUP BY id % 2;
    """)
    db.settle(120)
    assert db.sql("SELECT COUNT(*), MAX(id) FROM known").rows() == [(5, 4)]
    after = {row["odd"]: row["n"] for value in cluster.values(out) if (row := json.loads(value)["after"]) is not None}
    assert after == {0: 3, 1: 2}
