"""CREATE STREAM and a materialized view over it: hours of sales, kept up to date while orders come in.

The stream declares no watermark, so the column that the window reads is its event time, five seconds of disorder
allowed. The view can be queried at any time, and its changes can be followed.

    python examples/create_stream_materialized_view.py

Prints:
orders of two hours are in, the first hour is complete
  10:00  total 112.34  orders 2
a later order completes the second hour
  10:00  total 112.34  orders 2
  11:00  total 30.00  orders 1
changes since the first look
  insert 11:00  total 30.00  orders 1
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from typing import Any

import penstock

SCRIPT = """
CREATE STREAM orders (
    order_id VARCHAR,
    customer_id VARCHAR,
    amount DECIMAL,
    event_time TIMESTAMP
) WITH (topic = 'orders', format = 'json');

CREATE MATERIALIZED VIEW hourly_sales AS
SELECT
    TUMBLE_START(event_time, INTERVAL '1 hour') as hour,
    SUM(amount) as total_sales,
    COUNT(*) as order_count
FROM orders
GROUP BY TUMBLE(event_time, INTERVAL '1 hour');
"""


def told(row: Mapping[str, Any]) -> str:
    """One row of the view in words."""
    return f"{row['hour']:%H:%M}  total {row['total_sales']:.2f}  orders {row['order_count']}"


def show(db: penstock.Database) -> None:
    """The view as it is now."""
    for row in db.sql("SELECT * FROM hourly_sales ORDER BY hour").arrow().to_pylist():
        print(" ", told(row))


def main() -> None:
    """Orders of two hours, then one that completes the second."""
    with tempfile.TemporaryDirectory() as directory, penstock.connect(directory) as db:
        db.execute(SCRIPT)
        db.append(
            "orders",
            [
                {"order_id": "1", "customer_id": "ada", "amount": "12.34", "event_time": "2026-01-01T10:05:00Z"},
                {"order_id": "2", "customer_id": "bob", "amount": "100", "event_time": "2026-01-01T10:59:59Z"},
                {"order_id": "3", "customer_id": "ada", "amount": "30.00", "event_time": "2026-01-01T11:20:00Z"},
            ],
        )
        db.settle()
        print("orders of two hours are in, the first hour is complete")
        show(db)
        seen = max(change.seq for change in db.subscribe("hourly_sales", timeout=0.1))

        # What comes from other programs is bytes: a JSON object a record.
        db.append(
            "orders",
            ['{"order_id": "4", "customer_id": "eve", "amount": 5, "event_time": "2026-01-01T12:00:05Z"}'],
        )
        db.settle()
        print("a later order completes the second hour")
        show(db)
        print("changes since the first look")
        for change in db.subscribe("hourly_sales", since=seen, timeout=0.1):
            assert change.row is not None
            print(" ", change.op, told(change.row))


if __name__ == "__main__":
    main()
