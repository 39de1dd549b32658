"""C3 and RisingWave's FORMAT clause: formats, their options, and the changes they carry."""

from __future__ import annotations

import pytest

from penstock.errors import Span
from penstock.options import known_formats, public_option
from penstock.sql.statements import Format
from tests.unit.options.written import options, refusal, resolve

KAFKA = {"connector": "kafka", "topic": "t"}
REGISTRY = "http://registry:8081"
HERE = Span(20, 1, 6, 2000)


def clause(envelope: str, encode: str | None, key_encode: str | None = None, **written: object) -> Format:
    return Format(envelope, encode, options(written), key_encode, HERE)


@pytest.mark.parametrize(
    ("written", "name", "changes"),
    [
        ("json", "json", "append"),
        ("JSON", "json", "append"),
        ("raw_string", "raw", "append"),
        ("avro-confluent", "avro-confluent", "append"),
        ("debezium-json", "debezium-json", "retract"),
        ("debezium_json", "debezium-json", "retract"),
        ("debezium", "debezium-json", "retract"),
    ],
)
def test_formats_and_aliases(written: str, name: str, changes: str) -> None:
    more = {"schema_registry.url": REGISTRY} if name == "avro-confluent" else {}
    found = resolve({**KAFKA, "format": written, **more})
    assert (found.format, found.changes) == (name, changes)
    assert found.canonical[2].value.reveal() == name


NO_SCHEMA = {"format": "json", "key.fields": "k"}


@pytest.mark.parametrize(
    ("written", "condition", "message"),
    [
        ({"format": "protobuf"}, "MISSING_OPTION", "format = 'protobuf' needs the option protobuf.descriptor"),
        (
            {**NO_SCHEMA, "key.format": "protobuf", "protobuf.descriptor": "f", "format": "protobuf"},
            "MISSING_OPTION",
            "key.format = 'protobuf' needs the option key.protobuf.descriptor",
        ),
        ({"format": "avro-confluent"}, "MISSING_OPTION", "'avro-confluent' needs the option schema_registry.url"),
        (
            {**NO_SCHEMA, "key.format": "avro-confluent"},
            "MISSING_OPTION",
            "key.format = 'avro-confluent' needs the option schema_registry.url",
        ),
        ({"format": "avro", "avro.schema": "not json"}, "INVALID_OPTION", "avro.schema is no JSON"),
        ({"format": "avro", "avro.schema": "[" * 100_000}, "INVALID_OPTION", "avro.schema is no JSON"),
        ({"format": "avro", "avro.schema": '"int"'}, "INVALID_OPTION", "avro.schema is not of a record"),
        (
            {**NO_SCHEMA, "key.format": "avro", "key.avro.schema": "{}"},
            "INVALID_OPTION",
            "key.avro.schema is not of a record",
        ),
    ],
)
def test_a_schema_that_is_missing_or_none_is_refused(written: dict[str, object], condition: str, message: str) -> None:
    error = refusal({**KAFKA, **written})
    assert error.condition == condition
    assert message in error.message


@pytest.mark.parametrize(
    "written",
    [
        {"format": "protobuf", "schema_location": "f"},
        {"format": "avro", "avro.schema": "${file:schema.avsc}"},
        {"format": "avro", "avro.schema": '{"type": "record", "name": "R", "fields": []}'},
        {"format": "avro-confluent", "schema_registry.connection": "registry"},
        # The registry of the values, or one of their own.
        {**NO_SCHEMA, "format": "avro", "key.format": "avro-confluent", "schema_registry.url": REGISTRY},
        {**NO_SCHEMA, "key.format": "avro-confluent", "key.schema_registry.url": REGISTRY},
    ],
)
def test_a_schema_that_is_given_or_read_later_is_taken(written: dict[str, object]) -> None:
    assert resolve({**KAFKA, **written}).format == written["format"]


def test_unknown_format_lists_the_known_ones() -> None:
    error = refusal({**KAFKA, "format": "jsno"})
    assert error.condition == "UNKNOWN_FORMAT"
    assert "did you mean 'json'" in str(error.hint)
    assert all(spec.name in str(error.hint) for spec in known_formats())


@pytest.mark.parametrize("name", ["canal-json", "maxwell-json", "orc", "debezium-avro-confluent"])
def test_formats_of_other_systems_are_not_yet(name: str) -> None:
    error = refusal({**KAFKA, "format": name})
    assert (error.condition, error.support) == ("FORMAT_NOT_YET", "not_yet")


