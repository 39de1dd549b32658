"""Nexmark's queries for Flink SQL: the tables over the topic, and the queries as tests/fixtures/nexmark has them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.nexmark_by_hand import RECORDS

SPELLINGS: Final = Path(__file__).parent.parent / "tests" / "fixtures" / "nexmark" / "flink.sql"
# q6 needs OVER over what changes, which Flink refuses. The table of q13 is no topic, and the function of q14 is Python.
OTHERWISE: Final = {
    "q12": (
        "SELECT bidder, COUNT(*) AS bid_count, window_start, window_end FROM TABLE(TUMBLE(TABLE arrivals, "
        "DESCRIPTOR(arrived), INTERVAL '10' SECOND)) GROUP BY bidder, window_start, window_end"
    ),
}
CANNOT: Final = frozenset({"q6", "q13"})
_COUNTED: Final = ("count_char(extra, 'c')", "CHAR_LENGTH(extra) - CHAR_LENGTH(REPLACE(extra, 'c', ''))")


def flink_query(name: str) -> str | None:
    """A query as Flink takes it; None where it cannot run it."""
    if name in CANNOT:
        return None
    if name in OTHERWISE:
        return OTHERWISE[name]
    parts = re.split(r"^-- (q\d+)\n", SPELLINGS.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    text = dict(zip(parts[::2], parts[1::2], strict=True))[name]
    return text.strip().rstrip(";").replace(*_COUNTED)


def flink_tables(address: str, topic: str) -> Sequence[str]:
    """The topic, and the three relations over it."""
    options = {
        "connector": "kafka",
        "topic": topic,
        "properties.bootstrap.servers": address,
        "scan.startup.mode": "earliest-offset",
        "scan.bounded.mode": "latest-offset",
        "format": "json",
        "json.timestamp-format.standard": "ISO-8601",
    }
    rows = ", ".join(f"{kind} ROW<{_typed(columns)}>" for kind, columns in RECORDS.items())
    given = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    views = [
        f"CREATE VIEW {kind} AS SELECT {_items(kind, columns)} FROM nexmark WHERE event_type = {number}"
        for number, (kind, columns) in enumerate(RECORDS.items())
    ]
    columns = f"event_type INT, {rows}, `dateTime` TIMESTAMP_LTZ(3)"
    watermark = "WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND"
    return [
        f"CREATE TABLE nexmark ({columns}, {watermark}) WITH ({given})",
        *views,
        "CREATE VIEW arrivals AS SELECT bidder, PROCTIME() AS arrived FROM bid",
    ]


def _typed(columns: str) -> str:
    found = [part.split(" ") for part in columns.split(", ")]
    return ", ".join(f"`{name}` {kind.replace('TIMESTAMP', 'TIMESTAMP_LTZ(3)')}" for name, kind in found)


def _items(kind: str, columns: str) -> str:
    names = [part.split(" ")[0] for part in columns.split(", ")]
    return ", ".join("`dateTime`" if name == "dateTime" else f"nexmark.{kind}.`{name}` AS `{name}`" for name in names)
