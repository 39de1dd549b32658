"""J4, K14, I3, I15: a connector of one's own into a view and a web service, killed at the worst moments.

Into the view every row once; to the service at least once, and once by its idempotency keys.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project import ROOT
from tests.unit.connectors.web_service import web_service

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.timeout(900)]

ROWS = 300
CRASHED = 137
# Behind the request and before the ledger; behind the ledger and before Spark knows; while the end is looked for.
POINTS = ("sink.after_write=crash@2", "view.after_commit=crash@3", "batch.exit=crash@5")


def test_killed_at_the_worst_moments(tmp_path: Path) -> None:
    path = tmp_path / "numbers.lines"
    path.write_text("".join(f"{number}\n" for number in range(ROWS)))

    def run(url: str, failpoints: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PENSTOCK_FAILPOINTS": failpoints}
        program = [sys.executable, str(ROOT / "tests" / "chaos" / "connector_program.py")]
        return subprocess.run(
            [*program, str(tmp_path / "home"), str(path), url],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=280,
        )

    with web_service() as service:
        for point in POINTS:
            killed = run(service.url, point)
            assert killed.returncode == CRASHED, killed.stderr[-2_000:]
        last = run(service.url, "")
        assert last.returncode == 0, last.stderr[-2_000:]
    report = json.loads(last.stdout.splitlines()[-1])
    of_key = {f"k{rest}": range(rest, ROWS, 3) for rest in range(3)}
    assert report["counted"] == [[key, len(ids), sum(ids)] for key, ids in of_key.items()]
    assert report["offsets"] == [["counted", 0, ROWS - 1], ["hooks", 0, ROWS - 1]]
    taken: dict[str, bytes] = {}
    for each in service.got:
        assert taken.setdefault(each.key, each.body) == each.body, "one key, two contents"
    assert len(service.got) > len(taken), "nothing was sent twice: the kill came too early to prove anything"
    sent = [row["id"] for body in taken.values() for row in json.loads(body)]
    assert sorted(sent) == list(range(ROWS))
    commits = [int(line) for line in path.with_suffix(".commits").read_text().splitlines()]
    assert max(commits) == path.stat().st_size
