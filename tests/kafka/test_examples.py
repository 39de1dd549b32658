"""The programs under examples/ that can use a broker, against one."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from tests.docs.test_examples import told
from tests.kafka.conftest import Cluster
from tests.project import ROOT

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize("name", ["streaming_sql_kafka_to_kafka.py", "streaming_sql_with_dimension_broadcast.py"])
def test_example_with_a_broker(
    name: str,
    cluster: Cluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """V1, V3, SC1, SC3, M13, N5: the same program prints the same over topics of Kafka."""
    path = ROOT / "examples" / name
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(path), cluster.address])
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out == told(path)
    assert list(tmp_path.iterdir()) == [], "an example leaves nothing behind"
