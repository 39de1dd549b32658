"""Properties of Kafka's clients: each reaches the one that reads or writes, or is refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.connectors.kafka_access import FOR_LIBRDKAFKA, KafkaAccess
from penstock.connectors.kafka_sink import KafkaSink
from penstock.connectors.kafka_tuning import producer_tuning
from penstock.connectors.kafka_writers import PlainWriter
from penstock.connectors.sink import SinkContext
from penstock.errors import PenstockError
from penstock.options.schemas.kafka_client import CLIENT
from penstock.stores.topics import TopicStore
from tests.unit.connectors.declared import sink as declared_sink

EXACT = "delivery = 'exactly_once'"
DATED = "record_timestamp_field = 'at'"
# Read where a job begins, where transactions are named, and where the user logs in.
READ_ELSEWHERE = {"auto.offset.reset", "transaction.id.prefix"}


def declared(*options: str) -> Any:
    given = ", ".join(("connector = 'kafka'", "topic = 't'", *options))
    return declared_sink(f"CREATE SINK s (n INT, at TIMESTAMP) WITH ({given})")


def context(definition: Any, tmp_path: Path) -> SinkContext:
    return SinkContext(job="j", producer="j@1", definition=definition, topics=TopicStore(tmp_path), encode=None)


def prepared(tmp_path: Path, *options: str) -> None:
    KafkaSink().prepare(declared(*options), tmp_path, TopicStore(tmp_path))


def test_every_property_reaches_a_client_or_is_told_to_change_nothing() -> None:
    values = {name: "PEM" if name.endswith(".type") else "1" for name in CLIENT.allowed} | {"ssl.keystore.type": "PEM"}
    for name, value in values.items():
        if name in CLIENT.idle or name in READ_ELSEWHERE:
            continue
        if name in FOR_LIBRDKAFKA:
            continue
        assert KafkaAccess("h:1", {name: value}).java(), f"{name} reaches neither client"


@pytest.mark.parametrize(
    ("given", "java"),
    [
        ({"fetch.wait.max.ms": "7"}, {"fetch.max.wait.ms": "7"}),
        ({"fetch.message.max.bytes": "9"}, {"max.partition.fetch.bytes": "9"}),
        ({"message.max.bytes": "9"}, {"max.request.size": "9"}),
        ({"message.max.bytes": "9", "max.request.size": "8"}, {"max.request.size": "8"}),
        ({"enable.auto.commit": "true", "queued.min.messages": "9", "transaction.id.prefix": "p"}, {}),
    ],
)
def test_names_of_librdkafka_are_those_of_java(given: dict[str, str], java: dict[str, str]) -> None:
    assert KafkaAccess("h:1", given).java() == java


def test_what_librdkafka_asks_the_brokers_with() -> None:
    given = {"receive.message.max.bytes": "2000000", "connections.max.idle.ms": "-1", "client.dns.lookup": "x"}
    made = KafkaAccess("h:1", given).librdkafka()
    assert made["receive.message.max.bytes"] == "2000000"
    assert made["connections.max.idle.ms"] == 0
    assert made["client.dns.lookup"] == "x"


def test_key_stores_of_java() -> None:
    pem = KafkaAccess("h:1", {"ssl.keystore.type": "PEM", "ssl.keystore.location": "/k.pem"}).librdkafka()
    assert (pem["ssl.certificate.location"], pem["ssl.key.location"]) == ("/k.pem", "/k.pem")
    store = {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": "/k.p12", "ssl.keystore.password": "p"}
    found = KafkaAccess("h:1", store).librdkafka()
    assert (found["ssl.keystore.location"], found["ssl.keystore.password"]) == ("/k.p12", "p")
    for given in ({}, {"ssl.keystore.type": "JKS"}):
        with pytest.raises(PenstockError, match="only Spark can read") as raised:
            KafkaAccess("h:1", {"ssl.keystore.location": "/k.jks", **given}).librdkafka()
        assert raised.value.condition == "MISSING_OPTION"
    both = {"ssl.keystore.location": "/k.jks", "ssl.certificate.location": "/c.pem", "ssl.key.location": "/k.pem"}
    assert KafkaAccess("h:1", both).librdkafka()["ssl.certificate.location"] == "/c.pem"


def test_a_certificate_without_its_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.pem").write_text("CERTIFICATE")
    with pytest.raises(PenstockError) as raised:
        KafkaAccess("h:1", {"ssl.certificate.location": str(tmp_path / "c.pem")}).java()
    assert raised.value.condition == "MISSING_OPTION"


def test_a_producer_of_our_own_is_tuned_as_that_of_java() -> None:
    given = {
        "max.request.size": "2000000",
        "request.timeout.ms": "9000",
        "retries": "7",
        "compression.type": "gzip",
        "compression.gzip.level": "4",
        "compression.zstd.level": "9",
        "buffer.memory": "2097152",
        "transaction.timeout.ms": "90000",
        "linger.ms": "3",
        "send.buffer.bytes": "4096",
        "fetch.min.bytes": "1",
    }
    expected = {
        "message.max.bytes": "2000000",
        "request.timeout.ms": "9000",
        "retries": "7",
        "compression.type": "gzip",
        "compression.level": "4",
        "queue.buffering.max.kbytes": 2048,
        "linger.ms": "3",
        "socket.send.buffer.bytes": "4096",
    }
    assert producer_tuning(given, exact=True) == {**expected, "transaction.timeout.ms": "90000"}
    assert producer_tuning(given, exact=False) == {**expected, "enable.idempotence": True}
    assert producer_tuning({}, exact=True) == {"transaction.timeout.ms": 60_000}


@pytest.mark.parametrize("own", [{"acks": "1"}, {"retries": "0"}, {"enable.idempotence": "false"}])
def test_what_may_come_twice_is_so_where_it_is_asked_for(own: dict[str, str]) -> None:
    assert producer_tuning(own, exact=False)["enable.idempotence"] is False


def test_librdkafka_takes_what_it_is_told(tmp_path: Path) -> None:
    definition = declared(DATED, "'kafka.retries' = '3'", "'kafka.max.request.size' = '2000000'", "kafka.acks = '1'")
    PlainWriter(context(definition, tmp_path)).close()
    wrong = declared(DATED, "'kafka.max.request.size' = '2'")
    with pytest.raises(PenstockError, match=r"message\.max\.bytes") as raised:
        PlainWriter(context(wrong, tmp_path))
    assert raised.value.condition == "INVALID_OPTION"


@pytest.mark.parametrize("own", [EXACT, DATED])
@pytest.mark.parametrize("key", ["max.block.ms", "ssl.enabled.protocols", "ssl.cipher.suites"])
def test_what_only_java_knows_is_refused_where_it_does_not_write(own: str, key: str, tmp_path: Path) -> None:
    with pytest.raises(PenstockError, match=key) as raised:
        prepared(tmp_path, own, f"'kafka.{key}' = '1'")
    assert raised.value.condition == "INVALID_OPTION"
    prepared(tmp_path, f"'kafka.{key}' = '1'")


@pytest.mark.parametrize(
    "given", ["kafka.acks = '1'", "kafka.retries = '0'", "'kafka.enable.idempotence' = 'false'",
              "'kafka.max.in.flight.requests.per.connection' = '9'"],
)  # fmt: skip
def test_exactly_once_is_not_taken_back(given: str, tmp_path: Path) -> None:
    with pytest.raises(PenstockError) as raised:
        prepared(tmp_path, EXACT, given)
    assert raised.value.condition == "CONFLICTING_OPTIONS"
    prepared(tmp_path, DATED, given)
    if "idempotence" not in given:
        with pytest.raises(PenstockError):
            prepared(tmp_path, DATED, given, "'kafka.enable.idempotence' = 'true'")
