"""A made-up trade stream: four partitions, rows out of order within the bound, and a few far too late.

The event clock runs faster than ours, so that windows close while somebody watches. Partition 3 stays behind the others
and holds the watermark back. A symbol is traded in bursts, with a pause between them that ends a session.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from penstock.frozen import frozen
from penstock.interfaces.demo.pipeline import PARTITIONS

if TYPE_CHECKING:
    import pyarrow as pa

SYMBOLS: Final = ("ACME", "GLOBEX", "HOOLI", "INITECH", "TYRELL", "WAYNE")
OPENING: Final = datetime(2026, 1, 1, 9, 30, tzinfo=UTC)
# Seconds of event time in a second of ours.
SPEED: Final = 4.0

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_OPENING_US: Final = (OPENING - _EPOCH) // timedelta(microseconds=1)
# Less than the delay of the watermark, so that no such row is late.
_DISORDER_US: Final = 3_000_000
_SLOW_PARTITION: Final = 3
_SLOW_US: Final = 4_000_000
# So far behind the watermark that every window of a row, 20 seconds long at most, has long been closed: also where
# a job on a busy machine takes half a minute of events in one batch, since a batch goes by the watermark before it.
_LATE_US: Final = 55_000_000
_BURST_US: Final = 15_000_000
_ROWS_A_SECOND: Final = 400


@frozen
class Trade:
    """One row, with its place in the stream once it is appended."""

    symbol: str
    price: Decimal
    volume: int
    us: int
    meant_late: bool = False


class TradeGenerator:
    """The same seed makes the same rows for the same steps."""

    def __init__(self, seed: int = 7) -> None:
        self._random = random.Random(seed)  # noqa: S311 - a demo, not a secret
        self._prices = {symbol: 20_00 + 15_00 * number for number, symbol in enumerate(SYMBOLS)}
        self._clock_us = _OPENING_US
        self._late_due_us = _OPENING_US

    @property
    def clock(self) -> datetime:
        """The event clock."""
        return OPENING + timedelta(microseconds=self._clock_us - _OPENING_US)

    def step(self, seconds: float, watermark: datetime | None = None) -> dict[int, list[Trade]]:
        """The rows of the next stretch of time, by partition. Where the watermark is known, some are behind it."""
        length_us = int(seconds * SPEED * 1_000_000)
        self._clock_us += length_us
        count = max(1, int(seconds * _ROWS_A_SECOND))
        made = {partition: [self._trade(partition, length_us) for _ in range(count)] for partition in range(PARTITIONS)}
        closed_us = 0 if watermark is None else (watermark - _EPOCH) // timedelta(microseconds=1) - _LATE_US
        if closed_us > _OPENING_US and self._clock_us > self._late_due_us:
            late = self._at(closed_us - self._random.randrange(_DISORDER_US), meant_late=True)
            made[self._random.randrange(PARTITIONS)].append(late)
            self._late_due_us = self._clock_us + self._random.randrange(2_000_000, 6_000_000)
        return made

    def _trade(self, partition: int, length_us: int) -> Trade:
        behind = self._random.randrange(_DISORDER_US) + (_SLOW_US if partition == _SLOW_PARTITION else 0)
        return self._at(self._clock_us - self._random.randrange(length_us) - behind)

    def _at(self, us: int, *, meant_late: bool = False) -> Trade:
        # A symbol pauses in one burst of three, and the others make up for it.
        burst = us // _BURST_US
        trading = [symbol for number, symbol in enumerate(SYMBOLS) if (burst + number) % 3]
        symbol = self._random.choice(trading)
        self._prices[symbol] = max(100, self._prices[symbol] + self._random.randrange(-25, 26))
        return Trade(symbol, Decimal(self._prices[symbol]).scaleb(-2), self._random.randrange(1, 500), us, meant_late)


def to_arrow(trades: list[Trade]) -> pa.Table:
    """Rows as they are appended to the stream."""
    import pyarrow as pa

    return pa.table(
        {
            "symbol": pa.array([trade.symbol for trade in trades], pa.string()),
            "price": pa.array([trade.price for trade in trades], pa.decimal128(12, 2)),
            "volume": pa.array([trade.volume for trade in trades], pa.int32()),
            "ts": pa.array([trade.us for trade in trades], pa.int64()).cast(pa.timestamp("us", tz="UTC")),
        }
    )
