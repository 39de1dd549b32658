"""How fast an embedded topic is: rows appended and read in a second, and what an idle reader costs.

Trades of five columns in batches of 10,000, each forced to disk before it counts.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.catalog.model import ColumnDefinition
from penstock.stores.topics import Topic, TopicLayout, TopicReader, TopicStore
from penstock.stores.topics.partition_choice import choose_partitions
from penstock.stores.topics.rows import rows_to_table
from penstock.types import BIGINT, INT, STRING, TIMESTAMP, SqlType

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = (
    ("id", BIGINT),
    ("symbol", STRING),
    ("price", SqlType("DECIMAL", (12, 4))),
    ("volume", INT),
    ("ts", TIMESTAMP),
)
BATCH = 10_000
BATCHES = 200
AIM = 500_000


def trades(first: int) -> list[dict[str, object]]:
    """A batch of trades, as a program hands them over."""
    return [
        {
            "id": first + place,
            "symbol": f"SYM{place % 50}",
            "price": Decimal(place % 10_000) / 4,
            "volume": place % 1_000,
            "ts": 1_700_000_000_000 + first + place,
        }
        for place in range(BATCH)
    ]


def show(name: str, rows: int, seconds: float, aim: int | None = None) -> None:
    """Print one figure."""
    rate = rows / seconds
    verdict = "" if aim is None else f"   {'within' if rate >= aim else 'UNDER'} the aim of {aim:,} rows/s"
    print(f"{name:<52} {rate:14,.0f} rows/s   {seconds * 1e3:9.1f} ms{verdict}")


def timed(work: Callable[[], object]) -> float:
    """How many seconds some work takes."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def append_all(topic: Topic, batch: pa.Table) -> None:
    """Append every batch, over the partitions in turn."""
    for number in range(BATCHES):
        topic.append(number % topic.layout.partitions, batch, ("bench", number))


def read_all(reader: TopicReader, columns: list[str] | None) -> int:
    """Read everything; the number of rows."""
    ends = reader.ends()
    return sum(batch.num_rows for partition, end in ends.items() for batch in reader.read(partition, 0, end, columns))


def main() -> int:
    """Measure and print."""
    place = Path(tempfile.mkdtemp(prefix="topic-bench-"))
    try:
        declared = [ColumnDefinition(name, type_) for name, type_ in COLUMNS]
        rows = trades(0)
        batch = rows_to_table(rows, declared)
        total = BATCH * BATCHES
        show("dicts to Arrow", BATCH, timed(lambda: rows_to_table(rows, declared)))
        show("Arrow to Arrow", BATCH, timed(lambda: rows_to_table(batch, declared)))
        show("partitions by key", BATCH, timed(lambda: choose_partitions(batch, 4, ["symbol"])))
        with TopicStore(place) as store:
            for fsync in ("always", "interval", "never"):
                topic = store.create(fsync, TopicLayout(COLUMNS, partitions=2, fsync=fsync))
                aim = AIM if fsync == "always" else None
                show(f"append, fsync {fsync}", total, timed(lambda topic=topic: append_all(topic, batch)), aim)  # type: ignore[misc]
            reader = TopicReader(store.open("always").directory)
            show("read, all columns", total, timed(lambda: read_all(reader, None)))
            show("read, two columns", total, timed(lambda: read_all(reader, ["symbol", "price"])))
            small = store.create("small", TopicLayout(COLUMNS, fsync="never"))
            one = batch.slice(0, 1)
            show(
                "append of single rows, fsync never", 5_000, timed(lambda: [small.append(0, one) for _ in range(5_000)])
            )
            show("read of single rows", 5_000, timed(lambda: read_all(TopicReader(small.directory), None)))
            idle = timed(lambda: [reader.ends() for _ in range(10_000)]) / 10_000
            print(f"{'ends() of an idle reader':<52} {idle * 1e6:14.1f} µs")
        seconds = timed(lambda: TopicStore(place).open("always").close())
        print(f"{'open after a close':<52} {seconds * 1e3:14.1f} ms")
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
