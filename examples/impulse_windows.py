"""The impulse source with windows that find the event time by themselves: tumble(size), hop(slide, size), session(gap).

An impulse source makes one row an interval, here a minute apart, from a time that is given: the same rows each time,
and no broker. It ends after so many rows, which closes every window and stops the jobs.

    python examples/impulse_windows.py

Prints:
tumble(interval '1 hour')
  00:00 - 01:00  rows 60  counters 0 to 59
  01:00 - 02:00  rows 60  counters 60 to 119
  02:00 - 03:00  rows 30  counters 120 to 149
hop(interval '1 hour', interval '2 hour')
  23:00 - 01:00  rows 60  counters 0 to 59
  00:00 - 02:00  rows 120  counters 0 to 119
  01:00 - 03:00  rows 90  counters 60 to 149
  02:00 - 04:00  rows 30  counters 120 to 149
session(interval '5 minute')
  00:00 - 02:34  rows 150  counters 0 to 149
"""

from __future__ import annotations

import tempfile

import penstock

SOURCE = """
CREATE TABLE impulse_source (
    timestamp TIMESTAMP,
    counter BIGINT UNSIGNED NOT NULL,
    subtask_index BIGINT UNSIGNED NOT NULL
) WITH (
    connector = 'impulse',
    type = 'source',
    event_time_field = 'timestamp',
    event_rate = 1000000,
    message_count = 150,
    interval = INTERVAL '1' MINUTE,
    start_timestamp = '2026-01-01 00:00:00'
)
"""
WINDOWS = {
    "tumbling": "tumble(interval '1 hour')",
    "hopping": "hop(interval '1 hour', interval '2 hour')",
    "sessions": "session(interval '5 minute')",
}


def main() -> None:
    """One view a kind of window, each until its input has ended."""
    with tempfile.TemporaryDirectory() as directory, penstock.connect(directory) as db:
        db.execute(SOURCE)
        for view, window in WINDOWS.items():
            db.execute(f"""
                CREATE MATERIALIZED VIEW {view} AS
                SELECT {window} as window, subtask_index, count(*) as rows, min(counter) as low, max(counter) as high
                FROM impulse_source
                GROUP BY window, subtask_index
            """)
        db.settle()
        for view, window in WINDOWS.items():
            print(window)
            rows = db.sql(f"SELECT window.start, window.end, rows, low, high FROM {view} ORDER BY 1").rows()
            for start, end, count, low, high in rows:
                print(f"  {start:%H:%M} - {end:%H:%M}  rows {count}  counters {low} to {high}")


if __name__ == "__main__":
    main()
