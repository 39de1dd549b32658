"""I2, I5, I7, I8: the conformance tests find what a connector does wrong, and every source of ours passes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.connectors import generator_reader
from penstock.connectors.connector import Connector, ConnectorConfig
from penstock.connectors.memory import clear_memory, memory_topics
from penstock.connectors.registry import source_of
from penstock.errors import PenstockError
from penstock.stores.topics import TopicStore
from penstock.testing.connectors import ConnectorConformance, check_connector, conformance_tests
from tests.unit.connectors.declared import source
from tests.unit.connectors.ours import as_connector

SCHEMA = pa.schema([("n", pa.int64()), ("text", pa.string())])


class Numbers(Connector):
    """Numbers from 0 to below 40, dealt to two partitions: a connector as short as they get."""

    schema = SCHEMA
    bounded = True
    total = 40

    def initialize(self, config: ConnectorConfig) -> None:
        self.all = range(config.partition, self.total, 2)
        self.at = 0

    def get_next_batch(self, max_rows: int) -> pa.RecordBatch | None:
        found = self.all[self.at : self.at + max_rows]
        self.at += len(found)
        return pa.RecordBatch.from_pylist([{"n": n, "text": str(n)} for n in found], SCHEMA)

    def get_current_offset(self) -> Any:
        return self.at

    def seek_to_offset(self, offset: Any) -> None:
        self.at = offset

    def has_more(self) -> bool:
        return self.at < len(self.all)

    def get_partition_count(self) -> int:
        return 2


class TestNumbers(ConnectorConformance):
    connector = Numbers


class Unbounded(Numbers):
    bounded = False


class Letters(Numbers):
    """Offsets that are objects, and no word about having more."""

    def get_current_offset(self) -> Any:
        return {"place": self.at, "tuple": (1, self.at)}

    def seek_to_offset(self, offset: Any) -> None:
        assert offset["tuple"] == [1, offset["place"]]
        self.at = offset["place"]


@pytest.mark.parametrize("connector", [Numbers, Unbounded, Letters])
def test_good_ones_pass(connector: type[Connector]) -> None:
    check_connector(connector, limit=100)
    check_connector(connector, limit=15)


class TooMany(Numbers):
    def get_next_batch(self, max_rows: int) -> pa.RecordBatch | None:
        return super().get_next_batch(max_rows + 1)


class Forgetful(Numbers):
    """Comes back one row too late."""

    def seek_to_offset(self, offset: Any) -> None:
        self.at = offset + 1


class Repeating(Numbers):
    """Comes back one row too early, and says it does not."""

    def seek_to_offset(self, offset: Any) -> None:
        self.at = max(0, offset - 1)

    def get_current_offset(self) -> Any:
        return self.at


class Restless(Numbers):
    """Rows that are others each time they are read."""

    made = 0

    def get_next_batch(self, max_rows: int) -> pa.RecordBatch | None:
        batch = super().get_next_batch(max_rows)
        Restless.made += 1
        return None if batch is None else batch.set_column(1, "text", pa.array([str(Restless.made)] * batch.num_rows))


class Standing(Numbers):
    def get_current_offset(self) -> Any:
        return 0


class Backwards(Numbers):
    def get_current_offset(self) -> Any:
        return -self.at

    def seek_to_offset(self, offset: Any) -> None:
        self.at = -offset


class Unkept(Numbers):
    def get_current_offset(self) -> Any:
        return {self.at}


class OtherSchema(Numbers):
    schema = pa.schema([("n", pa.int32()), ("text", pa.string())])


class Endless(Numbers):
    """Bounded, and never at its end."""

    def has_more(self) -> bool:
        return True


class Lossy(Numbers):
    """A commit that takes rows away."""

    def commit_offset(self, offset: Any) -> None:
        self.at += 1


class Drifting(Numbers):
    """Moves on without a row."""

    def get_next_batch(self, max_rows: int) -> pa.RecordBatch | None:
        batch = super().get_next_batch(max_rows)
        if batch is not None and batch.num_rows == 0:
            self.at += 1
        return batch

    def has_more(self) -> bool:
        return True

    bounded = False


class Uneven(Numbers):
    def get_partition_count(self) -> int:
        return 2 + self.all[0]


class Nobody(Numbers):
    def get_partition_count(self) -> int:
        return 0


class TimeBack(Numbers):
    def extract_watermark(self, batch: pa.RecordBatch) -> int | None:
        return -int(batch.column(0)[0].as_py())

    total = 400


class TimeText(Numbers):
    def extract_watermark(self, batch: pa.RecordBatch) -> Any:
        return "now"


class Empty(Numbers):
    total = 0


class Raising(Numbers):
    def get_next_batch(self, max_rows: int) -> pa.RecordBatch | None:
        raise KeyError("no such thing")


@pytest.mark.parametrize(
    ("connector", "words"),
    [
        (TooMany, "and was asked for at most"),
        (Forgetful, "other rows behind|rows are missing|the offset is"),
        (Repeating, "the offset is|other rows behind"),
        (Restless, "hold other rows"),
        (Standing, "the offset is still 0"),
        (Backwards, "is not behind"),
        (Unkept, "JSON cannot hold"),
        (OtherSchema, "and the schema is"),
        (Endless, r"has_more\(\) is true"),
        (Lossy, "commits change no row"),
        (Drifting, "the offset moved"),
        (Uneven, "counts 3, not 2"),
        (Nobody, "at least one partition"),
        (TimeBack, "behind an earlier one"),
        (TimeText, "not milliseconds"),
        (Empty, "no partition has a row"),
        (Raising, "get_next_batch raised KeyError"),
    ],
)
def test_bad_ones_are_found(connector: type[Connector], words: str) -> None:
    with pytest.raises((AssertionError, PenstockError), match=words):
        check_connector(connector, limit=300)


def test_all_tests_are_run_by_the_function_too() -> None:
    assert len(conformance_tests()) == 12


def topic(path: Path, connector: str) -> type[Connector]:
    definition = source(f"CREATE STREAM t (n BIGINT, text STRING) WITH (connector = '{connector}', partitions = 3)")
    with TopicStore(path / "topics") as store:
        source_of(connector).prepare(definition, path, store)
        opened = (memory_topics(path) if connector == "memory" else store).open("t")
        for start in range(0, 60, 12):
            rows = pa.table({"n": pa.array(range(start, start + 12)), "text": [str(n) for n in range(12)]})
            opened.append(start // 12 % 2, rows)  # nothing ever goes to the last partition
    return as_connector(definition, path)


def files(path: Path, ending: str, options: str) -> type[Connector]:
    """Three files of a kind, with 20 records each."""
    folder = path / "files"
    folder.mkdir()
    for number in range(3):
        rows = [{"n": number * 20 + row, "text": f"t{row}"} for row in range(20)]
        file = folder / f"{number}.{ending}"
        if ending == "parquet":
            pq.write_table(pa.Table.from_pylist(rows, SCHEMA), file)
        elif ending == "csv":
            file.write_text("".join(f"{row['n']},{row['text']}\n" for row in rows))
        else:
            file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return as_connector(
        source(f"CREATE TABLE f (n BIGINT, text STRING) WITH (connector = 'file', path = '{folder}', {options})"), path
    )


OURS: dict[str, Callable[[Path], type[Connector]]] = {
    "topic": lambda path: topic(path, "topic"),
    "memory": lambda path: topic(path, "memory"),
    "file of JSON lines": lambda path: files(path, "jsonl", "format = 'json'"),
    "files that are tailed": lambda path: files(path, "csv", "format = 'csv', tail = true"),
    "Parquet": lambda path: files(path, "parquet", "format = 'parquet'"),
    "datagen": lambda path: as_connector(
        source(
            "CREATE TABLE g (n BIGINT, text STRING) WITH (connector = 'datagen', number_of_rows = 101, partitions = 3)"
        ),
        path,
    ),
    "impulse": lambda path: as_connector(
        source(
            "CREATE TABLE i WITH (connector = 'impulse', message_count = 50, event_rate = 1000000, partitions = 2, "
            "start_timestamp = 0)"
        ),
        path,
    ),
    "nexmark": lambda path: as_connector(
        source("CREATE TABLE n WITH (connector = 'nexmark', event_count = 150, out_of_order = 0.1, partitions = 2)"),
        path,
    ),
    "endless nexmark": lambda path: as_connector(
        source("CREATE STREAM n WITH (connector = 'nexmark', table_type = 'bid')"), path
    ),
}


@pytest.mark.parametrize("name", OURS)
def test_every_source_of_ours_passes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # What a generator has made by now is a question of the clock: here it goes on by as much with each look.
    ticks = count(1_800_000_000_000_000, 1000)
    monkeypatch.setattr(generator_reader, "now_us", lambda: next(ticks))
    try:
        check_connector(OURS[name](tmp_path), limit=120)
    finally:
        clear_memory(tmp_path)
