"""Sources that make their own rows: datagen, impulse, nexmark."""

from __future__ import annotations

from typing import Final

from penstock.options.schema import SOURCE, Alias, ConnectorSpec, Draft, OptionFamily, OptionSpec, Problem
from penstock.options.schemas.common import STREAM_SOURCE
from penstock.options.values import Choice, Duration, Integer, Moment, Real, Text

_SEED: Final = OptionSpec(
    "seed", Integer(), "the seed: the same seed makes the same rows", default=0, aliases=("datagen.seed",)
)
_RATE: Final = Real(minimum=0, above=True)

DATAGEN_FIELDS: Final = OptionFamily(
    prefix="fields",
    name="column",
    summary="how the values of one column are made",
    members=(
        OptionSpec("kind", Choice(("random", "sequence")), "random values, or numbers that count up", default="random"),
        OptionSpec("min", Text(), "the smallest random value"),
        OptionSpec("max", Text(), "the largest random value"),
        OptionSpec("start", Text(), "the first value of a sequence"),
        OptionSpec("end", Text(), "the last value of a sequence; the source ends with it"),
        OptionSpec("length", Integer(minimum=1), "the length of random text, or the number of elements"),
        OptionSpec("null_rate", Real(minimum=0), "the share of NULLs, from 0 to 1"),
        OptionSpec("max_past", Duration(unit="ms"), "how far random times reach into the past"),
        OptionSpec(
            "max_past_mode", Choice(("relative", "absolute")), "whether max_past counts from now or from basetime"
        ),
        OptionSpec("basetime", Moment(), "the time that max_past counts from"),
        OptionSpec("seed", Integer(), "the seed of this column"),
        OptionSpec(
            "var_len", Choice(("true", "false")), "whether random text has a random length", aliases=("var-len",)
        ),
    ),
)


def _sequence_ends(draft: Draft) -> bool:
    return any(key.startswith("fields.") and key.endswith(".end") for key in draft.given)


def _check_fields(draft: Draft) -> None:
    for key, value in draft.values.items():
        if key.startswith("fields.") and key.endswith(".null_rate") and isinstance(value, float) and value > 1:
            raise Problem("INVALID_OPTION", f"option {key} must be from 0 to 1", key=key)


DATAGEN: Final = ConnectorSpec(
    name="datagen",
    available=True,
    summary="made-up rows for the declared columns, the same for the same seed",
    aliases=("faker",),
    options=(
        OptionSpec(
            "rows_per_second",
            _RATE,
            "how many rows a second; as fast as possible when not given",
            aliases=("datagen.rows.per.second", "rowsPerSecond"),
        ),
        OptionSpec(
            "number_of_rows",
            Integer(minimum=1),
            "how many rows in all; without end when not given",
            aliases=("numRows", "rows"),
        ),
        OptionSpec(
            "partitions",
            Integer(minimum=1),
            "the number of partitions",
            default=1,
            aliases=("datagen.split.num", "numPartitions"),
        ),
        _SEED,
        *STREAM_SOURCE,
    ),
    families=(DATAGEN_FIELDS,),
    roles=SOURCE,
    formats=("json",),
    bounded=lambda draft: "number_of_rows" in draft.given or _sequence_ends(draft),
    check=_check_fields,
)

# Of every 50 events of Nexmark.
_PROPORTIONS: Final = {"person": 1, "auction": 3, "bid": 46}


def _check_proportions(draft: Draft) -> None:
    for kind, count in _PROPORTIONS.items():
        key = f"{kind}.proportion"
        if draft.values.get(key) != count:
            listed = ", ".join(f"{name} {of_fifty}" for name, of_fifty in _PROPORTIONS.items())
            raise Problem(
                "INVALID_OPTION",
                f"option {key} is always {count}",
                hint=f"leave it out: of every 50 events there are {listed}",
                key=key,
            )


IMPULSE: Final = ConnectorSpec(
    name="impulse",
    available=True,
    summary="a counter at a steady rate, with the columns counter and subtask_index",
    options=(
        OptionSpec(
            "event_rate",
            _RATE,
            "how many rows a second for each partition",
            default=1.0,
            aliases=("rate", "rows_per_second"),
        ),
        OptionSpec(
            "interval",
            Duration(),
            "the event time between two rows; the clock when not given",
            aliases=(Alias("event_time_interval", unit="ns"),),
        ),
        OptionSpec(
            "message_count",
            Integer(minimum=1),
            "how many rows in all; without end when not given",
            aliases=("number_of_rows",),
        ),
        OptionSpec("partitions", Integer(minimum=1), "the number of partitions", default=1),
        OptionSpec("start_timestamp", Moment(), "the event time of the first row; now when not given"),
        *STREAM_SOURCE,
    ),
    roles=SOURCE,
    bounded=lambda draft: "message_count" in draft.given,
)

NEXMARK: Final = ConnectorSpec(
    name="nexmark",
    available=True,
    summary="the events of the Nexmark benchmark: persons, auctions and bids",
    options=(
        OptionSpec(
            "table_type",
            Choice(("all", "person", "auction", "bid")),
            "which events",
            default="all",
            aliases=("nexmark.table.type",),
        ),
        OptionSpec(
            "event_rate",
            _RATE,
            "how many events a second; as fast as possible when not given",
            aliases=("next-event.rate", "rate", "first-event.rate"),
        ),
        OptionSpec(
            "event_count",
            Integer(minimum=1),
            "how many events in all; without end when not given",
            aliases=("nexmark.event.num", "message_count", "events.num"),
        ),
        OptionSpec("runtime", Duration(unit="s"), "end after this time of events; a bare number counts seconds"),
        OptionSpec(
            "partitions", Integer(minimum=1), "the number of partitions", default=1, aliases=("nexmark.split.num",)
        ),
        OptionSpec(
            "event_gap",
            Duration(zero=True),
            "the event time between two events; follows from event_rate when not given",
            aliases=(Alias("nexmark.min.event.gap.in.ns", unit="ns"),),
        ),
        OptionSpec(
            "max_chunk_size", Integer(minimum=1), "the most events made at once", aliases=("nexmark.max.chunk.size",)
        ),
        OptionSpec("out_of_order", Real(minimum=0), "the share of events that come late, from 0 to 1", default=0.0),
        OptionSpec("base_time", Moment(), "the event time of the first event", aliases=("nexmark.base.time",)),
        OptionSpec("seed", Integer(), "the seed: the same seed makes the same events", default=0),
        *(
            OptionSpec(
                f"{kind}.proportion",
                Integer(minimum=0),
                f"how many of 50 events are of kind {kind}: always {count}",
                default=count,
            )
            for kind, count in _PROPORTIONS.items()
        ),
        *STREAM_SOURCE,
    ),
    roles=SOURCE,
    formats=("json",),
    bounded=lambda draft: bool({"event_count", "runtime"} & draft.given),
    check=_check_proportions,
)
