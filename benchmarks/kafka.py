"""JSON bids in a topic of Kafka: our jobs beside PySpark written by hand and beside Flink SQL.

    make bench-kafka BENCH_ARGS="--rows 3000000 --rounds 3 --minutes 15"
    python -m benchmarks.kafka [--part view topic exact scaling] [--only filter] [--no-flink]

Starts a broker of its own on the same cores. Each query runs from the topic into a view, and into another topic; the
running sums are upserts there, each batch of ours and of PySpark the new rows of its keys.
PySpark does the same work: the same session and so the same state backend, batches of as many rows, a checkpoint, and
either Spark's sink for Kafka or a table of DuckDB that is written in a transaction a batch. Flink has RocksDB state and
takes a checkpoint every five seconds; where ours goes into a view, its rows are thrown away, because it has no views:
it does less there.

A round runs everything once, in turn; what is printed is the median of the rounds, in thousand rows a second, and what
Penstock is as a multiple of the others. A run is timed from its statement to the commit of its last row, so its start
is in it. With `--minutes` no round begins that would not end in time.
"""

from __future__ import annotations

import argparse
import itertools
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import penstock
from benchmarks.engine import QUERIES, SCHEMA
from benchmarks.flink_sql import FlinkSql, flink_home
from benchmarks.kafka_bids import (
    FLINK,
    KEYED,
    by_hand,
    count_keys,
    count_records,
    create_topics,
    delete_topic,
    fill,
    flink_tables,
    rows_in,
)
from penstock.connectors.reading import MAX_ROWS
from penstock.runtime.kafka_broker import KafkaBroker
from penstock.spark.jar_cache import JarCache
from penstock.spark.jar_pins import jar_set
from penstock.spark.session import SparkSettings, cores, shared_session

PARTITIONS: Final = 4
PARTS: Final = ("view", "topic", "exact", "scaling")
WARM_ROWS: Final = 50_000
# Flink waits a second for rows of the same key to come together, as its own guide says for such queries.
TOGETHER: Final = {
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "1 s",
    "table.exec.mini-batch.size": "50000",
}


@dataclass
class Line:
    """A line of a table: who takes part, how long each took in each round, and how many rows came out last."""

    part: str
    name: str
    runs: dict[str, Callable[[], tuple[float, int | None]]]
    rows: int
    taken: dict[str, list[float]] = field(default_factory=dict)
    out: dict[str, int | None] = field(default_factory=dict)

    def run(self) -> None:
        """A round: everybody in turn."""
        for who, run in self.runs.items():
            taken, self.out[who] = run()
            self.taken.setdefault(who, []).append(taken)
        counts = {found for found in self.out.values() if found is not None}
        if self.name.startswith(("filter", KEYED)) and self.part in ("view", "topic") and len(counts) > 1:
            raise SystemExit(f"{self.name}: not everybody finds the same number of rows: {self.out}")
        took = ", ".join(f"{who} {found[-1]:.1f} s" for who, found in self.taken.items())
        print(f"{self.part}, {self.name}: {took}", file=sys.stderr, flush=True)

    def speed(self, who: str) -> float | None:
        """Thousand rows a second, the median of the rounds."""
        found = self.taken.get(who)
        return self.rows / statistics.median(found) / 1000 if found else None


