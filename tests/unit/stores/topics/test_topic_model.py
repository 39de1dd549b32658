"""Random appends, crashes, retention and reopening of a topic, held against a list."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from penstock.errors import PenstockError
from penstock.stores.topics import Topic, TopicReader, TopicStore, partition_log
from tests.unit.stores.topics.samples import NOON_US, crashed_copy, layout, numbers, reader_of, segment_of

# Small, so that a run has many segments.
SEGMENT = 3_000


class TopicMachine(RuleBasedStateMachine):
    """`rows` is what the topic must hold: the value at each offset; `batches` where each batch went."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="topic-model-"))
        self.small = mock.patch.object(partition_log, "SEGMENT_BYTES", SEGMENT)
        self.small.start()
        self.turns = 0
        self.now_us = NOON_US
        self.rows: list[int] = []
        self.start = 0
        self.batches: dict[int, tuple[int, int]] = {}
        self.root = self.place / "0"

    @initialize(fsync=st.sampled_from(["always", "interval", "never"]))
    def create(self, fsync: str) -> None:
        self.layout = layout(fsync=fsync, retention_us=80_000_000)
        self.open()

    def open(self) -> None:
        self.store = TopicStore(self.root, clock=lambda: self.now_us)
        self.topic: Topic = self.store.create("t", self.layout)
        self.reader: TopicReader = reader_of(self.store)

    @rule(count=st.integers(1, 60), seconds=st.integers(0, 15))
    def append(self, count: int, seconds: int) -> None:
        self.now_us += seconds * 1_000_000
        first = len(self.rows)
        place = self.topic.append(0, numbers(first, count))
        assert (place.first_offset, place.count) == (first, count)
        self.rows += range(first, first + count)

    @rule(batch=st.integers(0, 9), count=st.integers(1, 30))
    def append_batch(self, batch: int, count: int) -> None:
        first, kept = self.batches.get(batch, (len(self.rows), count))
        place = self.topic.append(0, numbers(len(self.rows), count), ("job", batch))
        assert (place.first_offset, place.count) == (first, kept)
        if batch not in self.batches:
            self.rows += range(first, first + count)
            self.batches[batch] = (first, count)

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.open()
        assert self.topic.repaired == ()

    @rule(garbage=st.binary(max_size=200))
    def crash(self, garbage: bytes) -> None:
        """The process dies, with something half written behind the end."""
        self.move()
        with segment_of(self.topic).open("ab") if self.rows else mock.MagicMock() as file:
            file.write(garbage)
        self.open()
        assert bool(self.topic.repaired) == bool(garbage and self.rows)

    @precondition(lambda self: self.topic.ends()[0] > self.topic.starts()[0])
    @rule(part=st.floats(0, 0.99))
    def crash_in_the_middle_of_an_append(self, part: float) -> None:
        """The process dies in an append: some of its bytes are there, the end has not moved."""
        ends = (self.topic.directory / "ends").read_bytes()
        before = segment_of(self.topic)
        size = before.stat().st_size
        self.topic.append(0, numbers(-5, 5))
        self.move()
        directory = self.root / "t"
        (directory / "ends").write_bytes(ends)
        last = max(directory.glob("0/*.segment"))
        kept = 0 if last.name != before.name else size
        cut = kept + int((last.stat().st_size - kept) * part)
        with last.open("r+b") as file:
            file.truncate(cut)
        self.open()

    def move(self) -> None:
        """Go on with a copy of the files, as another process would find them."""
        self.turns += 1
        old, self.root = self.root, self.place / str(self.turns)
        crashed_copy(old, self.root)
        self.store.close()
        shutil.rmtree(old)
        self.topic.directory = self.root / "t"

    @rule()
    def apply_retention(self) -> None:
        self.topic.apply_retention(self.now_us)
        start = self.topic.starts()[0]
        assert self.start <= start <= len(self.rows)
        self.start = start

    @invariant()
    def holds_what_the_model_holds(self) -> None:
        if not hasattr(self, "topic"):
            return
        end = len(self.rows)
        assert self.topic.ends() == self.reader.ends() == {0: end}
        assert self.topic.starts() == self.reader.starts() == {0: self.start}
        batches = list(self.reader.read(0, self.start, end, ["n"], max_rows=25))
        assert [n for batch in batches for n in batch.column("n").to_pylist()] == self.rows[self.start :]
        if self.start:
            with pytest.raises(PenstockError):
                next(self.reader.read(0, self.start - 1, end))

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
        self.small.stop()
        shutil.rmtree(self.place)


TestTopicMachine = TopicMachine.TestCase
TestTopicMachine.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
