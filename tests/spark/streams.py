"""Small streams over JSON files, for tests of the calls into Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.spark.watermark_calls import QueryHandle, delayed, own_watermark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Stream:
    """A query over rows that the test puts in; its results by batch, and its handle."""

    def __init__(self, spark: SparkSession, directory: Path, build: Callable[[DataFrame], DataFrame]) -> None:
        self.checkpoint = directory / "checkpoint"
        self.results: list[tuple[int, tuple[Any, ...]]] = []
        self.inside: list[Callable[[int], None]] = []  # called in each batch, when its action is done
        self._input = directory / "input"
        self._input.mkdir(exist_ok=True)
        rows = spark.readStream.schema("k STRING, ts TIMESTAMP, v BIGINT").json(str(self._input))
        self._frame = build(own_watermark(rows, "ts").select("k", delayed("ts", 0), "v"))
        self._count = len(list(self._input.iterdir()))
        self.handle: QueryHandle

    def start(self) -> None:
        writer = self._frame.writeStream.foreachBatch(self._batch).outputMode("append")
        query = writer.option("checkpointLocation", str(self.checkpoint)).start()
        self.handle = QueryHandle(query)

    def _batch(self, frame: DataFrame, batch_id: int) -> None:
        self.results += [(batch_id, tuple(row)) for row in frame.collect()]
        for call in self.inside:
            call(batch_id)

    def put(self, rows: Sequence[tuple[str, int, int]]) -> None:
        """Rows of key, time in milliseconds and value."""
        texts = [
            json.dumps(
                {"k": key, "ts": f"1970-01-01T00:{ms // 60000:02d}:{ms // 1000 % 60:02d}.{ms % 1000:03d}Z", "v": v}
            )
            for key, ms, v in rows
        ]
        path = self._input / f"{self._count:04d}.json"
        part = path.parent.parent / "part"
        part.write_text("\n".join(texts))
        part.rename(path)
        self._count += 1

    def settle(self) -> None:
        self.handle.query.processAllAvailable()

    def stop(self) -> None:
        self.settle()
        self.handle.query.stop()
