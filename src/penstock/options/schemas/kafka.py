"""Kafka and upsert-kafka."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from penstock.options.brokers import BROKERS
from penstock.options.schema import BOTH, SINK, SOURCE, Alias, ConnectorSpec, Draft, OptionSpec, Problem
from penstock.options.schemas.common import BAD_DATA, DELIVERY, PRIMARY_KEY, SINK_PARALLELISM, STREAM_SOURCE
from penstock.options.schemas.kafka_client import CLIENT, SASL_MECHANISM
from penstock.options.values import Boolean, Choice, Duration, Integer, Moment, Names, Offsets, Text, Word
from penstock.sql.dialects.defaults import DEFAULTS, PENSTOCK

_START: Final = Choice(
    ("earliest", "latest", "group", "timestamp", "offsets"),
    {
        "earliest-offset": "earliest",
        "latest-offset": "latest",
        "group-offsets": "group",
        "specific-offsets": "offsets",
    },
)
_END: Final = Choice(
    ("unbounded", "latest", "group", "timestamp", "offsets"),
    {"latest-offset": "latest", "group-offsets": "group", "specific-offsets": "offsets"},
)

_BATCHES: Final = "each batch is written as a whole, and at once"

BOOTSTRAP: Final = OptionSpec(
    "bootstrap_servers",
    BROKERS,
    "the brokers, as host:port, separated by commas",
    aliases=(
        "properties.bootstrap.servers",
        "properties.bootstrap.server",
        "kafka.bootstrap.servers",
        "kafka.brokers",
        "bootstrap.server",
        "brokers",
    ),
    setting="kafka.bootstrap_servers",
)
_TOPIC: Final = OptionSpec(
    "topic", Names(), "the topic, or several for a source", aliases=("topics", "kafka.topic", "subscribe")
)

_POSITION: Final = (
    OptionSpec(
        "start",
        _START,
        "where a new job begins to read; `latest` when not given",
        aliases=("scan.startup.mode", "source.offset", "kafka.scan.startup.mode", "startingOffsets"),
        roles=SOURCE,
    ),
    OptionSpec(
        "start_timestamp",
        Moment(),
        "the record time to begin at, with start = 'timestamp'",
        aliases=("scan.startup.timestamp-millis", "kafka.time.offset", "startingTimestamp"),
        roles=SOURCE,
    ),
    OptionSpec(
        "start_offsets",
        Offsets(),
        "the offset of each partition to begin at, with start = 'offsets'",
        aliases=("scan.startup.specific-offsets",),
        roles=SOURCE,
    ),
    OptionSpec(
        "end",
        _END,
        "where the source ends; `unbounded` reads on",
        default="unbounded",
        aliases=("scan.bounded.mode",),
        roles=SOURCE,
    ),
    OptionSpec(
        "end_timestamp", Moment(), "the record time to end at", aliases=("scan.bounded.timestamp-millis",), roles=SOURCE
    ),
    OptionSpec(
        "end_offsets",
        Offsets(),
        "the offset of each partition to end at",
        aliases=("scan.bounded.specific-offsets",),
        roles=SOURCE,
    ),
)
_CONSUMER: Final = (
    OptionSpec(
        "topic_pattern",
        Text(),
        "a regular expression of topics",
        aliases=("topic-pattern", "subscribePattern"),
        roles=SOURCE,
    ),
    OptionSpec(
        "group_id",
        Text(),
        "the consumer group whose offsets are read with start = 'group' and written for other tools",
        aliases=("properties.group.id", "kafka.group.id", "source.group_id"),
        roles=SOURCE,
    ),
    OptionSpec(
        "group_id_prefix",
        Text(),
        "the beginning of a consumer group made for each job",
        aliases=("source.group_id_prefix", "group.id.prefix", "groupIdPrefix"),
        roles=SOURCE,
    ),
    OptionSpec(
        "isolation_level",
        Choice(("read_committed", "read_uncommitted")),
        "whether records of open transactions are read",
        default="read_committed",
        aliases=("properties.isolation.level", "kafka.isolation.level", "source.read_mode"),
        roles=SOURCE,
    ),
    OptionSpec(
        "partition_discovery",
        Duration(zero=True),
        "how often new partitions and topics are looked for.",
        aliases=("scan.topic-partition-discovery.interval",),
        roles=SOURCE,
        idle="they are looked for with each batch",
    ),
    OptionSpec(
        "on_data_loss",
        Choice(("fail", "skip")),
        "what to do when offsets have expired or the topic was made anew",
        default="fail",
        aliases=(Alias("failOnDataLoss", values={"true": "fail", "false": "skip"}),),
        roles=SOURCE,
    ),
)
_RECORD: Final = (
    OptionSpec("key.format", Word(), "the format of the record key", aliases=("key_encode",), roles=BOTH),
    OptionSpec("key.fields", Names(), "the columns that come from or go to the record key", roles=BOTH, literal=True),
    OptionSpec("key.fields_prefix", Text(empty=True), "a prefix of those columns' names", roles=BOTH),
    OptionSpec(
        "value.fields_include",
        Choice(("ALL", "EXCEPT_KEY")),
        "whether the key columns are in the record value too",
        default="ALL",
        roles=BOTH,
    ),
)
_PRODUCER: Final = (
    DELIVERY,
    OptionSpec(
        "partitioner",
        Choice(("default", "fixed", "round-robin")),
        "how records are spread over partitions; `default` hashes the key",
        default="default",
        aliases=("sink.partitioner",),
        roles=SINK,
    ),
    OptionSpec(
        "transactional_id_prefix",
        Text(),
        "the beginning of the transactional ids of an exactly-once sink",
        aliases=("sink.transactional-id-prefix",),
        roles=SINK,
    ),
    OptionSpec(
        "key_field",
        Text(name="column"),
        "the one column that is the record key",
        aliases=("sink.key_field",),
        roles=SINK,
    ),
    OptionSpec(
        "record_timestamp_field",
        Text(name="column"),
        "the column that becomes the record's timestamp",
        aliases=("sink.timestamp_field",),
        roles=SINK,
    ),
    OptionSpec(
        "flush_rows",
        Integer(minimum=0),
        "rows gathered before a flush.",
        aliases=("sink.buffer-flush.max-rows",),
        roles=SINK,
        idle=_BATCHES,
    ),
    OptionSpec(
        "flush_interval",
        Duration(zero=True),
        "the longest time before a flush.",
        aliases=("sink.buffer-flush.interval",),
        roles=SINK,
        idle=_BATCHES,
    ),
    OptionSpec(
        "partitions",
        Integer(minimum=1),
        "how many partitions the topic is created with when a job finds none; without it, it must be there",
        roles=SINK,
    ),
    OptionSpec("replication_factor", Integer(minimum=1), "how often a topic that is created is kept", roles=SINK),
    PRIMARY_KEY,
    SINK_PARALLELISM,
)
_LOGIN: Final = (
    OptionSpec("auth.type", Choice(("none", "sasl")), "how to log in, as Arroyo writes it"),
    OptionSpec("auth.mechanism", SASL_MECHANISM, "the SASL mechanism"),
    OptionSpec("auth.protocol", Choice(("SASL_PLAINTEXT", "SASL_SSL")), "the security protocol"),
    OptionSpec("auth.username", Text(), "the user"),
    OptionSpec("auth.password", Text(), "the password", secret=True),
)
_REGISTRY: Final = (
    OptionSpec(
        "connection",
        Text(name="connection"),
        "a connection made by CREATE CONNECTION, whose options are taken where the statement gives none",
        roles=BOTH,
        literal=True,
    ),
    OptionSpec("value.subject", Text(), "the subject of the record value in the schema registry"),
    OptionSpec(
        "commit_offsets", Boolean(), "whether offsets are also committed to the group", default=False, roles=SOURCE
    ),
)


def _default_start(draft: Draft) -> str:
    """Where a new job begins when the statement does not say: where the system would whose dialect is set."""
    start = DEFAULTS[str(draft.settings.get("dialect", PENSTOCK.dialect))].start
    if start == "group-offsets":
        return "group" if "group_id" in draft.given else "latest"
    return "latest" if start == "default" else start


def _check(draft: Draft) -> None:
    values, given = draft.values, draft.given
    if "topic" not in given and "topic_pattern" not in given:
        raise Problem(
            "MISSING_OPTION",
            f"connector '{draft.connector}' needs the option topic",
            hint="add topic = '…', or topic_pattern = '…' to read several",
        )
    if "topic" in given and "topic_pattern" in given:
        raise Problem(
            "CONFLICTING_OPTIONS",
            "topic and topic_pattern are both given",
            hint="keep one of them",
            key="topic_pattern",
        )
    if {"transactional_id_prefix", "kafka.transaction.id.prefix"} <= given:
        raise Problem(
            "CONFLICTING_OPTIONS",
            "transactional_id_prefix and kafka.transaction.id.prefix are both given",
            hint="keep one of them",
            key="kafka.transaction.id.prefix",
        )
    _check_topic(draft)
    _check_login(draft)
    _check_key(draft)
    if values.get("commit_offsets") is True and "group_id" not in given:
        raise Problem("MISSING_OPTION", "commit_offsets needs the option group_id", key="commit_offsets")
    for position in ("start", "end"):
        for kind, detail in (("timestamp", f"{position}_timestamp"), ("offsets", f"{position}_offsets")):
            if values.get(position) == kind and detail not in given:
                raise Problem("MISSING_OPTION", f"{position} = '{kind}' needs the option {detail}", key=position)
            if detail in given and position in given and values.get(position) != kind:
                raise Problem(
                    "CONFLICTING_OPTIONS",
                    f"{detail} goes with {position} = '{kind}'",
                    hint="leave out one of the two",
                    key=detail,
                )
        if {f"{position}_timestamp", f"{position}_offsets"} <= given:
            raise Problem(
                "CONFLICTING_OPTIONS",
                f"{position}_timestamp and {position}_offsets are both given",
                hint="keep one of them",
                key=f"{position}_offsets",
            )
    if values.get("end") == "group" and "group_id" not in given:
        raise Problem(
            "MISSING_OPTION",
            "end = 'group' needs the option group_id",
            hint="add group_id = '…', or end = 'latest'",
            key="end",
        )


def _check_topic(draft: Draft) -> None:
    """Names that no topic can have, and what only a topic that is named can be made with."""
    values, given = draft.values, draft.given
    topics = values.get("topic")
    if draft.role == "sink" and isinstance(topics, tuple) and len(topics) > 1:
        raise Problem("INVALID_OPTION", "a sink writes to one topic", hint="make a sink for each topic", key="topic")
    for name in topics if isinstance(topics, tuple) else ():
        if re.fullmatch(r"[\w.-]{1,249}", str(name), re.ASCII) is None or name in (".", ".."):
            raise Problem(
                "INVALID_OPTION",
                f"topic '{name}' cannot be the name of a topic of Kafka",
                hint="a name has up to 249 letters, digits, dots, underscores and hyphens"
                + ("; topic_pattern takes a regular expression" if draft.role == "source" else ""),
                key="topic",
            )
    if "topic_pattern" in given and "partitions" in given:
        raise Problem(
            "CONFLICTING_OPTIONS",
            "partitions is for a topic that is made where there is none, and topic_pattern names none",
            hint="leave out partitions, or name the topic",
            key="partitions",
        )
    if "replication_factor" in given and "partitions" not in given:
        raise Problem(
            "MISSING_OPTION",
            "replication_factor is for a topic that is made, which needs the option partitions",
            hint="add partitions = 4, or leave it out",
            key="replication_factor",
        )


def _check_key(draft: Draft) -> None:
    """The key is said once."""
    if {"key_field", "key.fields"} <= draft.given and draft.values["key.fields"] != (draft.values["key_field"],):
        raise Problem(
            "CONFLICTING_OPTIONS",
            "key_field and key.fields name different keys",
            hint="keep one of them",
            key="key_field",
        )


def _check_login(draft: Draft) -> None:
    """Arroyo's words for a login: whole, or not there."""
    values, parts = draft.values, {key for key in draft.given if key.startswith("auth.")} - {"auth.type"}
    if values.get("auth.type") == "none" and parts:
        raise Problem(
            "CONFLICTING_OPTIONS",
            f"auth.type = 'none' goes without {', '.join(sorted(parts))}",
            hint="write auth.type = 'sasl' to log in",
            key=min(parts),
        )
    if (values.get("auth.type") == "sasl" or parts) and "auth.username" not in parts:
        if {"kafka.sasl.username", "kafka.sasl.jaas.config"} & draft.given:
            return
        raise Problem(
            "MISSING_OPTION",
            "a login needs the option auth.username",
            hint="add auth.username = '…' and auth.password, as a reference",
            key="auth.type" if "auth.type" in draft.given else min(parts),
        )


