"""How fast the 24 queries of Nexmark are, from Kafka: Penstock, PySpark written by hand, Flink SQL, and DuckDB.

    make bench-nexmark BENCH_ARGS="--events 1000000 --rounds 3"
    python -m benchmarks.nexmark [--only q4 q5] [--no-flink]

The events lie as JSON in a topic of a broker that is started for it, on the same cores. Penstock keeps views (of q10
files); PySpark's rows go to `noop`, and Flink's to `blackhole`, so both do less. PySpark runs in the same session, with
the same state backend, batches of as many rows, and a checkpoint; Flink has RocksDB state and a checkpoint every five
seconds. DuckDB answers the same question over the parsed rows in memory, all at once: the limit.

A round runs everything once, in turn. What is printed is the median of the rounds in thousand events a second, and what
Penstock is as a multiple of the others. A run is timed from its statement to the commit of its last row.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import penstock
from benchmarks.flink_sql import FlinkSql, flink_home
from benchmarks.kafka_bids import create_topics
from benchmarks.nexmark_by_hand import by_hand, relations
from benchmarks.nexmark_flink import flink_query, flink_tables
from penstock.connectors.reading import MAX_ROWS
from penstock.errors import NotYetError
from penstock.formats import encode_rows
from penstock.interfaces.nexmark.events import NexmarkEvents
from penstock.interfaces.nexmark.oracle import Oracle, side_input
from penstock.interfaces.nexmark.queries import NAMES, nexmark_query, setup_script
from penstock.runtime.kafka_broker import KafkaBroker
from penstock.spark.jar_cache import JarCache
from penstock.spark.jar_pins import jar_set
from penstock.spark.session import SparkSettings, cores, shared_session

if TYPE_CHECKING:
    import pyarrow as pa

PARTITIONS: Final = 2
SYSTEMS: Final = ("Penstock", "PySpark", "Flink", "DuckDB")
RATE: Final = 10_000.0
WARM_EVENTS: Final = 20_000
# Flink waits a second for rows of the same key to come together, as its own guide says for aggregates that change.
TOGETHER: Final = {
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "1 s",
    "table.exec.mini-batch.size": "50000",
}


def fill(address: str, topic: str, events: NexmarkEvents) -> None:
    """Events as JSON, dealt to the partitions in turn."""
    import pyarrow as pa
    from confluent_kafka import Producer

    create_topics(address, {topic: PARTITIONS})
    producer = Producer({"bootstrap.servers": address, "linger.ms": 50, "queue.buffering.max.messages": 1_000_000})
    number = 0
    for batch in events.rows("all"):
        lines = encode_rows(pa.Table.from_batches([batch]), "json", {"json.ignore_null_fields": True})
        for line in lines.to_pylist():
            while True:
                try:
                    producer.produce(topic, line, partition=number % PARTITIONS)
                    break
                except BufferError:
                    producer.poll(0.1)
            number += 1
        producer.poll(0)
    if producer.flush(120):
        raise SystemExit("the broker did not take all events")


class Runs:
    """Each system over one topic; a run gives its seconds, or None where the system cannot run the query."""

    def __init__(self, place: Path, address: str, topic: str, oracle: Oracle, flink: FlinkSql | None) -> None:
        self._place = place
        self._address = address
        self._topic = topic
        self._oracle = oracle
        self._flink = flink
        self._db = penstock.connect(place / topic, **{"kafka.bootstrap_servers": address})
        source = f"connector = 'kafka', topic = '{topic}', start = 'earliest', format = 'json'"
        self._db.execute(setup_script().replace("connector = 'topic', partitions = 2", source))
        self._db.register_dimension("side_input", side_input(), key="key")
        self._spark: Any = None  # the session that our first job has begun, with Kafka's jars
        self.refused: dict[str, str] = {}
        self._rows: dict[str, int] = {}

    def close(self) -> None:
        """Let the database go."""
        self._db.close()

    def run(self, who: str, name: str) -> float | None:
        """A run of one system."""
        made: dict[str, Callable[[str], float | None]] = {
            "Penstock": self._ours,
            "PySpark": self._hand,
            "Flink": self._flinks,
            "DuckDB": self._limit,
        }
        return made[who](name)

    def _ours(self, name: str) -> float | None:
        query = nexmark_query(name)
        with tempfile.TemporaryDirectory(dir=self._place) as files:
            *first, last = query.writing_to(f"{files}/out").split("\n\n")
            if first and "count_char" not in str(self._db.sql("SHOW FUNCTIONS").rows()):
                self._db.execute(first[0])
            begun = time.perf_counter()
            try:
                self._db.execute(last)
            except NotYetError as error:
                self.refused[name] = error.message
                return None
            self._db.settle(timeout=3600)
            taken = time.perf_counter() - begun
            self._db.execute(f"DROP {'SINK' if query.writes_files else 'MATERIALIZED VIEW'} {name}")
            return taken

    def _hand(self, name: str) -> float | None:
        from pyspark.errors import PySparkException

        if self._spark is None:
            self._spark = shared_session(SparkSettings(log_directory=self._db.path / "logs")).newSession()
        read = relations(self._spark, self._address, self._topic, MAX_ROWS)
        table: pa.Table = side_input()
        made = by_hand(name, read, self._spark.createDataFrame(table.to_pandas()))
        if made is None:
            return None
        frame, mode = made
        with tempfile.TemporaryDirectory(dir=self._place) as checkpoint:
            begun = time.perf_counter()
            writer: Any = frame.writeStream.outputMode(mode).option("checkpointLocation", f"{checkpoint}/state")
            if name == "q10":
                writer = writer.format("parquet").option("path", f"{checkpoint}/files").partitionBy("dt", "hm")
            else:
                writer = writer.format("noop")
            try:
                writer.trigger(availableNow=True).start().awaitTermination()
            except PySparkException as error:  # that Spark cannot is an answer too
                self.refused[f"{name} in PySpark"] = str(error).splitlines()[0][:300]
                return None
            return time.perf_counter() - begun

    def _flinks(self, name: str) -> float | None:
        query = flink_query(name)
        if query is None or self._flink is None:
            return None
        sink = f"CREATE TABLE found WITH ('connector' = 'blackhole') AS {query}"
        grouped = name in ("q4", "q15", "q16", "q17")
        return self._flink.run(flink_tables(self._address, self._topic), sink, settings=TOGETHER if grouped else None)

    def _limit(self, name: str) -> float | None:
        if nexmark_query(name).by_the_clock:
            return None
        begun = time.perf_counter()
        self._oracle.answer(nexmark_query(name).oracle)
        return time.perf_counter() - begun


def told(times: dict[str, dict[str, list[float]]], events: int) -> Iterator[str]:
    """The table, and the geometric mean of each ratio."""
    yield f"{'query':6} {'Penstock':>9} {'PySpark':>9} {'ratio':>6} {'Flink':>9} {'ratio':>6} {'DuckDB':>10}"
    ratios: dict[str, list[float]] = {"PySpark": [], "Flink": []}
    for name, found in times.items():
        speed = {who: events / statistics.median(taken) / 1000 for who, taken in found.items() if taken}
        cells = [f"{speed['Penstock']:9.0f}" if "Penstock" in speed else f"{'-':>9}"]
        for who in ("PySpark", "Flink"):
            cells.append(f"{speed[who]:9.0f}" if who in speed else f"{'-':>9}")
            if who in speed and "Penstock" in speed:
                ratios[who].append(speed["Penstock"] / speed[who])
                cells.append(f"{ratios[who][-1]:6.2f}")
            else:
                cells.append(f"{'-':>6}")
        cells.append(f"{speed['DuckDB']:10.0f}" if "DuckDB" in speed else f"{'-':>10}")
        yield f"{name:6} {' '.join(cells)}"
    for who, several in ratios.items():
        if several:
            mean = math.exp(statistics.fmean(map(math.log, several)))
            yield f"Penstock to {who}: {mean:.2f} in the geometric mean of {len(several)} queries"


def versions(flink: FlinkSql | None) -> str:
    """What ran."""
    import duckdb
    import pyspark

    broker = next(jar.version for jar in jar_set("kafka-broker").jars if jar.module.startswith("kafka_"))
    found = {
        "Penstock": penstock.__version__,
        "Spark": pyspark.__version__,
        **({"Flink": flink.version} if flink is not None else {}),
        "DuckDB": duckdb.__version__,
        "Kafka": broker,
        "Python": platform.python_version(),
    }
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30
    return ", ".join(f"{name} {version}" for name, version in found.items()) + f"; {cores()} cores, {memory} GiB"


def main() -> None:
    """Measure what the arguments ask for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=NAMES, nargs="+", default=list(NAMES))
    parser.add_argument("--no-flink", action="store_true")
    asked = parser.parse_args()
    home = flink_home()
    if home is None and not asked.no_flink:
        parser.error("no Flink: run it with make bench-nexmark, or with --no-flink")
    JarCache().install(["kafka"], print)
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        broker = KafkaBroker(place / "broker")
        address = str(broker.start(0).address)
        stack.callback(broker.stop, delete=True)
        flink = None if asked.no_flink or home is None else stack.enter_context(FlinkSql(home, place / "flink"))
        events = NexmarkEvents(asked.events, 7, 0.1, RATE)
        oracle = stack.enter_context(Oracle(events))
        fill(address, "warm", NexmarkEvents(WARM_EVENTS, 8, 0.1, RATE))
        fill(address, "nexmark", events)
        warm = Runs(place, address, "warm", oracle, flink)
        for who in SYSTEMS:  # the first runs of a JVM pay for its start
            for name in ("q0", "q7"):
                warm.run(who, name)
        warm.close()
        runs = Runs(place, address, "nexmark", oracle, flink)
        stack.callback(runs.close)
        times: dict[str, dict[str, list[float]]] = {name: {who: [] for who in SYSTEMS} for name in asked.only}
        for number in range(asked.rounds):
            begun = time.monotonic()
            for name in asked.only:
                for who in SYSTEMS:
                    taken = runs.run(who, name)
                    if taken is not None:
                        times[name][who].append(taken)
                last = ", ".join(f"{who} {taken[-1]:.1f} s" for who, taken in times[name].items() if taken)
                print(f"{name}: {last}", file=sys.stderr, flush=True)
            print(f"round {number + 1}: {time.monotonic() - begun:.0f} s", flush=True)
        print(
            f"{asked.events:,} events, {PARTITIONS} partitions, medians of {asked.rounds} rounds, "
            "thousand events a second"
        )
        print(versions(flink))
        print("\n".join(told(times, asked.events)))
        for name, why in runs.refused.items():
            print(f"{name}: {why}")


if __name__ == "__main__":
    main()
