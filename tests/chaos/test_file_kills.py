"""Crashes and kill -9 while rows go from files to files: each is there once. A7, I15, I19, K14."""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from penstock.failpoints import NAMES
from tests.chaos.campaign import CRASHED, SEED, Campaign
from tests.chaos.file_worker import JOBS

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.timeout(1_200)]

CRASHES = {
    "file_sink.before_rename": 4,
    "file_sink.before_append": 2,
    "file_sink.after_append": 2,
    "sink.before_write": 2,
    "sink.after_write": 3,
}


class FileCampaign(Campaign):
    worker = "tests.chaos.file_worker"


def test_files_are_written_and_read_once(tmp_path: Path) -> None:
    assert {name for name in NAMES if name.startswith("file_sink.")} <= set(CRASHES)
    sys.stdout.write(f"seed {SEED}\n")
    source = random.Random(SEED)  # noqa: S311
    with FileCampaign(tmp_path, SEED, JOBS) as campaign:
        for name, hits in CRASHES.items():
            start = campaign.start("feed", f"{name}=crash@{hits}")
            code = start.wait()
            assert code == CRASHED, f"exit code {code}\n{campaign.tail()}"
        for _ in range(2):
            start = campaign.start("feed")
            start.wait_for_appends(source.randrange(3, 15))
            time.sleep(source.uniform(0.0, 0.5))
            start.kill(all_processes=source.random() < 0.5)
        last = campaign.start("finish")
        assert last.wait() == 0, campaign.tail()
        check(campaign, tmp_path / "files")
        for start in campaign.starts:
            start.wait_until_gone()


def check(campaign: Campaign, files: Path) -> None:
    report = campaign.report()
    assert report["late"] == []
    good: list[tuple[int, str]] = []
    bad: list[str] = []
    for path in (files / "in").glob("*.json"):
        for line in filter(None, path.read_text().split("\n")):
            row = _row(line)
            if row is None:
                bad.append(line)
            else:
                good.append((row["id"], row["word"]))
    copied = Counter(
        (row["id"], row["word"])
        for path in _published(files / "copied")
        for row in map(json.loads, path.read_text().splitlines())
    )
    assert copied == Counter(good)
    assert Counter(row["raw"] for row in report["dead"]) == Counter(bad)
    assert all(len(path.read_text().splitlines()) <= 3 for path in _published(files / "copied"))

    wanted: dict[int, list[int]] = {}
    for number, at in report["topic"]:
        window = wanted.setdefault(at // 1000, [0, 0])
        window[0] += 1
        window[1] += number
    expected = sorted((second, *counted) for second, counted in wanted.items())
    found = [row for path in _published(files / "windows") for row in pq.read_table(path).to_pylist()]
    assert sorted((int(row["s"].timestamp()), row["n"], row["total"]) for row in found) == expected
    plain = [json.loads(line) for line in (files / "windows.json").read_text().splitlines()]
    assert sorted(row["n"] for row in plain) == sorted(row[1] for row in expected)
    assert sum(row["total"] for row in plain) == sum(row[2] for row in expected)
    assert len({row["s"] for row in plain}) == len(plain)


def _published(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("part-*") if ".penstock" not in path.parts]


def _row(line: str) -> dict[str, Any] | None:
    """A line as a record; None where a killed writer has left half of one."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
