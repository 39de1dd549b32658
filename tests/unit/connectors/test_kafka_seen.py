"""What is written in a transaction is seen a moment after its commit: how long that is waited for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from penstock.connectors import kafka_cluster
from penstock.connectors.kafka_cluster import KafkaCluster, Partition


class Brokers(KafkaCluster):
    """One topic of two partitions, of which readers see more with each look, up to some end."""

    def __init__(self, *, seen: list[int]) -> None:
        super().__init__(access=None)  # type: ignore[arg-type]
        self.seen = seen

    def partitions(self, topics: Any, pattern: str | None = None) -> list[Partition]:
        return [("t", 0), ("t", 1)]

    def ends(self, partitions: Iterable[Partition], *, committed: bool) -> dict[Partition, int]:
        first = 10
        if committed:
            first = self.seen.pop(0) if len(self.seen) > 1 else self.seen[0]
        return {("t", 0): first, ("t", 1): 3}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_cluster, "_SEEN_S", 0.001)


def test_until_all_that_was_there_is_seen() -> None:
    brokers = Brokers(seen=[7, 8, 10, 12])
    brokers.wait_until_seen("t", 60)
    assert brokers.seen == [12], "not one look more"


def test_what_somebody_else_holds_open_is_not_waited_for_for_ever() -> None:
    Brokers(seen=[7]).wait_until_seen("t", 0.05)