def test_a_format_that_the_connector_does_not_take() -> None:
    assert "parquet" in refusal({**KAFKA, "format": "parquet"}).message
    assert refusal({"connector": "blackhole", "format": "json"}).condition == "INVALID_OPTION"


def test_options_of_another_format_are_unknown() -> None:
    assert refusal({**KAFKA, "format": "json", "csv.field-delimiter": ";"}).condition == "UNKNOWN_OPTION"
    assert resolve({**KAFKA, "format": "csv", "csv.field-delimiter": ";"}).values["csv.delimiter"] == ";"


def test_key_and_value_formats_have_options_of_their_own() -> None:
    found = resolve(
        {
            **KAFKA,
            "key.format": "csv",
            "key.csv.field-delimiter": "|",
            "key.fields": "a;b",
            "value.format": "json",
            "value.json.fail-on-missing-field": "true",
            "value.fields-include": "EXCEPT_KEY",
        }
    )
    assert found.format == "json"
    assert found.values["key.format"] == "csv"
    assert found.values["key.csv.delimiter"] == "|"
    assert found.values["key.fields"] == ("a", "b")
    assert found.values["json.fail_on_missing_field"] is True


@pytest.mark.parametrize(
    ("written", "name", "changes"),
    [
        (clause("plain", "json"), "json", "append"),
        (clause("upsert", "json"), "json", "upsert"),
        (clause("upsert", "avro"), "avro", "upsert"),
        (clause("debezium", "json"), "debezium-json", "retract"),
        (clause("plain", "bytes"), "raw", "append"),
    ],
)
def test_risingwave_clause(written: Format, name: str, changes: str) -> None:
    found = resolve(KAFKA, clause=written)
    assert (found.format, found.changes) == (name, changes)
    again = resolve({option.key: option.value for option in found.canonical})
    assert again == found


def test_risingwave_clause_with_options_and_key_encode() -> None:
    found = resolve(KAFKA, clause=clause("plain", "csv", key_encode="text", delimiter="|", without_header="true"))
    assert (found.values["csv.delimiter"], found.values["csv.header"]) == ("|", False)
    assert found.values["key.format"] == "raw"


def test_risingwave_clause_of_a_sink() -> None:
    found = resolve(KAFKA, role="sink", clause=clause("plain", "json", force_append_only="true"))
    assert found.changes == "append"
    assert resolve({**KAFKA, "type": "upsert"}, role="sink").changes == "upsert"
    assert resolve({**KAFKA, "type": "append-only", "force_append_only": "false"}, role="sink").changes == "append"


def test_risingwave_clause_against_the_option() -> None:
    assert resolve({**KAFKA, "format": "json"}, clause=clause("plain", "json")).format == "json"
    error = refusal({**KAFKA, "format": "csv"}, clause=clause("plain", "json"))
    assert (error.condition, error.span) == ("CONFLICTING_OPTIONS", HERE)


@pytest.mark.parametrize(
    ("written", "condition"),
    [
        (clause("maxwell", "json"), "FORMAT_NOT_YET"),
        (clause("debezium", "avro"), "FORMAT_NOT_YET"),
        (clause("debezium_mongo", "json"), "FORMAT_NOT_YET"),
        (clause("plain", "jsno"), "UNKNOWN_FORMAT"),
        (clause("sideways", "json"), "UNKNOWN_FORMAT"),
        (clause("plain", "json", nonsense="1"), "UNKNOWN_OPTION"),
    ],
)
def test_risingwave_clauses_that_are_refused(written: Format, condition: str) -> None:
    assert refusal(KAFKA, clause=written).condition == condition


def test_native_means_no_format() -> None:
    assert resolve({"connector": "datagen"}, clause=clause("native", "native")).format is None
    assert resolve({"connector": "datagen"}, clause=clause("plain", "json")).format == "json"


def test_options_in_the_clause_are_public_or_secret_like_the_others() -> None:
    inside = options({"delimiter": "|", "schema.registry.password": "x", "nonsense": "y"})
    public = public_option((*options(KAFKA), *inside))
    assert [public(option) for option in inside] == [True, False, False]


def test_changes_of_connectors() -> None:
    assert resolve({"connector": "upsert-kafka", "topic": "t"}).changes == "upsert"
    assert resolve({"connector": "upsert-kafka", "topic": "t"}).values["start"] == "earliest"
    assert resolve({"connector": "console"}).changes == "retract"
    assert resolve({"connector": "file", "path": "p"}, role="sink").changes == "append"
    assert resolve({"connector": "postgres", "host": "h", "table": "t"}, role="sink").changes == "upsert"
