"""When a run says that it processed each bid: for query 12, whose answer depends on the clock.

All rows of a batch have the time that Spark wrote into its log of offsets when it planned the batch. The same log says
which rows of the topic the batch has.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.connectors.registry import source_of
from penstock.errors import PenstockError, RuntimeFailure
from penstock.spark.offset_log import read_offsets

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_BATCHES: Final = 1_000_000


class Bidders:
    """The bidders of the rows of a topic, partition by partition; NULL for an event that is no bid."""

    def __init__(self) -> None:
        self._parts: dict[int, list[pa.Array]] = {}

    def add(self, partition: int, events: pa.RecordBatch) -> None:
        """The events that were appended to a partition next."""
        import pyarrow.compute as pc

        self._parts.setdefault(partition, []).append(pc.struct_field(events.column("bid"), "bidder"))

    def arrivals(self, checkpoint: Path) -> pa.Table:
        """The bids with the times at which a job processed them, read from its checkpoint."""
        import pyarrow as pa

        columns = {partition: pa.chunked_array(parts) for partition, parts in self._parts.items()}
        found: list[pa.Table] = []
        read = dict.fromkeys(columns, 0)
        for batch in range(_MOST_BATCHES):
            try:
                logged = read_offsets(checkpoint, batch)
            except PenstockError:
                break
            if logged.sources[0] is None:
                continue
            for partition, end in source_of("topic").positions(logged.sources[0]).items():
                bidders = columns[partition].slice(read[partition], end - read[partition]).drop_null()
                # A drain has moved the job's clock past the windows that it closed.
                moment = pa.scalar(max(logged.timestamp_ms, logged.watermark_ms), pa.timestamp("ms"))
                found.append(pa.table({"bidder": bidders, "arrived": pa.repeat(moment, len(bidders))}))
                read[partition] = end
        if any(read[partition] < len(column) for partition, column in columns.items()):
            raise RuntimeFailure(
                "JOB_STATE",
                "the checkpoint no longer says when the first batches were processed",
                hint="verify q12 with fewer events or larger batches",
            )
        return pa.concat_tables(found)
