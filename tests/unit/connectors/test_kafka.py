"""Kafka without a broker: what clients are told, how partitions are numbered, what a record is made of."""

from __future__ import annotations

import json
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.connectors.kafka import KafkaSource
from penstock.connectors.kafka_access import access_of
from penstock.connectors.kafka_notes import KafkaNotes, load_notes, save_notes
from penstock.connectors.kafka_offsets import folded_offset, read_kafka_offset
from penstock.connectors.kafka_positions import final_offsets
from penstock.connectors.kafka_records import check_record_options, records
from penstock.connectors.kafka_sink import task_options
from penstock.connectors.metadata_columns import hidden_columns
from penstock.connectors.registry import sink_of, source_of
from penstock.connectors.secret_values import forget_secrets, use_secrets
from penstock.connectors.sink import FrameSink, SinkContext
from penstock.connectors.source import OutsideSource
from penstock.errors import PenstockError
from penstock.formats import encode_rows
from penstock.secrets import Secret
from penstock.stores.topics import TopicStore
from tests.unit.connectors.declared import request
from tests.unit.connectors.declared import sink as declared_sink
from tests.unit.connectors.declared import source as declared_source

PASSWORD = "canary-7d1e"


@pytest.mark.parametrize(
    ("options", "mechanism", "module"),
    [
        ({"kafka.sasl.username": "ann", "kafka.sasl.password": PASSWORD, "kafka.sasl.mechanism": "SCRAM-SHA-512",
          "kafka.security.protocol": "SASL_SSL"}, "SCRAM-SHA-512", "scram.ScramLoginModule"),
        ({"auth.type": "sasl", "auth.username": "ann", "auth.password": PASSWORD, "auth.mechanism": "PLAIN"},
         "PLAIN", "plain.PlainLoginModule"),
        ({"properties.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
          f'username="ann" password="{PASSWORD}";', "properties.sasl.mechanism": "PLAIN",
          "properties.security.protocol": "SASL_SSL"}, "PLAIN", "plain.PlainLoginModule"),
    ],
)  # fmt: skip
def test_a_login_is_told_to_both_clients(options: dict[str, str], mechanism: str, module: str, tmp_path: Path) -> None:
    definition = declared_source(
        "CREATE STREAM s (n INT) WITH (connector = 'kafka', topic = 't', "
        + ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
        + ")"
    )
    # A secret that stands in a statement is kept under a name, and found by it.
    kept = {f"s.{key.replace('properties.', 'kafka.')}": Secret(value) for key, value in options.items()}
    use_secrets(tmp_path, kept.__getitem__)
    access = access_of(definition, tmp_path)
    forget_secrets(tmp_path)
    java, other = access.java(), access.librdkafka()
    assert java["sasl.mechanism"] == other["sasl.mechanism"] == mechanism
    assert java["security.protocol"] == other["security.protocol"] == "SASL_SSL"
    assert f"{module} required" in java["sasl.jaas.config"]
    assert f'username="ann" password="{PASSWORD}"' in java["sasl.jaas.config"]
    assert (other["sasl.username"], other["sasl.password"]) == ("ann", PASSWORD)
    assert "sasl.password" not in java
    assert "sasl.jaas.config" not in other
    assert PASSWORD not in repr(definition)
    assert PASSWORD not in str(definition.options.shown())


def test_a_secret_by_reference_is_read_when_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    definition = declared_source(
        "CREATE STREAM s (n INT) WITH (connector = 'kafka', topic = 't', "
        "'kafka.sasl.username' = 'ann', 'kafka.sasl.password' = '${env:KAFKA_PASSWORD}')"
    )
    with pytest.raises(PenstockError, match="KAFKA_PASSWORD is not set"):
        access_of(definition, Path())
    monkeypatch.setenv("KAFKA_PASSWORD", 'with "quotes"')
    access = access_of(definition, Path())
    assert access.librdkafka()["sasl.password"] == 'with "quotes"'
    assert r'password="with \"quotes\""' in access.java()["sasl.jaas.config"]


def test_brokers_by_reference_are_addresses_when_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    definition = declared_source(
        "CREATE STREAM s (n INT) WITH (connector = 'kafka', topic = 't', bootstrap_servers = '${env:BROKERS}')"
    )
    monkeypatch.setenv("BROKERS", "u:hidden@one.example")
    with pytest.raises(PenstockError, match="of stream s must be addresses with a port each") as raised:
        access_of(definition, Path())
    assert "one.example" not in str(raised.value)
    monkeypatch.setenv("BROKERS", "one.example:9092, two.example:9092 ")
    assert access_of(definition, Path()).servers == "one.example:9092,two.example:9092"