def _notices(draft: Draft) -> tuple[str, ...]:
    found: list[str] = []
    positions = {"start", "start_timestamp", "start_offsets"}
    if draft.role == "source" and not positions & draft.given:
        start = _default_start(draft)
        where = "what the group has read" if start == "group" else f"the {start} offset"
        found.append(f"reads from {where}, because start is not given")
    if draft.values.get("start") == "group" and "group_id" not in draft.given:
        found.append("start = 'group' without group_id begins at the latest offset")
    found += (f"option {key} changes nothing here: {reason}" for key, reason in _moot(draft))
    if draft.role == "source" and "delivery" in draft.given:
        found.append("option delivery is for what INSERT INTO writes here: reading is exactly once without it")
    if "bootstrap_servers" not in draft.given:
        found.append("bootstrap_servers comes from the setting kafka.bootstrap_servers")
    return tuple(found)


def _moot(draft: Draft) -> Iterator[tuple[str, str]]:
    """What changes nothing because of what another option says, or does not say; and the reason."""
    values, given = draft.values, draft.given
    if draft.role == "source" and "kafka.auto.offset.reset" in given and values.get("start") != "group":
        yield "kafka.auto.offset.reset", "it says where a group without offsets begins, with start = 'group'"
    if draft.role == "sink" and values.get("delivery") == "exactly_once" and "sink.parallelism" in given:
        yield "sink.parallelism", "an exactly-once sink has one writer"
    keyed = draft.connector != "kafka" or {"key.fields", "key_field"} & given  # an upsert has the key of the table
    if values.get("value.fields_include") == "EXCEPT_KEY" and not keyed:
        yield "value.fields_include", "no columns are in the key without key.fields"
    protocol = values.get("kafka.security.protocol", "PLAINTEXT")
    if isinstance(protocol, str) and not protocol.startswith("SASL"):
        for key in ("kafka.sasl.username", "kafka.sasl.jaas.config", "kafka.sasl.mechanism"):
            if key in given and not {"auth.username", "auth.type"} & given:
                yield key, "nobody logs in without kafka.security.protocol = 'SASL_SSL' or 'SASL_PLAINTEXT'"
    if draft.role == "sink" and values.get("delivery") != "exactly_once":
        for key in ("transactional_id_prefix", "kafka.transaction.id.prefix", "kafka.transaction.timeout.ms"):
            if key in given:
                yield key, "there are transactions with delivery = 'exactly_once' only"


