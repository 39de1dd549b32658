"""Feldera's WITH ('connectors' = '[{…}]') of a table or a view: one connector, over Kafka, as options of ours.

'[{"transport": {"name": "kafka_input", "config": {"topic": "t", "start_from": "latest"}},
   "format": {"name": "csv", "config": {"headers": true}}}]'
-> connector = 'kafka', topic = 't', start = 'latest', format = 'csv', csv.header = true
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NoReturn

from penstock.errors import OptionError
from penstock.secrets import Secret
from penstock.sql.dialects import feldera_formats
from penstock.sql.dialects.feldera import check_option, refuse_at
from penstock.sql.dialects.feldera_members import known, member_text, members, option, required, scalar
from penstock.sql.dialects.json_places import Member, Node, read_json
from penstock.sql.statements import CreateRelation, Option, OptionValue

_KEY: Final = "connectors"
_OPTIONS: Final = {"topic": "topic", "bootstrap.servers": "bootstrap_servers", "group.id": "group_id"}
_POSITION: Final = "start_from"
_INPUT: Final = frozenset({*_OPTIONS, _POSITION, "topics", "auto.offset.reset", "resume_earliest_if_data_expires"})
_OUTPUT: Final = frozenset({"topic", "bootstrap.servers"})
_LATER: Final = {
    "partitions": "leave it out; all partitions are read",
    "synchronize_partitions": "leave it out; each partition has a watermark of its own",
    "poller_threads": "leave it out; max_parallelism limits the readers",
    "log_level": "leave it out",
    "group_join_timeout_secs": "leave it out",
    "initialization_timeout_secs": "leave it out",
    "max_inflight_messages": "leave it out",
    "kafka_service": "give bootstrap.servers",
    "region": "leave it out",
    "headers": "leave it out; CREATE SINK writes a column METADATA FROM 'headers'",
    "fault_tolerance": "leave it out, and add 'delivery' = 'exactly_once' beside 'connectors'",
    "include_headers": "declare a column METADATA FROM 'headers'",
    "include_topic": "declare a column METADATA FROM 'topic'",
    "include_partition": "declare a column METADATA FROM 'partition'",
    "include_offset": "declare a column METADATA FROM 'offset'",
    "include_timestamp": "declare a column METADATA FROM 'timestamp'",
}
_CONNECTOR: Final = frozenset({"name", "transport", "format"})
_CONNECTOR_LATER: Final = {
    "index": "leave it out, and name the key in key_fields of the format",
    **dict.fromkeys(("paused", "labels", "start_after"), "leave it out; PAUSE JOB and RESUME JOB are about jobs"),
    **dict.fromkeys(
        ("max_queued_records", "max_batch_size", "max_worker_batch_size", "max_queued_bytes"),
        "leave it out, and add 'max_rows_per_batch' = '…' beside 'connectors'",
    ),
    **dict.fromkeys(
        ("enable_output_buffer", "max_output_buffer_time_millis", "max_output_buffer_size_records", "send_snapshot"),
        "leave it out",
    ),
}


def given(options: Sequence[Option]) -> bool:
    """Whether a WITH clause has Feldera's connectors."""
    return any(option.key.lower() == _KEY for option in options)


def table(statement: CreateRelation, source: str) -> CreateRelation:
    """CREATE TABLE t (columns) WITH ('connectors' = '[{…}]'). A row with the primary key of another one replaces it."""
    kept, made = _read(statement.options, source, "kafka_input")
    append = next((one for one in kept if one.key.lower() == "append_only"), None)
    kept = [one for one in kept if one is not append]
    plain = not any(one.value.reveal() == "debezium-json" for one in made if one.key == "format")
    if statement.primary_key and plain and (append is None or append.value.reveal().lower() != "true"):
        made.append(replace(made[0], key="changes", value=OptionValue("text", Secret("upsert"))))
    return replace(statement, options=(*made, *kept))


def sink(options: Sequence[Option], source: str) -> tuple[Option, ...]:
    """The options of the sink that a view with such a connector is."""
    kept, made = _read(options, source, "kafka_output")
    return (*made, *kept)


