"""Micro-batch tailing: one query asked again and again while another program adds Parquet files.

Ten rounds; here a fifth of a second apart, on a dashboard every few seconds. Each answer is computed from the files
that are there when it is asked, so counts grow by what has been written meanwhile. In the end one file is replaced,
and a round is asked for by an event instead of the clock.

    python examples/micro_batch_tailing.py

Prints:
round 1: books 2 at 15.00, toys 1 at 5.00
round 2: books 3 at 13.33, toys 2 at 5.50
round 3: books 4 at 12.50, toys 3 at 6.00
round 4: books 5 at 12.00, toys 4 at 6.50
round 5: books 6 at 11.67, toys 5 at 7.00
round 6: books 7 at 11.43, toys 6 at 7.50
round 7: books 8 at 11.25, toys 7 at 8.00
round 8: books 9 at 11.11, toys 8 at 8.50
round 9: books 10 at 11.00, toys 9 at 9.00
round 10: books 11 at 10.91, toys 10 at 9.50
after an event: books 10 at 10.00, toys 10 at 9.50
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from threading import Event

import pyarrow as pa
import pyarrow.parquet as pq

import penstock

QUERY = """
    SELECT
        category,
        COUNT(*) as cnt,
        AVG(value) as avg_val
    FROM realtime
    GROUP BY category
    ORDER BY category
"""


def write(directory: Path, name: str, rows: list[tuple[str, float]]) -> None:
    """What the other program does: a file is complete when it gets its name."""
    table = pa.table({"category": [category for category, _ in rows], "value": [value for _, value in rows]})
    hidden = directory / f".{name}"
    pq.write_table(table, hidden)
    hidden.rename(directory / name)


def told(answer: penstock.Result) -> str:
    """An answer in words."""
    return ", ".join(f"{category} {count} at {average:.2f}" for category, count, average in answer)


def main() -> None:
    """Tail a directory that grows."""
    with tempfile.TemporaryDirectory() as home:
        directory = Path(home) / "continuous_data"
        directory.mkdir()
        write(directory, "0.parquet", [("books", 10.0), ("books", 20.0), ("toys", 5.0)])
        with penstock.connect(Path(home) / "state") as db:
            db.execute(f"""
                CREATE TABLE realtime (category STRING, value DOUBLE)
                WITH (connector = 'file', path = '{directory}', format = 'parquet')
            """)
            for number, answer in enumerate(db.tail_query(QUERY, every=0.2, iterations=10), start=1):
                print(f"round {number}: {told(answer)}")
                if number < 10:
                    write(directory, f"{number}.parquet", [("books", 10.0), ("toys", 5.0 + number)])

            event = Event()
            answers = db.tail_query(QUERY, event=event, iterations=2)
            next(answers)
            write(directory, "0.parquet", [("books", 10.0), ("toys", 5.0)])
            event.set()
            print(f"after an event: {told(next(answers))}")


if __name__ == "__main__":
    main()
