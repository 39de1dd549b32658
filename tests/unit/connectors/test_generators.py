"""Generators: rows that are a function of seed, partition and offset, and clocks that survive a restart."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.connectors.generator_plan import GeneratorPlan, dealt, plan_generator, read_plan, resumed
from penstock.connectors.generator_reader import GeneratedRows
from penstock.connectors.offsets import Offset, Range
from penstock.connectors.registry import source_of
from penstock.connectors.source import ScanRequest
from penstock.errors import NotYetError, OptionError
from penstock.stores.arrow_types import arrow_type
from tests.unit.connectors.declared import request, source

STARTED = 1_760_000_000_000_000
EVERY_TYPE = """CREATE STREAM g (
    b BOOLEAN, t TINYINT, s SMALLINT, i INT, l BIGINT, u BIGINT UNSIGNED, f FLOAT, d DOUBLE, m DECIMAL(10, 2),
    w DECIMAL, x STRING, y STRING, z BINARY, day DATE, ts TIMESTAMP, a ARRAY<INT>, r STRUCT<p INT, q STRING>, n INT
) WITH (connector = 'datagen', partitions = 2, seed = 7, number_of_rows = 1000, 'fields.y.length' = 20,
        'fields.y.var_len' = 'true', 'fields.n.null_rate' = 0.5, 'fields.ts.max_past' = '10 s')"""


def table(statement: str, *ranges: Range, batch_size: int = 10_000, started_us: int = STARTED) -> pa.Table:
    """Rows as a reader makes them, by way of the text that it is told."""
    definition = source(statement)
    plan = read_plan(plan_generator(definition).json())
    columns = [(column.name, column.type) for column in definition.columns if column.physical]
    schema = pa.schema(
        [
            *((name, arrow_type(kind)) for name, kind in columns if kind),
            ("__partition", pa.int32()),
            ("__offset", pa.int64()),
        ]
    )
    rows = GeneratedRows(plan, schema, 1, 10**6)
    end = Offset(1, {}, started_us)
    return pa.Table.from_batches([batch for one in ranges for batch in rows.read(one, end, batch_size)], schema)


def values(made: pa.Table, column: str) -> list[Any]:
    found: list[Any] = made.column(column).to_pylist()
    return found


WHOLE = table(EVERY_TYPE, Range(1, 0, 200))


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(0, 200), max_size=6), st.integers(1, 64))
def test_any_split_into_ranges_and_batches_gives_the_same_rows(cuts: list[int], batch_size: int) -> None:
    edges = [0, *sorted(cuts), 200]
    ranges = [Range(1, first, end) for first, end in pairwise(edges)]
    assert table(EVERY_TYPE, *ranges, batch_size=batch_size).equals(WHOLE)


def test_values_fit_their_types_and_are_spread() -> None:
    made = table(EVERY_TYPE, Range(0, 0, 500))
    assert set(values(made, "b")) == {True, False}
    for name, highest in (("t", 127), ("s", 32767), ("i", 32767), ("l", 32767), ("u", 32767)):
        assert 0 <= min(values(made, name)) < 0.2 * highest < 0.8 * highest < max(values(made, name)) <= highest
    assert 0 <= min(values(made, "d")) < 8_000 < 24_000 < max(values(made, "d")) <= 32767
    assert all(value == value.quantize(Decimal("0.01")) for value in values(made, "m"))
    assert Decimal(0) <= min(values(made, "w")) < 8_000 < 24_000 < max(values(made, "w")) <= Decimal(32768)
    assert {len(text) for text in values(made, "x")} == {10}
    assert {len(text) for text in values(made, "y")} == set(range(1, 21))
    assert {len(text) for text in values(made, "z")} == {10}
    assert len(set(values(made, "x"))) == 500
    assert {len(array) for array in values(made, "a")} == {3}
    assert len({number for array in values(made, "a") for number in array}) > 1_000
    assert len({row["p"] for row in values(made, "r")}) > 400
    assert 200 < values(made, "n").count(None) < 300
    assert all(made.column(name).null_count == 0 for name in made.column_names if name != "n")


def test_seed_and_column_seed_change_the_values() -> None:
    base = "CREATE STREAM g (a BIGINT, b BIGINT) WITH (connector = 'datagen', seed = {}{})"
    rows = Range(0, 0, 50)
    one, other = table(base.format(1, ""), rows), table(base.format(2, ""), rows)
    assert values(one, "a") != values(other, "a")
    assert values(one, "a") != values(one, "b")
    own = table(base.format(1, ", 'fields.a.seed' = 9"), rows)
    assert values(own, "a") != values(one, "a")
    assert values(own, "b") == values(one, "b")


def test_bounds_are_kept_and_reached() -> None:
    made = table(
        """CREATE STREAM g (a INT, m DECIMAL(6, 2), d DOUBLE, ts TIMESTAMP, day DATE) WITH (connector = 'datagen',
        'fields.a.min' = -2, 'fields.a.max' = 2, 'fields.m.min' = '9.98', 'fields.m.max' = '10.01',
        'fields.d.min' = -1.5, 'fields.d.max' = -1.0, 'fields.ts.min' = '2026-01-01T00:00:00Z',
        'fields.ts.max' = '2026-01-01T00:00:00.000002Z', 'fields.day.min' = '1969-12-31', 'fields.day.max' = '1970-01-01')""",
        Range(0, 0, 300),
    )
    assert set(values(made, "a")) == {-2, -1, 0, 1, 2}
    assert set(values(made, "m")) == {Decimal("9.98"), Decimal("9.99"), Decimal("10.00"), Decimal("10.01")}
    assert -1.5 <= min(values(made, "d")) < max(values(made, "d")) <= -1.0
    assert {str(value.time()) for value in values(made, "ts")} == {"00:00:00", "00:00:00.000001", "00:00:00.000002"}
    assert {str(value) for value in values(made, "day")} == {"1969-12-31", "1970-01-01"}


def test_the_full_range_of_a_type() -> None:
    made = table(
        """CREATE STREAM g (l BIGINT, u BIGINT UNSIGNED) WITH (connector = 'datagen', 'fields.l.min' = '-9223372036854775808',
        'fields.l.max' = '9223372036854775807', 'fields.u.max' = '18446744073709551615')""",
        Range(0, 0, 200),
    )
    assert min(values(made, "l")) < -(2**62) < 2**62 < max(values(made, "l"))
    assert max(values(made, "u")) > 2**63


def test_a_sequence_counts_over_partitions_and_ends_the_source() -> None:
    statement = """CREATE STREAM g (n INT, s STRING, m DECIMAL(10, 2), x INT) WITH (connector = 'datagen', partitions = 3,
        'fields.n.kind' = 'sequence', 'fields.n.start' = 5, 'fields.n.end' = 14, 'fields.s.kind' = 'sequence',
        'fields.m.kind' = 'sequence')"""
    plan = plan_generator(source(statement))
    assert plan.end() == {0: 4, 1: 3, 2: 3}
    made = table(statement, *(Range(partition, 0, end) for partition, end in (plan.end() or {}).items()))
    assert sorted(values(made, "n")) == list(range(5, 15))
    assert sorted(map(int, values(made, "s"))) == list(range(10))
    assert sorted(values(made, "m")) == [Decimal(number) for number in range(10)]


def test_the_smaller_bound_counts() -> None:
    options = "'fields.n.kind' = 'sequence', 'fields.n.end' = 99, number_of_rows = {}"
    for rows, wanted in ((10, 10), (1_000, 100)):
        plan = plan_generator(source(f"CREATE STREAM g (n INT) WITH (connector = 'datagen', {options.format(rows)})"))
        assert plan.end() == {0: wanted}


def test_an_unbounded_sequence_of_a_small_type_begins_again() -> None:
    made = table(
        "CREATE STREAM g (n TINYINT) WITH (connector = 'datagen', 'fields.n.kind' = 'sequence', 'fields.n.start' = 126)",
        Range(0, 0, 4),
    )
    assert values(made, "n") == [126, 127, 126, 127]


def us(made: pa.Table, column: str = "ts") -> list[int]:
    found: list[int] = made.column(column).cast(pa.int64()).to_pylist()
    return found


def test_times_follow_the_rate_over_all_partitions() -> None:
    statement = "CREATE STREAM g (ts TIMESTAMP) WITH (connector = 'datagen', partitions = 2, rows_per_second = 4)"
    assert us(table(statement, Range(0, 0, 3))) == [STARTED, STARTED + 500_000, STARTED + 1_000_000]
    assert us(table(statement, Range(1, 0, 2))) == [STARTED + 250_000, STARTED + 750_000]


def test_times_without_a_rate_end_at_the_start_of_a_bounded_source() -> None:
    statement = "CREATE STREAM g (ts TIMESTAMP) WITH (connector = 'datagen', number_of_rows = 3)"
    assert us(table(statement, Range(0, 0, 3))) == [STARTED - 2_000, STARTED - 1_000, STARTED]
    unbounded = "CREATE STREAM g (ts TIMESTAMP) WITH (connector = 'datagen')"
    assert us(table(unbounded, Range(0, 0, 3))) == [STARTED, STARTED + 1, STARTED + 2]


def test_max_past_puts_rows_out_of_order_within_its_bound() -> None:
    statement = """CREATE STREAM g (ts TIMESTAMP) WITH (connector = 'datagen', rows_per_second = 1000,
        'fields.ts.max_past' = '5 s')"""
    found = us(table(statement, Range(0, 0, 400)))
    lags = [STARTED + number * 1_000 - moment for number, moment in enumerate(found)]
    assert 0 <= min(lags) < 1_000_000 < 4_000_000 < max(lags) <= 5_000_000
    assert found != sorted(found)


def test_a_base_time_stands_still() -> None:
    statement = """CREATE STREAM g (ts TIMESTAMP) WITH (connector = 'datagen', rows_per_second = 1,
        'fields.ts.basetime' = '1970-01-02T00:00:00Z', 'fields.ts.max_past' = '1 s')"""
    found = us(table(statement, Range(0, 0, 100)))
    assert 86_399_000_000 <= min(found) < max(found) <= 86_400_000_000


def test_impulse_counts_for_each_partition() -> None:
    statement = """CREATE STREAM i WITH (connector = 'impulse', event_rate = 10, interval = '1 s', partitions = 2,
        message_count = 5, start_timestamp = '2026-01-01T00:00:00Z')"""
    assert plan_generator(source(statement)).end() == {0: 3, 1: 2}
    made = table(statement, Range(1, 0, 2))
    assert values(made, "counter") == [Decimal(0), Decimal(1)]
    assert values(made, "subtask_index") == [Decimal(1), Decimal(1)]
    assert [str(moment) for moment in values(made, "timestamp")] == [
        "2026-01-01 00:00:00+00:00",
        "2026-01-01 00:00:01+00:00",
    ]


def planned(options: str) -> GeneratorPlan:
    return plan_generator(source(f"CREATE STREAM g (n INT) WITH (connector = 'datagen', {options})"))


def test_rows_fall_due_by_the_clock_up_to_the_bound() -> None:
    plan = planned("rows_per_second = 10, partitions = 2, number_of_rows = 15")
    assert plan.due(STARTED, STARTED) == {0: 1, 1: 0}
    assert plan.due(STARTED, STARTED + 1_000_000) == {0: 6, 1: 5}
    assert plan.due(STARTED, STARTED + 60_000_000) == {0: 8, 1: 7} == plan.end()
    assert planned("partitions = 2").due(STARTED, STARTED) is None


def test_a_pause_is_not_made_up_for() -> None:
    plan = planned("rows_per_second = 10")
    fresh = Offset(0, {0: 0})
    assert resumed(plan, fresh, 1, STARTED) == STARTED
    reached = Offset(1, {0: 20}, STARTED)
    assert resumed(plan, reached, 1, STARTED + 2_000_000) == STARTED
    hour_later = STARTED + 3_600_000_000
    again = resumed(plan, reached, 2, hour_later)
    assert plan.due(again, hour_later) == {0: 21}
    # A restart at once does not go back in time.
    assert resumed(plan, reached, 2, STARTED + 1_000_000) == STARTED


def test_rows_are_dealt_in_turn() -> None:
    assert [sum(dealt(rows, 3).values()) for rows in range(8)] == list(range(8))
    assert dealt(1, 3) == {0: 1, 1: 0, 2: 0}


@pytest.mark.parametrize(
    ("column", "options", "key"),
    [
        ("a INT", "'fields.a.min' = 'few'", "fields.a.min"),
        ("a TINYINT", "'fields.a.max' = 200", "fields.a.max"),
        ("a INT", "'fields.a.min' = 5, 'fields.a.max' = 4", "fields.a.max"),
        ("a INT", "'fields.a.min' = 1.5", "fields.a.min"),
        ("a TIMESTAMP", "'fields.a.kind' = 'sequence'", "fields.a.kind"),
        ("a TIMESTAMP", "'fields.a.min' = '2026-01-01T00:00:00Z'", "fields.a.max"),
        ("a TIMESTAMP", "'fields.a.min' = 'noon', 'fields.a.max' = 'midnight'", "fields.a.min"),
        ("a INT", "'fields.a.kind' = 'sequence', 'fields.a.start' = 9, 'fields.a.end' = 8", "fields.a.end"),
    ],
)
def test_options_that_do_not_fit_are_refused_by_name(column: str, options: str, key: str) -> None:
    definition = source(f"CREATE STREAM g ({column}) WITH (connector = 'datagen', {options})")
    with pytest.raises(OptionError) as refused:
        plan_generator(definition)
    assert refused.value.condition == "INVALID_OPTION"
    assert key in refused.value.message


def test_types_without_values_are_refused_by_name() -> None:
    definition = source("CREATE STREAM g (a MAP<STRING, INT>) WITH (connector = 'datagen')")
    with pytest.raises(NotYetError, match="column a: datagen makes no values of type MAP"):
        plan_generator(definition)


def asked(options: str) -> ScanRequest:
    return request(source(f"CREATE STREAM g (n INT) WITH (connector = 'datagen', {options})"), Path())


def test_the_source_tells_its_end_and_what_is_due() -> None:
    generator = source_of("datagen")
    assert generator.end(asked("number_of_rows = 3")) == {0: 3}
    assert generator.latest(asked("number_of_rows = 3")) == {0: 3}
    assert generator.end(asked("rows_per_second = 5")) is None
    assert generator.latest(asked("rows_per_second = 5")) == {}
    long_ago = '{"run": 1, "p": {"0": 3}, "started_us": 1000000}'
    assert generator.latest(asked("rows_per_second = 5, number_of_rows = 9"), long_ago) == {0: 9}
    assert generator.positions(long_ago) == {0: 3}


def test_values_are_spread_evenly() -> None:
    made = table(
        "CREATE STREAM g (a INT) WITH (connector = 'datagen', 'fields.a.min' = 1, 'fields.a.max' = 10)",
        Range(0, 0, 10_000),
    )
    counts = [entry["counts"] for entry in pc.value_counts(made.column("a")).to_pylist()]
    assert len(counts) == 10
    assert all(850 < count < 1_150 for count in counts)
