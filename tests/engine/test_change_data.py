"""Rows that change at their source, as jobs: decoded by Spark, answered by the view store over the latest row of each key
(contract SC40, G16). The breadth of queries is in tests/unit/stores/views/test_changing.py, which needs no Spark."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

import penstock
from tests.databases import Opened
from tests.engine.answers import check_change_log, in_order, read

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]

SCRIPT = """
CREATE STREAM accounts (id INT, owner STRING, region STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH (connector = 'topic', format = 'debezium-json', partitions = 2);
CREATE STREAM orders (id BIGINT, account INT, amount DECIMAL(10, 2) NOT NULL, ver BIGINT, PRIMARY KEY (id) NOT ENFORCED)
WITH (connector = 'topic', changes = 'upsert', version_column = 'ver', partitions = 3);
CREATE STREAM limits (region STRING, most INT, PRIMARY KEY (region) NOT ENFORCED)
WITH (connector = 'topic', format = 'json', changes = 'upsert');
CREATE MATERIALIZED VIEW regions AS
SELECT a.region, COUNT(*) AS n, SUM(o.amount) AS total FROM orders o JOIN accounts a ON o.account = a.id GROUP BY a.region;
CREATE MATERIALIZED VIEW checked AS
SELECT a.id, a.owner, l.most FROM accounts a LEFT JOIN limits l ON a.region = l.region WHERE a.owner <> 'eve';
CREATE MATERIALIZED VIEW owners AS SELECT id, upper(owner) AS owner FROM accounts;
CREATE STREAM visits (who STRING, page STRING) WITH (connector = 'topic', format = 'debezium-json');
CREATE MATERIALIZED VIEW pages AS SELECT page, COUNT(*) AS n FROM visits WHERE who <> 'eve' GROUP BY page;
CREATE STREAM sums (region STRING, n BIGINT, total DECIMAL(20, 2), PRIMARY KEY (region) NOT ENFORCED)
WITH (connector = 'topic', changes = 'upsert', partitions = 2);
INSERT INTO sums
SELECT a.region, COUNT(*), SUM(o.amount) FROM orders o JOIN accounts a ON o.account = a.id GROUP BY a.region;
CREATE MATERIALIZED VIEW sums_again AS SELECT * FROM sums;
CREATE SINK written WITH (connector = 'topic', format = 'debezium-json') AS SELECT id, upper(owner) AS owner FROM accounts;
CREATE STREAM records (op STRING, before STRUCT<id INT, owner STRING>, after STRUCT<id INT, owner STRING>)
WITH (connector = 'topic', topic = 'written', format = 'debezium-json');
CREATE MATERIALIZED VIEW envelopes AS SELECT op, before.owner AS was, after.owner AS owner FROM records;
"""


def envelope(op: str | None, before: Any, after: Any) -> str:
    return json.dumps({"before": before, "after": after, "op": op, "source": {"db": "shop"}})


def account(number: int, owner: str, region: str) -> dict[str, Any]:
    return {"id": number, "owner": owner, "region": region}


def shown(db: penstock.Database, view: str) -> list[tuple[Any, ...]]:
    return sorted(db.sql(f"SELECT * FROM {view}").rows(), key=repr)


def test_debezium_and_upserts_feed_joins_and_aggregates(opened: Opened) -> None:
    """SC40, G16: inserts, updates, deletions and old versions, bad records as dead letters; the changes go on to topics as
    upserts and as envelopes, which are read back; and the same after the database was closed and opened again."""
    ada, bob, eve = account(1, "ada", "eu"), account(2, "bob", "us"), account(3, "eve", "eu")
    with opened() as db:
        db.execute(SCRIPT)
        db.append(
            "accounts", [envelope("c", None, ada), envelope("r", None, bob), envelope("c", None, eve)], partition=0
        )
        db.append(
            "orders", [{"id": 1, "account": 1, "amount": 10, "ver": 3}, {"id": 2, "account": 2, "amount": 5, "ver": 1}]
        )
        db.append("orders", [{"id": 1, "account": 1, "amount": 99, "ver": 2}])  # older
        db.append("limits", [{"region": "eu", "most": 100}, {"region": "us", "most": 7}])
        db.settle(600)
        assert [(region, n, float(total)) for region, n, total in shown(db, "regions")] == [
            ("eu", 1, 10.0),
            ("us", 1, 5.0),
        ]
        assert shown(db, "checked") == [(1, "ada", 100), (2, "bob", 7)]
        assert shown(db, "owners") == [(1, "ADA"), (2, "BOB"), (3, "EVE")]
        seen = [{"who": who, "page": page} for who, page in (("ada", "/"), ("ada", "/"), ("bob", "/"), ("eve", "/"))]
        db.append("visits", [envelope("c", None, row) for row in seen])
        db.append("visits", [envelope("u", seen[0], {"who": "ada", "page": "/in"}), envelope("d", seen[2], None)])
        db.append("visits", [envelope("u", None, seen[0]), envelope("u", seen[3], {"who": "zoe", "page": "/in"})])
        moved = account(1, "ada", "us")
        bad = ["{broken", envelope("x", None, ada), envelope("c", ada, None), envelope("d", {"owner": "x"}, None)]
        bad += [envelope("t", None, None), envelope("u", None, {"owner": "nobody"})]
        db.append("accounts", [envelope("u", ada, moved), envelope("m", None, None), *bad], partition=0)
        db.append("limits", [{"region": "us", "_op": "delete"}])
        db.append(
            "orders", [{"id": 2, "_op": "delete"}, {"id": 3, "account": 3, "ver": 1}]
        )  # the last one has no amount
        db.settle(600)
        assert [(region, n, float(total)) for region, n, total in shown(db, "regions")] == [("us", 1, 10.0)]
        assert shown(db, "checked") == [(1, "ada", None), (2, "bob", None)]
        # without a key each change names the whole row
        assert shown(db, "pages") == [("/", 1), ("/in", 2)]
        dead = db.sql("SELECT error FROM penstock.dead_letters WHERE job = 'pages'").rows()
        assert len(dead) == 1
        assert "no row before operation u" in dead[0][0]
        errors = [
            error
            for (error,) in db.sql(
                "SELECT error FROM penstock.dead_letters WHERE job = 'owners' ORDER BY offset"
            ).rows()
        ]
        assert len(errors) == 6
        assert errors[0] == "malformed json"
        assert errors[1] == "no operation of Debezium: x"
        assert errors[2] == "no row after operation c"
        assert all('"id" is NOT NULL' in errors[place] for place in (3, 5))
        assert "truncation" in errors[4]
        dead = db.sql(
            "SELECT stream, error FROM penstock.dead_letters WHERE job = 'regions' AND stream = 'orders'"
        ).rows()
        assert [error for _, error in dead] == ['column "amount" is NOT NULL and has no value']
        db.settle(600)  # what came into the topics of the sinks meanwhile
        assert shown(db, "sums_again") == shown(db, "regions")
        assert ("u", "ADA", "ADA") not in db.sql("SELECT * FROM envelopes").rows(), "what did not change is not told"
        text = "\n".join(str(row[0]) for row in db.execute("EXPLAIN SELECT id, owner FROM accounts").rows())  # type: ignore[union-attr]
        assert "the latest row by (id) of accounts" in text
    with opened() as db:
        db.append("accounts", [envelope("d", bob, None), envelope("u", eve, account(3, "zoe", "eu"))], partition=0)
        db.append(
            "orders", [{"id": 2, "account": 1, "amount": 6, "ver": 1}, {"id": 4, "account": 3, "amount": 1, "ver": 1}]
        )
        db.append("orders", [{"id": 1, "account": 3, "amount": 1, "ver": 4}])
        db.settle(600)
        # Order 2 was deleted without a version, so one as old as the deleted row comes again.
        assert [(region, n, float(total)) for region, n, total in shown(db, "regions")] == [
            ("eu", 2, 2.0),
            ("us", 1, 6.0),
        ]
        assert shown(db, "checked") == [(1, "ada", None), (3, "zoe", 100)]
        assert shown(db, "owners") == [(1, "ADA"), (3, "ZOE")]
        db.settle(600)
        assert shown(db, "sums_again") == shown(db, "regions")
        changes = Counter(db.sql("SELECT * FROM envelopes").rows())
        assert changes == Counter(
            [("c", None, "ADA"), ("c", None, "BOB"), ("c", None, "EVE"), ("d", "BOB", None), ("u", "EVE", "ZOE")]
        )
        for view, key in (("regions", ("region",)), ("checked", ()), ("owners", ("id",))):
            check_change_log(db, view, key=key)
            assert read(db, view) == in_order(db.sql(f"SELECT * FROM {view}").rows())
