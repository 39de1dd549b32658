"""Connectors of somebody else as jobs on Spark: I1 to I8, over restarts and failures."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pydantic import BaseModel, SecretStr

import penstock
from penstock import PenstockError
from penstock.failpoints import enabled
from penstock.options import unregister_connector
from penstock.runtime import run
from penstock.testing.connectors import check_connector
from tests.engine.answers import at, check_change_log, job, read, until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

CANARY = "canary-6610"


class Lines(penstock.Connector):
    """Lines of JSON in files, one file a partition: it tells everything it is asked to in a file beside them."""

    schema = pa.schema([("k", pa.string()), ("v", pa.int64()), ("ts", pa.int64())])

    class options(BaseModel):  # noqa: N801
        folder: str
        partitions: int = 2
        key: SecretStr | None = None
        lead_ms: int | None = None

    def initialize(self, config: penstock.ConnectorConfig) -> None:
        if config["partitions"] > 9:
            raise ValueError("nine files are enough")
        self.config = config
        self.file = (Path(config["folder"]) / f"{config.partition}.jsonl").open("rb")
        self.tell("initialize", config.get("key"))

    def tell(self, what: str, value: object = None) -> None:
        with (Path(self.config["folder"]) / "told").open("a") as file:
            file.write(json.dumps([what, self.config.partition, value]) + "\n")

    def get_next_batch(self, max_rows: int) -> pa.RecordBatch:
        rows: list[dict[str, Any]] = []
        while len(rows) < max_rows and (line := self.file.readline()).endswith(b"\n"):
            rows.append(json.loads(line))
        return pa.RecordBatch.from_pylist(rows, self.schema)

    def get_current_offset(self) -> int:
        return self.file.tell()

    def seek_to_offset(self, offset: int) -> None:
        self.tell("seek_to_offset", offset)
        self.file.seek(offset)

    def commit_offset(self, offset: int) -> None:
        self.tell("commit_offset", offset)

    def extract_watermark(self, batch: pa.RecordBatch) -> int | None:
        lead = self.config.get("lead_ms")
        return None if lead is None else max(batch.column("ts").to_pylist()) + lead

    def get_partition_count(self) -> int:
        return int(self.config["partitions"])

    def shutdown(self) -> None:
        self.tell("shutdown")
        self.file.close()


class Countdown(penstock.Connector):
    """From a number down to 1, then it ends."""

    bounded = True
    schema = pa.schema([("n", pa.int32())])

    class options(BaseModel):  # noqa: N801
        first: int

    def initialize(self, config: penstock.ConnectorConfig) -> None:
        self.left = config["first"]

    def get_next_batch(self, max_rows: int) -> pa.RecordBatch:
        found = list(range(self.left, max(0, self.left - max_rows), -1))
        self.left -= len(found)
        return pa.record_batch([found], schema=self.schema)

    def get_current_offset(self) -> list[int]:
        return [-self.left]

    def seek_to_offset(self, offset: list[int]) -> None:
        self.left = -offset[0]

    def has_more(self) -> bool:
        return bool(self.left)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    penstock.register_connector("lines", Lines)
    penstock.register_connector("countdown", Countdown)
    found = tmp_path / "lines"
    found.mkdir()
    for partition in range(2):
        (found / f"{partition}.jsonl").touch()
    yield found
    unregister_connector("lines")
    unregister_connector("countdown")


def write(folder: Path, partition: int, *rows: tuple[str, int, int]) -> None:
    """Add rows; times are in seconds."""
    with (folder / f"{partition}.jsonl").open("a") as file:
        file.writelines(json.dumps({"k": k, "v": v, "ts": second * 1_000}) + "\n" for k, v, second in rows)


def told(folder: Path, what: str) -> list[tuple[int, Any]]:
    lines = (folder / "told").read_text().splitlines() if (folder / "told").exists() else []
    return [(partition, value) for name, partition, value in map(json.loads, lines) if name == what]


def ends(folder: Path) -> Counter[tuple[int, int]]:
    return Counter((partition, (folder / f"{partition}.jsonl").stat().st_size) for partition in range(2))


def test_a_connector_of_ones_own(
    opened: Callable[..., penstock.Database], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I1 to I8, J4: batches, offsets, commits after the ledger, seek after a restart, partitions, secrets, errors."""
    monkeypatch.setattr(run, "_LEAVE_SECONDS", 60.0)  # however slow the machine is, all of them shut down
    write(folder, 0, ("a", 1, 1), ("b", 2, 2))
    check_connector(Lines, {"folder": str(folder)})
    (folder / "told").unlink()
    db = opened()
    for options, words in (
        (f"folder = '{folder}', partitions = 10", "initialize raised ValueError: nine files are enough"),
        (f"folder = '{folder}/nowhere'", "initialize raised FileNotFoundError"),
        (f"folder = '{folder}', paritions = 1", "did you mean partitions"),
        ("partitions = 1", "needs the option folder"),
    ):
        with pytest.raises(PenstockError, match=words):
            db.execute(f"CREATE STREAM s (k STRING) WITH (connector = 'lines', {options})")
    with pytest.raises(PenstockError, match="has no column w"):
        db.execute(f"CREATE STREAM s (w STRING) WITH (connector = 'lines', folder = '{folder}')")
    assert db.execute("SHOW STREAMS").rows() == []  # type: ignore[union-attr]
    (folder / "told").unlink()
    db.execute(f"""
        CREATE STREAM s (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)
        WITH (connector = 'lines', folder = '{folder}', key = '{CANARY}', max_rows_per_batch = 3);
        CREATE MATERIALIZED VIEW sums AS SELECT k, SUM(v) AS total, COUNT(*) AS n FROM s GROUP BY k;
        CREATE MATERIALIZED VIEW minutes AS SELECT TUMBLE_START(ts, INTERVAL '1' MINUTE) AS s, COUNT(*) AS n FROM s
        GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE);
    """)
    db.settle()
    assert read(db, "sums") == [("a", 1, 1), ("b", 2, 1)]
    write(folder, 1, *[("a", 1, second) for second in range(50, 70)])
    write(folder, 0, ("c", 7, 65))
    db.settle()
    assert read(db, "sums") == [("a", 21, 21), ("b", 2, 1), ("c", 7, 1)]
    assert read(db, "minutes") == [(at(0), 12)]
    offsets = db.sql("SELECT connector_id, partition, offset FROM penstock.connector_offsets WHERE job = 'sums'").rows()
    assert sorted(offsets) == [("s", 0, 2), ("s", 1, 19)]
    until(lambda: set(ends(folder)) <= set(told(folder, "commit_offset")))
    assert told(folder, "seek_to_offset") == []
    assert {value for _, value in told(folder, "initialize")} == {CANARY}
    shown = db.execute("SHOW CREATE STREAM s").rows(), db.sql("SELECT * FROM penstock.options").rows()  # type: ignore[union-attr]
    assert CANARY not in str(shown)
    assert not [
        path for path in (db.path / "jobs").rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()
    ]
    db.close()
    assert len(told(folder, "shutdown")) == len(told(folder, "initialize"))
    (folder / "told").unlink()
    write(folder, 1, ("b", 5, 80))

    # It goes on where it was, with what came meanwhile; a batch that fails behind its work is taken again.
    db = opened()
    db.settle()
    assert set(told(folder, "seek_to_offset")) >= {(0, ends_of(folder, 0))}
    assert read(db, "sums") == [("a", 21, 21), ("b", 7, 2), ("c", 7, 1)]
    for point in ("view.before_commit", "view.after_commit"):
        with enabled(point, "error@1"):
            write(folder, 0, ("d", 1, 90))
            until(lambda: job(db, "sums").restarts + job(db, "minutes").restarts > 0)
            db.settle()
    db.settle()
    assert read(db, "sums") == [("a", 21, 21), ("b", 7, 2), ("c", 7, 1), ("d", 2, 2)]
    check_change_log(db, "sums", ("k",))
    write(folder, 0, ("late", 0, 200))
    write(folder, 1, ("late", 0, 200))
    db.settle()
    assert read(db, "minutes") == [(at(0), 12), (at(60), 14)]

    # An error of the source itself may pass; one of the connector stays.
    with (folder / "0.jsonl").open("a") as file:
        file.write("no json\n")
    until(lambda: job(db, "sums").state == "failed")
    error = job(db, "sums").error or ""
    assert error.startswith("[CONNECTOR_FAILED] connector 'lines': get_next_batch raised JSONDecodeError")
    with pytest.raises(penstock.JobFailed, match="JSONDecodeError"):
        db.settle()


