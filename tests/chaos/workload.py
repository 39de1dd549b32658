"""What the killed program declares and appends: a pure function of the seed, known to the program and to its judge.

Rows come in numbered appends, one partition after the other. Their times lie within the stream's delay, whatever
partition is ahead, so none of them may ever be called late. Now and then a whole append is late by design: it is far
behind, and is appended only after everything before it has been settled. Some rows are bad in each of the ways a row can
be bad.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

PARTITIONS: Final = 4
DELAY_US: Final = 5_000_000
GAP_US: Final = 2_000_000
TUMBLE_US: Final = 10_000_000
HOP_US: Final = (5_000_000, 15_000_000)  # slide, size
PAIR_US: Final = 2_000_000
LATE_EVERY: Final = 20

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_US: Final = 1_767_225_600_000_000  # 2026-01-01, a whole minute
_STEP_US: Final = 500_000
_AHEAD_US: Final = 7_000_000  # each partition runs this far ahead of the one before it
_BEHIND_US: Final = 600_000_000
_FUTURE_US: Final = 4_070_908_800_000_000  # 2099-01-01
_KEYS: Final = 12

STREAM: Final = "orders"
SINK: Final = "large_orders"
INSERT: Final = f"insert_{SINK}"
# A sink of changes, and one over a view.
MOVES: Final = "item_moves"
MOVING: Final = f"insert_{MOVES}"
COPIES: Final = "item_copies"
COPYING: Final = f"insert_{COPIES}"
COPIED: Final = "by_item"
# By job: whether it closes windows, so that rows without a usable time are bad for it.
JOBS: Final = {
    "by_tumble": True,
    "by_hop": True,
    "by_session": True,
    "by_pair": True,
    "by_change": True,
    "by_change_spark": True,
    "by_burst": True,
    "by_item": False,
    "by_item_spark": False,
    "by_place": False,
    "by_match": False,
    "by_kind_spark": False,
    "by_size": False,
    INSERT: False,
    MOVING: False,
    "by_rest": False,
}
# All of them at once are for a machine that does nothing else.
FEWER_JOBS: Final = (
    "by_tumble", "by_change", "by_item", "by_place", "by_match", "by_kind_spark", "by_size", INSERT, MOVING, "by_rest",
)  # fmt: skip
SOME_JOBS: Final = ("by_tumble", "by_hop", "by_pair", "by_burst", "by_item", INSERT)
# Views whose rows change, and the columns that an update leaves as they are.
KEYED: Final = {
    "by_item": ("item",),
    "by_item_spark": ("item",),
    "by_change": ("item", "starts"),
    "by_change_spark": ("item", "starts"),
    "by_burst": ("item", "starts"),
    "by_place": (),
    "by_kind_spark": ("item",),
    "by_size": ("n",),
    "by_rest": ("rest",),
}
# Jobs over what another one writes: rows of the stream are bad for that one, not for them.
ABOVE: Final = {"by_rest": MOVING}

_MEASURES: Final = """COUNT(*) AS n, COUNT(amount) AS n_amount, SUM(amount) AS total, MIN(amount) AS least,
  MAX(amount) AS most, AVG(amount) AS mean"""
_RELATIONS: Final = f"""
CREATE STREAM {STREAM} (
  id STRING, item STRING NOT NULL, amount BIGINT, ts TIMESTAMP,
  WATERMARK FOR ts AS ts - INTERVAL '{DELAY_US // 1_000_000}' SECOND
) WITH (connector = 'topic', partitions = {PARTITIONS}, idle_timeout = INTERVAL '1' HOUR);
CREATE STREAM {SINK} (id STRING, item STRING, doubled BIGINT, ts TIMESTAMP) WITH (connector = 'topic', partitions = 2);
CREATE STREAM {MOVES} (item STRING, n BIGINT, total BIGINT, PRIMARY KEY (item) NOT ENFORCED)
WITH (connector = 'topic', format = 'debezium-json', partitions = 2);
CREATE STREAM {COPIES} (item STRING, n BIGINT, total BIGINT, PRIMARY KEY (item) NOT ENFORCED)
WITH (connector = 'topic', format = 'debezium-json', partitions = 3);
"""
_CHANGES: Final = f"""
SELECT item, TUMBLE_START(ts, INTERVAL '10' SECOND) AS starts, TUMBLE_END(ts, INTERVAL '10' SECOND) AS ends,
  {_MEASURES}
