"""Options that are taken and change nothing say so; options that nothing would read are refused."""

from __future__ import annotations

from typing import Literal

import pytest

from tests.unit.options.written import refusal, resolve

KAFKA = {"connector": "kafka", "topic": "t"}
REGISTRY = "http://127.0.0.1:8081"


@pytest.mark.parametrize(
    ("key", "written", "slot", "role"),
    [
        ("scan.topic-partition-discovery.interval", "10 s", "partition_discovery", "source"),
        ("sink.buffer-flush.max-rows", 100, "flush_rows", "sink"),
        ("sink.buffer-flush.interval", "1 s", "flush_interval", "sink"),
        ("json.map-null-key.mode", "LITERAL", "json.map_null_key", "sink"),
        ("json.map-null-key.literal", "none", "json.map_null_key_literal", "sink"),
        ("json.encode.decimal-as-plain-number", True, "json.decimal_as_plain_number", "sink"),
    ],
)
def test_an_option_that_changes_nothing_says_so(
    key: str, written: object, slot: str, role: Literal["source", "sink"]
) -> None:
    found = resolve({**KAFKA, key: written}, role=role)
    assert sum(notice.startswith(f"option {slot} changes nothing here: ") for notice in found.notices) == 1


def test_who_gives_no_such_option_is_told_nothing() -> None:
    notices = (*resolve(KAFKA).notices, *resolve(KAFKA, role="sink").notices)
    assert not any("changes nothing" in notice for notice in notices)


@pytest.mark.parametrize(
    ("written", "key", "wanted"),
    [
        ({"schema_registry.url": REGISTRY}, "schema_registry.url", "json.confluent_schema_registry"),
        ({"json.schema_id": 5, "type": "sink"}, "json.schema_id", "json.confluent_schema_registry"),
        ({"json.confluent_schema_registry": True, "schema_registry.username": "ann"}, "schema_registry.username",
         "schema_registry.url"),
        ({"format": "avro", "schema_registry.token": "${env:T}"}, "schema_registry.token", "schema_registry.url"),
        ({"format": "avro", "avro.schema_id": 5, "type": "sink"}, "avro.schema_id", "schema_registry.url"),
        ({"format": "avro", "value.subject": "s"}, "value.subject", "schema_registry.url"),
        ({"key.format": "json", "key.schema_registry.url": REGISTRY}, "key.schema_registry.url",
         "key.json.confluent_schema_registry"),
    ],
)  # fmt: skip
def test_a_registry_that_nothing_would_ask_is_refused(written: dict[str, object], key: str, wanted: str) -> None:
    error = refusal({**KAFKA, **written})
    assert error.condition == "MISSING_OPTION"
    assert error.message == f"{key} needs the option {wanted}"


@pytest.mark.parametrize(
    "written",
    [
        {"json.confluent_schema_registry": True, "schema_registry.url": REGISTRY, "schema_registry.username": "ann"},
        {"json.confluent_schema_registry": True},
        {"format": "avro", "schema_registry.url": REGISTRY, "schema_registry.subject": "s"},
        {"format": "avro-confluent", "schema_registry.connection": "registry", "schema_registry.naming": "record"},
        # The registry of the keys alone: they take the one of the values where they name none.
        {"key.format": "avro", "key.fields": "k", "schema_registry.url": REGISTRY},
        {"format": "protobuf", "protobuf.descriptor": "f", "schema_registry.url": REGISTRY, "value.subject": "s"},
    ],
)
def test_a_registry_that_is_asked_is_taken(written: dict[str, object]) -> None:
    assert set(written) <= resolve({**KAFKA, **written}).given


def test_the_lines_of_a_file_have_no_numbers_of_schemas() -> None:
    file = {"connector": "file", "path": "a", "json.confluent_schema_registry": True}
    assert refusal(file, role="sink").condition == "INVALID_OPTION"


def test_options_of_one_side_are_refused_on_the_other() -> None:
    beside = refusal({**KAFKA, "json.include_schema": True}, role="sink")
    assert beside.message == "option json.include_schema is for lookups and sources, and 'orders' is a sink"
    assert refusal({**KAFKA, "json.schema_id": 5}, strict=True).condition == "INVALID_OPTION"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("enable.auto.commit", "true"),
        ("auto.commit.interval.ms", "5000"),
        ("fetch.queue.backoff.ms", "10"),
        ("queued.min.messages", "10"),
        ("queued.max.messages.kbytes", "10"),
        ("statistics.interval.ms", "1000"),
        ("sync.call.timeout", "5"),
    ],
)
def test_a_client_property_that_changes_nothing_says_so(name: str, value: str) -> None:
    found = resolve({**KAFKA, f"properties.{name}": value})
    assert sum(notice.startswith(f"option kafka.{name} changes nothing here: ") for notice in found.notices) == 1


@pytest.mark.parametrize(
    ("written", "role", "key"),
    [
        ({"properties.auto.offset.reset": "earliest"}, "source", "kafka.auto.offset.reset"),
        ({"kafka.transaction.timeout.ms": "90000"}, "sink", "kafka.transaction.timeout.ms"),
        ({"transactional_id_prefix": "p"}, "sink", "transactional_id_prefix"),
        ({"properties.transaction.id.prefix": "p"}, "sink", "kafka.transaction.id.prefix"),
    ],
)
def test_what_another_option_would_have_to_say_is_told(
    written: dict[str, object], role: Literal["source", "sink"], key: str
) -> None:
    own: dict[str, object] = {"start": "group", "group_id": "g"} if role == "source" else {"delivery": "exactly_once"}
    told = f"option {key} changes nothing here: "
    assert any(notice.startswith(told) for notice in resolve({**KAFKA, **written}, role=role).notices)
    assert not any(notice.startswith(told) for notice in resolve({**KAFKA, **written, **own}, role=role).notices)


@pytest.mark.parametrize("prefix", ["kafka.", "properties."])
@pytest.mark.parametrize(
    "name",
    [
        "sasl.kerberos.service.name",
        "sasl.kerberos.keytab",
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.oauthbearer.jwks.endpoint.url",
        "sasl.oauthbearer.client.secret",
        "sasl.login.connect.timeout.ms",
    ],
)
def test_logins_that_cannot_work_are_refused_by_name(prefix: str, name: str) -> None:
    error = refusal({**KAFKA, f"{prefix}{name}": "x"})
    assert (error.condition, error.support) == ("CLAUSE_NOT_YET", "not_yet")
    assert "SCRAM-SHA-512" in str(error.hint)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("kafka.sasl.mechanism", "GSSAPI"),
        ("kafka.sasl.mechanism", "OAUTHBEARER"),
        ("auth.mechanism", "OAUTHBEARER"),
        ("kafka.enable.ssl.certificate.verification", "false"),
        ("kafka.sasl.jaas.config", "com.sun.security.auth.module.Krb5LoginModule required;"),
        ("kafka.sasl.jaas.config", "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"),
        ("kafka.sasl.jaas.config", "com.sun.security.auth.module.JndiLoginModule required;"),
    ],
)
def test_values_that_cannot_work_are_refused(key: str, value: str) -> None:
    assert refusal({**KAFKA, key: value}).condition == "INVALID_OPTION"


def test_certificates_are_always_checked() -> None:
    found = resolve({**KAFKA, "kafka.enable.ssl.certificate.verification": True})
    assert found.passthrough["enable.ssl.certificate.verification"] == "true"