def ends_of(folder: Path, partition: int) -> int:
    return next(size for place, size in ends(folder) if place == partition)


def test_bounded_connectors_end_and_watermarks_move_time(
    opened: Callable[..., penstock.Database], folder: Path
) -> None:
    """I4: extract_watermark moves event time on; a bounded connector is a table, and its job stops by itself."""
    db = opened()
    db.execute(f"""
        CREATE TABLE down (n INT) WITH (connector = 'countdown', first = 1000, max_rows_per_batch = 300);
        CREATE MATERIALIZED VIEW counted AS SELECT COUNT(*) AS n, SUM(n) AS total FROM down;
        CREATE STREAM s (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)
        WITH (connector = 'lines', folder = '{folder}', lead_ms = 60000);
        CREATE MATERIALIZED VIEW minutes AS SELECT TUMBLE_START(ts, INTERVAL '1' MINUTE) AS s, COUNT(*) AS n FROM s
        GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE);
    """)
    until(lambda: job(db, "counted").state == "stopped")
    assert read(db, "counted") == [(1000, 500_500)]
    assert db.sql("SELECT COUNT(*), MAX(n) FROM down").rows() == [(1000, 1000)]
    write(folder, 0, ("a", 1, 30))
    db.settle()
    assert read(db, "minutes") == []  # the other partition has said nothing yet
    write(folder, 1, ("a", 1, 40))
    db.settle()
    assert read(db, "minutes") == [(at(0), 2)]  # time stands at 90 s, by what the connector says
    db.close()
    penstock.register_connector("lines", Lines, replace=True)
    unregister_connector("lines")
    with pytest.raises(PenstockError) as raised:
        opened()
    assert raised.value.condition == "STATE_PATH_UNUSABLE"
    assert "register the connector" in (raised.value.hint or "")
    penstock.register_connector("lines", Lines)
    assert read(opened(), "minutes") == [(at(0), 2)]


def test_registration_is_checked() -> None:
    """I6: a name that is taken and a class that lacks something are refused by name."""

    class Half(penstock.Connector):
        def get_current_offset(self) -> int:
            return 0

    for name, cls, words in (
        ("half", Half, "has no get_next_batch, schema, seek_to_offset"),
        ("text", "Lines", "is no class of Connector"),
        ("topic", Countdown, "is registered already"),
    ):
        with pytest.raises(PenstockError, match=words):
            penstock.register_connector(name, cls)  # type: ignore[arg-type]
