"""A broker that asks who comes, over TLS and without: Spark's reader and writer log in, and so do our own clients."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from penstock.errors import PenstockError
from penstock.runtime.kafka_broker import HOST, KafkaBroker, free_port
from penstock.spark.java import require_java
from penstock.spark.session import log_file
from tests.kafka.conftest import Cluster

pytestmark = pytest.mark.kafka

PASSWORD = "canary-5f3a"
_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


class GuardedBroker(KafkaBroker):
    """A broker with two more listeners: one that asks for a password, and one that does so over TLS."""

    def _properties(self, port: int) -> str:
        self.login, self.secure = f"{HOST}:{free_port()}", f"{HOST}:{free_port()}"
        guarded = {"LOGIN": (self.login, "SASL_PLAINTEXT"), "SECURE": (self.secure, "SASL_SSL")}
        kept = dict(line.split("=", 1) for line in super()._properties(port).splitlines())
        for name, (address, protocol) in guarded.items():
            kept["listeners"] += f",{name}://{address}"
            kept["advertised.listeners"] += f",{name}://{address}"
            kept["listener.security.protocol.map"] += f",{name}:{protocol}"
            kept[f"listener.name.{name.lower()}.plain.sasl.jaas.config"] = f'{_MODULE} required user_ann="{PASSWORD}";'
        kept |= {
            "sasl.enabled.mechanisms": "PLAIN",
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(self._keys()),
            "ssl.keystore.password": "changeit",
        }
        return "".join(f"{key}={value}\n" for key, value in kept.items())

    @property
    def certificate(self) -> Path:
        return self.directory / "server.pem"

    def _keys(self) -> Path:
        store = self.directory / "server.p12"
        tool = str(require_java().home / "bin" / "keytool")
        common = ["-alias", "server", "-keystore", str(store), "-storetype", "PKCS12", "-storepass", "changeit"]
        subprocess.run(
            [tool, "-genkeypair", *common, "-keyalg", "RSA", "-dname", "CN=localhost", "-ext", f"san=ip:{HOST}"],
            check=True, capture_output=True,
        )  # fmt: skip
        exported = ["-exportcert", "-rfc", *common, "-file", str(self.certificate)]
        subprocess.run([tool, *exported], check=True, capture_output=True)
        return store


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[GuardedBroker]:
    broker = GuardedBroker(tmp_path / "guarded")
    broker.start(0)
    yield broker
    broker.stop(delete=True)


def test_who_has_the_password_reads_and_writes(
    guarded: GuardedBroker, db: penstock.Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KAFKA_TEST_PASSWORD", PASSWORD)
    inner = Cluster(str(guarded.state().address))
    source, plain, exact = inner.topic(), inner.topic(), inner.topic()
    inner.send(source, [json.dumps({"n": n}) for n in range(10)])
    secret = "'kafka.sasl.mechanism' = 'PLAIN', 'kafka.sasl.username' = 'ann', 'kafka.sasl.password' = '{}'"
    known = secret.format("${env:KAFKA_TEST_PASSWORD}")
    over_tls = (
        f"bootstrap_servers = '{guarded.secure}', 'kafka.security.protocol' = 'SASL_SSL', "
        f"'kafka.ssl.ca.location' = '{guarded.certificate}'"
    )
    without = f"bootstrap_servers = '{guarded.login}', 'kafka.security.protocol' = 'SASL_PLAINTEXT'"
    db.execute(f"""
        CREATE STREAM numbers (n INT)
          WITH (connector = 'kafka', topic = '{source}', start = 'earliest', {over_tls}, {known});
        CREATE SINK copied (n INT) WITH (connector = 'kafka', topic = '{plain}', {without}, {known});
        CREATE SINK once (n INT)
          WITH (connector = 'kafka', topic = '{exact}', delivery = 'exactly_once', {over_tls}, {known});
        CREATE MATERIALIZED VIEW seen AS SELECT COUNT(*) AS n FROM numbers;
        INSERT INTO copied SELECT n FROM numbers;
        INSERT INTO once SELECT n FROM numbers;
    """)
    db.settle(180)
    assert db.sql("SELECT n FROM seen").rows() == [(10,)]
    for topic in (plain, exact):
        assert sorted(json.loads(value)["n"] for value in inner.values(topic)) == list(range(10))

    # Whatever is kept of a job, by Spark and by us, can be shown to anybody.
    home = tmp_path / "home"
    kept = {str(file.relative_to(home)): file.read_bytes() for file in home.rglob("*") if file.is_file()}
    parts = {part for name in kept for part in Path(name).parts}
    assert parts >= {"offsets", "commits", "sources", "metadata", "kafka", "catalog.db"}
    assert [name for name, held in kept.items() if PASSWORD.encode() in held] == []
    log = log_file()
    assert log is not None
    assert PASSWORD.encode() not in log.read_bytes()
    assert any(source.encode() in held for name, held in kept.items() if "offsets" in Path(name).parts)

    # Another password, or none: an error in time, which tells nobody what was tried.
    wrong = secret.format("canary-wrong")
    for name, options in (("wrong", f"{without}, {wrong}"), ("nobody", f"bootstrap_servers = '{guarded.login}'")):
        db.execute(f"CREATE STREAM {name} (n INT) WITH (connector = 'kafka', topic = '{source}', {options})")
        with pytest.raises(PenstockError) as raised:
            db.execute(f"CREATE MATERIALIZED VIEW {name}_view AS SELECT n FROM {name}")
        assert raised.value.condition == "SOURCE_UNAVAILABLE"
        assert guarded.login in raised.value.message
        assert "canary" not in f"{raised.value.message} {raised.value.hint} {raised.value.detail}"
    shown = db.sql("SELECT value FROM penstock.options").rows()
    assert not [value for (value,) in shown if "canary" in str(value)]