def test_certificates_are_told_to_both_clients(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("CA")
    (tmp_path / "own.pem").write_text("CERTIFICATE")
    (tmp_path / "key.pem").write_text("KEY")
    options = {"ca": "ca.pem", "certificate": "own.pem", "key": "key.pem"}
    given = ", ".join(f"'kafka.ssl.{name}.location' = '{tmp_path / file}'" for name, file in options.items())
    definition = declared_source(f"CREATE STREAM s (n INT) WITH (connector = 'kafka', topic = 't', {given})")
    access = access_of(definition, Path())
    java = access.java()
    assert (java["ssl.truststore.type"], java["ssl.truststore.location"]) == ("PEM", str(tmp_path / "ca.pem"))
    assert (java["ssl.keystore.certificate.chain"], java["ssl.keystore.key"]) == ("CERTIFICATE", "KEY")
    assert access.librdkafka()["ssl.ca.location"] == str(tmp_path / "ca.pem")
    java_only = declared_source(
        "CREATE STREAM s (n INT) WITH (connector = 'kafka', topic = 't', 'kafka.ssl.truststore.location' = '/k.jks')"
    )
    with pytest.raises(PenstockError) as raised:
        access_of(java_only, Path()).librdkafka()
    assert raised.value.condition == "MISSING_OPTION"


def test_partitions_of_several_topics_keep_their_numbers(tmp_path: Path) -> None:
    notes = KafkaNotes().with_partitions([("a", 0), ("b", 0)]).with_ids({"a": "1"})
    save_notes(tmp_path, "s", notes)
    later = load_notes(tmp_path, "s", None).with_partitions([("a", 0), ("a", 1), ("b", 0)])
    assert [later.number(one) for one in (("a", 0), ("b", 0), ("a", 1))] == [0, 1, 2]
    assert later.partition(2) == ("a", 1)
    assert later.number(("c", 0)) is None
    assert KafkaNotes("t").number(("t", 5)) == 5


def test_the_two_offsets_of_a_scan_are_one() -> None:
    notes = KafkaNotes(None, (("b", 0), ("a", 0)))
    text = folded_offset('{"a": {"0": 7}, "b": {"0": 3}}', "2", notes, 2)
    assert text is not None
    assert read_kafka_offset(text).positions == {0: 3, 1: 7}
    assert KafkaSource().positions(text) == {0: 3, 1: 7}
    assert json.loads(text)["pulse"] == 2
    # Another pulse is another batch, though no row was read.
    assert text != folded_offset('{"a": {"0": 7}, "b": {"0": 3}}', "3", notes, 2)
    assert folded_offset(None, None, notes, 2) is None
    for notes, known in ((KafkaNotes("a"), 1), (KafkaNotes(None, (("a", 0),)), 2)):
        with pytest.raises(PenstockError) as raised:
            folded_offset('{"a": {"0": 7, "1": 0}}', None, notes, known)
        assert raised.value.condition == "PARTITIONS_CHANGED"


class Cluster:
    """A topic with two partitions of a hundred records each, one in a millisecond."""

    def ends(self, found: list[tuple[str, int]], *, committed: bool) -> dict[tuple[str, int], int]:
        return dict.fromkeys(found, 100)

    def at_time(self, found: list[tuple[str, int]], ms: int) -> dict[tuple[str, int], int]:
        return dict.fromkeys(found, ms)

    def group_offsets(self, group: str, found: list[tuple[str, int]]) -> dict[tuple[str, int], int]:
        return {one: 9 for one in found if group == "g"}


@pytest.mark.parametrize(
    ("options", "ends"),
    [
        ("'scan.bounded.timestamp-millis' = '17'", [17, 17]),
        ("'scan.bounded.mode' = 'timestamp', 'scan.bounded.timestamp-millis' = '17'", [17, 17]),
        ("'scan.bounded.specific-offsets' = 'partition:0,offset:42;partition:1,offset:300'", [42, 100]),
        ("'scan.bounded.mode' = 'group-offsets', 'properties.group.id' = 'g'", [9, 9]),
        ("'scan.bounded.mode' = 'latest-offset'", [100, 100]),
    ],
)
def test_where_a_source_ends_is_asked_of_the_brokers(options: str, ends: list[int]) -> None:
    definition = declared_source(f"CREATE STREAM s (n INT) WITH (connector = 'kafka', topic = 't', {options})")
    assert definition.bounded
    cluster: Any = Cluster()
    assert list(final_offsets(cluster, definition, [("t", 0), ("t", 1)]).values()) == ends


def test_the_source_is_one_that_spark_reads_itself() -> None:
    assert isinstance(source_of("kafka"), OutsideSource)
    assert not isinstance(source_of("topic"), OutsideSource)
    assert isinstance(sink_of("kafka"), FrameSink)


def test_what_a_record_is_made_of(tmp_path: Path) -> None:
    import pyarrow as pa

    definition = declared_sink(
        "CREATE SINK k (id INT, region STRING, n INT, at TIMESTAMP METADATA FROM 'timestamp', "
        "h MAP<STRING, BINARY> METADATA FROM 'headers') "
        "WITH (connector = 'kafka', topic = 't', 'key.fields' = 'id;region', 'value.fields_include' = 'EXCEPT_KEY')"
    )
    check_record_options(definition)
    context = SinkContext(
        job="j",
        producer="j@1",
        definition=definition,
        topics=TopicStore(tmp_path),
        encode=lambda rows: encode_rows(rows, "json", definition.options.values),
        encode_key=lambda rows: encode_rows(rows, "json", {}),
    )
    rows = pa.table(
        {
            "id": pa.array([1], pa.int32()),
            "region": ["eu"],
            "n": pa.array([5], pa.int32()),
            "at": pa.array([1_500_000], pa.int64()).cast(pa.timestamp("us", tz="UTC")),
            "h": pa.array([[("a", b"x")]], pa.map_(pa.string(), pa.binary())),
        }
    )
    (record,) = list(records(rows, context))
    assert json.loads(record["value"]) == {"n": 5}
    assert json.loads(record["key"]) == {"id": 1, "region": "eu"}
    assert record["headers"] == [("a", b"x")]
    assert record["timestamp"] == 1_500


WRONG_KEYS = (
    ("'key.fields' = 'other'", "has no column other"),
    ("'key.format' = 'json'", "option key.format of .* no key.fields are given"),
    ("'key.fields' = 'a', 'key.format' = 'debezium-json'", "option key.format of .* is not for keys"),
    ("'key.fields' = 'a;b', 'key.format' = 'raw'", "raw is for a key of one column"),
    ("'key.fields' = 'a', 'key.fields_prefix' = 'k_'", "needs value.fields_include"),
    (
        "'key.fields' = 'a', 'key.fields_prefix' = 'k_', 'value.fields_include' = 'EXCEPT_KEY'",
        "is not the beginning of column a",
    ),
)


@pytest.mark.parametrize(
    ("options", "values"),
    [
        (
            "connector = 'upsert-kafka', primary_key = 'id', key.format = 'json'",
            [None, b'{"id":1,"n":5}', b'{"id":2,"n":7}'],
        ),
        (
            "connector = 'kafka', changes = 'retract', key.fields = 'id', key.format = 'json'",
            [
                b'{"_op":"delete","id":1,"n":4}',
                b'{"_op":"upsert","id":1,"n":5}',
                b'{"_op":"upsert","id":2,"n":7}',
            ],
        ),
    ],
)
def test_changes_as_records(options: str, values: list[bytes | None], tmp_path: Path) -> None:
    """Upserts delete with a record without a value, whose key says which row; the others say in it what they are."""
    import pyarrow as pa

    definition = declared_sink(f"CREATE SINK k (id INT, n INT) WITH (topic = 't', {options})")
    context = SinkContext(
        job="j",
        producer="j@1",
        definition=definition,
        topics=TopicStore(tmp_path),
        encode=lambda rows: encode_rows(rows, "json", definition.options.values),
        encode_key=lambda rows: encode_rows(rows, "json", {}),
    )
    rows = pa.table(
        {
            "_op": ["delete", "upsert", "upsert"],
            "id": pa.array([1, 1, 2], pa.int32()),
            "n": pa.array([4, 5, 7], pa.int32()),
        }
    )
    made = list(records(rows, context))
    assert [record["value"] for record in made] == values
    assert [record["key"] for record in made] == [b'{"id":1}', b'{"id":1}', b'{"id":2}']


@pytest.mark.parametrize(("options", "message"), WRONG_KEYS)
def test_keys_of_a_source_that_cannot_be(options: str, message: str) -> None:
    definition = declared_source(f"CREATE STREAM s (a INT, b INT) WITH (connector = 'kafka', topic = 't', {options})")
    with pytest.raises(PenstockError, match=message) as raised:
        KafkaSource().check(definition, Path())
    assert raised.value.condition == "INVALID_OPTION"


def test_the_key_comes_along_where_columns_are_in_it() -> None:
    keyed = "CREATE STREAM s (a INT) WITH (connector = 'kafka', topic = 't', 'key.fields' = 'a')"
    plain = "CREATE STREAM s (a INT) WITH (connector = 'kafka', topic = 't')"
    assert "__key" in hidden_columns(declared_source(keyed))
    assert "__key" not in hidden_columns(declared_source(plain))


@pytest.mark.parametrize(("options", "message"), WRONG_KEYS)
def test_what_cannot_be_written_is_refused_by_name(options: str, message: str) -> None:
    definition = declared_sink(f"CREATE SINK k (a INT, b INT) WITH (connector = 'kafka', topic = 't', {options})")
    with pytest.raises(PenstockError, match=message):
        check_record_options(definition)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ("a INT, k STRING METADATA FROM 'key'", ", 'key.fields' = 'a'", "the key .* by column k and option key.fields"),
        ("a INT, k STRING METADATA FROM 'key', l STRING METADATA FROM 'key'", "", "the key .* column k and column l"),
        (
            "a INT, t TIMESTAMP, m TIMESTAMP METADATA FROM 'timestamp'",
            ", record_timestamp_field = 't'",
            "the timestamp of the records of sink k is said twice",
        ),
        ("a STRING", ", record_timestamp_field = 'a'", "column a of sink k is STRING, and cannot be the timestamp"),
    ],
)
def test_what_is_said_twice_of_a_record_is_refused(columns: str, options: str, message: str) -> None:
    definition = declared_sink(f"CREATE SINK k ({columns}) WITH (connector = 'kafka', topic = 't'{options})")
    with pytest.raises(PenstockError, match=message) as raised:
        check_record_options(definition)
    assert raised.value.hint


