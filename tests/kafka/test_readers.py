"""How many readers a topic has, what each reads, and in which pieces a consumer gets the rows."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.connectors.registry import source_of
from penstock.connectors.source import ScanRequest
from tests.kafka.conftest import Cluster
from tests.unit.connectors.declared import source as declared

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize(
    ("partitions", "limit", "expected"), [(16, 8, [2] * 8), (10, 4, [2, 2, 3, 3]), (4, 16, [1] * 4)]
)
def test_readers_are_capped_and_balanced(
    cluster: Cluster, db: penstock.Database, tmp_path: Path, partitions: int, limit: int, expected: list[int]
) -> None:
    """I12, I13, I14, C8: 16 partitions over 8 readers are 2 each, and no partition is in two of them."""
    from pyspark.sql import functions as f

    topic = cluster.topic(partitions)
    for number in range(partitions):
        cluster.send(topic, ["{}", "{}"], partition=number)
    definition = declared(
        f"CREATE STREAM s (n INT) WITH (connector = 'kafka', topic = '{topic}', start = 'earliest', "
        f"'max-parallelism' = '{limit}', bootstrap_servers = '{cluster.address}')"
    )
    source = source_of("kafka")
    keep = tmp_path / "job"
    request = ScanRequest(
        "s", definition, ("n",), tmp_path, 1, "j", keep=keep, first=dict.fromkeys(range(partitions), 0)
    )
    assert source.partitions(request) == partitions
    tasks: dict[int, set[int]] = defaultdict(set)

    def look(frame: Any, _: int) -> None:
        for row in frame.select("__partition", f.spark_partition_id().alias("task")).collect():
            tasks[row["task"]].add(row["__partition"])

    spark = db._engine.home.spark(("kafka",))
    query = (
        source.stream(spark, request)
        .writeStream.foreachBatch(look)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    assert sorted(len(read) for read in tasks.values()) == expected
    assert sum(len(read) for read in tasks.values()) == len(set().union(*tasks.values())) == partitions


def test_a_consumer_gets_batches_of_the_size_that_was_asked_for(cluster: Cluster, db: penstock.Database) -> None:
    """C9, C10, I2: 25,000 queued rows come as 10,000, 10,000 and 5,000."""
    topic = cluster.topic()
    cluster.send(topic, [json.dumps({"n": n}) for n in range(25_000)])
    db.execute(f"CREATE STREAM numbers (n INT) WITH (connector = 'kafka', topic = '{topic}', start = 'earliest')")

    async def sizes() -> list[int]:
        found: list[int] = []
        async for batch in db.stream("SELECT n FROM numbers"):
            found.append(batch.num_rows)
            if sum(found) == 25_000:
                break
        return found

    assert asyncio.run(sizes()) == [10_000, 10_000, 5_000]
