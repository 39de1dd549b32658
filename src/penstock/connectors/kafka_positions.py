"""Where a job begins in topics of Kafka, and where a source with an end ends, by the options of the relation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.connectors.option_values import moment_us, text
from penstock.errors import OptionError

if TYPE_CHECKING:
    from penstock.catalog.model import SourceDefinition
    from penstock.connectors.kafka_cluster import KafkaCluster
    from penstock.connectors.kafka_notes import Partition


def first_offsets(
    cluster: KafkaCluster, definition: SourceDefinition, found: Sequence[Partition]
) -> dict[Partition, int]:
    """An offset for each partition there is, where a new job begins: by the option `start`."""
    values = definition.options.values
    start, group = text(values, "start") or "latest", text(values, "group_id")
    if start == "earliest":
        return cluster.begins(found)
    if start == "timestamp":
        return cluster.at_time(found, _first_ms(values, "start_timestamp"))
    if start == "offsets":
        begins = cluster.begins(found)
        given = _given(definition, "start_offsets", found)
        _check_there(cluster, definition, given, begins)
        return {**begins, **{one: max(offset, begins[one]) for one, offset in given.items()}}
    offsets = cluster.ends(found, committed=only_committed(definition))
    if start == "group" and group is not None:
        return _of_group(cluster, definition, group, offsets)
    return offsets


def _of_group(
    cluster: KafkaCluster, definition: SourceDefinition, group: str, ends: Mapping[Partition, int]
) -> dict[Partition, int]:
    """What a group has read; where it has read nothing yet, what `auto.offset.reset` says, as for Kafka's consumers."""
    read = cluster.group_offsets(group, ends)
    missing = [one for one in ends if one not in read]
    otherwise = definition.options.passthrough.get("auto.offset.reset")
    if missing and otherwise == "none":
        topic, number = missing[0]
        raise OptionError(
            "INVALID_OPTION",
            f"group {group} of {definition.kind} {definition.name} has no offset in partition {number} of topic "
            f"{topic}, and auto.offset.reset is 'none'",
            hint="say where to begin there: 'properties.auto.offset.reset' = 'earliest' or 'latest'",
        )
    begins = cluster.begins(missing) if otherwise == "earliest" else {}
    return {**ends, **begins, **read}


def final_offsets(
    cluster: KafkaCluster, definition: SourceDefinition, found: Sequence[Partition]
) -> dict[Partition, int]:
    """Where a source with an end ends, as of now."""
    values = definition.options.values
    ends = cluster.ends(found, committed=only_committed(definition))
    end, group = text(values, "end"), text(values, "group_id")
    if end == "timestamp":
        chosen = cluster.at_time(found, _first_ms(values, "end_timestamp"))
    elif end == "offsets":
        chosen = _given(definition, "end_offsets", found)
    elif end == "group" and group is not None:
        chosen = cluster.group_offsets(group, found)
    else:
        chosen = ends
    return {one: min(chosen.get(one, last), last) for one, last in ends.items()}


def cut_ends(definition: SourceDefinition, final: Mapping[Partition, int]) -> list[str]:
    """What is told where a source is to end behind the last record that there is."""
    if text(definition.options.values, "end") != "offsets":
        return []
    given = _given(definition, "end_offsets", [*final])
    return [
        f"option end_offsets of {definition.kind} {definition.name} ends partition {number} of topic {topic} at "
        f"{asked}, and it has offsets up to {final[topic, number]} now: it ends there, and what comes later is not read"
        for (topic, number), asked in given.items()
        if asked > final[topic, number]
    ]


def _first_ms(values: Mapping[str, object], option: str) -> int:
    """The first millisecond that is not before the moment of an option: records are dated in milliseconds."""
    return -(-(moment_us(values, option) or 0) // 1000)


def only_committed(definition: SourceDefinition) -> bool:
    """Whether records of open and broken transactions are left out."""
    return definition.options.values.get("isolation_level") != "read_uncommitted"


def skips_lost(definition: SourceDefinition) -> bool:
    """Whether a job goes on where records that it has not read are gone."""
    return definition.options.values.get("on_data_loss") == "skip"


def _given(definition: SourceDefinition, option: str, found: Sequence[Partition]) -> dict[Partition, int]:
    """Offsets of a statement, which name partitions and no topics: they hold for each topic."""
    offsets = definition.options.values.get(option)
    asked = dict(offsets) if isinstance(offsets, tuple) else {}
    there = {number for _, number in found}
    for number in asked:
        if number not in there:
            raise OptionError(
                "INVALID_OPTION",
                f"option {option} of {definition.kind} {definition.name} names partition {number}, which is not there",
                hint=f"there are partitions 0 to {max(there)}" if there else "the topic has no partitions",
            )
    return {one: int(asked[one[1]]) for one in found if one[1] in asked}


def _check_there(
    cluster: KafkaCluster,
    definition: SourceDefinition,
    given: Mapping[Partition, int],
    begins: Mapping[Partition, int],
) -> None:
    """Refuse offsets that no record has or will have next; those that are gone already can be skipped."""
    ends = cluster.ends(given, committed=False)
    for (topic, number), offset in given.items():
        first, end = begins[topic, number], ends[topic, number]
        if offset > end or (offset < first and not skips_lost(definition)):
            raise OptionError(
                "INVALID_OPTION",
                f"option start_offsets of {definition.kind} {definition.name} begins at {offset}, but partition "
                f"{number} of topic {topic} has offsets {first} to {end}",
                hint="name an offset that is there"
                + ("" if offset > end else ", or set on_data_loss = 'skip' to begin with the oldest one"),
            )
