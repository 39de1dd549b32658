"""C1 to C12, DEC8, DEC9: which connector a statement means, and what its options say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal

import pytest

from penstock.errors import OptionError
from penstock.options import known_connectors, resolve_setting
from penstock.secrets import Secret
from penstock.sql.statements import OptionValue
from tests.unit.options.written import WITH, interval, refusal, resolve

KAFKA = {"connector": "kafka", "topic": "t"}


def test_a2_seed_stream_without_connector_is_an_embedded_topic() -> None:
    found = resolve({"topic": "orders", "format": "json", "timestamp_field": "event_time"})
    assert (found.connector, found.format, found.role) == ("topic", "json", "source")
    assert found.values["topic"] == "orders"
    assert found.event_time_field == "event_time"
    assert found.values["start"] == "earliest"
    assert not found.bounded


def test_a1_seed_kafka_table_of_the_streaming_guide() -> None:
    found = resolve(
        {
            "connector": "kafka",
            "topic": "market-trades",
            "max-parallelism": "16",
            "batch-size": "10000",
            "format": "json",
        }
    )
    assert found.given == {"connector", "topic", "max_parallelism", "batch_size", "format"}
    assert (found.values["max_parallelism"], found.values["batch_size"]) == (16, 10_000)
    assert found.values["topic"] == ("market-trades",)
    assert found.values["bootstrap_servers"] == "127.0.0.1:9092"
    assert found.origin("bootstrap_servers") == "setting"
    assert found.origin("topic") == "statement"
    assert found.origin("on_data_loss") == "default"


def test_a4_seed_arroyo_table() -> None:
    found = resolve(
        {
            "connector": "kafka",
            "topic": "impulse",
            "format": "json",
            "type": "source",
            "bootstrap_servers": "localhost:9092",
            "event_time_field": "timestamp",
        }
    )
    assert found.roles == {"source"}
    assert (found.event_time_field, found.values["bootstrap_servers"]) == ("timestamp", "localhost:9092")


def test_c12_a_stream_needs_no_time_field() -> None:
    assert resolve({"topic": "orders"}).event_time_field is None


@pytest.mark.parametrize(
    "spelling",
    [
        "bootstrap.servers",
        "bootstrap_servers",
        "BOOTSTRAP-SERVERS",
        "properties.bootstrap.servers",
        "properties.bootstrap.server",
        "kafka.bootstrap.servers",
        "kafka.brokers",
    ],
)
def test_c5_every_spelling_of_the_brokers_means_kafka_and_is_one_option(spelling: str) -> None:
    found = resolve({"topic": "t", spelling: "h1:9092,h2:9092"})
    assert found.connector == "kafka"
    assert found.values["bootstrap_servers"] == "h1:9092,h2:9092"
    assert found.canonical[1].key == "bootstrap_servers"


@pytest.mark.parametrize(
    "written",
    ["localhost", "h1:9092,h2", "h1:9092,,h2:9092", "h1:9092,", ":9092", "h1:port", "h1:0", "h1:65536", "h1:1;h2:2",
     "http://h1:9092", "h1/9092"],
)  # fmt: skip
def test_an_address_of_a_broker_without_its_port_is_refused_where_it_stands(written: str) -> None:
    error = refusal({"connector": "kafka", "topic": "t", "bootstrap_servers": written})
    assert error.condition == "INVALID_OPTION"
    assert error.message.endswith(f"addresses with a port each, such as 'host:9092,other:9092', not '{written}'")
    assert error.span is not None
    assert error.hint is not None
    with pytest.raises(OptionError, match="INVALID_SETTING"):
        resolve_setting("kafka.bootstrap_servers", OptionValue("text", Secret(written)))


@pytest.mark.parametrize("written", ["h1:1 , h2:65535", "[::1]:9092", "SASL_SSL://h1.example:9093"])
def test_addresses_of_brokers_as_their_clients_take_them(written: str) -> None:
    assert resolve({**KAFKA, "bootstrap_servers": written}).values["bootstrap_servers"] == written


@pytest.mark.parametrize(
    ("role", "written", "condition", "message"),
    [
        ("source", {"topic": "my topic"}, "INVALID_OPTION", "topic 'my topic' cannot be the name of a topic of Kafka"),
        ("sink", {"topic": "."}, "INVALID_OPTION", "topic '.' cannot be the name"),
        ("source", {"topic_pattern": "a.*", "partitions": 2}, "CONFLICTING_OPTIONS", "topic_pattern names none"),
        ("sink", {"topic": "t", "replication_factor": 3}, "MISSING_OPTION", "needs the option partitions"),
        ("sink", {"topic": "t", "key_field": "a", "key.fields": "b"}, "CONFLICTING_OPTIONS", "different keys"),
        ("source", {"topic": "t", "auth.type": "sasl"}, "MISSING_OPTION", "a login needs the option auth.username"),
        ("source", {"topic": "t", "auth.mechanism": "PLAIN"}, "MISSING_OPTION", "a login needs the option auth.username"),
        ("source", {"topic": "t", "auth.type": "none", "auth.username": "u"}, "CONFLICTING_OPTIONS", "goes without"),
    ],
)  # fmt: skip
def test_options_of_kafka_that_do_not_go_together(
    role: Literal["source", "sink"], written: dict[str, object], condition: str, message: str
) -> None:
    error = refusal({"connector": "kafka", **written}, role=role)
    assert error.condition == condition
    assert message in error.message
    assert error.span is not None
    assert error.hint is not None


def test_what_changes_nothing_about_a_login_or_a_writer_is_said() -> None:
    told = "option kafka.sasl.username changes nothing here: nobody logs in without kafka.security.protocol"
    login = {**KAFKA, "kafka.sasl.username": "u"}
    assert any(notice.startswith(told) for notice in resolve(login).notices)
    for protocol in ("SASL_SSL", "${env:PROTOCOL}"):
        assert not any(told in notice for notice in resolve({**login, "kafka.security.protocol": protocol}).notices)
    writers = {**KAFKA, "sink.parallelism": 4}
    told = "option sink.parallelism changes nothing here: an exactly-once sink has one writer"
    assert told in resolve({**writers, "delivery": "exactly_once"}, role="sink").notices
    assert told not in resolve(writers, role="sink").notices


def test_what_a_source_of_kafka_has_no_use_for_is_said() -> None:
    told = "option delivery is for what INSERT INTO writes here"
    assert any(notice.startswith(told) for notice in resolve({**KAFKA, "delivery": "exactly_once"}).notices)
    assert not any(told in notice for notice in resolve({**KAFKA, "delivery": "exactly_once"}, role="sink").notices)
    told = "option value.fields_include changes nothing here: no columns are in the key without key.fields"
    for role in ("source", "sink"):
        assert told in resolve({**KAFKA, "value.fields_include": "EXCEPT_KEY"}, role=role).notices
        assert told not in resolve({**KAFKA, "value.fields_include": "ALL"}, role=role).notices
        keyed = {**KAFKA, "value.fields_include": "EXCEPT_KEY", "key.fields": "a"}
        assert told not in resolve(keyed, role=role).notices


@pytest.mark.parametrize("key", ["properties.group.id", "kafka.topic", "kafka.fetch.min.bytes"])
def test_keys_that_only_kafka_has_mean_kafka(key: str) -> None:
    written = {key: "1"} if key == "kafka.topic" else {"topic": "t", key: "1"}
    assert resolve(written).connector == "kafka"


def test_the_setting_gives_brokers_that_the_statement_does_not() -> None:
    found = resolve(KAFKA, settings={"kafka.bootstrap_servers": "broker:1"})
    assert found.values["bootstrap_servers"] == "broker:1"
    assert any("kafka.bootstrap_servers" in notice for notice in found.notices)


@pytest.mark.parametrize(
    ("written", "meaning"),
    [
        ("earliest-offset", "earliest"),
        ("latest-offset", "latest"),
        ("group-offsets", "group"),
        ("EARLIEST", "earliest"),
        ("group", "group"),
    ],
)
@pytest.mark.parametrize("key", ["scan.startup.mode", "source.offset", "start", "startingOffsets"])
def test_start_positions_of_every_system(key: str, written: str, meaning: str) -> None:
    assert resolve({**KAFKA, key: written}).values["start"] == meaning


def test_start_position_is_latest_for_kafka_and_said() -> None:
    found = resolve(KAFKA)
    assert found.values["start"] == "latest"
    assert any("latest" in notice for notice in found.notices)
    assert "start" not in found.given


@pytest.mark.parametrize("written", [{}, {"group_id_prefix": "g"}])
def test_start_at_a_group_that_is_not_named_is_told(written: dict[str, object]) -> None:
    told = "start = 'group' without group_id begins at the latest offset"
    assert told in resolve({**KAFKA, "start": "group", **written}).notices
    assert told not in resolve({**KAFKA, "start": "group", "group_id": "g"}).notices


@pytest.mark.parametrize(
    ("dialect", "written", "start"),
    [
        ("penstock", {}, "latest"),
        ("penstock", {"properties.group.id": "g"}, "latest"),
        ("arroyo", {"source.group_id": "g"}, "latest"),
        ("risingwave", {"properties.group.id": "g"}, "earliest"),
        ("flink", {}, "latest"),
        ("flink", {"properties.group.id": "g"}, "group"),
        ("flink", {"properties.group.id": "g", "scan.startup.mode": "earliest-offset"}, "earliest"),
        ("flink", {"properties.group.id": "g", "scan.startup.timestamp-millis": "17"}, "timestamp"),
        ("flink", {"connector": "upsert-kafka", "properties.group.id": "g"}, "earliest"),
    ],
)
def test_start_position_follows_the_dialect_setting(dialect: str, written: dict[str, object], start: str) -> None:
    found = resolve({**KAFKA, **written}, settings={"dialect": dialect})
    assert found.values["start"] == start
    told = {"group": "reads from what the group has read", "latest": "reads from the latest offset"}
    assert any(notice.startswith(told.get(start, "reads from")) for notice in found.notices) is (
        found.connector == "kafka" and not any("start" in key for key in written)
    )


def test_start_timestamp_in_milliseconds_dec3() -> None:
    found = resolve({**KAFKA, "scan.startup.mode": "timestamp", "scan.startup.timestamp-millis": "1609459200000"})
    assert found.values["start_timestamp"] == datetime(2021, 1, 1, tzinfo=UTC)
    alone = resolve({**KAFKA, "scan.startup.timestamp.millis": 1609459200000})
    assert alone.values["start"] == "timestamp"


def test_start_offsets_of_each_partition() -> None:
    written = "partition:1,offset:300;partition:0,offset:42"
    found = resolve({**KAFKA, "scan.startup.mode": "specific-offsets", "scan.startup.specific-offsets": written})
    assert found.values["start_offsets"] == ((0, 42), (1, 300))
    error = refusal({**KAFKA, "scan.startup.specific-offsets": "0=42"})
    assert (error.condition, error.span and error.span.line) == ("INVALID_OPTION", 3)


OFFSETS = "partition:0,offset:42"


@pytest.mark.parametrize("connector", ["kafka", "upsert-kafka"])
@pytest.mark.parametrize(
    ("written", "end"),
    [
        ({}, "unbounded"),
        ({"scan.bounded.mode": "unbounded"}, "unbounded"),
        ({"scan.bounded.mode": "latest-offset"}, "latest"),
        ({"scan.bounded.mode": "group-offsets", "properties.group.id": "g"}, "group"),
        ({"scan.bounded.mode": "timestamp", "scan.bounded.timestamp-millis": "17"}, "timestamp"),
        ({"scan.bounded.mode": "specific-offsets", "scan.bounded.specific-offsets": OFFSETS}, "offsets"),
        ({"scan.bounded.timestamp-millis": "17"}, "timestamp"),
        ({"scan.bounded.specific-offsets": OFFSETS}, "offsets"),
        ({"end_timestamp": "2026-01-01 00:00:00"}, "timestamp"),
        ({"end_offsets": OFFSETS}, "offsets"),
    ],
)
def test_where_a_source_ends(connector: str, written: dict[str, object], end: str) -> None:
    found = resolve({"connector": connector, "topic": "t", **written})
    assert found.values["end"] == end
    assert found.bounded is (end != "unbounded")


@pytest.mark.parametrize("connector", ["kafka", "upsert-kafka"])
def test_a_time_or_offsets_to_begin_at_are_a_start(connector: str) -> None:
    topic = {"connector": connector, "topic": "t"}
    assert resolve({**topic, "start_timestamp": 17}).values["start"] == "timestamp"
    assert resolve({**topic, "start_offsets": OFFSETS}).values["start"] == "offsets"


@pytest.mark.parametrize("position", ["start", "end"])
def test_a_time_and_offsets_at_once_are_refused(position: str) -> None:
    both = {f"{position}_timestamp": 17, f"{position}_offsets": OFFSETS}
    assert refusal({**KAFKA, **both}).condition == "CONFLICTING_OPTIONS"


def test_the_offsets_of_no_group_are_no_end() -> None:
    error = refusal({**KAFKA, "scan.bounded.mode": "group-offsets"})
    assert (error.condition, error.span and error.span.line) == ("MISSING_OPTION", 3)


def test_start_without_what_it_needs() -> None:
    error = refusal({**KAFKA, "scan.startup.mode": "timestamp"})
    assert (error.condition, error.span and error.span.line) == ("MISSING_OPTION", 3)
    error = refusal({**KAFKA, "start": "earliest", "start_timestamp": 5})
    assert error.condition == "CONFLICTING_OPTIONS"


def test_c2_kafka_needs_a_topic() -> None:
    error = refusal({"connector": "kafka"})
    assert error.condition == "MISSING_OPTION"
    assert "topic" in error.message
    assert error.span == WITH


def test_topic_pattern_stands_for_a_topic_and_not_beside_it() -> None:
    assert resolve({"connector": "kafka", "topic-pattern": "a.*"}).values["topic_pattern"] == "a.*"
    assert refusal({**KAFKA, "topic-pattern": "a.*"}).condition == "CONFLICTING_OPTIONS"


def test_several_topics_are_read_but_not_written() -> None:
    assert resolve({"connector": "kafka", "topic": "a;b"}).values["topic"] == ("a", "b")
    assert refusal({"connector": "kafka", "topic": "a,b"}, role="sink").condition == "INVALID_OPTION"


@pytest.mark.parametrize("written", ["0", "-1", "many", "1.5", "", 0, -3, True, interval(5)])
def test_c8_max_parallelism_is_a_positive_integer(written: object) -> None:
    error = refusal({**KAFKA, "max-parallelism": written})
    assert (error.condition, error.span and error.span.column) == ("INVALID_OPTION", 50)
    assert "positive" in error.message


@pytest.mark.parametrize("written", ["8", 8])
def test_c8_max_parallelism_as_string_or_number(written: object) -> None:
    found = resolve({**KAFKA, "max_parallelism": written})
    assert found.values["max_parallelism"] == 8
    assert found.canonical[2].value.kind == "number"


def test_c10_batch_size_is_ten_thousand_by_default() -> None:
    assert resolve(KAFKA).values["batch_size"] == 10_000


def test_c11_typo_is_refused_with_the_nearest_key() -> None:
    error = refusal({**KAFKA, "batchsize": "10", "compresion": "x"})
    assert error.condition == "UNKNOWN_OPTION"
    assert "batchsize, compresion" in error.message
    assert "batch_size" in str(error.hint)
    assert (error.span and error.span.line) == 3
    assert "batch_size" in str(error.detail)


def test_c11_spellings_with_the_same_value_agree_and_with_another_conflict() -> None:
    assert resolve({**KAFKA, "batch-size": "5", "batch_size": 5}).values["batch_size"] == 5
    error = refusal({**KAFKA, "batch-size": "5", "batch_size": "6"})
    assert error.condition == "CONFLICTING_OPTIONS"
    assert "batch-size" in error.message
    assert "batch_size" in error.message
    assert (error.span and error.span.line) == 4


def test_c6_c7_two_names_of_the_time_field_conflict() -> None:
    assert refusal({"timestamp_field": "a", "event_time_field": "b"}).condition == "CONFLICTING_OPTIONS"


@pytest.mark.parametrize("name", ["kafak", "Kafka2", "", "   "])
def test_c1_unknown_connector_lists_the_known_ones(name: str) -> None:
    error = refusal({"connector": name, "topic": "t"})
    if name.strip():
        assert error.condition == "UNKNOWN_CONNECTOR"
        assert all(spec.name in str(error.hint) for spec in known_connectors())
        assert "did you mean 'kafka'" in str(error.hint)
    else:
        assert error.condition == "INVALID_OPTION"
    assert (error.span and error.span.column) == 50


@pytest.mark.parametrize("name", ["pulsar", "KINESIS", "mysql_cdc", "postgres-cdc", "iceberg", "redis", "websocket"])
def test_connectors_of_other_systems_are_not_yet_rather_than_unknown(name: str) -> None:
    error = refusal({"connector": name, "anything": "x"})
    assert (error.condition, error.support) == ("CONNECTOR_NOT_YET", "not_yet")
    assert error.hint


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("filesystem", "file"),
        ("single_file", "file"),
        ("print", "console"),
        ("webhook", "http"),
        ("jdbc", "postgres"),
        ("deltalake", "delta"),
        ("UPSERT_KAFKA", "upsert-kafka"),
    ],
)
def test_aliases_of_connectors(alias: str, name: str) -> None:
    required = {
        "file": {"path": "/data/x"},
        "delta": {"path": "/data/x"},
        "http": {"url": "https://example.org/h"},
        "postgres": {"url": "postgresql://h/d", "table": "t"},
        "upsert-kafka": {"topic": "t"},
    }
    found = resolve({"connector": alias, **required.get(name, {})})
    assert found.connector == name
    assert found.canonical[0].value.reveal() == name


def test_single_file_says_that_the_path_is_one_file() -> None:
    assert resolve({"connector": "single_file", "path": "out.json"}, role="sink").values["single_file"] is True


def test_an_implied_topic_with_the_options_of_another_connector_gets_a_hint() -> None:
    error = refusal({"path": "/data", "format": "csv"})
    assert error.condition == "UNKNOWN_OPTION"
    assert "connector = 'file'" in str(error.hint)


def test_c4_roles() -> None:
    assert resolve({**KAFKA, "type": "sink"}).role == "sink"
    assert resolve(KAFKA).roles == {"source", "sink"}
    assert resolve({"connector": "blackhole"}).role == "sink"
    assert resolve({"connector": "file", "path": "p", "type": "lookup"}).role == "lookup"


def test_c4_a_role_against_the_statement() -> None:
    error = refusal({**KAFKA, "type": "source"}, role="sink")
    assert (error.condition, error.span and error.span.column) == ("INVALID_OPTION", 50)
    assert refusal({**KAFKA, "type": "sink"}, strict=True).condition == "INVALID_OPTION"
    error = refusal({"connector": "datagen"}, role="sink")
    assert error.condition == "WRONG_OBJECT_KIND"
    assert "datagen" in error.message
    assert refusal({"connector": "console"}, strict=True).condition == "WRONG_OBJECT_KIND"
    assert refusal({"connector": "datagen", "type": "lookup"}).condition == "WRONG_OBJECT_KIND"
    assert "did you mean 'source'" in str(refusal({**KAFKA, "type": "sorce"}).hint)


def test_options_of_the_other_direction() -> None:
    # A table of Flink is read and written, so it may have both kinds.
    assert resolve({**KAFKA, "scan.startup.mode": "earliest-offset", "sink.partitioner": "fixed"}).role == "source"
    error = refusal({**KAFKA, "scan.startup.mode": "earliest-offset"}, role="sink")
    assert (error.condition, error.span and error.span.column) == ("INVALID_OPTION", 1)
    assert "orders" in error.message


def test_job_options_stand_beside_those_of_a_sink() -> None:
    found = resolve({**KAFKA, "late": "fail", "job_name": "out", "state_backend": "tonbo"}, role="sink")
    assert (found.values["late"], found.values["job_name"], found.values["state_backend"]) == ("fail", "out", "rocksdb")
    assert refusal({**KAFKA, "late": "fail"}).condition == "UNKNOWN_OPTION"


@pytest.mark.parametrize("key", ["sink.delivery-guarantee", "sink.commit_mode", "delivery"])
@pytest.mark.parametrize("written", ["exactly-once", "exactly_once", "EXACTLY_ONCE"])
def test_delivery_of_every_system(key: str, written: str) -> None:
    assert resolve({**KAFKA, key: written}, role="sink").values["delivery"] == "exactly_once"


def test_flink_idle_timeout_and_discovery() -> None:
    found = resolve({**KAFKA, "scan.watermark.idle-timeout": "1min", "scan.topic-partition-discovery.interval": "10 s"})
    assert found.values["idle_timeout"] == timedelta(minutes=1)
    assert found.values["partition_discovery"] == timedelta(seconds=10)
    assert resolve({**KAFKA, "idle_micros": 1500}).values["idle_timeout"] == timedelta(microseconds=1500)


@pytest.mark.parametrize(
    ("written", "meaning"), [("true", "dead_letter"), (True, "dead_letter"), ("false", "fail"), (False, "fail")]
)
@pytest.mark.parametrize("key", ["json.ignore-parse-errors", "value.json.ignore-parse-errors"])
def test_ignored_parse_errors_become_dead_letters(key: str, written: object, meaning: str) -> None:
    assert resolve({**KAFKA, "format": "json", key: written}).values["bad_data"] == meaning


def test_arroyo_bad_data() -> None:
    assert resolve({**KAFKA, "bad_data": "drop"}).values["bad_data"] == "dead_letter"
    assert "dead_letter" in refusal({**KAFKA, "bad_data": "deadletter"}).message


def test_kafka_client_properties_pass_an_allow_list() -> None:
    found = resolve(
        {
            **KAFKA,
            "properties.security.protocol": "sasl_ssl",
            "kafka.fetch.min.bytes": "1",
            "properties.sasl.mechanism": "PLAIN",
            "properties.group.id": "g",
        }
    )
    assert dict(found.passthrough) == {
        "security.protocol": "SASL_SSL",
        "fetch.min.bytes": "1",
        "sasl.mechanism": "PLAIN",
    }
    assert found.values["group_id"] == "g"
    assert found.canonical[2].key == "kafka.security.protocol"


@pytest.mark.parametrize(
    "name",
    ["interceptor.classes", "sasl.login.callback.handler.class", "key.deserializer", "security.providers", "nonsense"],
)
def test_client_properties_that_load_code_are_unknown(name: str) -> None:
    assert refusal({**KAFKA, f"properties.{name}": "x"}).condition == "UNKNOWN_OPTION"


def test_suggestions_for_client_properties_look_at_the_property() -> None:
    error = refusal({**KAFKA, "properties.sasl.mechanisms": "x"})
    assert "kafka.sasl.mechanism" in str(error.hint)
    error = refusal({**KAFKA, "properties.key.deserializer": "x"})
    assert "bootstrap" not in str(error.hint)


def test_a_word_that_is_none_of_the_choices_gets_them_all() -> None:
    assert "earliest" in str(refusal({**KAFKA, "scan.startup.mode": "begining"}).hint)
    assert refusal({**KAFKA, "scan.startup.mode": "earlist"}).hint == "did you mean 'earliest'?"


@pytest.mark.parametrize(
    "config",
    [
        "com.sun.security.auth.module.JndiLoginModule required user.provider.url='ldap://x';",
        "org.apache.kafka.common.security.plain.PlainLoginModule required; evil.LoginModule required;",
    ],
)
def test_a_login_configuration_cannot_load_foreign_code(config: str) -> None:
    error = refusal({**KAFKA, "properties.sasl.jaas.config": config})
    assert error.condition == "INVALID_OPTION"
    assert "ldap" not in str(error)
    assert "evil" not in str(error)


def test_datagen_fields_are_a_family() -> None:
    found = resolve(
        {
            "connector": "datagen",
            "rows-per-second": "5",
            "fields.Order_Id.kind": "sequence",
            "fields.Order_Id.start": "1",
            "fields.Order_Id.end": "1000",
            "fields.name.length": "10",
            "fields.ts.max-past": "1 h",
        }
    )
    assert found.values["fields.order_id.kind"] == "sequence"
    assert found.values["fields.name.length"] == 10
    assert found.values["fields.ts.max_past"] == timedelta(hours=1)
    assert found.bounded
    assert refusal({"connector": "datagen", "fields.a.kid": "x"}).condition == "UNKNOWN_OPTION"
    assert refusal({"connector": "datagen", "fields.a.kind": "x"}).condition == "INVALID_OPTION"


@pytest.mark.parametrize(
    ("written", "bounded"),
    [
        ({"connector": "datagen"}, False),
        ({"connector": "datagen", "number-of-rows": "10"}, True),
        ({"connector": "datagen", "datagen.rows.per.second": 3, "datagen.split.num": "3"}, False),
        ({"connector": "impulse", "event_rate": "100"}, False),
        ({"connector": "impulse", "event_rate": 100, "message_count": "5", "event_time_interval": 1000}, True),
        ({"connector": "nexmark", "nexmark.table.type": "Bid", "nexmark.event.num": "100"}, True),
        ({"connector": "nexmark", "event_rate": "100", "runtime": "10"}, True),
        ({"connector": "nexmark", "nexmark.min.event.gap.in.ns": "1000"}, False),
        ({"connector": "file", "path": "a"}, True),
        ({"connector": "filesystem", "path": "a", "source.monitor-interval": "1 s"}, False),
        ({"connector": "file", "path": "a", "tail": True}, False),
        ({"connector": "kafka", "topic": "t", "scan.bounded.mode": "latest-offset"}, True),
        ({"connector": "kafka", "topic": "t", "scan.bounded.timestamp-millis": "17"}, True),
        ({"connector": "kafka", "topic": "t", "scan.bounded.mode": "unbounded"}, False),
        ({"connector": "postgres", "host": "h", "table": "t"}, True),
    ],
)
def test_which_sources_end(written: dict[str, object], bounded: bool) -> None:
    assert resolve(written).bounded is bounded


@pytest.mark.parametrize("connector", ["file", "delta", "http"])
def test_required_options(connector: str) -> None:
    error = refusal({"connector": connector})
    assert (error.condition, error.span) == ("MISSING_OPTION", WITH)
    assert connector in error.message


def test_postgres_needs_an_address_and_a_table() -> None:
    assert refusal({"connector": "postgres", "table": "t"}).condition == "MISSING_OPTION"
    assert refusal({"connector": "jdbc", "url": "jdbc:postgresql://h/d"}).condition == "MISSING_OPTION"
    assert refusal({"connector": "jdbc", "url": "jdbc:other://h/d", "table-name": "t"}).condition == "INVALID_OPTION"
    both = {"connector": "postgres", "url": "postgresql://h/d", "host": "h", "table": "t"}
    assert refusal(both).condition == "CONFLICTING_OPTIONS"


def test_contradictions_inside_a_file_sink() -> None:
    written = {"connector": "file", "path": "a", "single_file": True, "partition_by": "day"}
    assert refusal(written, role="sink").condition == "CONFLICTING_OPTIONS"
    assert refusal({"connector": "file", "path": "a", "tail": False, "monitor_interval": "1 s"}).condition == (
        "CONFLICTING_OPTIONS"
    )


def test_what_runs_today_and_everything_of_ours_is_declared() -> None:
    runs = {spec.name for spec in known_connectors() if spec.available}
    assert runs == {
        "topic",
        "file",
        "datagen",
        "impulse",
        "nexmark",
        "memory",
        "console",
        "blackhole",
        "http",
        "kafka",
        "upsert-kafka",
    }
    assert resolve(KAFKA).available
    assert {spec.name for spec in known_connectors()} >= {
        "topic",
        "kafka",
        "upsert-kafka",
        "file",
        "memory",
        "datagen",
        "impulse",
        "nexmark",
        "console",
        "blackhole",
        "http",
        "postgres",
        "delta",
    }


@pytest.mark.parametrize(
    "written",
    [
        {**KAFKA, "scan.startup.mode": "earliest-offset", "properties.sasl.mechanism": "PLAIN", "idle_timeout": "5 s"},
        {"connector": "single_file", "path": "a", "compression_format": "gzip", "format": "csv", "csv.delimiter": ";"},
        {"connector": "datagen", "fields.A_b.kind": "sequence", "rows-per-second": "2.5"},
        {"topic": "t", "kafka.brokers": "h:1", "key.format": "raw", "key.fields": "a;b", "json.unstructured": "true"},
        {**KAFKA, "scan.startup.specific-offsets": "partition:0,offset:1", "scan.bounded.timestamp-millis": "17"},
    ],
)
def test_canonical_options_mean_the_same(written: dict[str, object]) -> None:
    first = resolve(written)
    assert first.bounded is (first.values.get("end", "unbounded") != "unbounded" or first.connector == "file")
    again = resolve({option.key: option.value for option in first.canonical})
    assert again == first


def test_what_to_do_about_a_value_that_cannot_be_used_is_told() -> None:
    assert refusal({"connector": "topic", "partitions": 0}).hint == "leave it out for the default, 1"
    assert refusal({**KAFKA, "idle_timeout": "abc"}).hint == (
        "write a number with its unit, such as '5 s', or leave it out for what the setting idle_timeout says"
    )
