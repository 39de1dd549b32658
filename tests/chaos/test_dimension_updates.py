"""Dimensions that change while the engine is killed: a batch sees one version, and the same one again (L13, L20).

Killed are: a batch whose join is done and that is not committed; an update before its file, and between its file and the
jobs; a program at some moment, by SIGKILL to all its processes.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from penstock.failpoints import NAMES, VARIABLE
from penstock.spark.offset_log import planned_batches
from penstock.stores.dimension_pins import pinned, pins_file, read_pins
from penstock.stores.dimensions import DimensionStore
from tests.chaos.campaign import CRASHED, end_marked, marked
from tests.chaos.dimension_worker import ROWS
from tests.chaos.worker import read_events
from tests.project import ROOT

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.timeout(900)]

SEED: Final = int(os.environ.get("PENSTOCK_CHAOS_SEED", "5"))
_PATIENCE: Final = float(os.environ.get("PENSTOCK_CHAOS_PATIENCE", "180"))


CRASHES: Final = (
    "batch.after_action=crash@9",
    "dimension.before_announce=crash@3",
    "dimension.before_write=crash@2",
    "batch.after_action=crash@5",
)


def test_every_failpoint_of_dimensions_is_crashed_at() -> None:
    points = {name for name in NAMES if name.startswith("dimension.")}
    assert points <= {crash.partition("=")[0] for crash in CRASHES}


class Runs:
    """Starts of the program over one home, and what each death has left."""

    def __init__(self, directory: Path) -> None:
        self.home, self.log = directory / "home", directory / "log"
        self.log.mkdir()
        self.number = 0
        self.marks: list[str] = []
        self.seen: dict[int, int] = {}  # batch of `tagged` -> the version that it was planned with

    def start(self, mode: str, failpoints: str = "") -> subprocess.Popen[bytes]:
        self.number += 1
        self.marks.append(uuid.uuid4().hex)
        with (self.log / f"output{self.number}").open("wb") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.dimension_worker", str(self.home), str(self.log), str(self.number), mode],
                cwd=ROOT,
                env=marked(self.marks[-1], **{VARIABLE: failpoints}),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )  # fmt: skip

    def until(self, process: subprocess.Popen[bytes], holds: Callable[[list[dict[str, Any]]], bool]) -> None:
        end = time.monotonic() + _PATIENCE
        while not holds([event for event in read_events(self.log / "events") if event["start"] == self.number]):
            assert process.poll() is None, self.tail()
            assert time.monotonic() < end, self.tail()
            time.sleep(0.05)

    def died(self) -> None:
        """End what is left, and remember what every planned batch was planned with: it must never change."""
        end_marked(self.marks[-1])
        checkpoint = self.home / "jobs" / "tagged" / "checkpoint"
        pins = read_pins(pins_file(checkpoint))
        for batch in planned_batches(checkpoint):
            version = pinned(pins, "tags", batch)
            assert version is not None
            assert self.seen.setdefault(batch, version) == version, f"batch {batch} was planned with another version"

    def tail(self) -> str:
        text = (self.log / f"output{self.number}").read_text(encoding="utf-8", errors="replace")
        return f"start {self.number}\n{text[-3000:]}"


def test_a_batch_sees_the_version_it_saw(tmp_path: Path) -> None:
    source = random.Random(SEED)  # noqa: S311
    runs = Runs(tmp_path)
    try:
        for failpoint in CRASHES:
            process = runs.start("feed", failpoint)
            assert process.wait(_PATIENCE) == CRASHED, runs.tail()
            runs.died()
        process = runs.start("feed")
        wanted = source.randrange(4, 12)
        runs.until(process, lambda events: sum(event["event"] == "appended" for event in events) >= wanted)
        time.sleep(source.uniform(0, 0.5))
        process.kill()
        process.wait(30)
        runs.died()
        assert runs.start("finish").wait(_PATIENCE) == 0, runs.tail()
        runs.died()
        check(runs)
    finally:
        for mark in runs.marks:
            end_marked(mark)


def check(runs: Runs) -> None:
    report = json.loads((runs.log / "report").read_text(encoding="utf-8"))
    changes = report["changes"]
    events = read_events(runs.log / "events")
    ids = Counter(change["id"] for change in changes)
    for event in events:
        if event["event"] == "appended":
            for place in range(ROWS):
                assert ids[f"{event['number']}.{place}.{event['start']}"] == 1, f"append {event['number']}"
    assert all(count == 1 for count in ids.values()), "nothing twice"
    assert all(change["op"] == "insert" for change in changes)
    store = DimensionStore(runs.home / "dimensions")
    tags = {
        version.number: store.read("tags", version.number).column("tag")[0].as_py()
        for version in store.versions("tags")
    }
    by_batch: dict[int, set[int]] = {}
    for change in changes:
        by_batch.setdefault(change["batch"], set()).add(change["tag"])
    for batch, found in by_batch.items():
        assert found == {tags[runs.seen[batch]]}, f"batch {batch} was planned with version {runs.seen[batch]}"
    assert len({tags[runs.seen[batch]] for batch in by_batch}) >= 4, "several versions were seen"
    in_order = [runs.seen[batch] for batch in sorted(by_batch)]
    assert in_order == sorted(in_order), "no batch sees an older version than the one before it"
    updates = [(event["version"], event["tag"]) for event in events if event["event"] == "updated"]
    assert all(tags.get(version, tag) == tag for version, tag in updates), "a version that was acknowledged stays"
    assert report["windows"] == len(changes), "the windows have every row once"
