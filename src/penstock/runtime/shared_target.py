"""Where the rows of a job go that runs several INSERTs over one reading of a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from penstock.runtime.targets import SinkTarget
    from penstock.stores.views import CommitResult, SeenVersion


class SharedTarget:
    """Several sinks, each with a query of its own over the rows of a batch.

    The rows are read once and kept while the queries run; all of them are done before the first sink is written to. A
    batch that breaks off between two sinks is run again, and each sink takes it or knows it already, as it promises.
    """

    view: str | None = None
    keeps_rows: bool = False
    counted: bool = False

    def __init__(self, scan: str, branches: Sequence[tuple[str, SinkTarget]]) -> None:
        """`scan` is the name under which the queries of `branches` read the rows."""
        self._scan = scan
        self._branches = branches
        self._taken: list[tuple[SinkTarget, pa.Table | None, int | None]] = []

    def take(self, frame: DataFrame, input_rows: int, batch_id: int) -> pa.Table | None:
        kept = frame.persist()
        try:
            kept.count()  # every row passes what is observed once, also those that no query asks for
            kept.createOrReplaceTempView(self._scan)
            session = kept.sparkSession
            self._taken = [self._one(session.sql(text), to, input_rows, batch_id) for text, to in self._branches]
        finally:
            kept.unpersist()
        return None

    def _one(
        self, frame: DataFrame, target: SinkTarget, input_rows: int, batch_id: int
    ) -> tuple[SinkTarget, pa.Table | None, int | None]:
        count = frame.count() if target.counted else None
        return target, target.take(frame, input_rows, batch_id), count

    def write(
        self,
        rows: pa.Table | None,
        batch_id: int,
        closing_us: int = 0,
        clock_us: int = 0,
        versions: tuple[SeenVersion, ...] = (),
    ) -> int | None:
        """Write to one sink after the other; how many rows all of them got, as far as they tell."""
        found = []
        for target, taken, count in self._taken:
            written = target.write(taken, batch_id, closing_us, clock_us)
            found.append(written if count is None else count)
        self._taken = []
        told = [each for each in found if each is not None]
        return sum(told) if told else None

    def deliver(self, rows: pa.Table | None, result: CommitResult) -> None:
        """Nothing: the rows are already there."""

    def close(self) -> None:
        """The run ends: all sinks let go of what they hold for it."""
        for _, target in self._branches:
            target.close()
