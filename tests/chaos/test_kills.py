"""kill -9 at seeded moments, from start-up to drain: nothing is lost, twice or made up, and time never goes back.

A7 (a sink without duplicates), G11 (an outer join within a bound), E15 (the watermark survives), E21 (a window is emitted once), K8, K14, K18, K22.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.chaos.campaign import SEED, Campaign, Start
from tests.chaos.oracle import check
from tests.chaos.workload import JOBS, SOME_JOBS

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.timeout(1_800)]


def in_start_up(campaign: Campaign, start: Start, source: random.Random) -> None:
    """Before anything runs, or while jobs come up."""
    time.sleep(source.uniform(0.2, 9.0))


def in_steady_state(campaign: Campaign, start: Start, source: random.Random) -> None:
    """While rows come in and windows close."""
    number = len(campaign.starts)
    start.wait_for(lambda events: any(_begun(event, "standing", number) and _all_run(event) for event in events))
    start.wait_for_appends(source.randrange(3, 30))
    time.sleep(source.uniform(0.0, 0.5))


def in_drain(campaign: Campaign, start: Start, source: random.Random) -> None:
    """While windows are closed for the last time."""
    number, wanted = len(campaign.starts), source.randrange(1, len(campaign.jobs) + 1)
    start.wait_for(lambda events: sum(_begun(event, "draining", number) for event in events) >= wanted)
    time.sleep(source.uniform(0.0, 0.4))


def _begun(event: dict[str, Any], name: str, start: int) -> bool:
    return bool(event["event"] == name and event["start"] == start)


def _all_run(event: dict[str, Any]) -> bool:
    return all(job["state"] == "running" for job in event["jobs"].values())


Moment = Callable[[Campaign, Start, random.Random], None]
# Rows that come after a drain has begun would be behind it, so drains are killed last.
FEW: Final[tuple[Moment, ...]] = (in_steady_state, in_start_up, in_steady_state, in_drain)
MANY: Final[tuple[Moment, ...]] = (
    in_start_up,
    in_steady_state,
    in_steady_state,
    in_start_up,
    in_steady_state,
    in_steady_state,
    in_start_up,
    in_steady_state,
    in_drain,
    in_drain,
)


def run(directory: Path, seed: int, moments: tuple[Moment, ...], jobs: tuple[str, ...]) -> None:
    sys.stdout.write(f"seed {seed}\n")
    source = random.Random(seed)  # noqa: S311
    with Campaign(directory, seed, jobs) as campaign:
        for moment in moments:
            start = campaign.start("finish" if moment is in_drain else "feed")
            moment(campaign, start, source)
            # Now and then only the program is killed: its JVM is an orphan then, and the next start may still meet it.
            start.kill(all_processes=source.random() < 0.6)
            campaign.after_death()
        last = campaign.start("finish")
        assert last.wait() == 0, campaign.tail()
        campaign.after_death()
        check(campaign)
        for start in campaign.starts:
            start.wait_until_gone()


def test_a_few_kills(tmp_path: Path) -> None:
    run(tmp_path, SEED, FEW, SOME_JOBS)


@pytest.mark.soak
@pytest.mark.parametrize("seed", [SEED, SEED + 1, SEED + 2])
def test_ten_kills(tmp_path: Path, seed: int) -> None:
    run(tmp_path, seed, MANY, tuple(JOBS))
