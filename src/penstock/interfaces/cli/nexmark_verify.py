"""`penstock nexmark verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from penstock.interfaces.cli.options import Command, debug_option, json_option
from penstock.interfaces.cli.output import print_json

if TYPE_CHECKING:
    from penstock.interfaces.nexmark.verification import Verdict

_QUERIES: Final = tuple(f"q{number}" for number in range(24))
_EVENTS: Final = 20_000


@click.command(cls=Command, short_help="Run the queries and compare their answers with DuckDB's.")
@click.option(
    "--query", "queries", type=click.Choice(_QUERIES), multiple=True, help="Only this query; may be repeated."
)
@click.option(
    "--events", type=click.IntRange(min=1), default=_EVENTS, show_default=True, help="How many events are generated."
)
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed makes the same events.")
@click.option(
    "--batch-rows",
    type=click.IntRange(min=1),
    default=None,
    help="The most events of one batch; what the engine takes by itself when not given.",
)
@click.option(
    "--out-of-order",
    type=click.FloatRange(min=0, max=1),
    default=0.1,
    show_default=True,
    help="The share of events dated up to three seconds back.",
)
@click.option("--resume/--no-resume", default=True, show_default=True, help="Stop in the middle and go on.")
@click.option(
    "--at-once", type=click.IntRange(min=1), default=2, show_default=True, help="How many queries run side by side."
)
@json_option("Print one JSON object a query.")
@debug_option
@click.pass_context
def verify(
    context: click.Context,
    *,
    queries: tuple[str, ...],
    events: int,
    seed: int,
    batch_rows: int | None,
    out_of_order: float,
    resume: bool,
    at_once: int,
    json: bool,
) -> None:
    """Run queries of the benchmark as jobs, and compare their answers with those of DuckDB over the same events.

    The events are appended to a topic, the jobs read it, are paused in the middle, go on after the database was closed,
    and at the end every window is closed. Then each answer must have the same rows as DuckDB's. Everything happens in a
    temporary directory.

    \b
    Exit codes: 0 all are equal, 1 some are not or cannot run, 2 wrong usage, 130 Ctrl-C.

    \b
    Examples:
      penstock nexmark verify
      penstock nexmark verify --query q5 --events 1000000 --seed 7
    """
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from penstock.interfaces.cli.progress import Progress
    from penstock.interfaces.installation import require
    from penstock.interfaces.nexmark.events import NexmarkEvents
    from penstock.interfaces.nexmark.verification import Verification

    require("duckdb", "pyarrow", "pyspark")
    progress = Progress()
    doing = ["starting"]
    names = queries or _QUERIES
    outcomes: list[str] = []
    with TemporaryDirectory(prefix="penstock-nexmark-") as directory:
        verification = Verification(
            events=NexmarkEvents(events, seed, out_of_order),
            directory=Path(directory),
            batch_rows=batch_rows,
            resume=resume,
            at_once=at_once,
            settings={},
        )
        verdicts = verification.run(names, lambda text: doing.__setitem__(0, text))
        while True:
            with progress.during(lambda: f"{len(outcomes)} of {len(names)} done; {doing[0]}"):
                verdict = next(verdicts, None)
            if verdict is None:
                break
            outcomes.append(verdict.outcome)
            _print(verdict, as_json=json)
    equal = outcomes.count("equal")
    if not json:
        click.echo(f"{equal} of {len(names)} equal, over {events} events of seed {seed}")
    context.exit(0 if equal == len(names) else 1)


def _print(verdict: Verdict, *, as_json: bool) -> None:
    found = verdict.difference
    if as_json:
        told: dict[str, object] = {"query": verdict.query, "outcome": verdict.outcome, "rows": verdict.rows}
        told["why"] = verdict.why or None
        told["missing"] = list(found.first_missing) if found is not None else []
        told["more"] = list(found.first_more) if found is not None else []
        print_json(told)
        return
    from penstock.interfaces.render import plain

    if verdict.outcome == "equal":
        click.echo(f"{verdict.query:<4} equal      {verdict.rows:>10} rows")
        return
    click.echo(plain(f"{verdict.query:<4} {verdict.outcome}: {verdict.why}"))
    if found is not None:
        for row in found.first_missing:
            click.echo(plain(f"     missing  {row}"))
        for row in found.first_more:
            click.echo(plain(f"     too many {row}"))
