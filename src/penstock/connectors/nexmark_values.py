"""Persons, auctions and bids, a whole Arrow batch at a time. Loaded by Spark's own processes and by tests.

Numbers are hashes of the event's number, so that it does not matter in which batch, task or process an event is made.
Texts are taken from pools that the seed makes once a process: making each anew would cost more than all the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # noqa: TID253  loaded by Spark's processes, never at start-up
import pyarrow.compute as pc  # noqa: TID253

from penstock.connectors.nexmark_plan import IN_TURN, KINDS, LATEST_US, NexmarkPlan
from penstock.connectors.nexmark_texts import Pools, hashed, pools, salt_of

Words: TypeAlias = npt.NDArray[np.uint64]
Longs: TypeAlias = npt.NDArray[np.int64]

_FIRST_ID: Final = 1_000
_FIRST_CATEGORY: Final = 10
_CATEGORIES: Final = 5
_BIG_CHANNELS: Final = 4
_CHANNELS: Final = 10_000
# An auction or person is hot until so many newer ones are there.
_HOT_FOR: Final = 100
_OPEN_AUCTIONS: Final = 100
_ACTIVE_PERSONS: Final = 1_000
_DEAREST: Final = 1e8
_MILLISECOND_US: Final = 1_000


def nexmark_batch(plan: NexmarkPlan, schema: pa.Schema, partition: int, first: int, end: int) -> pa.RecordBatch:
    """The rows of a partition with first <= offset < end, with the columns of a schema."""
    offset = np.arange(first, end, dtype=np.int64)
    first_of_kind, of_kind = KINDS[plan.kind]
    number = offset * plan.partitions + partition
    event = number // of_kind * IN_TURN + first_of_kind + number % of_kind if plan.kind != "all" else number
    events = _Events(plan, event)
    columns = []
    for field in schema:
        if field.name == "__partition":
            columns.append(pa.repeat(pa.scalar(partition, field.type), len(offset)))
        elif field.name == "__offset":
            columns.append(pa.array(offset))
        else:
            columns.append(_column(events, plan.kind, field))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


class _Events:
    """Events of which columns are made; what several columns need is made once."""

    def __init__(self, plan: NexmarkPlan, number: Longs) -> None:
        self.plan = plan
        self.number = number
        self.word = number.view(np.uint64)

    def __len__(self) -> int:
        return len(self.number)

    @cached_property
    def pools(self) -> Pools:
        return pools(self.plan.seed)

    @cached_property
    def turn(self) -> Longs:
        """How many times 50 events there are before."""
        return self.number // IN_TURN

    @cached_property
    def place(self) -> Longs:
        """The place among 50 events."""
        return self.number - self.turn * IN_TURN

    def hash(self, name: str) -> Words:
        """A random word for each event, others for each name."""
        return hashed(self.word, _salt(self.plan.seed, name))

    def below(self, name: str, limit: int) -> Longs:
        """A random number from 0 to below a limit."""
        return (((self.hash(name) >> np.uint64(32)) * np.uint64(limit)) >> np.uint64(32)).view(np.int64)

    def share(self, name: str) -> npt.NDArray[np.float64]:
        """A random number from 0 to below 1."""
        found: npt.NDArray[np.float64] = (self.hash(name) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return found

    @cached_property
    def time_us(self) -> Longs:
        """When the event happened, in whole milliseconds."""
        plan = self.plan
        moment = plan.base_us + np.floor(self.number * plan.gap_us).astype(np.int64)
        if plan.out_of_order > 0:
            back = self.below("back", LATEST_US // _MILLISECOND_US) + 1
            moment -= np.where(self.share("late") < plan.out_of_order, back * _MILLISECOND_US, 0)
        found: Longs = moment // _MILLISECOND_US * _MILLISECOND_US
        return found

    def price(self, name: str) -> Longs:
        """Prices whose logarithms are spread evenly."""
        found: Longs = np.rint(np.exp(self.share(name) * math.log(_DEAREST))).astype(np.int64)
        return found

    @cached_property
    def channel(self) -> Longs:
        """One of the big channels for half the bids, else one of the numbered ones."""
        word = self.hash("channel")
        low = (word & np.uint64(0xFFFFFFFF)).view(np.int64)
        numbered = _BIG_CHANNELS + ((low * _CHANNELS) >> 32)
        return np.where(word >> np.uint64(63) == 0, (low * _BIG_CHANNELS) >> 32, numbered)

    def recent_person(self, name: str, hot_place: int) -> Longs:
        """Three times of four the hot person of the moment, else one of those that came last."""
        last = self.turn
        hot = last // _HOT_FOR * _HOT_FOR + hot_place
        active = np.minimum(last + 1, _ACTIVE_PERSONS)
        any_one = last - (self.share(f"{name} any") * active).astype(np.int64)
        return _FIRST_ID + np.where(self.below(f"{name} hot", 4) > 0, np.minimum(hot, last), any_one)

    def auction(self) -> Longs:
        """Half the bids go to the hot auction of the moment, the others to one of those that were opened last."""
        last = self.turn * 3 + 2
        open_ones = np.minimum(last + 1, _OPEN_AUCTIONS)
        any_one = last - (self.share("auction any") * open_ones).astype(np.int64)
        return _FIRST_ID + np.where(self.below("auction hot", 2) > 0, last // _HOT_FOR * _HOT_FOR, any_one)

    def expires_us(self) -> Longs:
        """When an auction ends: in about the time in which the auctions that are open are opened."""
        longest_ms = max(1, int(2 * self.plan.gap_us * _OPEN_AUCTIONS * IN_TURN / 3 / _MILLISECOND_US))
        return self.time_us + (1 + self.below("expires", longest_ms)) * _MILLISECOND_US

    def text(self, name: str, pool: pa.Array) -> pa.Array:
        """A random text of a pool."""
        return pc.take(pool, pa.array(self.below(name, len(pool))))

    def card(self) -> pa.Array:
        """Four groups of four digits."""
        digits = self.hash("card")
        letters = np.full((len(self), 19), ord(" "), np.uint8)
        for place in (column for column in range(19) if column % 5 != 4):
            letters[:, place] = ord("0") + (digits % np.uint64(10)).astype(np.uint8)
            digits //= np.uint64(10)
        fixed = pa.Array.from_buffers(pa.binary(19), len(self), [None, pa.py_buffer(letters.tobytes())])
        return fixed.cast(pa.binary()).cast(pa.string())


_Make: TypeAlias = Callable[[_Events], Any]
# By kind and by the column's name without case and `_`.
_MADE: Final[dict[str, dict[str, _Make]]] = {
    "person": {
        "id": lambda e: _FIRST_ID + e.turn,
        "name": lambda e: e.text("name", e.pools.names),
        "emailaddress": lambda e: e.text("email", e.pools.emails),
        "creditcard": _Events.card,
        "city": lambda e: e.text("city", e.pools.cities),
        "state": lambda e: e.text("city", e.pools.states),  # of the city
        "datetime": lambda e: e.time_us,
        "extra": lambda e: e.text("extra", e.pools.person_extras),
    },
    "auction": {
        "id": lambda e: _FIRST_ID + e.turn * 3 + e.place - 1,
        "itemname": lambda e: e.text("item", e.pools.items),
        "description": lambda e: e.text("description", e.pools.descriptions),
        "initialbid": lambda e: e.price("initial"),
        "reserve": lambda e: e.price("initial") + e.price("reserve"),
        "datetime": lambda e: e.time_us,
        "expires": _Events.expires_us,
        "seller": lambda e: e.recent_person("seller", 0),
        "category": lambda e: _FIRST_CATEGORY + e.below("category", _CATEGORIES),
        "extra": lambda e: e.text("extra", e.pools.auction_extras),
    },
    "bid": {
        "auction": _Events.auction,
        "bidder": lambda e: e.recent_person("bidder", 1),
        "price": lambda e: e.price("price"),
        "channel": lambda e: pc.take(e.pools.channels, pa.array(e.channel)),
        "url": lambda e: pc.take(e.pools.urls, pa.array(e.channel)),
        "datetime": lambda e: e.time_us,
        "extra": lambda e: e.text("extra", e.pools.bid_extras),
    },
}


def _column(events: _Events, kind: str, field: pa.Field) -> pa.Array:
    name = field.name.lower().replace("_", "")
    if kind != "all":
        return _typed(_MADE[kind][name](events), field.type)
    if name == "datetime":
        return _typed(events.time_us, field.type)
    if name == "eventtype":
        return _typed((events.place > 0).astype(np.int64) + (events.place > KINDS["auction"][1]), field.type)
    return _records(events, name, field.type)


def _records(events: _Events, kind: str, wanted: pa.DataType) -> pa.Array:
    """The records of one kind among all events, NULL for events of another kind."""
    first, count = KINDS[kind]
    here = np.flatnonzero((events.place >= first) & (events.place < first + count))
    some = _Events(events.plan, events.number[here])
    parts = [_column(some, kind, wanted.field(at)) for at in range(wanted.num_fields)]
    records = pa.StructArray.from_arrays(parts, fields=[wanted.field(at) for at in range(wanted.num_fields)])
    which = np.zeros(len(events), np.int64)
    which[here] = np.arange(len(here))
    missing = np.ones(len(events), np.bool_)
    missing[here] = False
    return pc.take(records, pa.array(which, mask=missing))


def _typed(values: Any, wanted: pa.DataType) -> pa.Array:
    found = pa.array(values) if isinstance(values, np.ndarray) else values
    return found if found.type.equals(wanted) else found.cast(wanted)


@lru_cache(maxsize=256)
def _salt(seed: int, name: str) -> int:
    return salt_of(seed, name)
