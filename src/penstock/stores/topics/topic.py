"""An open topic: the one place that appends to it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from penstock.errors import RuntimeFailure
from penstock.frozen import frozen
from penstock.stores.private_files import PRIVATE_DIRECTORY, PRIVATE_FILE, sync_directory
from penstock.stores.topics.ends import ENDS_FILE, EndsFile
from penstock.stores.topics.layout import TopicFile, TopicLayout, write_topic_file
from penstock.stores.topics.partition_log import LogPolicy, PartitionLog
from penstock.stores.topics.record_batches import payload_flags, payloads
from penstock.stores.topics.repair import open_partition

if TYPE_CHECKING:
    import pyarrow as pa


@frozen
class Appended:
    """Where rows went: `count` rows of a partition from `first_offset` on."""

    partition: int
    first_offset: int
    count: int


class Topic:
    """A topic that can be appended to. Any thread may use it; one process at a time has it open.

    `repaired` tells, in words, what opening it after a crash found and cut.
    """

    def __init__(self, directory: Path, file: TopicFile, clock: Callable[[], int]) -> None:
        self.directory = directory
        self.name = file.name
        self._file = file
        self._clock = clock
        self._lock = Lock()
        self._logs: list[PartitionLog] = []
        self.repaired: tuple[str, ...] = ()
        self._guard = _only_writer(directory)
        self._ends = EndsFile(directory / ENDS_FILE, writable=True)
        try:
            self._open_logs()
        except BaseException:
            self._release()
            raise

    @property
    def layout(self) -> TopicLayout:
        return self._file.layout

    @property
    def schema(self) -> pa.Schema:
        return self._file.schema

    def append(
        self, partition: int, batch: pa.RecordBatch | pa.Table, producer: tuple[str, int] | None = None
    ) -> Appended:
        """Append rows to a partition; they are as durable as the policy says when this returns.

        Hidden columns that are missing are filled: `__timestamp` with the time of the append, the others with NULL.
        `producer` is a name and a batch number. The same pair given to the partition again appends nothing and returns
        the place of the first, so the name must be another one after a producer began to count anew.
        """
        log = self._log(partition)
        rows = payloads(self.name, batch, self.schema)
        first_offset, count = log.append(rows, payload_flags(batch), self._clock(), producer)
        return Appended(partition, first_offset, count)

    def ends(self) -> dict[int, int]:
        """The next offset of each partition."""
        return {partition: log.end.next_offset for partition, log in enumerate(self._logs)}

    def starts(self) -> dict[int, int]:
        """The oldest offset that each partition keeps."""
        return {partition: log.end.start_offset for partition, log in enumerate(self._logs)}

    def apply_retention(self, now_us: int) -> None:
        """Let go of whole segments that are older or larger than what is kept."""
        for log in self._logs:
            log.apply_retention(now_us)

    def sync(self) -> None:
        """Force what was appended to disk, whatever the policy."""
        for log in self._logs:
            log.sync()

    def relayout(self, layout: TopicLayout) -> None:
        """Take on another policy, and more partitions; never fewer."""
        with self._lock:
            wanted = replace(layout, partitions=max(layout.partitions, self.layout.partitions))
            if wanted != self.layout:
                file = replace(self._file, layout=wanted)
                write_topic_file(self.directory, file)
                self._file = file
                self._open_logs()

    def close(self) -> None:
        """Close the topic so that the next open has nothing to repair; closing twice is fine."""
        with self._lock:
            try:
                for log in self._logs:
                    log.close()
                if self._guard >= 0:
                    self._ends.sync()
            finally:
                self._release()

    def _open_logs(self) -> None:
        """Open the partitions that are not open yet, and give all of them the policy."""
        layout = self.layout
        known = self._ends.read()
        self._ends.fill(layout.partitions)
        for partition in range(len(self._logs), layout.partitions):
            directory = self.directory / str(partition)
            if not directory.exists():
                directory.mkdir(mode=PRIVATE_DIRECTORY)
                sync_directory(self.directory)
            title = f"topic {self.name}, partition {partition}"
            opened = open_partition(directory, title, known[partition] if partition < len(known) else None)
            # Readers count a partition from now on, and see what the repair has found.
            end = replace(opened.end, number=opened.end.number + 1)
            self._ends.write(partition, end)
            self._logs.append(PartitionLog(directory, partition, self._ends, replace(opened, end=end)))
            self.repaired += opened.repaired
        policy = LogPolicy(layout.fsync, layout.retention_us, layout.retention_bytes)
        for log in self._logs:
            log.policy = policy

    def _log(self, partition: int) -> PartitionLog:
        if not 0 <= partition < len(self._logs):
            raise RuntimeFailure(
                "INVALID_ROWS",
                f"topic {self.name} has no partition {partition}",
                hint=f"give a partition from 0 to {len(self._logs) - 1}",
            )
        return self._logs[partition]

    def _release(self) -> None:
        if self._guard >= 0:
            self._ends.close()
            os.close(self._guard)
            self._guard = -1


def _only_writer(directory: Path) -> int:
    """Hold the topic for this process: two writers would write over each other."""
    import fcntl

    descriptor = os.open(directory / "writer.lock", os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise RuntimeFailure(
            "ENGINE_ALREADY_RUNNING",
            f"another process writes to the topic in {directory}",
            hint="stop the other process, or use another state_path",
        ) from None
    return descriptor
