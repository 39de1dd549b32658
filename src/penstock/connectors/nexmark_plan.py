"""What a Nexmark source makes, worked out from its options once and sent to its readers as JSON.

The events of the benchmark are numbered: in every 50 there are 1 person, 3 auctions and 46 bids, in this order. An
event is a function of the seed and its number. A source of one kind has the events of that kind, numbered among
themselves; rows are dealt to partitions in turn, as those of other generators are.

Event n is dated `base + n * gap`. The gap follows from the rate, so that a source that keeps its pace has event times
that run with the clock; without a rate there are 10,000 events to a second of event time. With `out_of_order` that
share of events is dated up to three seconds back, which the watermark of four seconds allows for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from penstock.connectors.generator_plan import Pace
from penstock.connectors.option_values import integer, microseconds, moment_us, real, text
from penstock.errors import OptionError
from penstock.frozen import frozen

if TYPE_CHECKING:
    from penstock.catalog.model import SourceDefinition

IN_TURN: Final = 50
# Of every 50 events: which come first of a kind, and how many of it there are.
KINDS: Final = {"all": (0, 50), "person": (0, 1), "auction": (1, 3), "bid": (4, 46)}
LATEST_US: Final = 3_000_000
_BASE_US: Final = 1_436_918_400_000_000  # 15 July 2015, as in other systems' generators
_GAP_US: Final = 100.0


@frozen
class NexmarkPlan(Pace):
    """The events of one source. kind: all, person, auction or bid; chunk: the most events made at once."""

    kind: str
    seed: int
    base_us: int
    gap_us: float
    out_of_order: float
    chunk: int | None


def plan_nexmark(definition: SourceDefinition) -> NexmarkPlan:
    """The plan of a source, refused by name where its options do not fit."""
    values = definition.options.values
    kind = text(values, "table_type") or "all"
    rate = real(values, "event_rate")
    gap = microseconds(values, "event_gap")
    gap_us = float(gap) if gap is not None else (1_000_000 / rate if rate is not None else _GAP_US)
    out_of_order = real(values, "out_of_order") or 0.0
    if out_of_order > 1:
        raise OptionError("INVALID_OPTION", "option out_of_order must be from 0 to 1", hint="0.1 is every tenth event")
    events = _events(integer(values, "event_count"), microseconds(values, "runtime"), gap_us)
    base = moment_us(values, "base_time")
    return NexmarkPlan(
        partitions=integer(values, "partitions") or 1,
        rate=None if rate is None else rate * KINDS[kind][1] / IN_TURN,
        rows=None if events is None else rows_among(kind, events),
        kind=kind,
        seed=integer(values, "seed") or 0,
        base_us=_BASE_US if base is None else base,
        gap_us=gap_us,
        out_of_order=out_of_order,
        chunk=integer(values, "max_chunk_size"),
    )


def _events(count: int | None, runtime_us: int | None, gap_us: float) -> int | None:
    """How many events there are: those asked for, and no more than the time asked for has."""
    if runtime_us is None:
        return count
    if gap_us == 0:
        raise OptionError(
            "CONFLICTING_OPTIONS",
            "option runtime ends nothing where event_gap is zero",
            hint="give event_count instead",
        )
    within = max(1, int(runtime_us / gap_us))
    return within if count is None else min(count, within)


def rows_among(kind: str, events: int) -> int:
    """How many of the first events are of a kind.

    >>> rows_among("all", 120), rows_among("person", 120), rows_among("auction", 102), rows_among("bid", 104)
    (120, 3, 7, 92)
    """
    first, count = KINDS[kind]
    whole, rest = divmod(events, IN_TURN)
    return whole * count + min(max(rest - first, 0), count)


def read_nexmark(kept: Mapping[str, Any]) -> NexmarkPlan:
    """What `NexmarkPlan.json` gave, after its way through a text."""
    return NexmarkPlan(**kept)
