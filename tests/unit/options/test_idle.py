"""Options that are taken and change nothing say so; options that nothing would read are refused."""

from __future__ import annotations

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
def test_an_option_that_changes_nothing_says_so(key: str, written: object, slot: str, role: str) -> None:
    found = resolve({**KAFKA, key: written}, role="sink" if role == "sink" else "source")
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
        {"format": "protobuf", "schema_registry.url": REGISTRY, "value.subject": "s"},
    ],
)
def test_a_registry_that_is_asked_is_taken(written: dict[str, object]) -> None:
    assert set(written) <= resolve({**KAFKA, **written}).given


def test_the_lines_of_a_file_have_no_numbers_of_schemas() -> None:
    file = {"connector": "file", "path": "a", "json.confluent_schema_registry": True}
    assert refusal(file, role="sink").condition == "INVALID_OPTION"


@pytest.mark.parametrize("key", ["json.include_schema", "debezium-json.map_null_key"])
def test_options_of_one_side_are_refused_on_the_other(key: str) -> None:
    family, _, name = key.partition(".")
    role = "sink" if name == "include_schema" else "source"
    error = refusal(
        {**KAFKA, "format": family, key: "fail" if name == "map_null_key" else True}, role=role, strict=True
    )
    assert error.condition == "INVALID_OPTION"
