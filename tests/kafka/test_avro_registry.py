"""Avro with a schema registry: schemas that come and go while jobs run."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import penstock
from penstock.errors import PenstockError
from penstock.formats import encode_rows
from penstock.formats.registry import head
from tests.kafka.conftest import Cluster
from tests.schema_registry import running_registry

pytestmark = pytest.mark.kafka


def schema(**types: Any) -> str:
    fields = [{"name": name, **(one if isinstance(one, dict) else {"type": one})} for name, one in types.items()]
    return json.dumps({"type": "record", "name": "Order", "namespace": "shop", "fields": fields})


def records(number: int, text: str, *rows: dict[str, Any]) -> list[bytes | str | None]:
    import pyarrow as pa

    bodies = encode_rows(pa.Table.from_pylist(list(rows)), "avro", {"avro.schema": text}).to_pylist()
    return [head(number) + body for body in bodies]


def test_schemas_come_and_go_while_the_job_runs(cluster: Cluster, opened: Callable[..., penstock.Database]) -> None:
    """SC20: a field with a default, one that is gone, new versions under way, and one that does not fit."""
    topic, copy, exact = cluster.topic(), cluster.topic(), cluster.topic()
    first = schema(id="long", price="double", note="string")
    second = schema(id="long", price="double", currency={"type": "string", "default": "EUR"})
    third = schema(id="int", price="float", currency="string", more={"type": "int", "default": 0})
    strange = schema(
        id="long", price={"type": {"type": "record", "name": "Price", "fields": [{"name": "cents", "type": "int"}]}}
    )
    with running_registry() as registry:
        one, two = registry.put(f"{topic}-value", first, 12345), registry.put(f"{topic}-value", second)
        cluster.send(topic, records(one, first, {"id": 1, "price": 1.5, "note": "n"}))
        cluster.send(topic, records(two, second, {"id": 2, "price": 2.5, "currency": "USD"}))
        cluster.send(topic, [b"\x00\x00\x00\x03\xe7abc", b"plain", b"", head(one) + b"\x01"])
        db = opened()
        db.execute(f"""
            CREATE TABLE orders (id BIGINT, price DOUBLE, currency STRING, note STRING) WITH (
              'connector' = 'kafka', 'topic' = '{topic}', 'scan.startup.mode' = 'earliest-offset',
              'value.format' = 'avro-confluent', 'avro-confluent.url' = '{registry.url}'
            );
            CREATE STREAM as_nulls (id BIGINT) WITH (
              connector = 'kafka', topic = '{topic}', start = 'earliest', bad_data = 'null'
            ) FORMAT PLAIN ENCODE AVRO (schema.registry = '{registry.url}');
            CREATE MATERIALIZED VIEW seen AS SELECT id, price, currency, note FROM orders;
            CREATE MATERIALIZED VIEW nulls AS SELECT id FROM as_nulls;
            CREATE SINK copied (id BIGINT, price DOUBLE) WITH (
              connector = 'kafka', topic = '{copy}', format = 'avro-confluent', 'schema_registry.url' = '{registry.url}'
            );
            CREATE SINK once (id BIGINT, price DOUBLE, note STRING) WITH (
              connector = 'kafka', topic = '{exact}', format = 'avro-confluent', 'schema_registry.url' = '{registry.url}',
              'avro.schema_id' = 12345, delivery = 'exactly_once'
            );
            INSERT INTO copied SELECT id, price FROM orders;
            INSERT INTO once SELECT id, price, 'x' FROM orders;
        """)
        db.settle(180)
        old = [(1, 1.5, "EUR", "n"), (2, 2.5, "USD", None)]
        assert db.sql("SELECT * FROM seen ORDER BY id").rows() == old
        dead = "SELECT offset, error FROM penstock.dead_letters WHERE job = '{}' ORDER BY offset"
        told = [
            (2, "schema 999 is not in the registry"),
            (3, "no schema number before the record"),
            (4, "empty record"),
            (5, "malformed avro: not a record of schema 12345"),
        ]
        assert db.sql(dead.format("seen")).rows() == told
        # A schema that nobody has may still come: only such a record is not read as NULLs.
        assert db.sql(dead.format("nulls")).rows() == told[:1]
        assert db.sql("SELECT COUNT(*), COUNT(id) FROM nulls").rows() == [(5, 2)]

        # Two schemas come while the jobs run, one of them in no subject of the topic.
        three, four = registry.put(f"{topic}-value", third), registry.put(None, strange)
        cluster.send(topic, records(three, third, {"id": 3, "price": 3.5, "currency": "CHF", "more": 9}))
        cluster.send(topic, records(four, strange, {"id": 4, "price": {"cents": 5}}))
        db.settle(180)
        assert db.sql("SELECT * FROM seen ORDER BY id").rows() == [*old, (3, 3.5, "CHF", None)]
        assert db.sql(dead.format("seen")).rows() == [*told, (7, 'column "price": {"cents":5} does not fit DOUBLE')]
        assert db.sql("SELECT id FROM nulls WHERE id > 2 ORDER BY id").rows() == [(3,), (4,)]
        changed = db.sql(
            "SELECT COUNT(*) FROM penstock.job_history WHERE job = 'seen' AND reason LIKE '%a schema that came after%'"
        )
        assert changed.rows()[0][0] >= 1

        # What was written has a schema in the registry, and can be read back.
        assert [json.loads(text)["fields"][0]["name"] for text in registry.subject(f"{copy}-value")] == ["id"]
        db.execute(f"""
            CREATE TABLE back (id BIGINT, price DOUBLE, note STRING) WITH (
              connector = 'kafka', topic = '{exact}', start = 'earliest', 'end' = 'latest', format = 'avro-confluent',
              'schema_registry.url' = '{registry.url}', 'schema_registry.naming' = 'record'
            );
            CREATE TABLE copies (id BIGINT, price DOUBLE) WITH (
              connector = 'kafka', topic = '{copy}', start = 'earliest', 'end' = 'latest', format = 'avro-confluent',
              'schema_registry.url' = '{registry.url}'
            );
        """)
        cluster.wait_until_nothing_is_open(exact)
        assert db.sql("SELECT * FROM back ORDER BY id").rows() == [(n, n + 0.5, "x") for n in (1, 2, 3)]
        assert db.sql("SELECT DISTINCT id, price FROM copies ORDER BY id").rows() == [(n, n + 0.5) for n in (1, 2, 3)]

        registry.refused.add(f"{copy}-value")
        db.execute(f"""
            CREATE SINK refused (id STRING) WITH (
              connector = 'kafka', topic = '{copy}', format = 'avro-confluent', 'schema_registry.url' = '{registry.url}'
            );
        """)
        with pytest.raises(PenstockError, match="Schema being registered is incompatible"):
            db.execute("INSERT INTO refused VALUES ('x')")
        with pytest.raises(PenstockError, match='column "nowhere" of wrong is in no schema'):
            db.execute(f"""
                CREATE STREAM wrong (nowhere INT) WITH (
                  connector = 'kafka', topic = '{topic}', format = 'avro-confluent', 'schema_registry.url' = '{registry.url}'
                );
                CREATE MATERIALIZED VIEW never AS SELECT nowhere FROM wrong;
            """)
