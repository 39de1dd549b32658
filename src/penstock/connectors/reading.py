"""How a scan is read: what the engine tells the reader in Spark's processes, as one JSON text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from penstock.frozen import frozen

if TYPE_CHECKING:
    from penstock.catalog.model import SourceDefinition
    from penstock.connectors.source import ScanRequest

# Two cores read 380,000 rows a second in batches of 200,000 rows, 680,000 in batches of 500,000, and 730,000 in batches
# of a million (benchmarks/topic_read.py); more would be slow to show the first results.
MAX_ROWS: Final = 1_000_000
# All rows of a batch of a connector of the user's are in memory for a moment.
MOST_OWN_ROWS: Final = 100_000
# So few rows are sent through the driver sooner than a worker has begun.
PREFETCH_ROWS: Final = 2_000


@frozen
class Reading:
    """The numbers that the engine and the options decide.

    run: the number of this start of the job.
    first: where partitions begin when nothing has been read yet, 0 for those not named; None: at the oldest rows.
    max_rows: the most rows of one Spark batch. max_tasks: the most readers at work on one batch.
    prefetch_rows: up to how many rows are handed over without a worker.
    wait_ms: how long to wait for rows before saying that there are none.
    nudges: a file that grows by a byte each time the job wants one more batch, with or without rows.
    """

    run: int
    first: Mapping[int, int] | None = field(default=None, hash=False)
    max_rows: int = MAX_ROWS
    max_tasks: int = 16
    batch_size: int = 10_000
    prefetch_rows: int = PREFETCH_ROWS
    wait_ms: int = 0
    nudges: str | None = None

    def run_now(self) -> int:
        """The number that makes Spark run a batch when it changes."""
        if self.nudges is None:
            return self.run
        try:
            return self.run + Path(self.nudges).stat().st_size
        except FileNotFoundError:
            return self.run


@frozen
class Scan:
    """All that a reader is told. `place` is how the connector finds its rows, in values that JSON can hold.

    start, end: offsets as JSON texts, for a batch read only; without a start it begins where a new job would.
    """

    place: Mapping[str, Any] = field(hash=False)
    reading: Reading
    start: str | None = None
    end: str | None = None

    def text(self) -> str:
        """The scan as the option `scan` of our data sources."""
        return json.dumps(asdict(self))


def read_scan(text: str) -> Scan:
    """What `Scan.text` wrote.

    >>> scan = Scan({"directory": "t"}, Reading(run=3, first={0: 7}))
    >>> read_scan(scan.text()) == scan
    True
    """
    kept = json.loads(text)
    reading = kept["reading"]
    if reading["first"] is not None:
        reading["first"] = {int(partition): at for partition, at in reading["first"].items()}
    return Scan(kept["place"], Reading(**reading), kept["start"], kept["end"])


def most_rows(definition: SourceDefinition, asked: int | None = None, usual: int = MAX_ROWS) -> int:
    """The most rows of one batch of a relation: what its job asks for, or its own option, or the usual."""
    from penstock.connectors.option_values import integer

    return asked or integer(definition.options.values, "max_rows_per_batch") or usual


def reading_of(request: ScanRequest, usual: int = MAX_ROWS) -> Reading:
    """How a scan is read, from the request and the options of its relation."""
    # Only the engine asks this; Spark's processes load the module too, and need nothing of the SQL behind options.
    from penstock.connectors.option_values import integer

    values = request.definition.options.values
    return Reading(
        run=request.run,
        first=request.first,
        max_rows=most_rows(request.definition, request.max_rows_per_batch, usual),
        max_tasks=integer(values, "max_parallelism") or 16,
        batch_size=integer(values, "batch_size") or 10_000,
        wait_ms=request.wait_ms,
        nudges=str(request.nudges.file) if request.nudges is not None else None,
    )
