"""Numbered rows that keep coming while something breaks, and the checker that looks for them afterwards."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Final, Self

SEED: Final = int(os.environ.get("PENSTOCK_CHAOS_SEED", "4"))


class Load:
    """Sends rows at a rate from a thread of its own, in order, whatever the broker does; each has its number.

    What the broker has acknowledged is known when the load is stopped: everything, or the test fails.
    """

    def __init__(self, address: str, topic: str, rate: int = 200) -> None:
        from confluent_kafka import Producer

        self._producer: Any = Producer(
            {
                "bootstrap.servers": address,
                "log_level": 0,
                "enable.idempotence": True,
                "message.timeout.ms": 900_000,
                "linger.ms": 5,
                "reconnect.backoff.max.ms": 500,
            }
        )
        self._topic = topic
        self._rate = rate
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)
        self.sent = 0
        self.acknowledged: list[int] = []

    def stop(self) -> list[int]:
        """Send no more, and wait until the broker has all; the numbers of the rows."""
        self._stopping.set()
        self._thread.join(60)
        assert self._producer.flush(300) == 0, "the broker did not take all rows"
        assert sorted(self.acknowledged) == list(range(self.sent))
        return list(range(self.sent))

    def wait_for(self, more: int) -> None:
        """Wait until so many more rows are acknowledged."""
        wanted, end = len(self.acknowledged) + more, time.monotonic() + 300
        while len(self.acknowledged) < wanted:
            assert time.monotonic() < end, "the broker takes no rows"
            time.sleep(0.02)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join(60)
        self._producer.purge()

    def _send(self) -> None:
        begun = time.monotonic()
        while not self._stopping.is_set():
            due = int((time.monotonic() - begun) * self._rate)
            while self.sent < due:
                number = self.sent
                row = json.dumps({"id": number, "ts": 1_767_261_600_000 + number})
                try:
                    self._producer.produce(
                        self._topic,
                        row,
                        key=str(number % 16),
                        on_delivery=lambda error, _, n=number: self._told(error, n),
                    )
                except BufferError:
                    break
                self.sent += 1
            self._producer.poll(0.02)

    def _told(self, error: object, number: int) -> None:
        if error is None:
            self.acknowledged.append(number)


def wrong(sent: Iterable[int], found: Iterable[int]) -> dict[str, int]:
    """How many rows are lost, doubled, and made up."""
    wanted, have = Counter(sent), Counter(found)
    return {
        "lost": sum(1 for number in wanted if number not in have),
        "duplicated": sum(count - 1 for number, count in have.items() if number in wanted),
        "phantom": sum(1 for number in have if number not in wanted),
    }


NOTHING = {"lost": 0, "duplicated": 0, "phantom": 0}
