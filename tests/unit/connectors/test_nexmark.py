"""Nexmark's generator: NEXMARK.md's data, the same for a seed however it is cut into batches and partitions."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.connectors.nexmark_plan import plan_nexmark, read_nexmark, rows_among
from penstock.connectors.nexmark_reader import NexmarkRows
from penstock.connectors.offsets import Offset, Range
from penstock.connectors.registry import source_of
from penstock.errors import OptionError
from penstock.stores.arrow_types import arrow_type
from tests.unit.connectors.declared import request, source

EVENTS = 50_000
BASE = datetime(2015, 7, 15, tzinfo=UTC)


def made(options: str = "", *ranges: Range, batch_size: int = 10_000, columns: str = "") -> pa.Table:
    """Rows as a reader makes them, by way of the text that it is told."""
    definition = source(f"CREATE STREAM n {columns} WITH (connector = 'nexmark', event_count = {EVENTS}{options})")
    plan = read_nexmark(plan_nexmark(definition).json())
    declared = [(entry.name, arrow_type(entry.type)) for entry in definition.columns if entry.type]
    schema = pa.schema([*declared, ("__partition", pa.int32()), ("__offset", pa.int64())])
    rows = NexmarkRows(plan, schema, 1, 10**6)
    wanted = ranges or [Range(partition, 0, end) for partition, end in (plan.end() or {}).items()]
    batches = [batch for one in wanted for batch in rows.read(one, Offset(1, {}), batch_size)]
    return pa.Table.from_batches(batches, schema)


def of_kind(table: pa.Table, kind: str) -> pa.Table:
    records = table.column(kind).combine_chunks().drop_null()
    return pa.Table.from_batches([pa.RecordBatch.from_struct_array(records)])


@pytest.fixture(scope="module")
def whole() -> pa.Table:
    return made()


@pytest.fixture(scope="module")
def bids(whole: pa.Table) -> pa.Table:
    return of_kind(whole, "bid")


@pytest.fixture(scope="module")
def auctions(whole: pa.Table) -> pa.Table:
    return of_kind(whole, "auction")


@pytest.fixture(scope="module")
def persons(whole: pa.Table) -> pa.Table:
    return of_kind(whole, "person")


def values(table: pa.Table, column: str) -> list[Any]:
    found: list[Any] = table.column(column).to_pylist()
    return found


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(0, 500), max_size=6), st.integers(1, 200), st.integers(1, 4))
def test_the_same_events_however_they_are_cut(cuts: list[int], batch_size: int, partitions: int) -> None:
    places = sorted({0, *cuts, 500})
    ranges = [Range(0, first, end) for first, end in pairwise(places)]
    assert made("", *ranges, batch_size=batch_size).equals(made("", Range(0, 0, 500)))
    several = [Range(partition, 0, -(-500 // partitions)) for partition in range(partitions)]
    dealt = made(f", partitions = {partitions}", *several)
    number = pc.add(pc.multiply(dealt.column("__offset"), partitions), dealt.column("__partition").cast(pa.int64()))
    first = dealt.append_column("n", number).sort_by("n").slice(0, 500).drop_columns(["__partition", "__offset", "n"])
    assert first.equals(made("", Range(0, 0, 500)).drop_columns(["__partition", "__offset"]))


def test_another_seed_makes_other_events(bids: pa.Table) -> None:
    other = of_kind(made(", seed = 1"), "bid")
    assert pc.sum(pc.equal(other.column("price"), bids.column("price"))).as_py() < len(bids) / 50
    assert pc.sum(pc.equal(other.column("extra"), bids.column("extra"))).as_py() < len(bids) / 50
    assert other.column("dateTime").equals(bids.column("dateTime"))


def test_fifty_events_are_one_person_three_auctions_and_46_bids(whole: pa.Table) -> None:
    assert values(whole, "event_type")[:50] == [0, 1, 1, 1, *[2] * 46]
    assert Counter(values(whole, "event_type")) == {0: EVENTS // 50, 1: 3 * EVENTS // 50, 2: 46 * EVENTS // 50}
    for number, kind in enumerate(("person", "auction", "bid")):
        assert pc.equal(pc.is_valid(whole.column(kind)), pc.equal(whole.column("event_type"), number)).to_pylist() == [
            True
        ] * len(whole)


@pytest.mark.parametrize("kind", ["person", "auction", "bid"])
def test_a_relation_of_one_kind_has_its_records_of_the_whole_stream(whole: pa.Table, kind: str) -> None:
    found = made(f", table_type = '{kind}'").drop_columns(["__partition", "__offset"])
    assert found.cast(of_kind(whole, kind).schema).equals(of_kind(whole, kind))
    plan = plan_nexmark(
        source(f"CREATE STREAM n WITH (connector = 'nexmark', event_count = 77, table_type = '{kind}')")
    )
    assert plan.rows == rows_among(kind, 77)


def test_times_run_with_the_rate_and_stand_in_the_record_and_beside_it(whole: pa.Table, bids: pa.Table) -> None:
    times = whole.column("dateTime").cast(pa.int64()).to_numpy()
    assert values(whole, "dateTime")[0] == BASE
    assert ((np.diff(times) == 0) | (np.diff(times) == 1_000)).all()
    assert (times - times[0] == np.arange(EVENTS) // 10 * 1_000).all()  # 10,000 a second
    hundred = made(", event_rate = 100, base_time = '2026-01-01T00:00:00Z'", Range(0, 0, 3))
    assert [time.isoformat() for time in values(hundred, "dateTime")] == [
        "2026-01-01T00:00:00+00:00",
        "2026-01-01T00:00:00.010000+00:00",
        "2026-01-01T00:00:00.020000+00:00",
    ]
    assert values(bids, "dateTime")[0] == values(whole, "dateTime")[4]


def test_ids_count_from_a_thousand_and_name_what_is_there(
    persons: pa.Table, auctions: pa.Table, bids: pa.Table
) -> None:
    assert values(persons, "id") == list(range(1000, 1000 + EVENTS // 50))
    assert values(auctions, "id") == list(range(1000, 1000 + 3 * EVENTS // 50))
    turn = np.arange(EVENTS // 50)
    newest_person, newest_auction = 1000 + np.repeat(turn, 46), 1000 + np.repeat(turn, 46) * 3 + 2
    for column, newest, oldest in (("bidder", newest_person, 1000), ("auction", newest_auction, 400)):
        found = bids.column(column).to_numpy()
        assert (found <= newest).all()
        assert (found >= 1000).all()
        assert (newest - found < oldest).all()
    sellers = auctions.column("seller").to_numpy()
    assert (sellers <= 1000 + np.repeat(turn, 3)).all()
    assert (sellers >= 1000).all()


def test_about_half_the_bids_go_to_the_hot_auction(bids: pa.Table, auctions: pa.Table) -> None:
    newest = np.repeat(np.arange(EVENTS // 50), 46) * 3 + 2
    hot = (bids.column("auction").to_numpy() - 1000 == newest // 100 * 100).mean()
    assert 0.48 < hot < 0.53
    newest = np.repeat(np.arange(EVENTS // 50), 46)
    assert 0.73 < (bids.column("bidder").to_numpy() - 1000 == newest // 100 * 100 + 1).mean() < 0.78
    newest = np.repeat(np.arange(EVENTS // 50), 3)
    assert 0.71 < (auctions.column("seller").to_numpy() - 1000 == newest // 100 * 100).mean() < 0.8


def test_prices_are_spread_over_eight_powers_of_ten(bids: pa.Table, auctions: pa.Table) -> None:
    prices = bids.column("price").to_numpy()
    assert 1 <= prices.min() < 10
    assert 5e7 < prices.max() <= 1e8
    for power in range(1, 8):
        assert abs((prices < 10**power).mean() - power / 8) < 0.02
    assert pc.all(pc.greater(auctions.column("reserve"), auctions.column("initialBid"))).as_py()


def test_channels_and_urls(bids: pa.Table) -> None:
    channels = Counter(values(bids, "channel"))
    big = sum(channels.pop(name) for name in ("Google", "Facebook", "Baidu", "Apple"))
    assert 0.48 < big / len(bids) < 0.52
    assert all(name.startswith("channel-") and 0 <= int(name[8:]) < 10_000 for name in channels)
    assert len(channels) > 8_500
    for channel, url in zip(values(bids, "channel")[:500], values(bids, "url"), strict=False):
        address, _, query = url.partition("?")
        assert len(address.split("/")) == 7  # scheme, nothing, host, three parts, page
        number = channel.removeprefix("channel-")
        assert ("&channel_id=" in query) is (number != channel)
        assert query.endswith(f"&channel_id={number}") or number == channel


def test_records_have_about_their_size(persons: pa.Table, auctions: pa.Table, bids: pa.Table) -> None:
    for table, numbers, texts, size in (
        (persons, 1, ("name", "emailAddress", "creditCard", "city", "state", "extra"), 200),
        (auctions, 6, ("itemName", "description", "extra"), 500),
        (bids, 4, ("extra",), 100),
    ):
        found = 8 * numbers + sum(pc.mean(pc.utf8_length(table.column(text))).as_py() for text in texts)
        assert abs(found - size) < 0.06 * size
    assert set(values(persons, "state")) == {"AZ", "CA", "ID", "OR", "WA", "WY"}
    assert len({(row["city"], row["state"]) for row in persons.select(["city", "state"]).to_pylist()}) == 12
    assert set(values(auctions, "category")) == set(range(10, 15))
    assert pc.all(pc.match_substring_regex(persons.column("creditCard"), r"^\d{4} \d{4} \d{4} \d{4}$")).as_py()


def test_auctions_end_after_they_begin(auctions: pa.Table) -> None:
    lasts = pc.subtract(auctions.column("expires"), auctions.column("dateTime")).cast(pa.int64()).to_numpy() // 1000
    assert lasts.min() >= 1
    assert lasts.max() <= 333
    assert 150 < lasts.mean() < 180


def test_out_of_order_events_are_dated_back_within_the_watermark(whole: pa.Table) -> None:
    late = made(", out_of_order = 0.1")
    back = pc.subtract(whole.column("dateTime"), late.column("dateTime")).cast(pa.int64()).to_numpy()
    assert 0.09 < (back > 0).mean() < 0.11
    assert back.min() == 0
    assert back.max() <= 3_000_000
    assert back.max() > 2_900_000
    assert of_kind(late, "bid").column("price").equals(of_kind(whole, "bid").column("price"))


def test_declared_columns_may_be_some_of_them_in_another_spelling(bids: pa.Table) -> None:
    columns = "(date_time TIMESTAMP, price BIGINT, AUCTION BIGINT)"
    some = made(", table_type = 'bid'", Range(0, 0, 100), columns=columns)
    assert values(some, "price") == values(bids, "price")[:100]
    assert values(some, "date_time") == values(bids, "dateTime")[:100]
    nested = "(event_type INT, bid STRUCT<price BIGINT>)"
    assert values(made("", Range(0, 4, 5), columns=nested), "bid") == [{"price": values(bids, "price")[0]}]


def test_runtime_and_refusals(tmp_path: Path) -> None:
    definition = source(
        "CREATE STREAM n WITH (connector = 'nexmark', runtime = '2 s', event_rate = 1000, partitions = 3)"
    )
    assert definition.bounded
    assert plan_nexmark(definition).rows == 2_000
    assert source_of("nexmark").end(request(definition, tmp_path)) == {0: 667, 1: 667, 2: 666}
    for options, condition in (
        ("out_of_order = 1.5", "INVALID_OPTION"),
        ("runtime = '1 s', event_gap = '0 s'", "CONFLICTING_OPTIONS"),
    ):
        with pytest.raises(OptionError) as raised:
            plan_nexmark(source(f"CREATE STREAM n WITH (connector = 'nexmark', {options})"))
        assert raised.value.condition == condition
