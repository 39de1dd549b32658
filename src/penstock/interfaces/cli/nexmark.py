"""`penstock nexmark`."""

from __future__ import annotations

from typing import Final

import click

from penstock.interfaces.cli.nexmark_verify import verify
from penstock.interfaces.cli.options import Command, Group, debug_option
from penstock.interfaces.cli.output import print_exactly

_AT_ONCE: Final = 10_000


@click.group(cls=Group, short_help="The Nexmark benchmark: its events, and the proof of its queries.")
def nexmark() -> None:
    """The Nexmark benchmark: persons, auctions and bids of an online auction, and 24 queries over them."""


@click.command(cls=Command, short_help="Print events as JSON lines.")
@click.option("--events", type=click.IntRange(min=1), default=1_000, show_default=True, help="How many events.")
@click.option(
    "--kind",
    type=click.Choice(("all", "person", "auction", "bid")),
    default="all",
    show_default=True,
    help="Print the events of one kind only.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed makes the same events.")
@click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
    default=10_000.0,
    show_default=True,
    help="How many events there are to a second of event time.",
)
@click.option(
    "--out-of-order",
    type=click.FloatRange(min=0, max=1),
    default=0.0,
    show_default=True,
    help="The share of events dated up to three seconds back.",
)
@debug_option
def generate(*, events: int, kind: str, seed: int, rate: float, out_of_order: float) -> None:
    """Print events as JSON objects, one a line.

    The same events come from a stream with connector = 'nexmark' and the same options. An event has its `event_type` (0
    person, 1 auction, 2 bid), the record of that kind and its `dateTime`; with --kind it is the record itself.

    \b
    Examples:
      penstock nexmark generate --events 100000 > events.jsonl
      penstock nexmark generate --kind bid --seed 7 | head
    """
    from penstock.interfaces.nexmark_lines import json_lines

    for lines in json_lines(events, kind=kind, seed=seed, rate=rate, out_of_order=out_of_order, at_once=_AT_ONCE):
        print_exactly(lines)


for _command in (generate, verify):
    nexmark.add_command(_command)
