"""Topics of Apache Kafka as a source, read by Spark's own connector.

Where a job begins is worked out once, when it is created, and kept as offsets: whatever happens until its first batch,
it begins there. From then on Spark's offset log says where it is. Partitions that are added later are read from their
start.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

from penstock.connectors.kafka_access import access_of, topic_names
from penstock.connectors.kafka_anew import SameTopics, from_the_start, made_anew
from penstock.connectors.kafka_cluster import KafkaCluster, Partition, topic_expression
from penstock.connectors.kafka_frames import (
    RECORD_TYPES,
    before_ends,
    group_prefix,
    reader_options,
    shaped,
    subscribed,
)
from penstock.connectors.kafka_keys import check_keys
from penstock.connectors.kafka_notes import KafkaNotes, load_notes, save_notes
from penstock.connectors.kafka_offsets import KafkaOffset, folded_offset, nested, read_kafka_offset
from penstock.connectors.kafka_positions import cut_ends, final_offsets, first_offsets, only_committed, skips_lost
from penstock.connectors.metadata_columns import hidden_columns
from penstock.connectors.option_values import integer, text
from penstock.connectors.pulse import Pulse
from penstock.connectors.reading import reading_of
from penstock.connectors.scan_frames import ddl
from penstock.errors import OptionError, RuntimeFailure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.catalog.model import SourceDefinition
    from penstock.connectors.source import ScanRequest
    from penstock.stores.topics.store import TopicStore

_LOG: Final = logging.getLogger(__name__)
_EARLIEST: Final = -2  # as Spark writes it
# How long what is known of the partitions of a topic holds good between batches.
_FRESH_S: Final = 1.0


class KafkaSource:
    """Reads topics of Kafka."""

    width = 2  # Spark's own source, and the pulse

    def __init__(self) -> None:
        self._lock = Lock()
        self._clusters: dict[tuple[object, ...], KafkaCluster] = {}
        self._listed: dict[tuple[object, ...], tuple[float, list[Partition]]] = {}
        self._same = SameTopics()

    def typed(self, definition: SourceDefinition) -> bool:
        return False

    def check(self, definition: SourceDefinition, state_path: Path) -> None:
        check_keys(definition)
        pattern = text(definition.options.values, "topic_pattern")
        if pattern is not None:
            topic_expression(pattern)

    # frames

    def stream(self, spark: SparkSession, request: ScanRequest) -> DataFrame:
        access = access_of(request.definition, request.state_path)
        reading = reading_of(request)
        notes = self._notes(request)
        partitions = self._partitions(request)
        columns = ("__value", *hidden_columns(request.definition))
        begin = self._begin(request, notes, partitions)
        reader = (
            spark.readStream.format("kafka")
            .options(**reader_options(request, access))
            .options(**subscribed(request.definition))
            .option("startingOffsets", "earliest" if begin is None else json.dumps(nested(begin)))
            .option("groupIdPrefix", group_prefix(request))
        )
        if request.realtime:
            return shaped(reader.load(), columns, notes)
        raw = reader.option("maxOffsetsPerTrigger", str(reading.max_rows)).load()
        readers = integer(request.definition.options.values, "max_parallelism")
        if readers is not None and readers < len(partitions):
            raw = raw.coalesce(readers)
        frame = shaped(raw, columns, notes)
        ends = self.end(request)
        if ends is not None:
            frame = before_ends(frame, ends)
        if request.keep is None:  # to look at only
            return frame
        pulse = Pulse(spark, reading)
        if request.nudges is not None:
            request.nudges.call(pulse.beat)
        return frame.unionByName(pulse.frame([(name, RECORD_TYPES[name]) for name in columns]))

    def between(self, spark: SparkSession, request: ScanRequest, start: str | None, end: str) -> DataFrame:
        upto = read_kafka_offset(end)
        notes = KafkaNotes(self._single(request.definition), _in_order(upto.numbers))
        if start is not None:
            since: Mapping[Partition, int] = read_kafka_offset(start).offsets
        else:
            first = request.first if request.first is not None else self.first(request)
            since = {notes.partition(number): offset for number, offset in first.items()}
        columns = tuple(RECORD_TYPES)
        ranges = {
            one: (since.get(one, _EARLIEST), last)
            for one, last in upto.offsets.items()
            if since.get(one, _EARLIEST) < last
        }
        if not ranges:
            return spark.createDataFrame([], ddl([(name, RECORD_TYPES[name]) for name in columns]))
        assigned: dict[str, list[int]] = {}
        for topic, number in ranges:
            assigned.setdefault(topic, []).append(number)
        raw = (
            spark.read.format("kafka")
            .options(**reader_options(request, access_of(request.definition, request.state_path)))
            .option("includeHeaders", "true")
            .option("assign", json.dumps(assigned))
            .option("startingOffsets", json.dumps(nested({one: first for one, (first, _) in ranges.items()})))
            .option("endingOffsets", json.dumps(nested({one: last for one, (_, last) in ranges.items()})))
            .load()
        )
        frame = shaped(raw, columns, notes)
        ends = self.end(request)
        return frame if ends is None else before_ends(frame, ends)

    # where rows are

    def partitions(self, request: ScanRequest) -> int:
        """How many there are; what is new gets its number, and topics that are not what they were are found out."""
        found = self._partitions(request, fresh=True)
        notes = self._notes(request)
        topics = sorted({topic for topic, _ in found})
        self._check_topics(request, notes, topics)
        if request.keep is not None:
            ids = self._cluster(request).topic_ids(topics)
            renewed = [name for name in topics if name in notes.ids and notes.ids[name] != ids[name]]
            if renewed and not skips_lost(request.definition):
                raise made_anew(request, renewed[0])
            if not request.realtime:  # `begun_anew` comes first
                ids = {name: found for name, found in ids.items() if name not in renewed}
            changed = notes.with_partitions(found).with_ids(ids)
            if changed != notes or changed.ids != notes.ids:
                save_notes(request.keep, request.id, changed)
            notes = changed
        else:
            notes = notes.with_partitions(found)
        numbers = [number for one in found if (number := notes.number(one)) is not None]
        return max([notes.most, len(notes.pairs), *(number + 1 for number in numbers)])

    def begun_anew(self, request: ScanRequest, text: str | None, *, repeated: bool) -> str | None:
        """The end of the last batch in Spark's log, with topics at their start that were made anew; None: none were.

        Without a batch the job begins there. One that is `repeated` stays as it is; the job starts again behind it.
        """
        self._same.hold(request, text if repeated else None)
        notes = self._notes(request)
        if request.realtime or not notes.ids or not skips_lost(request.definition):
            return None
        found = self._partitions(request, fresh=True)
        ids = self._cluster(request).topic_ids(sorted({topic for topic, _ in found}))
        renewed = sorted(name for name in ids if notes.ids.get(name, ids[name]) != ids[name])
        if not renewed or repeated:
            return None
        if text is None:
            if request.keep is not None:
                save_notes(request.keep, request.id, notes.with_ids(ids))
            return None
        told = "job %s: topic %s was deleted and made anew: it is read from its start, and what was left of it is lost"
        _LOG.warning(told, request.job, ", ".join(renewed))
        return from_the_start(text, renewed, self._cluster(request).begins(one for one in found if one[0] in renewed))

    def took_anew(self, request: ScanRequest) -> None:
        """What `begun_anew` has said stands in the log: from now on these are the topics of the job."""
        notes = self._notes(request)
        ids = self._cluster(request).topic_ids(sorted({topic for topic, _ in self._partitions(request)}))
        if request.keep is not None:
            save_notes(request.keep, request.id, notes.with_ids(ids).settled())

    def latest(self, request: ScanRequest, reached: str | None = None) -> Mapping[int, int]:
        found = self._partitions(request, fresh=reached is None)
        ends = self._cluster(request).ends(found, committed=only_committed(request.definition))
        last = self.end(request)
        return {
            number: min(offset, last.get(number, 0)) if last is not None else offset
            for number, offset in self._by_number(request, ends).items()
        }

    def first(self, request: ScanRequest) -> Mapping[int, int]:
        """Where a new job begins, by the option `start`: an offset for each partition there is."""
        cluster, found = self._cluster(request), self._partitions(request, fresh=True)
        self._check_topics(request, KafkaNotes(), sorted({topic for topic, _ in found}))
        offsets = first_offsets(cluster, request.definition, found)
        return self._by_number(request, offsets)

    def end(self, request: ScanRequest) -> Mapping[int, int] | None:
        """Where a source with an end ends: worked out when it is first asked for, and kept."""
        if not request.definition.bounded:
            return None
        notes = self._notes(request)
        if notes.ends is not None:
            return notes.ends
        final = self._final(request)
        for told in cut_ends(request.definition, final):
            _LOG.warning("job %s: %s", request.job, told)
        ends = self._by_number(request, final)
        if request.keep is not None:
            save_notes(request.keep, request.id, self._notes(request).with_ends(ends))
        return ends

    def end_offset(self, request: ScanRequest) -> str:
        found = self._partitions(request, fresh=True)
        ends = self._final(request) if request.definition.bounded else None
        if ends is None:
            ends = self._cluster(request).ends(found, committed=only_committed(request.definition))
        notes = self._notes(request).with_partitions(found)
        return KafkaOffset(ends, {one: notes.number(one) or 0 for one in ends}).text()

    def positions(self, offset: str) -> Mapping[int, int]:
        return read_kafka_offset(offset).positions

    def folded(self, request: ScanRequest, texts: Sequence[str | None], partitions: int) -> str | None:
        """The offset of a scan out of those of its two sources."""
        kafka, pulse = (*texts, None)[:2]  # in real-time mode there is no pulse
        notes = self._notes(request)
        if kafka is not None and not request.realtime and skips_lost(request.definition):
            self._check_same(request, notes, kafka)
        return folded_offset(kafka, pulse, notes, partitions)

    def _check_same(self, request: ScanRequest, notes: KafkaNotes, text: str) -> None:
        if not self._same.held(request, text):
            self._same.check(request, self._cluster(request), notes.ids, json.loads(text).keys())

    def lost(self, request: ScanRequest, start: str | None, end: str) -> int:
        """How many offsets between two that were to be read are not there any more, where that is to be skipped."""
        since = read_kafka_offset(start).offsets if start is not None else {}
        upto = read_kafka_offset(end).offsets
        notes, cluster = self._notes(request), self._cluster(request)
        skips = skips_lost(request.definition)
        if since != upto and (request.realtime or not skips):
            self._same.check(request, cluster, notes.ids, {topic for topic, _ in upto})
        if not skips:
            return 0
        if start is None:
            if notes.renewed and request.keep is not None:
                save_notes(request.keep, request.id, notes.settled())
            return 0
        moved = {one for one, last in upto.items() if since.get(one, last) != last}
        begins = cluster.begins(moved)
        gone = sum(max(0, min(begins[one], upto[one]) - since[one]) for one in moved if upto[one] >= since[one])
        # In real-time mode a job goes on where it was in a topic that was made anew; what is before that is not read.
        renewed = {one for one in moved if one[0] in notes.renewed and begins[one] < since[one] <= upto[one]}
        gone += sum(since[one] - begins[one] for one in renewed)
        if renewed and request.keep is not None:
            save_notes(request.keep, request.id, notes.settled())
        # Of a topic that begins anew what was there and not read is known only as of the batch before.
        anew = {one[0] for one in moved if upto[one] < since[one]}
        gone += sum(notes.unread.get(topic, 0) for topic in anew)
        self._note_unread(request, cluster, upto)
        return gone

    def _note_unread(self, request: ScanRequest, cluster: KafkaCluster, upto: Mapping[Partition, int]) -> None:
        """Keep how much is there behind a batch, which nobody can tell any more when a topic is gone."""
        unread: dict[str, int] = {}
        for one, end in cluster.ends(upto, committed=only_committed(request.definition)).items():
            if end > upto[one]:
                unread[one[0]] = unread.get(one[0], 0) + end - upto[one]
        notes = self._notes(request)
        if request.keep is not None and unread != notes.unread:
            save_notes(request.keep, request.id, replace(notes, unread=unread))

    def gone(self, request: ScanRequest, positions: Mapping[int, int]) -> str | None:
        """What of the rows from these offsets on is not there any more, in words; None where nothing is."""
        found, notes = self._partitions(request, fresh=True), self._notes(request)
        begins = self._cluster(request).begins(found)
        ids = self._cluster(request).topic_ids(sorted({topic for topic, _ in found}))
        for number, offset in sorted(positions.items()):
            topic, own = notes.partition(number)
            if (topic, own) not in begins:
                return f"topic {topic} is gone, or its partition {own}"
            if notes.ids.get(topic, ids[topic]) != ids[topic]:
                return f"topic {topic} was deleted and made anew, and what of partition {own} was not read is gone"
            if offset < (oldest := begins[topic, own]):
                return f"of topic {topic}, partition {own}, offsets {offset} to {oldest - 1} are gone, and not read"
        return None

    def record_place(self, request: ScanRequest, number: int) -> Partition | None:
        """The topic and its partition behind the number of a partition."""
        notes = load_notes(request.keep, request.id, self._single(request.definition))
        return notes.partition(number) if notes.single is not None or number < len(notes.pairs) else None

    # what becomes of its rows

    def watermark_us(self, offset: str) -> int | None:
        return None

    def committed(self, request: ScanRequest, offset: str) -> None:
        """Tell the consumer group, where the relation asks for it. Ours stays the truth, so nothing waits for it."""
        values = request.definition.options.values
        group = text(values, "group_id")
        if values.get("commit_offsets") is True and group is not None:
            self._cluster(request).commit_group(group, read_kafka_offset(offset).offsets)

    def leave(self, request: ScanRequest, *, wait_s: float) -> None:
        """Nothing is held open."""

    def looked(self, request: ScanRequest, since_us: int) -> bool:
        return True

    def prepare(self, definition: SourceDefinition, state_path: Path, topics: TopicStore) -> None:
        """Nothing: a relation can be declared before its broker is there."""

    def forget(self, definition: SourceDefinition, state_path: Path, topics: TopicStore) -> None:
        """Nothing: topics are not ours."""

    # the cluster

    def _cluster(self, request: ScanRequest) -> KafkaCluster:
        access = access_of(request.definition, request.state_path)
        key = (access.servers, *sorted(access.properties.items()))
        with self._lock:
            return self._clusters.setdefault(key, KafkaCluster(access))

    def _partitions(self, request: ScanRequest, *, fresh: bool = False) -> list[Partition]:
        values = request.definition.options.values
        names, pattern = topic_names(request.definition), text(values, "topic_pattern")
        cluster = self._cluster(request)
        key = (id(cluster), names, pattern)
        with self._lock:
            at, found = self._listed.get(key, (0.0, []))
        if fresh or not found or time.monotonic() - at > _FRESH_S:
            found = cluster.partitions(names, pattern)
            partitions = integer(values, "partitions")
            # What was in a topic that was there before is gone: that is told, and no empty one made in its place.
            known = load_notes(request.keep, request.id, self._single(request.definition)).ids
            missing = {*names} - {topic for topic, _ in found} - known.keys()
            if missing and partitions is not None:
                for name in sorted(missing):
                    cluster.create_topic(name, partitions, integer(values, "replication_factor"))
                found = cluster.partitions(names, pattern)
            with self._lock:
                self._listed[key] = (time.monotonic(), found)
        return found

    def _check_topics(self, request: ScanRequest, notes: KafkaNotes, there: Sequence[str]) -> None:
        servers = self._cluster(request).servers
        for name in topic_names(request.definition) or sorted({topic for topic, _ in notes.pairs}):
            if name in there:
                continue
            if name in notes.ids:
                if skips_lost(request.definition) and there:
                    continue
                if skips_lost(request.definition):
                    raise RuntimeFailure(
                        "SOURCE_UNAVAILABLE",
                        f"topic {name} at {servers} is gone",
                        hint="the job goes on by itself when there is one again, because of on_data_loss = 'skip'",
                    )
                raise RuntimeFailure(
                    "SOURCE_DATA_LOST",
                    f"topic {name} at {servers} is gone",
                    hint="create the topic and the job again",
                )
            raise OptionError(
                "INVALID_OPTION",
                f"there is no topic {name} at {servers}",
                hint="create it first, or look at its name; partitions = 4 lets it be made",
            )

    def _final(self, request: ScanRequest) -> dict[Partition, int]:
        """Where a source with an end ends, as of now."""
        return final_offsets(self._cluster(request), request.definition, self._partitions(request, fresh=True))

    def _begin(
        self, request: ScanRequest, notes: KafkaNotes, found: Sequence[Partition]
    ) -> dict[Partition, int] | None:
        """The pinned start for Spark, which wants every partition named; those that came later begin at their start."""
        if request.first is None:
            return None
        begin = dict.fromkeys(found, _EARLIEST)
        for number, offset in request.first.items():
            one = notes.partition(number)
            if one in begin and one[0] not in notes.renewed:
                begin[one] = offset
        return begin

    def _by_number(self, request: ScanRequest, offsets: Mapping[Partition, int]) -> dict[int, int]:
        notes = self._notes(request)
        missing = [one for one in offsets if notes.number(one) is None]
        if missing:
            notes = notes.with_partitions(sorted(missing))
            if request.keep is not None:
                save_notes(request.keep, request.id, notes)
        return {number: offset for one, offset in offsets.items() if (number := notes.number(one)) is not None}

    def _notes(self, request: ScanRequest) -> KafkaNotes:
        notes = load_notes(request.keep, request.id, self._single(request.definition))
        if request.keep is None and notes.single is None:
            return notes.with_partitions(self._partitions(request))
        return notes

    @staticmethod
    def _single(definition: SourceDefinition) -> str | None:
        names = topic_names(definition)
        return names[0] if len(names) == 1 else None


def _in_order(numbers: Mapping[Partition, int]) -> tuple[Partition, ...]:
    """The partitions of an offset in the order of their numbers; places of others are left empty."""
    named = {number: one for one, number in numbers.items()}
    return tuple(named.get(number, ("", number)) for number in range(max(named, default=-1) + 1))
