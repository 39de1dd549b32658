"""The judge: what a finished campaign must have left, computed from what is in the topic.

The topic is the truth of what was appended: what was acknowledged has to be in it, an append that was cut off before its
acknowledgement may be. From its rows DuckDB computes the answer of every query as a batch; nothing of it may be missing,
twice, other than computed, or beyond it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from penstock.stores.topics import TopicReader, topic_directory
from tests.chaos import workload
from tests.chaos.campaign import Campaign
from tests.chaos.workload import (
    ABOVE,
    COPIED,
    COPIES,
    DELAY_US,
    GAP_US,
    HOP_US,
    INSERT,
    JOBS,
    KEYED,
    MOVES,
    MOVING,
    PAIR_US,
    PARTITIONS,
    SINK,
    STREAM,
    TUMBLE_US,
    Row,
    late_by_design,
    reason_of,
)

Place = tuple[int, int]  # partition, offset

_MEASURES: Final = "count(*), count(amount), sum(amount), min(amount), max(amount), round(avg(amount), 9)"
_QUERIES: Final = {
    "by_tumble": f"""
        SELECT item, ts // {TUMBLE_US} * {TUMBLE_US} AS starts, starts + {TUMBLE_US}, {_MEASURES}
        FROM given GROUP BY item, starts""",
    "by_hop": f"""
        SELECT item, (ts // {HOP_US[0]} - back) * {HOP_US[0]} AS starts, starts + {HOP_US[1]}, {_MEASURES}
        FROM given, range({HOP_US[1] // HOP_US[0]}) AS slides(back) GROUP BY item, starts""",
    "by_session": f"""
        WITH marked AS (
            SELECT *, coalesce(ts - lag(ts) OVER (PARTITION BY item ORDER BY ts) > {GAP_US}, true) AS begins FROM given
        ), numbered AS (
            SELECT *, sum(begins::INT) OVER (PARTITION BY item ORDER BY ts ROWS UNBOUNDED PRECEDING) AS session
            FROM marked
        )
        SELECT item, min(ts), max(ts) + {GAP_US}, {_MEASURES} FROM numbered GROUP BY item, session""",
    "by_pair": f"""
        SELECT a.item, a.id, b.id, coalesce(b.ts, a.ts) FROM given AS a LEFT JOIN given AS b
        ON a.item = b.item AND b.ts BETWEEN a.ts AND a.ts + {PAIR_US} AND a.id <> b.id""",
    "by_item": f"SELECT item, {_MEASURES} FROM given GROUP BY item",
    "by_place": """
        SELECT t.item, t.id, t.place, o.id FROM (
            SELECT *, row_number() OVER (PARTITION BY item ORDER BY amount DESC NULLS LAST, id) AS place FROM given
        ) AS t LEFT JOIN given AS o ON o.item = t.item AND o.amount = t.amount - 1 WHERE t.place <= 3""",
    "by_match": """
        SELECT a.id, b.id, a.amount + b.amount FROM given AS a JOIN given AS b
        ON a.item = b.item AND a.amount = b.amount AND a.id < b.id""",
    "by_kind_spark": """
        SELECT item, count(DISTINCT amount), count(DISTINCT amount) FILTER (WHERE amount > 0), sum(DISTINCT amount)
        FROM given GROUP BY item""",
    "by_size": """
        SELECT n, count(*), max(total) FROM (SELECT count(*) AS n, sum(amount) AS total FROM given GROUP BY item)
        GROUP BY n""",
    "by_rest": """
        SELECT n % 5 AS rest, count(*), sum(total)
        FROM (SELECT count(*) AS n, sum(amount) AS total FROM given GROUP BY item) GROUP BY rest""",
    INSERT: "SELECT id, item, amount * 2, ts FROM given WHERE amount >= 40",
    MOVING: "SELECT item, count(*), sum(amount) FROM given GROUP BY item",
}
# Views that show in the end what another one shows.
_SAME: Final = {
    "by_change": "by_tumble",
    "by_change_spark": "by_tumble",
    "by_burst": "by_session",
    "by_item_spark": "by_item",
}
_KEY_COLUMNS: Final = {
    "by_tumble": 3, "by_hop": 3, "by_session": 3, "by_pair": 3, "by_place": 4, "by_match": 2, "by_item": 1, "by_kind_spark": 1, "by_size": 1,
    "by_rest": 1, INSERT: 1, MOVING: 1,
}  # fmt: skip


def check(campaign: Campaign) -> None:
    """Everything that must hold of a campaign whose program has ended by itself."""
    topic = read_topic(campaign.home, STREAM, Row)
    report = campaign.report()
    check_appends(campaign, topic)
    dead = check_dead_letters(topic, report["dead_letters"], campaign.jobs)
    late = check_late_rows(topic, dead, report["late_rows"])
    for job in campaign.jobs:
        read = ABOVE.get(job, job)
        given = {place: row for place, row in topic.items() if place not in dead[read] and place not in late[read]}
        expected = batch_answer(_QUERIES[_SAME.get(job, job)], given.values())
        if job == MOVING:
            found = folded(campaign.home, MOVES)
        elif job != INSERT:
            found = [tuple(_rounded(row).values()) for row in report["views"][job]]
            assert found, f"{job} is empty: the run shows nothing"
        else:
            found = sorted(read_topic(campaign.home, SINK, lambda *values: values).values())
            assert found == sorted(tuple(row) for row in report["sink"]), "the sink's topic reads otherwise through SQL"
        compare(job, found, expected)
    if COPIED in campaign.jobs:
        kept = [(row["item"], row["n"], row["total"]) for row in report["views"][COPIED]]
        assert sorted(folded(campaign.home, COPIES), key=str) == sorted(kept, key=str), (
            "the sink over a view is not the view"
        )
    for view, changes in report["changes"].items():
        check_changes(view, changes, report["views"][view])
    check_end(report, campaign.jobs)


def read_topic(home: Path, name: str, make: Any) -> dict[Place, Any]:
    """All rows of a topic, by partition and offset."""
    import pyarrow as pa

    reader = TopicReader(topic_directory(home / "topics", name))
    columns = [column for column in reader.schema.names if not column.startswith("__")]
    found: dict[Place, Any] = {}
    starts = reader.starts()
    for partition, end in reader.ends().items():
        for batch in reader.read(partition, starts[partition], end, columns):
            values = [
                batch.column(column).cast(pa.int64()) if column == "ts" else batch.column(column) for column in columns
            ]
            for offset, *row in zip(batch.column("__offset"), *values, strict=True):
                found[partition, offset.as_py()] = make(*(value.as_py() for value in row))
    reader.close()
    return found


def folded(home: Path, name: str) -> list[tuple[Any, ...]]:
    """What the envelopes in a topic come to; none takes back what is not there, or adds what is."""
    reader = TopicReader(topic_directory(home / "topics", name))
    rows: Counter[tuple[Any, ...]] = Counter()
    for partition, end in reader.ends().items():
        for batch in reader.read(partition, 0, end, ["__value"]):
            for value in batch.column("__value").to_pylist():
                record = json.loads(value)
                for side, sign in (("before", -1), ("after", 1)):
                    if record[side] is not None:
                        rows[tuple(record[side].values())] += sign
                        assert rows[tuple(record[side].values())] in (0, 1), f"{name}: {record} does not fit"
    reader.close()
    return list((+rows).elements())


def check_appends(campaign: Campaign, topic: Mapping[Place, Row]) -> None:
    """What was acknowledged is there, where it was said to be; what is there was appended, once and whole."""
    acknowledged: dict[tuple[int, int], Place] = {}
    for event in campaign.events():
        if event["event"] == "appended":
            rows = workload.rows_of(campaign.seed, event["number"], event["start"])
            assert event["count"] == len(rows)
            place = event["partition"], event["first"]
            acknowledged[event["number"], event["start"]] = place
            for step, row in enumerate(rows):
                there = topic.get((place[0], place[1] + step))
                assert there == row, f"acknowledged and lost: {row} (partition, offset: {place}, found {there})"
    appends = Counter((row.number, row.attempt) for row in topic.values())
    assert len({row.id for row in topic.values()}) == len(topic), "a row is twice in the topic"
    for (number, attempt), count in appends.items():
        rows = workload.rows_of(campaign.seed, number, attempt)
        assert count == len(rows), f"append {number} of start {attempt} is there in part"
    for (partition, offset), found in topic.items():
        assert partition == found.number % PARTITIONS
        assert workload.rows_of(campaign.seed, found.number, found.attempt)[found.place] == found, f"phantom: {found}"
        first = acknowledged.get((found.number, found.attempt))
        assert first is None or offset == first[1] + found.place
    cut_off = set(appends) - set(acknowledged)
    assert all(1 <= attempt <= len(campaign.starts) for _, attempt in cut_off)
    assert len({attempt for _, attempt in cut_off}) == len(cut_off), "a start has appended twice without being told"


def check_dead_letters(
    topic: Mapping[Place, Row], told: Iterable[Mapping[str, Any]], jobs: Sequence[str] = tuple(JOBS)
) -> dict[str, set[Place]]:
    """Exactly the bad rows, each once for each job that it is bad for, with the right reason."""
    found = Counter((row["job"], row["partition"], row["offset"], row["reason"]) for row in told)
    expected = Counter(
        (job, *place, reason)
        for place, row in topic.items()
        for job in jobs
        if (reason := reason_of(job, row.item, row.time_us)) is not None
    )
    assert found == expected, f"dead letters: lost {expected - found}, doubled or phantom {found - expected}"
    for row in told:
        assert row["stream"] == STREAM
        assert json.loads(row["raw"])["id"] == topic[row["partition"], row["offset"]].id
    return {job: {(p, o) for name, p, o, _ in found if name == job} for job in jobs}


def check_late_rows(
    topic: Mapping[Place, Row], dead: Mapping[str, set[Place]], told: Iterable[Mapping[str, Any]]
) -> dict[str, set[Place]]:
    """Every row that was late by design and no other, once for each job with windows, behind a watermark that was due."""
    found = Counter((row["job"], row["partition"], row["offset"]) for row in told)
    expected = Counter(
        (job, *place)
        for place, row in topic.items()
        for job in dead
        if JOBS[job] and late_by_design(row.number) and place not in dead[job]
    )
    assert found == expected, f"late rows: lost {expected - found}, doubled or in time {found - expected}"
    due = _last_watermark(topic)
    for row in told:
        source = topic[row["partition"], row["offset"]]
        assert source.time_us is not None
        assert row["stream"] == STREAM
        assert row["event_time"] == source.time_us
        assert row["lateness"] == row["watermark"] - source.time_us
        assert last_end(row["job"], source.time_us) <= row["watermark"] <= due, f"not late: {row}"
        assert json.loads(row["row"])["id"] == source.id
    return {job: {(p, o) for name, p, o in found if name == job} for job in dead}


def _last_watermark(topic: Mapping[Place, Row]) -> int:
    """How far the slowest partition has come, less the delay."""
    latest = dict.fromkeys(range(PARTITIONS), 0)
    for (partition, _), row in topic.items():
        if reason_of("by_tumble", row.item, row.time_us) is None:
            assert row.time_us is not None
            latest[partition] = max(latest[partition], row.time_us)
    return min(latest.values()) - DELAY_US


def last_end(job: str, time_us: int) -> int:
    """When the last window closes that a row belongs to; a join takes no row that is not after the watermark."""
    if job == "by_pair":
        return time_us
    if _SAME.get(job, job) == "by_tumble":
        return time_us // TUMBLE_US * TUMBLE_US + TUMBLE_US
    if job == "by_hop":
        return time_us // HOP_US[0] * HOP_US[0] + HOP_US[1]
    return time_us + GAP_US


def batch_answer(query: str, given: Iterable[Row]) -> list[tuple[Any, ...]]:
    """What DuckDB answers over the rows as a whole."""
    import duckdb

    rows = [(row.id, row.item, row.amount, row.time_us) for row in given]
    with duckdb.connect() as database:
        database.execute("CREATE TABLE given (id VARCHAR, item VARCHAR, amount BIGINT, ts BIGINT)")
        database.executemany("INSERT INTO given VALUES (?, ?, ?, ?)", rows)
        return database.execute(query).fetchall()


def compare(job: str, found: Sequence[tuple[Any, ...]], expected: Sequence[tuple[Any, ...]]) -> None:
    """lost = doubled = phantom = 0, and no row with another value than computed."""
    width = _KEY_COLUMNS[_SAME.get(job, job)]
    have, want = Counter(row[:width] for row in found), Counter(row[:width] for row in expected)
    faults = {
        "lost": sorted(want - have, key=str),
        "phantom": sorted(set(have) - set(want), key=str),
        "doubled": sorted((key for key, count in have.items() if count > 1), key=str),
        "wrong": sorted((Counter(found) - Counter(expected)).keys(), key=str),
    }
    wrong = {fault: rows for fault, rows in faults.items() if rows}
    assert not wrong, f"{job}: " + "; ".join(
        f"{fault} {len(rows)}, the first {rows[0]}" for fault, rows in wrong.items()
    )
    assert Counter(found) == Counter(expected)


def check_changes(view: str, changes: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> None:
    """The change log, folded from its first entry on, is the view; its numbers have no gap."""
    assert [change["seq"] for change in changes] == list(range(1, len(changes) + 1)), f"{view}: a gap in the change log"
    folded: Counter[str] = Counter()
    for change in changes:
        if view not in KEYED:
            assert change["op"] == "insert", f"{view} only grows, and its change log has {change}"
        if change["before"] is not None:
            before = json.dumps(change["before"], sort_keys=True)
            assert folded[before] == 1, f"{view}: {change} takes back a row that is not there"
            del folded[before]
        if change["row"] is not None:
            folded[json.dumps(change["row"], sort_keys=True)] += 1
        if change["op"] == "update":
            key = KEYED[view]
            assert [change["before"][name] for name in key] == [change["row"][name] for name in key]
    assert folded == Counter(json.dumps(row, sort_keys=True) for row in rows), f"{view} is not its change log"


def check_end(report: Mapping[str, Any], jobs: Sequence[str]) -> None:
    """Every job has been drained without an error, and closed what it shows."""
    for job in jobs:
        told = report["jobs"][job]
        assert told["state"] == "stopped", f"{job}: {told}"
        assert told["error"] is None, f"{job}: {told}"
        if JOBS[job]:
            assert max(row["ends"] for row in report["views"][job]) <= told["watermark"]


def _rounded(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: round(value, 9) if isinstance(value, float) else value for name, value in row.items()}
