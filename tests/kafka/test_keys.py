"""Keys with a format of their own, in and out of a real broker."""

from __future__ import annotations

import json

import pytest

import penstock
from tests.kafka.conftest import Cluster
from tests.schema_registry import running_registry

pytestmark = pytest.mark.kafka


def test_keys_and_values_of_different_formats(cluster: Cluster, db: penstock.Database) -> None:
    """B12: keys in JSON, Avro and text; a key that is none, and no key at all."""
    source, avro, exact = cluster.topic(), cluster.topic(), cluster.topic()
    cluster.send(source, [b"1,x"], key=json.dumps({"id": 1, "name": "key"}))
    cluster.send(source, [b"2,y"])
    cluster.send(source, [b"3,z"], key="{broken")
    with running_registry() as registry:
        keyed = (
            "'key.fields' = 'k_id;k_name', 'key.fields-prefix' = 'k_', 'key.format' = 'avro-confluent', "
            f"'key.schema_registry.url' = '{registry.url}', 'value.fields-include' = 'EXCEPT_KEY'"
        )
        db.execute(f"""
            CREATE STREAM both (k_id INT, k_name STRING, n INT, name STRING) WITH (
              connector = 'kafka', topic = '{source}', start = 'earliest', format = 'csv',
              'key.fields' = 'k_id;k_name', 'key.fields-prefix' = 'k_', 'key.format' = 'json',
              'value.fields-include' = 'EXCEPT_KEY'
            );
            CREATE MATERIALIZED VIEW seen AS SELECT k_id, k_name, n, name FROM both;
            CREATE MATERIALIZED VIEW values_only AS SELECT n FROM both;
            CREATE SINK out (k_id INT, k_name STRING, n INT, name STRING) WITH (
              connector = 'kafka', topic = '{avro}', format = 'json', {keyed}
            );
            CREATE SINK once (k_id INT, k_name STRING, n INT) WITH (
              connector = 'kafka', topic = '{exact}', format = 'json', {keyed}, delivery = 'exactly_once'
            );
            INSERT INTO out SELECT k_id, k_name, n, name FROM both;
            INSERT INTO once SELECT k_id, k_name, n FROM both;
        """)
        db.settle(180)
        assert db.sql("SELECT * FROM seen ORDER BY n").rows() == [(1, "key", 1, "x"), (None, None, 2, "y")]
        assert db.sql("SELECT n FROM values_only ORDER BY n").rows() == [(1,), (2,), (3,)]
        dead = db.sql("SELECT offset, error FROM penstock.dead_letters WHERE job = 'seen'").rows()
        assert dead == [(2, "key: malformed json")]
        records = sorted(cluster.records(avro), key=lambda one: str(one.value()))
        assert [json.loads(one.value()) for one in records] == [{"n": 1, "name": "x"}, {"n": 2, "name": "y"}]
        assert [key.key()[5:] for key in records] == [b"\x02\x02\x02\x06key", b"\x00\x00"]
        assert list(map(len, (registry.subject(f"{avro}-key"), registry.subject(f"{avro}-value")))) == [1, 0]
        assert sorted(one.key()[5:] for one in cluster.records(exact)) == [b"\x00\x00", b"\x02\x02\x02\x06key"]
        db.execute(f"""
            CREATE TABLE back (k_id BIGINT, k_name STRING, n INT) WITH (
              connector = 'kafka', topic = '{avro}', start = 'earliest', 'end' = 'latest', format = 'json', {keyed}
            );
        """)
        assert db.sql("SELECT k_id, k_name, n FROM back ORDER BY n").rows() == [(1, "key", 1), (None, None, 2)]

    # The text of one column; what the value has counts, and what only the key has comes from there.
    plain = cluster.topic()
    cluster.send(plain, [json.dumps({"v": "a"})], key="5")
    cluster.send(plain, [json.dumps({"v": "b", "id": 6})], key="7")
    cluster.send(plain, [json.dumps({"v": "c"})], key="seven")
    db.execute(f"""
        CREATE TABLE texts (id INT, v STRING) WITH (
          connector = 'kafka', topic = '{plain}', start = 'earliest', 'end' = 'latest', 'key.fields' = 'id'
        );
        CREATE MATERIALIZED VIEW of_texts AS SELECT id, v FROM texts;
    """)
    db.settle(120)
    assert db.sql("SELECT id, v FROM of_texts ORDER BY id").rows() == [(5, "a"), (6, "b")]
    dead = db.sql("SELECT offset, error FROM penstock.dead_letters WHERE job = 'of_texts'").rows()
    assert dead == [(2, 'key: column "id": seven does not fit INT')]
