"""Debezium's records as envelopes, from a real broker."""

from __future__ import annotations

import json
from typing import Any

import pytest

import penstock
from tests.kafka.conftest import Cluster

pytestmark = pytest.mark.kafka


def change(op: str | None, before: Any, after: Any, **more: Any) -> dict[str, Any]:
    found = {"before": before, "after": after, "source": {"db": "shop", "lsn": 7}, "ts_ms": 1_767_261_600_000, **more}
    return found if op is None else {**found, "op": op}


def test_envelopes_with_and_without_their_schema(cluster: Cluster, db: penstock.Database) -> None:
    """SC40: each change is a row; tombstones are passed over, broken ones are dead letters."""
    plain, with_schema = cluster.topic(), cluster.topic()
    old, new = {"id": 1, "name": "a", "price": "1.25"}, {"id": 1, "name": "b", "price": "2.50"}
    changes: list[dict[str, Any]] = [
        change("c", None, old), change("u", old, new), change("d", new, None), change("r", None, old)
    ]  # fmt: skip
    bad: list[bytes | str | None] = [
        json.dumps(change("x", None, old)),
        json.dumps(change(None, None, old)),
        json.dumps(change("c", old, None)),
        json.dumps(change("c", None, {"id": "one"})),
        "{broken",
    ]
    cluster.send(plain, [*(json.dumps(one) for one in changes), None, *bad])
    around = [json.dumps({"schema": {"type": "struct", "fields": []}, "payload": one}) for one in changes]
    cluster.send(with_schema, [*around, None, json.dumps(changes[0])])
    row = "STRUCT<id INT, name STRING, price DECIMAL(10, 2)>"
    columns = f"(op STRING, before {row}, after {row}, ts_ms TIMESTAMP, source STRUCT<db STRING>, WATERMARK FOR ts_ms)"
    for name, topic, more in (
        ("plain", plain, ""),
        ("wrapped", with_schema, ", 'debezium-json.schema-include' = 'true'"),
    ):
        db.execute(f"""
            CREATE STREAM {name} {columns} WITH (
              connector = 'kafka', topic = '{topic}', start = 'earliest', format = 'debezium-json'{more}
            );
            CREATE MATERIALIZED VIEW seen_{name} AS
              SELECT op, before.name AS was, after.name AS name, after.price AS price, ts_ms, source.db AS db FROM {name};
        """)
    db.execute("CREATE MATERIALIZED VIEW names AS SELECT COUNT(*) AS n FROM plain")
    db.settle(120)
    for name in ("plain", "wrapped"):
        rows = db.sql(
            f"SELECT op, was, name, CAST(price AS STRING), db, unix_millis(ts_ms) FROM seen_{name} ORDER BY op"
        ).rows()
        at = 1_767_261_600_000
        assert rows == [
            ("c", None, "a", "1.25", "shop", at),
            ("d", "b", None, None, "shop", at),
            ("r", None, "a", "1.25", "shop", at),
            ("u", "a", "b", "2.50", "shop", at),
        ]
    dead = "SELECT offset, error FROM penstock.dead_letters WHERE job = '{}' ORDER BY offset"
    errors = db.sql(dead.format("seen_plain")).rows()
    assert [offset for offset, _ in errors] == [5, 6, 7, 8, 9]
    assert errors[0][1] == "no operation of Debezium: x"
    assert str(errors[1][1]).startswith("no operation of Debezium; where a schema")
    assert errors[2][1] == "no row after operation c"
    assert '"after"' in str(errors[3][1])
    assert errors[4][1] == "malformed json"
    assert [offset for offset, _ in db.sql(dead.format("seen_wrapped")).rows()] == [5]
    # A query that wants no column looks at the operation all the same.
    assert db.sql("SELECT n FROM names").rows() == [(6,)]
    # Read as rows, and without a key: whole rows come and go.
    db.execute(f"""
        CREATE STREAM items (id INT, name STRING) WITH (
          connector = 'kafka', topic = '{plain}', start = 'earliest', format = 'debezium-json'
        );
        CREATE MATERIALIZED VIEW kept AS SELECT id, name FROM items;
    """)
    db.settle(120)
    assert db.sql("SELECT id, name FROM kept").rows() == [(1, "a")]
