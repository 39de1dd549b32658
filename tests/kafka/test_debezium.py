"""Debezium's records as envelopes, from a real broker."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

import penstock
from tests.engine.answers import in_order
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


def test_records_of_the_key_that_is_null_stay_together(cluster: Cluster, db: penstock.Database) -> None:
    """SC40: as plain text such a key is none, by which Kafka's client would put its records anywhere."""
    topics = {"changed": cluster.topic(3), "added": cluster.topic(3)}
    queries = {
        "changed": "SELECT page, COUNT(*) AS n FROM clicks GROUP BY page HAVING COUNT(*) % 3 > 0",
        "added": "SELECT page, n FROM clicks",
    }
    db.execute("CREATE STREAM clicks (page STRING, n BIGINT) WITH (connector = 'topic')")
    for name, topic in topics.items():
        options = f"connector = 'kafka', topic = '{topic}', format = 'json', changes = 'upsert'"
        columns = "(page STRING, n BIGINT, PRIMARY KEY (page) NOT ENFORCED)"
        db.execute(f"""
            CREATE SINK {name}_out {columns} WITH ({options}) AS {queries[name]};
            CREATE TABLE {name}_in {columns} WITH ({options}, start = 'earliest');
            CREATE MATERIALIZED VIEW {name}_back AS SELECT page, n FROM {name}_in;
        """)
    written: list[list[tuple[str | None, int]]] = [
        [(None, 1), ("a", 2)],
        [(None, 3), (None, 4), ("b", 5)],
        [(None, 6), ("a", 7)],
        [(None, 8)],
    ]
    for batch in written:
        for page, n in batch:
            db.append("clicks", [{"page": page, "n": n}])
        db.settle(120)
    expected = {"changed": [("a", 2), ("b", 1)], "added": [("a", 7), ("b", 5)]}
    for name, rows in expected.items():
        assert in_order(db.sql(f"SELECT page, n FROM {name}_back").rows()) == in_order(rows)
        keyless = [record for record in cluster.records(topics[name]) if record.key() is None]
        assert {record.partition() for record in keyless} == {0}
        counts = [json.loads(record.value())["n"] for record in keyless if record.value() is not None]
        assert counts == sorted(counts)
        assert counts[-1] == {"changed": 5, "added": 8}[name]
        # A primary key is NOT NULL where it is read: nothing is lost without a word.
        bad = db.sql(f"SELECT reason FROM penstock.dead_letters WHERE job = '{name}_back'").rows()
        assert bad == [("not_null",)] * len(keyless)


def test_changes_of_one_row_stay_in_one_partition(cluster: Cluster, db: penstock.Database) -> None:
    """SC40: whoever reads partition by partition sees no row go before it came, with the key of the query, with a
    declared one, and where rows have none."""
    chance = random.Random(7)  # noqa: S311
    db.execute("""
        CREATE STREAM clicks (id INT, page STRING) WITH (connector = 'topic', partitions = 2);
        CREATE STREAM pages (page STRING, title STRING) WITH (connector = 'topic');
    """)
    sizes = "SELECT n, COUNT(*) AS pages FROM (SELECT page, COUNT(*) AS n FROM clicks GROUP BY page) GROUP BY n"
    titles = "SELECT c.page, p.title FROM clicks c LEFT JOIN pages p ON c.page = p.page"
    ways = {
        "by_query": (sizes, "", "", "(n BIGINT, pages BIGINT, PRIMARY KEY (n) NOT ENFORCED)", b'{"n":1}'),
        "declared": (
            sizes,
            "(n BIGINT, pages BIGINT, PRIMARY KEY (n) NOT ENFORCED)",
            ", 'key.format' = 'raw'",
            "(n BIGINT, pages BIGINT, PRIMARY KEY (n) NOT ENFORCED)",
            b"1",
        ),
        "without": (titles, "", "", "(page STRING, title STRING)", None),
        "retracted": (titles, "", ", changes = 'retract'", "(page STRING, title STRING)", None),
    }
    topics = {name: cluster.topic(3) for name in ways}
    for name, (query, columns, more, read_as, _) in ways.items():
        form = "json" if "retract" in more else "debezium-json"
        options = f"connector = 'kafka', topic = '{topics[name]}', format = '{form}'"
        read_more = more if "retract" in more else ""
        db.execute(f"""
            CREATE MATERIALIZED VIEW {name}_view AS {query};
            CREATE SINK {name} {columns} WITH ({options}{more}) AS {query};
            CREATE STREAM {name}_read {read_as} WITH ({options}{read_more}, start = 'earliest');
            CREATE MATERIALIZED VIEW {name}_back AS SELECT * FROM {name}_read;
        """)
    for batch in range(4):
        db.append("clicks", [{"id": batch, "page": chance.choice("abcdef")} for _ in range(8)])
        db.append("pages", [{"page": chance.choice("abcdef"), "title": f"t{batch}"}])
        db.settle(120)
    for name, (_, _, _, _, key) in ways.items():
        assert in_order(db.sql(f"SELECT * FROM {name}_back").rows()) == in_order(
            db.sql(f"SELECT * FROM {name}_view").rows()
        )
        records = cluster.records(topics[name])
        assert len({record.partition() for record in records}) > 1, "one partition tells nothing"
        assert {record.key() is None for record in records} == {key is None}
        if key is not None:
            assert len({record.partition() for record in records if record.key() == key}) == 1
