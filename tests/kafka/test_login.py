"""A broker that asks who comes, over TLS and without: Spark's reader and writer log in, and so do our own clients.

By passwords, plain and as SCRAM, and by certificates.
"""

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
STORE_PASSWORD = "canary-of-stores"
SCRAM = "SCRAM-SHA-512"
_SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


class GuardedBroker(KafkaBroker):
    """A broker with more listeners: one asks for a password, one does so over TLS, and one asks for a certificate."""

    def _properties(self, port: int) -> str:
        self.login, self.secure, self.mutual = (f"{HOST}:{free_port()}" for _ in range(3))
        guarded = {
            "LOGIN": (self.login, "SASL_PLAINTEXT"),
            "SECURE": (self.secure, "SASL_SSL"),
            "MUTUAL": (self.mutual, "SSL"),
        }
        kept = dict(line.split("=", 1) for line in super()._properties(port).splitlines())
        for name, (address, protocol) in guarded.items():
            kept["listeners"] += f",{name}://{address}"
            kept["advertised.listeners"] += f",{name}://{address}"
            kept["listener.security.protocol.map"] += f",{name}:{protocol}"
            if protocol != "SSL":
                asked = f"listener.name.{name.lower()}"
                kept[f"{asked}.plain.sasl.jaas.config"] = f'{_MODULE} required user_ann="{PASSWORD}";'
                kept[f"{asked}.{SCRAM.lower()}.sasl.jaas.config"] = f"{_SCRAM_MODULE} required;"
        self._keys("server")
        self._keys("client")
        kept |= {
            "sasl.enabled.mechanisms": f"PLAIN,{SCRAM}",
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(self.directory / "server.p12"),
            "ssl.keystore.password": STORE_PASSWORD,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.directory / "client.pem"),
            "listener.name.mutual.ssl.client.auth": "required",
        }
        return "".join(f"{key}={value}\n" for key, value in kept.items())

    @property
    def certificate(self) -> Path:
        return self.directory / "server.pem"

    @property
    def client_store(self) -> Path:
        """The key and the certificate of a client, in one PKCS12 file."""
        return self.directory / "client.p12"

    def let_in(self, user: str, password: str) -> None:
        """Tell the broker a user whose password is asked for as SCRAM."""
        from confluent_kafka.admin import (  # type: ignore[attr-defined]
            AdminClient,
            ScramCredentialInfo,
            ScramMechanism,
            UserScramCredentialUpsertion,
        )

        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        admin = AdminClient({"bootstrap.servers": str(self.state().address), "log_level": 0})
        told = admin.alter_user_scram_credentials([UserScramCredentialUpsertion(user, info, password.encode())])
        told[user].result(60)

    def _keys(self, name: str) -> None:
        """A key in a PKCS12 file, and its certificate as a PEM file."""
        tool = str(require_java().home / "bin" / "keytool")
        store = str(self.directory / f"{name}.p12")
        common = ["-alias", name, "-keystore", store, "-storetype", "PKCS12", "-storepass", STORE_PASSWORD]
        subprocess.run(
            [tool, "-genkeypair", *common, "-keyalg", "RSA", "-dname", f"CN={name}", "-ext", f"san=ip:{HOST}"],
            check=True, capture_output=True,
        )  # fmt: skip
        exported = ["-exportcert", "-rfc", *common, "-file", str(self.directory / f"{name}.pem")]
        subprocess.run([tool, *exported], check=True, capture_output=True)


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


def test_who_has_a_certificate_or_a_password_as_scram_reads_and_writes(
    guarded: GuardedBroker, db: penstock.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_TEST_PASSWORD", PASSWORD)
    monkeypatch.setenv("KAFKA_TEST_STORE_PASSWORD", STORE_PASSWORD)
    guarded.let_in("bea", PASSWORD)
    inner = Cluster(str(guarded.state().address))
    trusted = f"'kafka.ssl.ca.location' = '{guarded.certificate}'"
    mutual = f"bootstrap_servers = '{guarded.mutual}', 'kafka.security.protocol' = 'SSL', {trusted}"
    ways = {
        "by_scram": f"""
            bootstrap_servers = '{guarded.secure}', 'kafka.security.protocol' = 'SASL_SSL', {trusted},
            'kafka.sasl.mechanism' = '{SCRAM}', 'kafka.sasl.username' = 'bea',
            'kafka.sasl.password' = '${{env:KAFKA_TEST_PASSWORD}}'""",
        "by_certificate": f"""
            {mutual}, 'kafka.ssl.keystore.type' = 'PKCS12', 'kafka.ssl.keystore.location' = '{guarded.client_store}',
            'kafka.ssl.keystore.password' = '${{env:KAFKA_TEST_STORE_PASSWORD}}'""",
    }
    out: dict[str, str] = {}
    for name, way in ways.items():
        source, plain, exact = inner.topic(), inner.topic(), inner.topic()
        inner.send(source, [json.dumps({"n": n}) for n in range(10)])
        db.execute(f"""
            CREATE STREAM {name} (n INT) WITH (connector = 'kafka', topic = '{source}', start = 'earliest', {way});
            CREATE SINK {name}_plain WITH (connector = 'kafka', topic = '{plain}', {way}) AS SELECT n FROM {name};
            CREATE SINK {name}_exact WITH (connector = 'kafka', topic = '{exact}', delivery = 'exactly_once', {way})
              AS SELECT n FROM {name};
        """)
        out |= {f"{name}_plain": plain, f"{name}_exact": exact}
    db.settle(180)
    found = {job: sorted(json.loads(value)["n"] for value in inner.values(topic)) for job, topic in out.items()}
    assert found == {job: list(range(10)) for job in out}

    # Nobody comes in without a certificate.
    db.execute(f"CREATE STREAM nobody (n INT) WITH (connector = 'kafka', topic = 'any', {mutual})")
    with pytest.raises(PenstockError) as raised:
        db.execute("CREATE MATERIALIZED VIEW nobody_view AS SELECT n FROM nobody")
    assert raised.value.condition == "SOURCE_UNAVAILABLE"
    assert guarded.mutual in raised.value.message