def _read(options: Sequence[Option], source: str, transport: str) -> tuple[list[Option], list[Option]]:
    kept: list[Option] = []
    made: list[Option] = []
    for one in options:
        if one.key.lower() == _KEY:
            made += _connector(one, source, transport)
        else:
            check_option(one.key, one.key_span)
            kept.append(one)
    return kept, made


def _connector(one: Option, source: str, transport: str) -> list[Option]:
    try:
        if one.value.kind != "text":
            raise ValueError("a string is wanted")
        root = read_json(one.value.reveal(), one.value_span, source)
    except ValueError:
        # The text of a failure may quote the JSON, and with it a password.
        raise OptionError(
            "INVALID_OPTION",
            "option connectors must be a list of connectors in JSON",
            hint='[{"transport": {"name": "kafka_input", "config": {"topic": "…"}}, "format": {"name": "csv"}}]',
            span=one.value_span,
        ) from None
    listed = root.value if isinstance(root.value, list) else []
    if len(listed) != 1:
        hint = "give one; another one is a table, or a sink, of its own"
        refuse_at(f"a list of {len(listed)} connectors", hint, listed[1].span if len(listed) > 1 else one.value_span)
    found = known(listed[0], _CONNECTOR, _CONNECTOR_LATER, "a connector")
    moved = required(found, "transport", listed[0])
    parts = known(moved.node, frozenset({"name", "config"}), {}, "a transport")
    name = required(parts, "name", moved.node)
    if member_text(name) != transport:
        _refuse_transport(name, transport)
    made = [option(name, "connector", "kafka")]
    made += _transport(required(parts, "config", moved.node).node, transport)
    return made + feldera_formats.options(required(found, "format", listed[0]).node, reads=transport == "kafka_input")


def _refuse_transport(name: Member, wanted: str) -> NoReturn:
    kind = member_text(name)
    shown = f"transport {kind}" if kind.replace("_", "").isalnum() else "this transport"
    refuse_at(shown, f"{wanted} is read here; other connectors are WITH (connector = '…')", name.node.span)


def _transport(config: Node, transport: str) -> list[Option]:
    names = _INPUT if transport == "kafka_input" else _OUTPUT
    # A dotted name is a property of the Kafka client, which the options know.
    own = {key: member for key, member in members(config).items() if key in names or "." not in key}
    known(Node(own, config.span), names, _LATER, transport)
    made: list[Option] = []
    for key, member in members(config).items():
        if key == _POSITION:
            made += _position(member)
        elif key in names:
            made.append(_plain(key, member))
        else:
            made.append(scalar(member, f"kafka.{key}"))
    if transport == "kafka_input" and not {_POSITION, "auto.offset.reset"} & members(config).keys():
        made.append(
            Option("start", OptionValue("text", Secret("earliest")), config.span, replace(config.span, length=0))
        )
    return made


def _plain(key: str, member: Member) -> Option:
    if key == "topics":
        listed = member.node.value if isinstance(member.node.value, list) else []
        return option(member, "topic", ",".join(str(node.value) for node in listed))
    if key == "auto.offset.reset":
        return scalar(member, "start")
    if key == "resume_earliest_if_data_expires":
        return option(member, "on_data_loss", "skip" if member.node.value is True else "fail")
    return scalar(member, _OPTIONS[key])


def _position(member: Member) -> list[Option]:
    """Where to begin: "earliest", "latest", {"timestamp": ms} or {"offsets": [of each partition]}."""
    if isinstance(member.node.value, str):
        return [scalar(member, "start")]
    parts: Mapping[str, Member] = known(member.node, frozenset({"timestamp", "offsets"}), {}, _POSITION)
    if "timestamp" in parts:
        return [scalar(parts["timestamp"], "start_timestamp")]
    offsets = required(parts, "offsets", member.node)
    listed = offsets.node.value if isinstance(offsets.node.value, list) else []
    texts = [f"partition:{number},offset:{node.value}" for number, node in enumerate(listed)]
    return [option(offsets, "start_offsets", ";".join(texts))]
