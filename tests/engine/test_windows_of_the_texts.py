"""Windows as the texts write them: over orders in JSON, and as a struct."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import timedelta
from decimal import Decimal

import pytest

import penstock
from tests.engine.answers import at, in_order, ms
from tests.project import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

SEED = (ROOT / "tests" / "fixtures" / "seeds" / "000_window_functions.sql").read_text(encoding="utf-8")
HOUR, SLIDE = 3600, 300


def test_orders_by_the_hour(db: penstock.Database) -> None:
    """V6, B10: the statements of the text, each as it stands there; a window is a struct with two fields, too."""
    stream, tumble, hop = (part.strip() for part in SEED.partition("---")[0].split(";")[:3])
    db.execute(stream)
    orders = [("o1", "12.34", 10), ("o2", "0.66", 3599), ("o3", "100.00", 3600), ("o4", "50.50", 9000)]
    db.append(
        "orders",
        [
            json.dumps({"order_id": i, "customer_id": "c", "amount": float(a), "event_time": ms(t)}).encode()
            for i, a, t in orders
        ],
    )
    hours: dict[int, Decimal] = defaultdict(Decimal)
    hops: dict[int, list[Decimal]] = defaultdict(list)
    for _, amount, second in orders:
        hours[second // HOUR * HOUR] += Decimal(amount)
        for start in range(second // SLIDE * SLIDE, second - HOUR, -SLIDE):
            hops[start].append(Decimal(amount))
    assert in_order(db.select_once(tumble).rows()) == in_order(
        (at(start), at(start + HOUR), total) for start, total in hours.items()
    )
    found = db.select_once(hop)
    assert found.columns == ["window_start", "avg_amount"]
    means = {start: round(float(sum(values) / len(values)), 6) for start, values in hops.items()}
    assert {start: round(float(mean), 6) for start, mean in found.rows()} == {
        at(start): m for start, m in means.items()
    }
    struct = """
        SELECT w.window_start, w.window_end, w.start, w.end, n FROM (
            SELECT TUMBLE(event_time, INTERVAL '1 hour') AS w, COUNT(*) AS n FROM orders GROUP BY TUMBLE(event_time, INTERVAL '1 hour')
        ) AS hours
    """
    for start, end, same_start, same_end, n in db.select_once(struct).rows():
        assert (same_start, same_end, end - start) == (start, end, timedelta(hours=1))
        assert n == (2 if start == at(0) else 1)
