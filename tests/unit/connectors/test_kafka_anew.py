"""A topic that was deleted and made anew: how a job that skips what is lost comes to read it from its start."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import pytest

from penstock.connectors.kafka import KafkaSource
from penstock.connectors.kafka_notes import load_notes
from penstock.connectors.source import ScanRequest
from penstock.errors import PenstockError
from tests.unit.connectors.declared import request
from tests.unit.connectors.declared import source as declared_source

Places = Iterable[tuple[str, int]]
WAS, ANEW = '{"t": {"0": 10}}', '{"t": {"0": 3, "1": 0}}'


class Brokers:
    """One topic; `renew` puts another one with two partitions into its place."""

    servers = "b:9092"

    def __init__(self) -> None:
        self.id, self.first, self.last = "one", {0: 0}, {0: 30}

    def renew(self) -> None:
        self.id, self.first, self.last = "two", {0: 3, 1: 0}, {0: 40, 1: 5}

    def partitions(self, names: Collection[str], pattern: str | None) -> list[tuple[str, int]]:
        return [("t", number) for number in self.first]

    def topic_ids(self, topics: Collection[str]) -> dict[str, str]:
        return dict.fromkeys(topics, self.id)

    def begins(self, places: Places) -> dict[tuple[str, int], int]:
        return {one: self.first[one[1]] for one in places}

    def ends(self, places: Places, *, committed: bool) -> dict[tuple[str, int], int]:
        return {one: self.last[one[1]] for one in places}


class SourceOf(KafkaSource):
    """The source, with brokers that are told what to say."""

    def __init__(self, brokers: Brokers) -> None:
        super().__init__()
        self.brokers: Any = brokers

    def _cluster(self, request: ScanRequest) -> Any:
        return self.brokers


def asked(tmp_path: Path, loss: str = "skip") -> ScanRequest:
    text = f"CREATE STREAM s (n INT) WITH (connector = 'kafka', topic = 't', on_data_loss = '{loss}')"
    return request(declared_source(text), tmp_path, keep=tmp_path)


def whole(kafka: str) -> str:
    """The offset of a scan, of a topic whose partitions have the numbers of the broker."""
    numbers = {topic: {number: int(number) for number in each} for topic, each in json.loads(kafka).items()}
    return json.dumps({"kafka": json.loads(kafka), "pulse": None, "numbers": numbers})


def test_the_job_ends_and_begins_at_the_start_and_counts_what_was_known_to_be_there(tmp_path: Path) -> None:
    brokers, scan = Brokers(), asked(tmp_path)
    source = SourceOf(brokers)
    assert source.partitions(scan) == 1
    assert source.begun_anew(scan, WAS, repeated=False) is None
    assert source.lost(scan, whole('{"t": {"0": 5}}'), whole(WAS)) == 0
    assert source.folded(scan, [WAS, None], 1) is not None
    brokers.renew()
    with pytest.raises(PenstockError, match="topic t was deleted and made anew") as raised:
        SourceOf(brokers).folded(scan, [WAS, None], 1)
    assert raised.value.condition == "PARTITIONS_CHANGED"

    source = SourceOf(brokers)  # the next run
    assert source.partitions(scan) == 2
    for _ in range(2):  # until it stands in the log, it is said again
        assert source.begun_anew(scan, WAS, repeated=False) == ANEW
    source.took_anew(scan)
    assert source.begun_anew(scan, ANEW, repeated=False) is None
    assert source.folded(scan, [ANEW, None], 2) is not None
    assert source.lost(scan, whole(WAS), whole(ANEW)) == 20
    assert source.lost(scan, whole(ANEW), whole('{"t": {"0": 40, "1": 5}}')) == 0
    assert load_notes(tmp_path, scan.id, "t").unread == {}


def test_a_batch_that_is_in_the_ledger_is_repeated_as_it_is(tmp_path: Path) -> None:
    brokers, scan = Brokers(), asked(tmp_path)
    SourceOf(brokers).partitions(scan)
    brokers.renew()
    source = SourceOf(brokers)
    source.partitions(scan)
    assert source.begun_anew(scan, WAS, repeated=True) is None
    assert source.folded(scan, [WAS, None], 2) is not None
    with pytest.raises(PenstockError, match="PARTITIONS_CHANGED"):
        source.folded(scan, ['{"t": {"0": 12}}', None], 2)


def test_a_job_that_has_no_batch_begins_at_the_start(tmp_path: Path) -> None:
    brokers, scan = Brokers(), asked(tmp_path)
    SourceOf(brokers).partitions(scan)
    brokers.renew()
    source = SourceOf(brokers)
    source.partitions(scan)
    assert source.begun_anew(scan, None, repeated=False) is None
    assert load_notes(tmp_path, scan.id, "t").renewed == ("t",)
    assert source.folded(scan, [ANEW, None], 2) is not None
    assert source.lost(scan, None, whole(ANEW)) == 0
    assert load_notes(tmp_path, scan.id, "t").renewed == ()


def test_offsets_of_partitions_that_the_new_topic_has_not_can_still_be_read(tmp_path: Path) -> None:
    brokers, scan = Brokers(), asked(tmp_path)
    brokers.renew()
    SourceOf(brokers).partitions(scan)
    brokers.id, brokers.first, brokers.last = "three", {0: 0}, {0: 4}
    source = SourceOf(brokers)
    known = source.partitions(scan)
    assert source.begun_anew(scan, '{"t": {"0": 9, "1": 9}}', repeated=False) == '{"t": {"0": 0}}'
    source.took_anew(scan)
    for text in ('{"t": {"0": 9, "1": 9}}', '{"t": {"0": 0}}'):  # of the batch before, and of the one that says so
        assert source.folded(scan, [text, None], known) is not None


def test_a_job_that_does_not_skip_is_told(tmp_path: Path) -> None:
    brokers, scan = Brokers(), asked(tmp_path, "fail")
    SourceOf(brokers).partitions(scan)
    brokers.renew()
    with pytest.raises(PenstockError, match="made anew since job j has read it") as raised:
        SourceOf(brokers).partitions(scan)
    assert raised.value.condition == "SOURCE_DATA_LOST"
