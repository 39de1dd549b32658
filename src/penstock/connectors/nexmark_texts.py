"""The texts of Nexmark: pools that a seed makes, from which events take theirs. Loaded by Spark's own processes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # noqa: TID253  loaded by Spark's processes, never at start-up

from penstock.frozen import frozen

Words: TypeAlias = npt.NDArray[np.uint64]

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)
_POOL: Final = 4_096
_CHANNELS: Final = 10_000
_SPREAD: Final = 0.2  # of the lengths of paddings, to both sides
# What is left of a record's 200, 500 and 100 bytes when its own fields are counted (of a bid, its numbers).
_PERSON_EXTRA: Final = 137
_AUCTION_EXTRA: Final = 390
_BID_EXTRA: Final = 68
_GIVEN: Final = ("Ada", "Ben", "Cleo", "Dan", "Edith", "Frank", "Grace", "Hugo", "Iris", "Jonas", "Kay", "Lena")
_FAMILY: Final = ("Abbott", "Brand", "Castle", "Dyer", "Ellis", "Foster", "Grant", "Hale", "Irving", "Jordan")
_CITIES: Final = (
    ("Phoenix", "AZ"),
    ("Tucson", "AZ"),
    ("Los Angeles", "CA"),
    ("San Francisco", "CA"),
    ("Boise", "ID"),
    ("Nampa", "ID"),
    ("Portland", "OR"),
    ("Bend", "OR"),
    ("Seattle", "WA"),
    ("Kent", "WA"),
    ("Cheyenne", "WY"),
    ("Casper", "WY"),
)
_BIG: Final = ("Google", "Facebook", "Baidu", "Apple")


@frozen
class Pools:
    """Texts to choose from. `states` are those of `cities`, place by place, and `urls` those of `channels`."""

    names: pa.Array
    emails: pa.Array
    cities: pa.Array
    states: pa.Array
    items: pa.Array
    descriptions: pa.Array
    channels: pa.Array
    urls: pa.Array
    person_extras: pa.Array
    auction_extras: pa.Array
    bid_extras: pa.Array


@lru_cache(maxsize=4)
def pools(seed: int) -> Pools:
    """The pools of a seed."""
    users, hosts = _words(seed, "user", 3, 8), _words(seed, "host", 3, 6)
    channels = (*_BIG, *(f"channel-{number}" for number in range(_CHANNELS)))
    paths = [_words(seed, f"path {place}", 5, 5, count=len(channels)).to_pylist() for place in range(3)]
    return Pools(
        names=pa.array([f"{given} {family}" for given in _GIVEN for family in _FAMILY]),
        emails=pa.array(
            [f"{user}@{host}.com" for user, host in zip(users.to_pylist(), hosts.to_pylist(), strict=True)]
        ),
        cities=pa.array([city for city, _ in _CITIES]),
        states=pa.array([state for _, state in _CITIES]),
        items=_words(seed, "item", 3, 19),
        descriptions=_words(seed, "description", 3, 99, spaces=True),
        channels=pa.array(channels),
        urls=pa.array(_urls(paths)),
        person_extras=_padding(seed, "person", _PERSON_EXTRA),
        auction_extras=_padding(seed, "auction", _AUCTION_EXTRA),
        bid_extras=_padding(seed, "bid", _BID_EXTRA),
    )


def hashed(key: Words, salt: int) -> Words:
    """A random word for each key: the finaliser of SplitMix64."""
    words = key * _GOLDEN + np.uint64(salt)
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    found: Words = words ^ (words >> np.uint64(31))
    return found


def salt_of(seed: int, name: str) -> int:
    """What makes the random numbers of one name and seed others than those of any other."""
    return int.from_bytes(hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest(), "little")


def _urls(paths: Sequence[Sequence[str]]) -> list[str]:
    """An address for each channel; that of a numbered one names it."""
    bare = [f"https://www.nexmark.com/{'/'.join(parts)}/item.htm?query=1" for parts in zip(*paths, strict=True)]
    big = len(_BIG)
    return [*bare[:big], *(f"{url}&channel_id={number}" for number, url in enumerate(bare[big:]))]


def _padding(seed: int, name: str, average: int) -> pa.Array:
    spread = round(average * _SPREAD)
    return _words(seed, f"extra {name}", average - spread, average + spread)


def _words(seed: int, name: str, shortest: int, longest: int, *, count: int = _POOL, spaces: bool = False) -> pa.Array:
    """Random texts of small letters, with blanks between them where asked for."""
    numbers = np.arange(count, dtype=np.uint64)
    spread = np.uint64(longest - shortest + 1)
    lengths = shortest + (hashed(numbers, salt_of(seed, f"{name} lengths")) % spread).astype(np.int32)
    offsets = np.concatenate([np.zeros(1, np.int32), np.cumsum(lengths, dtype=np.int32)])
    several = np.arange(-(-int(offsets[-1]) // 8), dtype=np.uint64)
    letters = hashed(several, salt_of(seed, name)).view(np.uint8)[: int(offsets[-1])]
    shown = ord("a") + letters % 26
    if spaces:
        shown = np.where(letters % 13 == 0, ord(" "), shown).astype(np.uint8)
    data = pa.py_buffer(np.ascontiguousarray(shown, dtype=np.uint8).tobytes())
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets.tobytes()), data)
