"""The page about Kafka does what it shows, against a real broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.running import run_page
from tests.docs.test_running_pages import WITH_BROKER, plain
from tests.kafka.conftest import Cluster
from tests.project import ROOT

pytestmark = pytest.mark.kafka


def test_page_does_what_it_shows(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = run_page(ROOT / WITH_BROKER, **{"kafka.bootstrap_servers": cluster.address})
    assert sum(step.shown is not None for step, _ in shown) == 3
    for step, output in shown:
        if step.shown is not None:
            assert plain(output) == plain(step.shown), str(step.block)