def _derive(draft: Draft) -> dict[str, object]:
    return {} if draft.role != "source" else {**_position(draft, "start", _default_start(draft)), **_end(draft)}


def _end(draft: Draft) -> dict[str, object]:
    """Who says at which time or offset to end, wants an end."""
    return _position(draft, "end", "unbounded")


def _position(draft: Draft, position: str, otherwise: str) -> dict[str, object]:
    """Where a source begins or ends: as it says, or by the time or the offsets that it gives."""
    if position in draft.given:
        return {}
    kinds = [kind for kind in ("timestamp", "offsets") if f"{position}_{kind}" in draft.given]
    return {position: kinds[0] if kinds else otherwise}


def _ends(draft: Draft) -> bool:
    return draft.values.get("end") not in (None, "unbounded")


KAFKA: Final = ConnectorSpec(
    name="kafka",
    summary="topics of Apache Kafka",
    aliases=("confluent", "redpanda"),
    options=(
        BOOTSTRAP,
        _TOPIC,
        *_POSITION,
        *_CONSUMER,
        *_RECORD,
        *_PRODUCER,
        *_LOGIN,
        *_REGISTRY,
        *STREAM_SOURCE,
        BAD_DATA,
    ),
    formats=("json", "csv", "raw", "avro", "avro-confluent", "protobuf", "debezium-json"),
    default_format="json",
    available=True,
    passthrough=CLIENT,
    bounded=_ends,
    check=_check,
    derive=_derive,
    notices=_notices,
)


def _upsert_derive(draft: Draft) -> dict[str, object]:
    # A table kept by key means nothing without its beginning.
    return {} if draft.role != "source" else {**_position(draft, "start", "earliest"), **_end(draft)}


UPSERT_KAFKA: Final = ConnectorSpec(
    name="upsert-kafka",
    summary="topics of Apache Kafka in which a record replaces the one with the same key, and an empty one deletes it",
    options=KAFKA.options,
    formats=("json", "csv", "raw", "avro", "avro-confluent", "protobuf"),
    default_format="json",
    available=True,
    passthrough=CLIENT,
    changes="upsert",
    sink_changes="upsert",
    bounded=_ends,
    check=_check,
    derive=_upsert_derive,
    notices=lambda draft: tuple(notice for notice in _notices(draft) if not notice.startswith("reads from")),
)