class Systems:
    """Penstock, PySpark and Flink over one broker."""

    def __init__(self, db: penstock.Database, address: str, flink: FlinkSql | None, home: Path, rows: int) -> None:
        self._db = db
        self._rows = rows
        self._address = address
        self._flink = flink
        self._home = home
        self._count = itertools.count()
        self._spark: Any = None

    def declare(self, stream: str) -> None:
        """The topic of a name as a stream of the same name."""
        self._db.execute(f"""
            CREATE STREAM {stream} ({SCHEMA}, WATERMARK FOR ts AS ts - INTERVAL '4' SECOND)
            WITH (connector = 'kafka', topic = '{stream}', start = 'earliest', format = 'json')
        """)

    def to_view(self, name: str, stream: str = "bids") -> tuple[float, int]:
        """Ours into a view."""
        begun = time.perf_counter()
        self._db.execute(f"CREATE MATERIALIZED VIEW measured AS {_over(name, stream)}")
        self._db.settle(timeout=3600)
        taken = time.perf_counter() - begun
        found = self._db.sql("SELECT COUNT(*) FROM measured").rows()[0][0]
        self._db.execute("DROP MATERIALIZED VIEW measured")
        return taken, int(found)

    def to_topic(self, name: str, *, exact: bool = False) -> tuple[float, int | None]:
        """Ours into a topic."""
        options = "connector = 'kafka', format = 'json'"
        if name == KEYED:
            options = "connector = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json'"
        if exact:
            options += ", delivery = 'exactly_once'"
        with self._out() as topic:
            begun = time.perf_counter()
            self._db.execute(f"CREATE SINK measured WITH (topic = '{topic}', {options}) AS {QUERIES[name]}")
            self._db.settle(timeout=3600)
            taken = time.perf_counter() - begun
            self._db.execute("DROP SINK measured")
            return taken, None if exact else self._found(name, topic)

    def hand_to_table(self, name: str, stream: str = "bids") -> tuple[float, int]:
        """PySpark into DuckDB."""
        with tempfile.TemporaryDirectory(dir=self._home) as place:
            store = Path(place) / "result.duckdb"
            taken = self._by_hand(name, stream, None, store)
            return taken, rows_in(store)

    def hand_to_topic(self, name: str) -> tuple[float, int]:
        """PySpark into a topic."""
        with self._out() as topic:
            taken = self._by_hand(name, "bids", topic, self._home)
            return taken, self._found(name, topic)

    def flink_to_nothing(self, name: str, stream: str = "bids") -> tuple[float, None]:
        """Flink into its `blackhole`."""
        assert self._flink is not None
        tables = flink_tables(self._address, name, topic=stream, into=None)
        settings = TOGETHER if name == KEYED else None
        return self._flink.run(tables, f"INSERT INTO found {FLINK[name]}", settings=settings), None

    def flink_to_topic(self, name: str, *, exact: bool = False) -> tuple[float, int | None]:
        """Flink into a topic; what is exactly once waits for the last checkpoint."""
        assert self._flink is not None
        settings = {"execution.checkpointing.checkpoints-after-tasks-finish": "true"} if exact else {}
        if name == KEYED:
            settings |= TOGETHER
        with self._out() as topic:
            tables = flink_tables(self._address, name, topic="bids", into=topic, exactly_once=exact)
            taken = self._flink.run(tables, f"INSERT INTO found {FLINK[name]}", settings=settings)
            return taken, None if exact else self._found(name, topic)

    def _found(self, name: str, topic: str) -> int:
        """How many rows a query has left in a topic."""
        if name == KEYED:
            return count_keys(self._address, topic, self._rows)
        return count_records(self._address, topic)

    def _by_hand(self, name: str, stream: str, into: str | None, store: Path) -> float:
        if self._spark is None:
            self._spark = shared_session(SparkSettings(log_directory=self._db.path / "logs")).newSession()
        return by_hand(self._spark, self._address, name, topic=stream, most=MAX_ROWS, into=into, store=store)

    @contextmanager
    def _out(self) -> Iterator[str]:
        """A topic to write to."""
        topic = f"out-{next(self._count)}"
        create_topics(self._address, {topic: PARTITIONS})
        yield topic
        delete_topic(self._address, topic)


def _over(name: str, stream: str) -> str:
    return QUERIES[name].replace("FROM bids", f"FROM {stream}")


def lines_of(systems: Systems, asked: argparse.Namespace) -> list[Line]:
    """Everything that a round runs."""
    found: list[Line] = []
    for name in asked.only or QUERIES:
        if "view" in asked.part:
            runs: dict[str, Any] = {
                "Penstock": lambda name=name: systems.to_view(name),
                "PySpark": lambda name=name: systems.hand_to_table(name),
                "Flink": lambda name=name: systems.flink_to_nothing(name),
            }
            found.append(Line("view", name, runs, asked.rows))
        if "topic" in asked.part:
            runs = {
                "Penstock": lambda name=name: systems.to_topic(name),
                "PySpark": lambda name=name: systems.hand_to_topic(name),
                "Flink": lambda name=name: systems.flink_to_topic(name),
            }
            found.append(Line("topic", name, runs, asked.rows))
        if name in ("filter", "tumble") and "exact" in asked.part:
            runs = {
                "Penstock": lambda name=name: systems.to_topic(name, exact=True),
                "Flink": lambda name=name: systems.flink_to_topic(name, exact=True),
            }
            found.append(Line("exact", name, runs, asked.rows))
        if name in ("filter", "tumble") and "scaling" in asked.part:
            for width in (1, 2, PARTITIONS):
                run = lambda name=name, width=width: systems.to_view(name, _stream(width))  # noqa: E731
                found.append(Line("scaling", f"{name}, {width}", {"Penstock": run}, asked.rows))
    for line in found:
        if asked.no_flink:
            line.runs.pop("Flink", None)
    return sorted(found, key=lambda line: PARTS.index(line.part))


def _stream(width: int) -> str:
    """The stream of a topic with so many partitions."""
    return "bids" if width == PARTITIONS else f"bids{width}"


TITLES: Final = {
    "view": "Kafka to view (Flink: to blackhole)",
    "topic": "Kafka to Kafka, at least once",
    "exact": "Kafka to Kafka, exactly once",
}


