"""`penstock kafka up | down | status`: a real broker in one command."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from penstock.errors import PenstockError
from penstock.interfaces.cli.main import run
from penstock.runtime.kafka_broker import HOST, KafkaBroker
from penstock.spark import java
from penstock.spark.jar_cache import JarCache
from tests.kafka.conftest import Cluster

pytestmark = pytest.mark.kafka


def test_up_status_down_and_what_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = ["--dir", str(tmp_path / "broker")]
    assert run(["kafka", "status", *place]) == 1
    assert capsys.readouterr().out == "the broker does not run\n"
    assert run(["kafka", "down", *place]) == 0
    assert not (tmp_path / "broker").exists()
    capsys.readouterr()

    assert run(["kafka", "up", "--port", "0", "--json", *place]) == 0
    told = json.loads(capsys.readouterr().out)
    broker = KafkaBroker(tmp_path / "broker")
    try:
        assert told["running"]
        cluster = Cluster(told["address"])
        topic = cluster.topic()
        cluster.send(topic, ["kept"])
        # A second one in the same directory is the same.
        assert run(["kafka", "up", "--port", "0", "--json", *place]) == 0
        assert json.loads(capsys.readouterr().out) == told
        with pytest.raises(PenstockError, match="runs already") as raised:
            broker.start(1)
        assert raised.value.condition == "BROKER_FAILED"
        # Its port is in use for another one.
        port = told["address"].rpartition(":")[2]
        assert run(["kafka", "up", "--port", port, "--dir", str(tmp_path / "other")]) == 1
        assert f"port {port} of {HOST} is in use" in capsys.readouterr().err
        # It listens on the loopback interface only.
        listening = broker.directory.joinpath("server.properties").read_text()
        assert f"listeners=PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:" in listening

        # Killed: the next `up` goes on with what was written.
        os.kill(told["pid"], signal.SIGKILL)
        assert broker._gone(told["pid"], 60)
        assert run(["kafka", "status", "--json", *place]) == 1
        capsys.readouterr()
        cluster = Cluster(str(broker.start(0).address))
        assert cluster.values(topic) == ["kept"]
        assert run(["kafka", "status", *place]) == 0
        assert capsys.readouterr().out.startswith(f"the broker runs at {cluster.address} (process ")
        assert run(["kafka", "down", "--delete", *place]) == 0
        assert capsys.readouterr().out == "stopped; its data is gone\n"
        assert not (tmp_path / "broker").exists()
    finally:
        broker.stop(delete=True)


def test_a_broker_without_java_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "find_java", lambda _=None: java.JavaProblem("no Java here", "apt-get install java"))
    with pytest.raises(PenstockError) as raised:
        KafkaBroker(tmp_path / "broker").start(0)
    assert raised.value.condition == "JAVA_MISSING"
    assert not (tmp_path / "broker").exists()


def test_what_somebody_else_keeps_is_neither_taken_nor_deleted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("data/important.txt", "server.properties"):
        place = tmp_path / name.replace("/", "-")
        (place / name).parent.mkdir(parents=True)
        (place / name).write_text("mine")
        for command in (["up", "--port", "0"], ["down", "--delete"]):
            code = run(["kafka", *command, "--dir", str(place)])
            told = capsys.readouterr()
            assert (code, (place / name).read_text()) == (1 if command[0] == "up" else 0, "mine")
            words = "that is no broker's of ours" if command[0] == "up" else f"there is no broker in {place}"
            assert words in f"{told.out}{told.err}"


def test_a_process_of_another_program_is_not_ended(tmp_path: Path) -> None:
    broker = KafkaBroker(tmp_path)
    (tmp_path / "broker.json").write_text(json.dumps({"pid": os.getpid(), "port": 9092}))
    assert broker.state().pid is None
    assert not broker.stop()


def test_a_full_cache_needs_no_repository(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # Ivy could not even start with these settings, so nothing is fetched.
    monkeypatch.setenv("PENSTOCK_IVY_SETTINGS", str(tmp_path / "nothing.xml"))
    assert JarCache().install(["kafka", "kafka-broker"], lambda _: None) == []
    monkeypatch.setenv("PENSTOCK_CONNECTOR_CACHE", str(tmp_path / "empty"))
    with pytest.raises(PenstockError) as raised:
        JarCache().install(["avro"], lambda _: None)
    assert raised.value.condition == "DOWNLOAD_FAILED"