FROM {STREAM} GROUP BY item, TUMBLE(ts, INTERVAL '10' SECOND) EMIT CHANGES;
"""
_STATEMENTS: Final = {
    "by_tumble": f"""
CREATE MATERIALIZED VIEW by_tumble WITH (state = 'spark') AS
SELECT item, TUMBLE_START(ts, INTERVAL '10' SECOND) AS starts, TUMBLE_END(ts, INTERVAL '10' SECOND) AS ends,
  {_MEASURES}
FROM {STREAM} GROUP BY item, TUMBLE(ts, INTERVAL '10' SECOND) EMIT FINAL;
""",
    "by_hop": f"""
CREATE MATERIALIZED VIEW by_hop AS
SELECT item, HOP_START(ts, INTERVAL '5' SECOND, INTERVAL '15' SECOND) AS starts,
  HOP_END(ts, INTERVAL '5' SECOND, INTERVAL '15' SECOND) AS ends, {_MEASURES}
FROM {STREAM} GROUP BY item, HOP(ts, INTERVAL '5' SECOND, INTERVAL '15' SECOND) EMIT FINAL;
""",
    "by_session": f"""
CREATE MATERIALIZED VIEW by_session AS
SELECT item, SESSION_START(ts, INTERVAL '2' SECOND) AS starts, SESSION_END(ts, INTERVAL '2' SECOND) AS ends,
  {_MEASURES}
FROM {STREAM} GROUP BY item, SESSION(ts, INTERVAL '2' SECOND) EMIT FINAL;
""",
    "by_pair": f"""
CREATE MATERIALIZED VIEW by_pair AS
SELECT a.item, a.id AS first, b.id AS second, COALESCE(b.ts, a.ts) AS ends
FROM {STREAM} AS a LEFT JOIN {STREAM} AS b
ON a.item = b.item AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '{PAIR_US // 1_000_000}' SECOND AND a.id <> b.id;
""",
    "by_change": f"CREATE MATERIALIZED VIEW by_change AS {_CHANGES}",
    "by_change_spark": f"CREATE MATERIALIZED VIEW by_change_spark WITH (state = 'spark') AS {_CHANGES}",
    "by_burst": f"""
CREATE MATERIALIZED VIEW by_burst AS
SELECT item, SESSION_START(ts, INTERVAL '2' SECOND) AS starts, SESSION_END(ts, INTERVAL '2' SECOND) AS ends,
  {_MEASURES}
FROM {STREAM} GROUP BY item, SESSION(ts, INTERVAL '2' SECOND) EMIT CHANGES;
""",
    "by_place": f"""
CREATE MATERIALIZED VIEW by_place AS
SELECT t.item, t.id, t.place, o.id AS other
FROM (
  SELECT item, id, amount, ROW_NUMBER() OVER (PARTITION BY item ORDER BY amount DESC NULLS LAST, id) AS place FROM {STREAM}
) AS t LEFT JOIN {STREAM} AS o ON o.item = t.item AND o.amount = t.amount - 1
WHERE t.place <= 3;
""",
    "by_match": f"""
CREATE MATERIALIZED VIEW by_match AS
SELECT a.id, b.id AS other, a.amount + b.amount AS total
FROM {STREAM} AS a JOIN {STREAM} AS b ON a.item = b.item AND a.amount = b.amount AND a.id < b.id;
""",
    "by_kind_spark": f"""
CREATE MATERIALIZED VIEW by_kind_spark WITH (state = 'spark') AS
SELECT item, COUNT(DISTINCT amount) AS amounts, COUNT(DISTINCT amount) FILTER (WHERE amount > 0) AS above,
  SUM(DISTINCT amount) AS total
