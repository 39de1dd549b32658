"""Connectors of somebody else, without Spark: what goes wrong is told by name, and offsets keep what a replay needs.

I1 to I8, SC19.
"""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from penstock.connectors.connector import Connector, ConnectorConfig
from penstock.connectors.cursors import Cursor
from penstock.connectors.custom import CustomSource
from penstock.connectors.custom_offsets import CustomOffset
from penstock.connectors.custom_reader import CustomBatchReader, CustomStreamReader, placed
from penstock.connectors.exchange import Exchange, Look, clear_exchanges
from penstock.connectors.reading import Reading, Scan
from penstock.connectors.registration import register_connector
from penstock.connectors.registry import source_of
from penstock.connectors.secret_values import forget_secrets
from penstock.errors import PenstockError, RuntimeFailure
from penstock.options.registry import unregister_connector
from penstock.options.schema import OptionSpec
from penstock.options.values import Integer, Text
from penstock.runtime.backoff import transient
from penstock.runtime.failures import as_failure
from tests.unit.connectors.declared import request, source

SCHEMA = pa.schema([("n", pa.int64())])
FULL = pa.schema([("n", pa.int64()), ("__partition", pa.int32()), ("__offset", pa.int64())])


class Shared(Connector):
    """Rows that a test puts into a list; it begins at the end of what is there, as a live source does."""

    rows: ClassVar[dict[int, list[int]]] = {}
    acknowledged: ClassVar[list[tuple[int, Any]]] = []
    marks: ClassVar[dict[int, int]] = {}
    schema = SCHEMA
    poll_seconds = 0.0
    options = (
        OptionSpec("partitions", Integer(minimum=1), "how many", default=2),
        OptionSpec("word", Text(), "a password", secret=True),
    )

    def initialize(self, config: ConnectorConfig) -> None:
        self.config = config
        self.own = self.rows.setdefault(config.partition, [])
        self.at = len(self.own)

    def get_next_batch(self, max_rows: int) -> pa.RecordBatch | None:
        found = self.own[self.at : self.at + max_rows]
        self.at += len(found)
        return pa.record_batch([pa.array(found, pa.int64())], schema=SCHEMA)

    def get_current_offset(self) -> Any:
        return self.at

    def seek_to_offset(self, offset: Any) -> None:
        self.at = offset

    def commit_offset(self, offset: Any) -> None:
        self.acknowledged.append((self.config.partition, offset))

    def extract_watermark(self, batch: pa.RecordBatch) -> int | None:
        return self.marks.get(self.config.partition)

    def get_partition_count(self) -> int:
        return int(self.config.get("partitions", 2))


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    Shared.rows, Shared.acknowledged, Shared.marks = {}, [], {}
    register_connector("shared", Shared)
    yield
    unregister_connector("shared")


def reader(tmp_path: Path, *, run: int = 1, max_rows: int = 100) -> CustomStreamReader:
    exchange = Exchange(str(tmp_path / "x"))
    found = CustomStreamReader(exchange, FULL, Reading(run=run, max_rows=max_rows))
    found.exchange.set_up("shared", Shared, ConnectorConfig({"partitions": 2}, stream="s"), 2)
    # The class as it is here, with the rows of the test: the one that is sent is a copy where it is no module's.
    found._setup = found.exchange.setup()
    assert found._setup.connector is Shared
    return found


def rows_of(batches: Any) -> list[tuple[int, int, int]]:
    return sorted((row["__partition"], row["__offset"], row["n"]) for batch in batches for row in batch.to_pylist())


