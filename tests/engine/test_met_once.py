"""Joins as of PROCTIME() with rows that change, as jobs: each row meets what is current when it comes, and stays (SC40, G16).
The breadth of queries is in tests/unit/stores/views, which needs no Spark."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.databases import Opened
from tests.engine.answers import check_change_log, in_order, read

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

SCRIPT = """
CREATE STREAM orders (id INT, cur STRING);
CREATE TABLE rates (cur STRING, rate INT, PRIMARY KEY (cur) NOT ENFORCED) WITH (connector = 'topic', changes = 'upsert');
CREATE STREAM quotes (cur STRING, bid INT);
CREATE MATERIALIZED VIEW highest AS SELECT cur, MAX(bid) AS bid FROM quotes GROUP BY cur;
CREATE MATERIALIZED VIEW rated AS
SELECT o.id, r.rate FROM orders o LEFT JOIN rates FOR SYSTEM_TIME AS OF PROCTIME() AS r ON o.cur = r.cur;
CREATE MATERIALIZED VIEW sums AS
SELECT cur, COUNT(*) AS n, SUM(rate) AS total
FROM (SELECT o.cur, r.rate FROM orders o JOIN rates FOR SYSTEM_TIME AS OF PROCTIME() AS r ON o.cur = r.cur)
GROUP BY cur;
CREATE MATERIALIZED VIEW beside AS
SELECT o.id, h.bid FROM orders o JOIN highest FOR SYSTEM_TIME AS OF PROCTIME() AS h ON o.cur = h.cur;
CREATE SINK written WITH (connector = 'topic') AS
SELECT o.id, r.rate FROM orders o LEFT JOIN rates FOR SYSTEM_TIME AS OF PROCTIME() AS r ON o.cur = r.cur;
CREATE STREAM again (id INT, rate INT) WITH (connector = 'topic', topic = 'written');
CREATE MATERIALIZED VIEW read_back AS SELECT id, rate FROM again;
"""


def test_rows_meet_what_is_current_when_they_come(opened: Opened) -> None:
    """Also over a stop in the middle; a later rate, and one that is gone, change nothing of rows that came before."""
    db = opened()
    db.execute(SCRIPT)
    rates: dict[str, int] = {}
    bids: dict[str, int] = {}
    rated: list[tuple[int, int | None]] = []
    beside: list[tuple[int, int]] = []
    joined: list[tuple[str, int]] = []
    for step in range(4):
        for cur, rate in (("EUR", 10 + step), ("USD", 20 + step)) if step != 2 else (("CHF", 30),):
            db.append("rates", [{"cur": cur, "rate": rate}])
            rates[cur] = rate
        if step == 3:
            db.append("rates", [{"cur": "USD", "_op": "delete"}])
            del rates["USD"]
        db.append("quotes", [{"cur": "EUR", "bid": 7 * step % 5}])
        bids["EUR"] = max(bids.get("EUR", 0), 7 * step % 5)
        db.settle(180)
        orders = [(10 * step + place, cur) for place, cur in enumerate(("EUR", "USD", "CHF", None))]
        db.append("orders", [{"id": id_, "cur": cur} for id_, cur in orders])
        db.settle(180)
        rated += [(id_, rates.get(cur or "")) for id_, cur in orders]
        beside += [(id_, bids[cur]) for id_, cur in orders if cur in bids]
        joined += [(cur, rates[cur]) for _, cur in orders if cur in rates]
        assert read(db, "rated") == in_order(rated), f"after step {step}"
        assert read(db, "beside") == in_order(beside), f"after step {step}"
        counts = Counter(cur for cur, _ in joined)
        sums = [(cur, n, sum(rate for other, rate in joined if other == cur)) for cur, n in counts.items()]
        assert read(db, "sums") == in_order(sums), f"after step {step}"
        assert read(db, "read_back") == in_order(rated), f"after step {step}"
        if step == 1:
            db.close()
            db = opened()
    assert {change.op for change in check_change_log(db, "rated", key=())} == {"insert"}