@pytest.mark.parametrize(
    ("partitioner", "expected"),
    [("default", [None] * 5), ("fixed", [0] * 5), ("round-robin", [0, 1, 2, 0, 1])],
)
def test_the_partition_of_records_that_we_write(partitioner: str, expected: list[int | None]) -> None:
    import pyarrow as pa

    definition = declared_sink(
        f"CREATE SINK k (a INT) WITH (connector = 'kafka', topic = 't', partitioner = '{partitioner}')"
    )
    context: Any = SimpleNamespace(definition=definition, encode=lambda rows: rows.column("a").cast(pa.string()))
    made = list(records(pa.table({"a": pa.array(range(5), pa.int32())}), context, 3))
    assert [record.get("partition") for record in made] == expected
    assert [record["value"] for record in made] == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize(
    ("given", "wait"),
    [("", "60000"), (", 'kafka.delivery.timeout.ms' = '90000'", "90000"), (", 'kafka.linger.ms' = '70000'", None)],
)
def test_how_long_tasks_wait_for_a_broker_that_is_gone(given: str, wait: str | None, tmp_path: Path) -> None:
    definition = declared_sink(f"CREATE SINK k (id INT) WITH (connector = 'kafka', topic = 't'{given})")
    options = task_options(access_of(definition, tmp_path))
    assert options.get("kafka.delivery.timeout.ms") == wait
    assert options["kafka.bootstrap.servers"] == "127.0.0.1:9092"


