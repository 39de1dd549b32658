"""Dimensions that change while the engine is killed: a batch sees one version, and the same one again (L13, L20).

Killed are: a batch whose join is done and that is not committed; an update before its file, and between its file and the
jobs; a program at some moment, by SIGKILL to all its processes.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from penstock.failpoints import NAMES
from penstock.spark.offset_log import planned_batches
from penstock.stores.dimension_pins import pinned, pins_file, read_pins
from penstock.stores.dimensions import DimensionStore
from tests.chaos.campaign import CRASHED, SEED, Campaign
from tests.chaos.dimension_worker import JOBS, ROWS

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.timeout(900)]

CRASHES: Final = (
    "batch.after_action=crash@9",
    "dimension.before_announce=crash@3",
    "dimension.before_write=crash@2",
    "batch.after_action=crash@5",
)


def test_every_failpoint_of_dimensions_is_crashed_at() -> None:
    points = {name for name in NAMES if name.startswith("dimension.")}
    assert points <= {crash.partition("=")[0] for crash in CRASHES}


class DimensionCampaign(Campaign):
    """Remembers which version every batch of `tagged` was planned with: it must never change."""

    worker = "tests.chaos.dimension_worker"

    def __init__(self, directory: Path, seed: int) -> None:
        super().__init__(directory, seed, JOBS, pause=0.15)
        self.seen: dict[int, int] = {}

    def after_death(self) -> None:
        """End what is left of the start, and look at what its batches were planned with."""
        self.starts[-1].kill()
        checkpoint = self.home / "jobs" / "tagged" / "checkpoint"
        pins = read_pins(pins_file(checkpoint))
        for batch in planned_batches(checkpoint):
            version = pinned(pins, "tags", batch)
            assert version is not None
            assert self.seen.setdefault(batch, version) == version, f"batch {batch} was planned with another version"


def test_a_batch_sees_the_version_it_saw(tmp_path: Path) -> None:
    source = random.Random(SEED)  # noqa: S311
    with DimensionCampaign(tmp_path, SEED) as campaign:
        for failpoint in CRASHES:
            start = campaign.start("feed", failpoint)
            assert start.wait() == CRASHED, campaign.tail()
            campaign.after_death()
        start = campaign.start("feed")
        start.wait_for_appends(source.randrange(4, 12))
        time.sleep(source.uniform(0, 0.5))
        campaign.after_death()
        assert campaign.start("finish").wait() == 0, campaign.tail()
        campaign.after_death()
        check(campaign)


def check(campaign: DimensionCampaign) -> None:
    report, events = campaign.report(), campaign.events()
    changes = report["changes"]
    ids = Counter(change["id"] for change in changes)
    for event in events:
        if event["event"] == "appended":
            for place in range(ROWS):
                assert ids[f"{event['number']}.{place}.{event['start']}"] == 1, f"append {event['number']}"
    assert all(count == 1 for count in ids.values()), "nothing twice"
    assert all(change["op"] == "insert" for change in changes)
    store = DimensionStore(campaign.home / "dimensions")
    tags = {
        version.number: store.read("tags", version.number).column("tag")[0].as_py()
        for version in store.versions("tags")
    }
    by_batch: dict[int, set[int]] = {}
    for change in changes:
        by_batch.setdefault(change["batch"], set()).add(change["tag"])
    for batch, found in by_batch.items():
        assert found == {tags[campaign.seen[batch]]}, f"batch {batch} was planned with version {campaign.seen[batch]}"
    assert len({tags[campaign.seen[batch]] for batch in by_batch}) >= 4, "several versions were seen"
    in_order = [campaign.seen[batch] for batch in sorted(by_batch)]
    assert in_order == sorted(in_order), "no batch sees an older version than the one before it"
    updates = [(event["version"], event["tag"]) for event in events if event["event"] == "updated"]
    assert all(tags.get(version, tag) == tag for version, tag in updates), "a version that was acknowledged stays"
    assert report["windows"] == len(changes), "the windows have every row once"
