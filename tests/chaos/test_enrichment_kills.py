"""kill -9 of a join of streams and a changing dimension into files: each row once, each with one version.

A7, G11, K8, K14, L13, L20. What is expected comes from the topics themselves, joined here in Python. Which
version a row carries is held against three things: what its batch was planned with, read from the disk at every death;
the rows beside it in the batch; and when it was written, as the program has told it.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import pytest

from penstock.spark.offset_log import planned_batches
from penstock.stores.dimension_pins import pinned, pins_file, read_pins
from tests.chaos.campaign import CRASHED, SEED, Campaign
from tests.chaos.enrichment_worker import BOUND_MS, JOBS, KEYS

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.timeout(1_800)]

# Where the program crashes, at which hit; and None for a kill -9 at a moment that the seed says.
FEW: Final = (
    "batch.after_action=crash@7",
    "dimension.before_announce=crash@3",
    "file_sink.before_rename=crash@3",
    None,
)
MANY: Final = (
    *FEW,
    "sink.after_write=crash@4",
    "watermark.before_set=crash@9",
    "dimension.before_write=crash@2",
    "batch.entry=crash@11",
    "sink.before_write=crash@8",
    "batch.exit=crash@12",
    None,
    "dimension.before_announce=crash@2",
    "batch.after_action=crash@3",
    "topic.before_end=crash@15",
    None,
    None,
)


class EnrichmentCampaign(Campaign):
    """Remembers which version every batch was planned with: it must never change."""

    worker = "tests.chaos.enrichment_worker"

    def __init__(self, directory: Path, seed: int) -> None:
        super().__init__(directory, seed, JOBS)
        self.planned: dict[tuple[str, int], int] = {}
        self.marks: dict[int, int] = {}

    def after_death(self) -> None:
        for job in self.jobs:
            checkpoint = self.home / "jobs" / job / "checkpoint"
            pins = read_pins(pins_file(checkpoint))
            for batch in planned_batches(checkpoint):
                version = pinned(pins, "marks", batch)
                assert version is not None, f"{job}, batch {batch}: no version\n{self.tail()}"
                before = self.planned.setdefault((job, batch), version)
                assert before == version, (
                    f"{job}, batch {batch} was planned with version {before}, and is with {version}"
                )
        self.remember_versions()

    def remember_versions(self) -> None:
        """The mark of each version that is there: a number once given keeps its rows."""
        for path in (self.home / "dimensions" / "marks").glob("v*.arrow"):
            if path.name.count(".") == 1:
                number, mark = int(path.stem[1:]), _mark(path)
                assert self.marks.setdefault(number, mark) == mark, f"version {number} has other rows than before"


def _mark(path: Path) -> int:
    import pyarrow as pa

    with pa.memory_map(str(path)) as source:
        found = set(pa.ipc.open_file(source).read_all().column("mark").to_pylist())
    assert len(found) == 1
    return int(found.pop())


def run(directory: Path, seed: int, deaths: tuple[str | None, ...], in_drain: int) -> None:
    sys.stdout.write(f"seed {seed}\n")
    source = random.Random(seed)  # noqa: S311
    with EnrichmentCampaign(directory, seed) as campaign:
        for death in deaths:
            start = campaign.start("feed", death or "")
            if death is not None:
                code = start.wait()
                assert code == CRASHED, f"{death}: exit code {code}\n{campaign.tail()}"
            else:
                start.wait_for_appends(source.randrange(3, 14))
                time.sleep(source.uniform(0.0, 0.5))
                start.kill(all_processes=source.random() < 0.7)
            campaign.after_death()
        for _ in range(in_drain):
            number = len(campaign.starts) + 1
            start = campaign.start("finish")
            start.wait_for(lambda events, number=number: _in_drain(events, number))  # type: ignore[misc]
            time.sleep(source.uniform(0.0, 0.4))
            start.kill()
            campaign.after_death()
        last = campaign.start("finish")
        assert last.wait() == 0, campaign.tail()
        campaign.after_death()
        check(campaign, directory / "files")
        for start in campaign.starts:
            start.wait_until_gone()


def _in_drain(events: list[dict[str, Any]], number: int) -> bool:
    return any(event["event"] in ("draining", "reported") and event["start"] == number for event in events)


def check(campaign: EnrichmentCampaign, files: Path) -> None:
    report, events = campaign.report(), campaign.events()
    assert report["late"] == []
    assert report["dead"] == []
    assert report["errors"] == [None, None]
    keys = {name: key for name, key, _ in report["orders"]}
    assert len(keys) == len(report["orders"]), "no order stands twice in its topic"
    paid_numbers = {number for _, number, _ in report["payments"]}
    for event in events:
        if event["event"] == "appended":
            assert set(event["orders"]) <= keys.keys(), f"append {event['number']} was acknowledged and is lost"
            assert set(event["payments"]) <= paid_numbers

    pairs = list(joined(report))
    known = [pair for pair in pairs if keys[pair[0]] < KEYS - 1]
    left_out = {name for name, _ in pairs}
    everything = [*pairs, *((name, None) for name in keys if name not in left_out)]
    paid, all_orders = rows_by_batch(files / "paid"), rows_by_batch(files / "all_orders")
    assert len(known) > 10
    assert len(everything) > len(pairs) > len(known), "some are left out, some nobody paid for"
    for found, wanted in ((paid, known), (all_orders, everything)):
        have = Counter((row["id"], row["number"]) for rows in found.values() for row in rows)
        assert have == Counter(wanted), f"lost {Counter(wanted) - have}, too many {have - Counter(wanted)}"
        assert all(row["k"] == keys[row["id"]] for rows in found.values() for row in rows)
    for job, found in (("paid", paid), ("all_orders", all_orders)):
        check_versions(campaign, job, found)
    check_moments(events, {(row["id"], row["number"]): row["mark"] for rows in paid.values() for row in rows})


def joined(report: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """The pairs of orders and payments within the bound."""
    ordered = {name: at for name, _, at in report["orders"]}
    for name, number, at in report["payments"]:
        if name in ordered and 0 <= at - ordered[name] <= BOUND_MS:
            yield name, number


def check_versions(campaign: EnrichmentCampaign, job: str, found: dict[int, list[dict[str, Any]]]) -> None:
    """All rows of a batch have the mark of the version that it was planned with, and versions only go up."""
    in_order = []
    for batch in sorted(found):
        marks = {row["mark"] for row in found[batch] if row["k"] < KEYS - 1}
        assert all(row["mark"] is None for row in found[batch] if row["k"] == KEYS - 1)
        version = campaign.planned[job, batch]
        assert marks <= {campaign.marks[version]}, f"{job}, batch {batch} was planned with version {version}"
        in_order.append(version)
    assert in_order == sorted(in_order), "no batch sees an older version than the one before it"
    assert len(set(in_order)) >= 3, "several versions were seen"


def check_moments(events: list[dict[str, Any]], seen: dict[tuple[str, int], int]) -> None:
    """What was settled before an update has an older version; what was appended after it has it, or a newer one."""
    marks = {number: mark for (_, number), mark in seen.items()}
    written = begun = -1  # the mark of the last version that is surely there, and of the last that may be
    waiting: list[int] = []
    older = newer = 0
    for event in events:
        if event["event"] == "updating":
            begun = event["mark"]
        elif event["event"] == "updated":
            written = event["mark"]
        elif event["event"] == "settled":
            for number in filter(marks.__contains__, waiting):
                assert marks[number] <= begun, f"payment {number} was written before a version that it carries"
                older += 1
            waiting = []
        elif event["event"] == "appended":
            for number in filter(marks.__contains__, event["payments"]):
                assert marks[number] >= written, f"payment {number} came after version {written} was there"
                newer += written > 0
            waiting += event["payments"]
    assert min(older, newer) > 0, "both were seen"


def rows_by_batch(directory: Path) -> dict[int, list[dict[str, Any]]]:
    """The rows of each batch that a sink has published; the name of a file tells its batch."""
    found: dict[int, list[dict[str, Any]]] = {}
    for path in sorted(directory.rglob("part-*")):
        if ".penstock" not in path.parts:
            batch = int(path.name.split("-")[2])
            rows = pq.read_table(path).to_pylist() if path.suffix == ".parquet" else _json_rows(path)
            found.setdefault(batch, []).extend(rows)
    return found


def _json_rows(path: Path) -> list[dict[str, Any]]:
    names = ("id", "k", "number", "mark")
    return [{name: row.get(name) for name in names} for row in map(json.loads, path.read_text().splitlines())]


def test_each_row_once_and_with_one_version(tmp_path: Path) -> None:
    run(tmp_path, SEED, FEW, in_drain=0)


@pytest.mark.soak
@pytest.mark.parametrize("seed", [SEED + 1, SEED + 2])
def test_many_kills(tmp_path: Path, seed: int) -> None:
    run(tmp_path, seed, MANY, in_drain=2)