FROM {STREAM} GROUP BY item;
""",
    "by_size": f"""
CREATE MATERIALIZED VIEW by_size AS
SELECT n, COUNT(*) AS items, MAX(total) AS most
FROM (SELECT item, COUNT(*) AS n, SUM(amount) AS total FROM {STREAM} GROUP BY item) AS t GROUP BY n;
""",
    "by_rest": f"""
CREATE MATERIALIZED VIEW by_rest AS
SELECT n % 5 AS rest, COUNT(*) AS items, SUM(total) AS total FROM {MOVES} GROUP BY n % 5;
""",
    "by_item_spark": f"""
CREATE MATERIALIZED VIEW by_item_spark WITH (state = 'spark') AS
SELECT item, {_MEASURES} FROM {STREAM} GROUP BY item EMIT CHANGES;
""",
    "by_item": f"""
CREATE MATERIALIZED VIEW by_item AS
SELECT item, {_MEASURES} FROM {STREAM} GROUP BY item EMIT CHANGES;
""",
    INSERT: f"""
INSERT INTO {SINK} SELECT id, item, amount * 2, ts FROM {STREAM} WHERE amount >= 40;
""",
    MOVING: f"""
INSERT INTO {MOVES} SELECT item, COUNT(*) AS n, SUM(amount) AS total FROM {STREAM} GROUP BY item;
""",
}


def script(jobs: Iterable[str]) -> str:
    """The statements that declare the streams and these jobs; running them again changes nothing."""
    named = tuple(jobs)
    above = f"INSERT INTO {COPIES} SELECT item, n, total FROM {COPIED};" if COPIED in named else ""
    return _RELATIONS + "".join(_STATEMENTS[job] for job in named) + above


@dataclass(frozen=True)
class Row:
    """A row of the stream; `time_us` None is a NULL time."""

    id: str
    item: str | None
    amount: int | None
    time_us: int | None

    @property
    def number(self) -> int:
        """The append it belongs to."""
        return int(self.id.split(".")[0])

    @property
    def place(self) -> int:
        """Where in the append it stands."""
        return int(self.id.split(".")[1])

    @property
    def attempt(self) -> int:
        """The start of the program that has appended it."""
        return int(self.id.split(".")[2])

    def appended(self) -> dict[str, object]:
        """The row as a program hands it over."""
        time = None if self.time_us is None else _EPOCH + timedelta(microseconds=self.time_us)
        return {"id": self.id, "item": self.item, "amount": self.amount, "ts": time}


def late_by_design(number: int) -> bool:
    """Whether every row of an append comes after its windows have closed."""
    return number % LATE_EVERY == LATE_EVERY - 1


def rows_of(seed: int, number: int, attempt: int) -> list[Row]:
    """The rows of an append. `attempt` tells those apart that a restarted program appends a second time."""
    source = random.Random(f"{seed}/{number}")  # noqa: S311
    newest = _FIRST_US + number * _STEP_US + (number % PARTITIONS) * _AHEAD_US
    if late_by_design(number):
        newest -= _BEHIND_US
    return [
        Row(
            id=f"{number}.{place}.{attempt}",
            item=None if source.random() < 0.03 else f"item {source.randrange(_KEYS)}",
            amount=None if source.random() < 0.05 else source.randrange(-50, 100),
            time_us=_time(source, newest),
        )
        for place in range(source.randrange(3, 10))
    ]


def _time(source: random.Random, newest: int) -> int | None:
    chance = source.random()
    if chance < 0.03:
        return None
    if chance < 0.04:
        return _FUTURE_US
    return newest - source.randrange(DELAY_US)


def reason_of(job: str, item: str | None, time_us: int | None) -> str | None:
    """Why a row is bad for a job; None where it is good, or is not read by it."""
    if job in ABOVE:
        return None
    if item is None:
        return "not_null"
    if JOBS[job]:
        if time_us is None:
            return "null_time"
        if time_us == _FUTURE_US:
            return "future_time"
    return None