@pytest.mark.parametrize(
    ("given", "records_of_a_poll"),
    [("", "10000"), (", batch_size = 700", "700"), (", batch_size = 700, 'kafka.max.poll.records' = '30'", "30")],
)
def test_how_many_records_a_consumer_gets_at_once(given: str, records_of_a_poll: str, tmp_path: Path) -> None:
    """C9, I2: as many as a batch of the interface has, unless Kafka's own property says something else."""
    definition = declared_source(f"CREATE STREAM s (n INT) WITH (connector = 'kafka', topic = 't'{given})")
    told: dict[str, str] = {}

    class Reader:
        """Spark's reader, as far as options go."""

        def format(self, name: str) -> Reader:
            assert name == "kafka"
            return self

        def option(self, key: str, value: str) -> Reader:
            told[key] = value
            return self

        def options(self, **given: str) -> Reader:
            told.update(given)
            return self

        def load(self) -> Any:
            raise StopIteration

    source = KafkaSource()
    source._listed[id(source._cluster(request(definition, tmp_path))), ("t",), None] = (inf, [("t", 0)])
    with pytest.raises(StopIteration):
        source.stream(SimpleNamespace(readStream=Reader()), request(definition, tmp_path))  # type: ignore[arg-type]
    assert told["kafka.max.poll.records"] == records_of_a_poll
