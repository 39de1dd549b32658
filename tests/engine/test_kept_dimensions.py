"""Dimensions beside rows whose answer changes: an update changes what is shown, at a batch boundary and with no row
beside it; after a restart, and after going back, everything is as it was (L13, G16)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import penstock
from tests.engine.answers import check_change_log, read, until

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

OWNERS = "SELECT a.id, a.owner, d.label FROM acct a LEFT JOIN branches d ON d.k = a.branch"
SCRIPT = f"""
CREATE STREAM acct (id INT, owner STRING, branch INT, PRIMARY KEY (id) NOT ENFORCED)
    WITH (connector = 'topic', changes = 'upsert');
CREATE STREAM moves (acct INT, amount INT);
CREATE MATERIALIZED VIEW owners AS {OWNERS};
CREATE MATERIALIZED VIEW labels AS SELECT label, COUNT(*) AS n FROM owners GROUP BY label;
CREATE MATERIALIZED VIEW totals AS SELECT acct, SUM(amount) AS total FROM moves GROUP BY acct;
CREATE MATERIALIZED VIEW named AS SELECT t.acct, t.total, d.label FROM totals t JOIN branches d ON d.k = t.acct;
CREATE MATERIALIZED VIEW met AS
    SELECT m.amount, a.owner, d.label FROM moves m LEFT JOIN acct a ON a.id = m.acct LEFT JOIN branches d ON d.k = m.acct;
"""
FIRST = [{"k": 1, "label": "one"}, {"k": 2, "label": "two"}]
SECOND = [{"k": 1, "label": "uno"}, {"k": 3, "label": "three"}]


def _accounts(db: penstock.Database, *rows: tuple[int, str, int]) -> None:
    named = [{"id": id_, "owner": owner, "branch": branch, "_op": "insert"} for id_, owner, branch in rows]
    db.append("acct", named)


def test_an_update_changes_what_is_shown(opened: Callable[..., penstock.Database]) -> None:
    db = opened()
    db.register_dimension("branches", FIRST, key="k")
    db.execute(SCRIPT)
    _accounts(db, (10, "ann", 1), (11, "bob", 2), (12, "cy", 3))
    db.append("moves", [{"acct": 1, "amount": 5}, {"acct": 2, "amount": 6}])
    db.settle()
    assert read(db, "owners") == [(10, "ann", "one"), (11, "bob", "two"), (12, "cy", None)]
    assert read(db, "named") == [(1, 5, "one"), (2, 6, "two")]
    assert read(db, "met") == [(5, None, "one"), (6, None, "two")]

    db.update_dimension("branches", SECOND)
    after = [(10, "ann", "uno"), (11, "bob", None), (12, "cy", "three")]
    until(lambda: read(db, "owners") == after)
    assert read(db, "labels") == [(None, 1), ("three", 1), ("uno", 1)], "a view above follows"
    assert read(db, "named") == [(1, 5, "uno")], "there before update_dimension has returned"
    db.append("moves", [{"acct": 1, "amount": 7}])
    db.settle()
    assert read(db, "met") == [(5, None, "one"), (6, None, "two"), (7, None, "uno")], "each as it came"
    check_change_log(db, "owners", ("id",))
    db.close()

    db = opened()
    assert read(db, "owners") == after
    _accounts(db, (11, "bob", 3), (13, "di", 1))
    db.settle()
    after = [(10, "ann", "uno"), (11, "bob", "three"), (12, "cy", "three"), (13, "di", "uno")]
    assert read(db, "owners") == after
    db.update_dimension("branches", FIRST)
    until(lambda: read(db, "owners") == [(10, "ann", "one"), (11, "bob", None), (12, "cy", None), (13, "di", "one")])
    shown = "\n".join(row[0] for row in db.sql(f"EXPLAIN {OWNERS}").rows())
    assert "branches: version 3, 2 rows" in shown
    assert "kept in the view store beside the rows" in shown
    rows = db.sql("SELECT version, job FROM penstock.dimension_versions WHERE job = 'owners' ORDER BY version").rows()
    assert [version for version, _ in rows][-1] == 3
