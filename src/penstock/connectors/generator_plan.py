"""What a datagen or impulse source makes, worked out from its options once and sent to its readers as JSON.

A row is a function of the seed, its partition and its offset, so that any range can be made again. Rows are dealt to
partitions in turn: row n of the source is row n / partitions of partition n mod partitions. Sequences count these
numbers, and a bound in rows is spread over partitions the same way.

Times are a function of the row's number too. With a rate, row n is dated `started + n / rate`, where `started` is the
moment that the offset log keeps; a source that stood still goes on from the moment it is started again, without making
up for the pause. Without a rate, rows of a bounded source are a millisecond apart and the last is dated `started`, and
those of an unbounded one are a microsecond apart. `max_past` moves each row's time back by a random length, which puts
rows out of order.

Defaults: numbers from 0 to 32767 or what the type holds, text of 10 characters, 3 elements in an array, no NULLs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, field
from typing import TYPE_CHECKING, Any, Final

from penstock.connectors.field_plan import FieldPlan, plan_field
from penstock.connectors.offsets import Offset
from penstock.connectors.option_values import integer, microseconds, moment_us, real
from penstock.frozen import frozen

if TYPE_CHECKING:
    from penstock.catalog.model import SourceDefinition

_MILLISECOND_US: Final = 1_000
_SECOND_US: Final = 1_000_000
# Rows fall due a few times a second: nobody waits for made-up rows, and each batch of Spark costs the same few dozen
# milliseconds whether it holds one row or a hundred.
_TICK_US: Final = 200_000


@frozen
class Timing:
    """When a row is dated: base + shift + (offset * stride + partition * phase) * spacing, in microseconds.

    base_us None is the moment that the source was started.
    """

    base_us: int | None
    shift_us: int
    spacing_us: float
    stride: int
    phase: int


@frozen
class Pace:
    """How many rows there are, and how fast they come.

    rate: rows a second in all partitions together; rows: how many there are in all.
    """

    partitions: int
    rate: float | None
    rows: int | None

    def end(self) -> dict[int, int] | None:
        """Where each partition ends, None where it does not."""
        return None if self.rows is None else dealt(self.rows, self.partitions)

    def due(self, started_us: int, now_us: int) -> dict[int, int] | None:
        """How far each partition has come by the clock, None where the clock does not matter."""
        if self.rate is None:
            return self.end()
        passed = max(0, now_us - started_us) // _TICK_US * _TICK_US
        count = int(passed * self.rate / _SECOND_US) + 1
        return dealt(count if self.rows is None else min(count, self.rows), self.partitions)

    def json(self) -> dict[str, Any]:
        """The plan in values that JSON can hold."""
        return asdict(self)


@frozen
class GeneratorPlan(Pace):
    """What datagen and impulse make."""

    timing: Timing
    fields: Mapping[str, FieldPlan] = field(hash=False)


def read_plan(kept: Mapping[str, Any]) -> GeneratorPlan:
    """What `GeneratorPlan.json` gave, after its way through a text."""
    fields = {name: FieldPlan.of(entry) for name, entry in kept["fields"].items()}
    return GeneratorPlan(kept["partitions"], kept["rate"], kept["rows"], Timing(**kept["timing"]), fields)


def resumed(plan: Pace, reached: Offset, run: int, now_us: int) -> int:
    """The moment that the clock counts from: kept within a run, moved on by a start so that the next row is due now."""
    if reached.started_us is None:
        return now_us
    if plan.rate is None or reached.run >= run:  # larger: the run was asked for one more batch
        return reached.started_us
    made = sum(reached.positions.values())
    return max(reached.started_us, now_us - int(made * _SECOND_US / plan.rate))


def dealt(rows: int, partitions: int) -> dict[int, int]:
    """How many of the first rows of a source are in each partition.

    >>> dealt(5, 3)
    {0: 2, 1: 2, 2: 1}
    """
    return {partition: max(0, -(-(rows - partition) // partitions)) for partition in range(partitions)}


def plan_generator(definition: SourceDefinition) -> GeneratorPlan:
    """The plan of a source, refused by name where its options and columns do not fit."""
    return _impulse(definition) if definition.options.connector == "impulse" else _datagen(definition)


def _datagen(definition: SourceDefinition) -> GeneratorPlan:
    values = definition.options.values
    partitions = integer(values, "partitions") or 1
    rate = real(values, "rows_per_second")
    fields = {
        column.name: plan_field(column, values, seed=integer(values, "seed") or 0)
        for column in definition.columns
        if column.physical
    }
    bounds = [one.count for one in fields.values() if one.count is not None]
    wanted = integer(values, "number_of_rows")
    rows = min([*bounds, *([] if wanted is None else [wanted])], default=None)
    return GeneratorPlan(partitions, rate, rows, _datagen_timing(partitions, rate, rows), fields)


def _datagen_timing(partitions: int, rate: float | None, rows: int | None) -> Timing:
    if rate is not None:
        return Timing(None, 0, _SECOND_US / rate, partitions, 1)
    if rows is not None:
        return Timing(None, -(rows - 1) * _MILLISECOND_US, _MILLISECOND_US, partitions, 1)
    return Timing(None, 0, 1, partitions, 1)


_IMPULSE_FORMS: Final = {"timestamp": "moment", "counter": "offset", "subtaskindex": "partition"}


def _impulse(definition: SourceDefinition) -> GeneratorPlan:
    values = definition.options.values
    partitions = integer(values, "partitions") or 1
    rate = real(values, "event_rate") or 1.0
    spacing = microseconds(values, "interval")
    timing = Timing(
        moment_us(values, "start_timestamp"), 0, _SECOND_US / rate if spacing is None else spacing, stride=1, phase=0
    )
    # The catalog has made sure that the columns are these, in any spelling.
    fields = {
        column.name: FieldPlan(_IMPULSE_FORMS[column.name.lower().replace("_", "")])
        for column in definition.columns
        if column.physical
    }
    return GeneratorPlan(partitions, rate * partitions, integer(values, "message_count"), timing, fields)