def told(lines: list[Line]) -> Iterator[str]:
    """The tables."""
    for part, title in TITLES.items():
        chosen = [line for line in lines if line.part == part]
        if not chosen:
            continue
        others = [who for who in ("PySpark", "Flink") if any(who in line.taken for line in chosen)]
        heads = "".join(f" {who:>8} {'ratio':>6}" for who in others)
        yield f"\n{title:36} {'Penstock':>8}{heads}  rows out"
        for line in chosen:
            ours = line.speed("Penstock") or 0.0
            cells = ""
            for who in others:
                speed = line.speed(who)
                cells += f" {'-':>8} {'-':>6}" if speed is None else f" {speed:8.0f} {ours / speed:6.2f}"
            outs = ", ".join(f"{count:,}" for count in line.out.values() if count is not None)
            yield f"  {line.name:34} {ours:8.0f}{cells}  {outs}"
    yield from _exact_to_plain(lines)
    scaling = [line for line in lines if line.part == "scaling"]
    if scaling:
        yield f"\nKafka to view by partitions, {cores()} cores for Spark and the broker"
    first: dict[str, float] = {}
    for line in scaling:
        query, speed = line.name.split(",")[0], line.speed("Penstock") or 0.0
        first.setdefault(query, speed)
        yield f"  {line.name + ' partitions':34} {speed:8.0f}  {speed / first[query]:.2f} of one partition"


def _exact_to_plain(lines: list[Line]) -> Iterator[str]:
    plain = {line.name: line for line in lines if line.part == "topic"}
    for line in lines:
        if line.part == "exact" and line.name in plain:
            parts = [
                f"{who} {exact / once:.2f}"
                for who in line.taken
                if (exact := line.speed(who)) is not None and (once := plain[line.name].speed(who)) is not None
            ]
            yield f"  {line.name + ', exactly once to at least once':34} {', '.join(parts)}"


def measure(lines: list[Line], rounds: int, minutes: float | None) -> int:
    """Run rounds; how many."""
    begun = time.monotonic()
    for done in range(rounds):
        started = time.monotonic()
        if done and minutes is not None and started - begun + (started - begun) / done > minutes * 60:
            return done
        for line in lines:
            line.run()
        print(f"round {done + 1}: {time.monotonic() - started:.0f} s", flush=True)
    return rounds


def main() -> None:
    """Measure what the arguments ask for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float, help="begin no round that would end later, the filling not counted")
    parser.add_argument("--only", choices=list(QUERIES), nargs="+")
    parser.add_argument("--part", choices=PARTS, nargs="+", default=list(PARTS))
    parser.add_argument("--no-flink", action="store_true")
    asked = parser.parse_args()
    home = flink_home()
    if home is None and not asked.no_flink:
        parser.error("no Flink: run it with make bench-kafka, or with --no-flink")
    JarCache().install(["kafka"], print)
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        broker = KafkaBroker(place / "broker")
        address = str(broker.start(0).address)
        stack.callback(broker.stop, delete=True)
        widths = (1, 2, PARTITIONS) if "scaling" in asked.part else (PARTITIONS,)
        for width in widths:
            fill(address, _stream(width), width, asked.rows)
        fill(address, "warm", PARTITIONS, WARM_ROWS)
        flink = None if asked.no_flink or home is None else stack.enter_context(FlinkSql(home, place / "flink"))
        db = stack.enter_context(penstock.connect(place / "state", **{"kafka.bootstrap_servers": address}))
        systems = Systems(db, address, flink, place, asked.rows)
        for stream in ("warm", *map(_stream, widths)):
            systems.declare(stream)
        for name in ("filter", "tumble"):  # the first runs of a JVM pay for its start
            systems.to_view(name, "warm")
            systems.hand_to_table(name, "warm")
            if flink is not None:
                systems.flink_to_nothing(name, "warm")
        lines = lines_of(systems, asked)
        rounds = measure(lines, asked.rounds, asked.minutes)
        print(
            f"\n{asked.rows:,} JSON bids, {PARTITIONS} partitions, medians of {rounds} rounds, thousand rows a second"
        )
        print(_set_up(flink))
        print("\n".join(told(lines)))


def _set_up(flink: FlinkSql | None) -> str:
    import pyspark

    broker = next(jar.version for jar in jar_set("kafka-broker").jars if jar.module.startswith("kafka_"))
    versions = {
        "Penstock": penstock.__version__,
        "Spark": pyspark.__version__,
        **({"Flink": flink.version} if flink is not None else {}),
        "Kafka": broker,
        "Python": platform.python_version(),
    }
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30
    return (
        ", ".join(f"{name} {version}" for name, version in versions.items())
        + f"; {cores()} cores, {memory} GiB, each JVM 2 GiB, RocksDB state, checkpoints on"
    )


if __name__ == "__main__":
    main()
