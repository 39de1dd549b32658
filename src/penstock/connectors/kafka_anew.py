"""Topics that were deleted and made anew under the name that they had: whether that happened, and where it leads.

To Spark such a topic is the one it knows, and is read on from the offset where the other one was. A job that skips what
is lost reads it from its start instead: it ends, and before the next run begins, Spark's log says so.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Final

from penstock.connectors.kafka_offsets import flat, nested
from penstock.connectors.kafka_positions import skips_lost
from penstock.errors import RuntimeFailure

if TYPE_CHECKING:
    from penstock.connectors.kafka_cluster import KafkaCluster, Partition
    from penstock.connectors.source import ScanRequest

# How long topics that were found to be the same count as that, where what is read of others meanwhile is an error that
# nobody overlooks, and where it would be read twice.
_FRESH_S: Final = 1.0
_AT_ONCE_S: Final = 0.05


class SameTopics:
    """Looks whether the topics of scans are those that were there when their runs began."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._seen: dict[tuple[str, str], float] = {}  # when the topics of a scan were found to be the same ones
        self._held: dict[tuple[str, str], str] = {}  # the end of the batch that a run has to repeat as it is

    def hold(self, request: ScanRequest, text: str | None) -> None:
        """A run begins with a batch that ends here and is done already, but for Spark; None: with none such."""
        with self._lock:
            self._held.pop((request.job, request.id), None)
            if text is not None:
                self._held[request.job, request.id] = text

    def held(self, request: ScanRequest, text: str) -> bool:
        """Whether a batch that ends here is the one to repeat."""
        with self._lock:
            return self._held.get((request.job, request.id)) == text

    def check(
        self, request: ScanRequest, cluster: KafkaCluster, known: Mapping[str, str], topics: Collection[str]
    ) -> None:
        """Raises where one of the topics has another id than the `known` one: SOURCE_DATA_LOST, or PARTITIONS_CHANGED
        where the job is to go on with it. It may be told some batches later, never not at all; who goes on with the new
        topic is told before rows of it are taken for others."""
        key, skips = (request.job, request.id), skips_lost(request.definition)
        with self._lock:
            due = time.monotonic() - self._seen.get(key, 0.0) > (_AT_ONCE_S if skips else _FRESH_S)
        asked = sorted(known.keys() & topics)
        if not due or not asked:
            return
        try:
            ids = cluster.topic_ids(asked)
        except RuntimeFailure:
            return  # whoever reads next will hear of it
        renewed = [name for name in asked if known[name] != ids[name]]
        if not renewed:
            with self._lock:
                self._seen[key] = time.monotonic()
        elif skips:
            raise RuntimeFailure(
                "PARTITIONS_CHANGED",
                f"topic {renewed[0]} was deleted and made anew",
                hint="the job starts again by itself to read it",
            )
        else:
            raise made_anew(request, renewed[0])


def from_the_start(text: str, topics: Collection[str], begins: Mapping[Partition, int]) -> str:
    """An offset in Spark's log with these topics at their start, with the partitions that they have now.

    >>> from_the_start('{"a":{"0":7,"1":9},"b":{"0":3}}', ["a"], {("a", 0): 0})
    '{"a": {"0": 0}, "b": {"0": 3}}'
    """
    kept = {one: offset for one, offset in flat(json.loads(text)).items() if one[0] not in topics}
    return json.dumps(nested({**kept, **{one: offset for one, offset in begins.items() if one[0] in topics}}))


def made_anew(request: ScanRequest, topic: str) -> RuntimeFailure:
    """The error of a job that does not go on with another topic of the name."""
    return RuntimeFailure(
        "SOURCE_DATA_LOST",
        f"topic {topic} was deleted and made anew since job {request.job} has read it",
        hint="create the job again to read what is there, or set on_data_loss = 'skip'",
    )
