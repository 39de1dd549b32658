"""A crash at every failpoint, one after the other in the same home; in the end everything is right.

Each test starts the program with one point armed, which is at the same time the restart after the crash before. The
last one lets it finish and judges the whole. H13, H17, J5, J7, K8 (before, during, after a commit), K11, K14.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Final

import pytest

from penstock.failpoints import NAMES
from tests.chaos.campaign import CRASHED, SEED, Campaign
from tests.chaos.oracle import check
from tests.chaos.workload import FEWER_JOBS, JOBS

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.timeout(600), pytest.mark.xdist_group("failpoints")]

# At which hit the program crashes. Early ones meet jobs that come up and repeat the batch that the crash before cut off.
HITS: Final = {
    "catalog.before_write": 2,
    "catalog.after_write": 2,
    "batch.entry": 4,
    "batch.after_action": 5,
    "view.before_write": 6,
    "view.before_commit": 4,
    "view.after_commit": 5,
    "sink.before_write": 1,
    "sink.after_write": 1,
    "watermark.before_set": 6,
    "batch.exit": 4,
    "topic.before_end": 6,
}
# How many hits later the crash comes in the long run.
LATER: Final = 12
# This one is in a process of Spark's that asks the source for its end. When it dies the program lives on, and the job is
# started again by the engine itself.
BESIDE: Final = {"source.latest_offset": 60}
# Those of file sinks and dimensions have tests of their own: test_file_kills, test_dimension_updates; and so have those of
# jobs that go: unit/runtime/test_forgetting. The open transaction of a broker is in kafka/test_kills and test_outage.
APART: Final = frozenset(
    name for name in NAMES if name.startswith(("file_sink.", "dimension.", "job.")) or name == "sink.before_commit"
)


@pytest.fixture(scope="module", params=[0, pytest.param(LATER, marks=pytest.mark.soak)], ids=["early", "later"])
def campaign(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Campaign]:
    sys.stdout.write(f"seed {SEED}\n")
    jobs = tuple(JOBS) if request.param else FEWER_JOBS
    with Campaign(tmp_path_factory.mktemp("failpoints"), SEED + request.param, jobs) as made:
        made.later = request.param
        yield made


def test_every_failpoint_is_crashed_at() -> None:
    assert {*HITS, *BESIDE, *APART} == set(NAMES)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in BESIDE and name not in APART])
def test_crash(campaign: Campaign, name: str) -> None:
    later = 0 if name.startswith("catalog.") else campaign.later
    start = campaign.start("feed", f"{name}=crash@{HITS[name] + later}")
    code = start.wait()
    assert code == CRASHED, f"exit code {code}\n{campaign.tail()}"
    campaign.after_death()


@pytest.mark.parametrize("name", BESIDE)
def test_a_crash_of_a_process_beside_the_program(campaign: Campaign, name: str) -> None:
    """The job that has lost its process comes back by itself, without a restart of the program."""
    number = len(campaign.starts) + 1
    start = campaign.start("feed", f"{name}=crash@{BESIDE[name]}")

    def restarted(events: list[dict[str, Any]]) -> bool:
        jobs = [event["jobs"] for event in events if event["start"] == number and event["event"] == "standing"]
        return any(job["restarts"] > 0 and job["state"] == "running" for each in jobs for job in each.values())

    start.wait_for(restarted)
    start.kill()
    campaign.after_death()


def test_after_all_crashes_nothing_is_lost_or_twice(campaign: Campaign) -> None:
    last = campaign.start("finish")
    assert last.wait() == 0, campaign.tail()
    campaign.after_death()
    check(campaign)
    for start in campaign.starts:
        start.wait_until_gone()
