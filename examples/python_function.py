"""Functions of your own in SQL: one over Arrow arrays, one over single values, one aggregate.

    python examples/python_function.py

Prints:
kWh -> cost
  kitchen  1.20 kWh  0.38
  cellar  0.40 kWh  0.13
  kitchen  2.00 kWh  0.64
  attic  9.90 kWh  3.17
by floor
  below  1 readings
  house  3 readings
each minute
  10:00  3 readings, largest step 0.80
  10:01  1 readings, largest step 0.00
"""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

import penstock

STREAM = """
CREATE STREAM readings (
    room STRING,
    kwh DOUBLE,
    ts TIMESTAMP,
    WATERMARK FOR ts
)
"""
ROWS = [
    {"room": "kitchen", "kwh": 1.2, "ts": datetime(2026, 1, 1, 10, 0, 5, tzinfo=UTC)},
    {"room": "cellar", "kwh": 0.4, "ts": datetime(2026, 1, 1, 10, 0, 20, tzinfo=UTC)},
    {"room": "kitchen", "kwh": 2.0, "ts": datetime(2026, 1, 1, 10, 0, 40, tzinfo=UTC)},
    {"room": "attic", "kwh": 9.9, "ts": datetime(2026, 1, 1, 10, 1, 10, tzinfo=UTC)},
]


def cost(kwh: pa.Array) -> pa.Array:
    """Thousands of rows in one call."""
    return pc.round(pc.multiply(kwh, 0.32), 2)


def floor(room: str) -> str:
    """One call a row."""
    return "below" if room == "cellar" else "house"


def largest_step(values: list[float]) -> float:
    """All values of a group at once."""
    ordered = sorted(values)
    return max((after - before for before, after in pairwise(ordered)), default=0.0)


def main() -> None:
    """Register, query, and keep views up to date."""
    with tempfile.TemporaryDirectory() as directory, penstock.connect(directory) as db:
        db.register_function("cost", cost, ["DOUBLE"], "DOUBLE")
        db.register_function("floor_of", floor)
        db.register_function(
            "largest_step", lambda values: round(largest_step(values), 2), [float], float, aggregate=True
        )
        db.execute(STREAM)
        db.execute("""
            CREATE MATERIALIZED VIEW floors AS
            SELECT floor_of(room) AS floor, COUNT(*) AS n FROM readings GROUP BY floor_of(room);

            CREATE MATERIALIZED VIEW minutes AS
            SELECT TUMBLE_START(ts, INTERVAL '1' MINUTE) AS minute, COUNT(*) AS n, largest_step(kwh) AS step
            FROM readings GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE);
        """)
        db.append("readings", ROWS)
        db.settle()
        db.drain("minutes")
        print("kWh -> cost")
        for room, kwh, price in db.select_once("SELECT room, kwh, cost(kwh) AS c FROM readings").rows():
            print(f"  {room}  {kwh:.2f} kWh  {price:.2f}")
        print("by floor")
        for name, count in db.sql("SELECT * FROM floors ORDER BY floor").rows():
            print(f"  {name}  {count} readings")
        print("each minute")
        for minute, count, step in db.sql("SELECT * FROM minutes ORDER BY minute").rows():
            print(f"  {minute:%H:%M}  {count} readings, largest step {step:.2f}")


if __name__ == "__main__":
    main()