def latest(found: CustomStreamReader, start: dict[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(found.latestOffset(start, None)))  # type: ignore[arg-type, no-any-return]


def test_a_batch_is_handed_over_and_read_again_from_its_offsets(tmp_path: Path) -> None:
    Shared.rows = {0: [9, 9], 1: []}
    first = reader(tmp_path)
    start = first.initialOffset()
    assert start == {"run": 0, "p": {"0": 0, "1": 0}, "at": {"0": 2, "1": 0}, "first": {"0": 2, "1": 0}}
    Shared.rows[0] += [10, 11]
    Shared.rows[1] += [20]
    end = latest(first, start)
    assert end["p"] == {"0": 2, "1": 1}
    assert end["at"] == {"0": 4, "1": 1}
    (task,) = first.partitions(start, end)
    expected = [(0, 0, 10), (0, 1, 11), (1, 0, 20)]
    assert rows_of(first.getCache(start, end)) == expected
    assert rows_of(pickle.loads(pickle.dumps(first)).read(task)) == expected  # noqa: S301
    assert latest(first, end) == end  # nothing more: now it knows the end
    assert first.exchange.look() == Look(first._looked_us, caught_up=True, ended=False, positions={0: 2, 1: 1})
    # Another process, where the connector would begin somewhere else: the batch is the same all the same.
    again = reader(tmp_path, run=2)
    begins = again.initialOffset()
    assert begins["at"] == {"0": 4, "1": 1}
    tasks = again.partitions(begins, end)
    assert again.getCache(begins, end) is None
    assert len(tasks) == 2
    assert rows_of(batch for task in tasks for batch in again.read(task)) == expected
    batch_reader = CustomBatchReader(again.exchange, FULL, Scan({}, Reading(run=0), None, json.dumps(end)))
    assert rows_of(batch for task in batch_reader.partitions() for batch in batch_reader.read(task)) == expected
    Shared.rows[0].append(12)
    further = latest(again, end)
    assert further["p"] == {"0": 3, "1": 1}
    assert further["run"] == 2
    assert further["first"] == {"0": 2, "1": 0}


def test_partitions_share_a_batch_and_none_waits_for_good(tmp_path: Path) -> None:
    found = reader(tmp_path, max_rows=10)
    start = found.initialOffset()
    Shared.rows[0] += range(50)
    Shared.rows[1] += range(3)
    end = latest(found, start)
    assert end["p"] == {"0": 7, "1": 3}
    look = found.exchange.look()
    assert look is not None
    assert not look.caught_up
    assert latest(found, end)["p"] == {"0": 17, "1": 3}
    assert latest(found, start)["p"] == {"0": 7, "1": 3}  # asked again from before: it goes back


class Trickling(Shared):
    """A row every now and then, without end: each call waits for it."""

    def get_next_batch(self, max_rows: int) -> pa.RecordBatch | None:
        time.sleep(0.05)
        self.own.append(len(self.own))
        return super().get_next_batch(1)


def test_rows_that_trickle_do_not_wait_for_a_full_batch(tmp_path: Path) -> None:
    exchange = Exchange(str(tmp_path / "x"))
    exchange.set_up("trickling", Trickling, ConnectorConfig({"partitions": 1}), 1)
    found = CustomStreamReader(exchange, FULL, Reading(run=1))
    began = time.monotonic()
    end = latest(found, found.initialOffset())
    assert 0 < end["p"]["0"] <= 12
    assert time.monotonic() - began < 30
    look = exchange.look()
    assert look is not None
    assert not look.caught_up


def test_commits_reach_the_connector_once(tmp_path: Path) -> None:
    found = reader(tmp_path)
    start = found.initialOffset()
    Shared.rows[0] += [1]
    end = latest(found, start)
    assert Shared.acknowledged == []
    found.exchange.write_committed(json.dumps(end))
    latest(found, end)
    latest(found, end)
    found.commit(end)
    assert Shared.acknowledged == [(0, 1), (1, 0)]
    Shared.rows[1] += [2]
    later = latest(found, end)
    found.exchange.write_committed(json.dumps(later))
    found.stop()
    assert Shared.acknowledged[2:] == [(0, 1), (1, 1)]


class Closing(Shared):
    closed: ClassVar[list[int]] = []

    def shutdown(self) -> None:
        self.closed.append(self.config.partition)


def test_connectors_are_shut_down_when_the_run_ends(tmp_path: Path) -> None:
    """Spark kills the process that holds them, so they are asked before."""
    Closing.closed = []
    exchange = Exchange(str(tmp_path / "x"))
    exchange.set_up("closing", Closing, ConnectorConfig({"partitions": 2}), 2)
    found = CustomStreamReader(exchange, FULL, Reading(run=1))
    start = found.initialOffset()
    Closing.rows[0] += [1]
    end = latest(found, start)
    exchange.write_committed(json.dumps(end))
    exchange.ask_to_leave()
    assert not exchange.has_left()
    assert latest(found, end) == end
    assert exchange.has_left()
    assert Closing.closed == [0, 1]
    assert Closing.acknowledged == [(0, 1), (1, 0)]


def test_watermarks_are_kept_and_the_slowest_partition_counts(tmp_path: Path) -> None:
    known = source_of("shared")
    assert isinstance(known, CustomSource)
    found = reader(tmp_path)
    start = found.initialOffset()
    Shared.marks = {0: 5_000, 1: 4_000}
    Shared.rows[0] += [1]
    end = latest(found, start)
    assert end["watermark"] == {"0": 5_000}
    assert known.watermark_us(json.dumps(end)) is None
    Shared.rows[1] += [1]
    end = latest(found, end)
    assert known.watermark_us(json.dumps(end)) == 4_000_000
    Shared.marks = {0: 1_000, 1: 9_000}
    Shared.rows[0] += [1]
    Shared.rows[1] += [1]
    assert latest(found, end)["watermark"] == {"0": 5_000, "1": 9_000}


def test_partitions_come_and_go(tmp_path: Path) -> None:
    """A partition that is new begins where its connector does; one that is gone keeps its place."""
    found = reader(tmp_path)
    start = found.initialOffset()
    Shared.rows[0] += [1]
    end = latest(found, start)
    Shared.rows[2] = [7, 7]  # there before anybody looked: a live source begins behind it
    found.exchange.set_up("shared", Shared, ConnectorConfig({"partitions": 3}), 3)
    more = CustomStreamReader(found.exchange, FULL, Reading(run=2))
    same = latest(more, end)
    assert same["p"] == {"0": 1, "1": 0, "2": 0}
    assert same["first"] == {"0": 0, "1": 0, "2": 2}
    Shared.rows[2] += [8]
    grown = latest(more, same)
    assert grown["p"] == {"0": 1, "1": 0, "2": 1}
    assert rows_of(batch for task in more.partitions(end, grown) for batch in more.read(task)) == [(2, 0, 8)]
    fewer = reader(tmp_path, run=3)
    Shared.rows[0] += [2]
    assert latest(fewer, grown)["p"] == {"0": 2, "1": 0, "2": 1}


def test_rows_that_are_gone_are_told(tmp_path: Path) -> None:
    found = reader(tmp_path)
    start = found.initialOffset()
    Shared.rows[0] += [1, 2, 3]
    end = latest(found, start)
    del Shared.rows[0][1:]
    tasks = reader(tmp_path).partitions(start, end)
    with pytest.raises(RuntimeFailure, match="2 rows behind offset 1 were read once and are gone") as raised:
        rows_of(batch for task in tasks for batch in reader(tmp_path).read(task))
    assert raised.value.condition == "SOURCE_DATA_LOST"


class Failing(Shared):
    error: Exception = ValueError("wrong\nsecond line")

    def get_next_batch(self, max_rows: int) -> pa.RecordBatch | None:
        raise self.error


@pytest.mark.parametrize(
    ("error", "condition", "passes"),
    [
        (ValueError("wrong\nsecond line"), "CONNECTOR_FAILED", False),
        (ConnectionResetError("gone"), "SOURCE_UNAVAILABLE", True),
        (TimeoutError(), "SOURCE_UNAVAILABLE", True),
    ],
)
def test_errors_name_the_connector_and_say_whether_they_pass(error: Exception, condition: str, *, passes: bool) -> None:
    Failing.error = error
    cursor = Cursor("mine", Failing, ConnectorConfig({}))
    with pytest.raises(RuntimeFailure) as raised:
        cursor.next(1)
    assert raised.value.condition == condition
    assert raised.value.message.startswith(f"connector 'mine': get_next_batch raised {type(error).__name__}")
    assert "second line" not in raised.value.message
    assert transient(raised.value) is passes
    # As it arrives from Spark's process, behind a trace.
    arrived = RuntimeError(f"[PYTHON_ERROR] Traceback:\n  File x\npenstock.errors.RuntimeFailure: {raised.value}\n")
    failure = as_failure("job j", arrived)
    assert (failure.condition, failure.message, failure.hint) == (
        condition,
        raised.value.message,
        raised.value.hint,
    )


def test_columns_are_cast_to_what_is_declared() -> None:
    batch = pa.record_batch(
        [pa.array([1_000]), pa.array([1]), pa.array([2], pa.timestamp("ms"))], names=["TS", "small", "naive"]
    )
    wanted = pa.schema(
        [
            ("ts", pa.timestamp("us", "UTC")),
            ("small", pa.int8()),
            ("naive", pa.timestamp("us", "UTC")),
            ("__offset", pa.int64()),
        ]
    )
    found = placed(batch, wanted, 0, 7).to_pylist()[0]
    assert (found["ts"].timestamp(), found["small"], found["naive"].microsecond, found["__offset"]) == (1, 1, 2_000, 7)
    for names, words in ((["x"], "has no column n"), (["n"], "does not fit int8")):
        with pytest.raises(RuntimeFailure, match=words):
            placed(pa.record_batch([pa.array([300])], names=names), pa.schema([("n", pa.int8())]), 0, 0)


def test_a_source_reads_its_options_with_secrets_and_leaves_nothing(tmp_path: Path) -> None:
    found = source_of("shared")
    assert isinstance(found, CustomSource)
    definition = source("CREATE STREAM s (n BIGINT) WITH (connector = 'shared', word = 'canary-1', partitions = 3)")
    asked = request(definition, tmp_path)
    assert found.partitions(asked) == 3
    scan = found._scan(asked)
    assert "canary" not in scan.text()
    kept = Exchange(scan.place["exchange"]).setup()
    assert dict(kept.config(2)) == {"partitions": 3, "word": "canary-1"}
    assert (kept.config(2).partition, kept.config(2).stream) == (2, "s")
    assert "canary" not in repr(kept.config(2))
    (setup,) = (tmp_path / "reading").iterdir()
    assert setup.stat().st_mode & 0o077 == 0
    assert found.latest(asked) == {}
    assert found.end(asked) is None
    with pytest.raises(PenstockError, match="has rows without end"):
        found.end_offset(asked)
    with pytest.raises(PenstockError, match="has no column m"):
        found.check(source("CREATE STREAM s (m BIGINT) WITH (connector = 'shared')"), tmp_path)
    clear_exchanges(tmp_path)
    assert not (tmp_path / "reading").exists()
    forget_secrets(tmp_path)


def test_offsets_are_written_in_one_order() -> None:
    """I7: Spark compares the text."""
    one = CustomOffset(1, {1: 2, 0: 1}, {1: "b", 0: {"y": 1, "x": 2}}, {1: None, 0: None}, {1: 5, 0: 4}, ended=True)
    other = CustomOffset(1, {0: 1, 1: 2}, {0: {"y": 1, "x": 2}, 1: "b"}, {0: None, 1: None}, {0: 4, 1: 5}, ended=True)
    assert json.dumps(one.json()) == json.dumps(other.json())
