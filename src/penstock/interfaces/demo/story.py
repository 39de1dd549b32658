"""The demo from beginning to end. It uses the public interface and nothing else."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.errors import PenstockError
from penstock.interfaces.cli.progress import Progress
from penstock.interfaces.demo.java import have_java
from penstock.interfaces.demo.pipeline import PARTITIONS, STREAM, VIEWS
from penstock.interfaces.demo.screen import SHOWN_ROWS, Picture, Screen, screen
from penstock.interfaces.demo.trades import Trade, TradeGenerator, to_arrow
from penstock.interfaces.demo.verdict import Place, Verdict, compare

if TYPE_CHECKING:
    from penstock.interfaces.database import Database

SECONDS: Final = 30.0
_STEP: Final = 0.5
_INTERRUPTED: Final = 130
_DRAIN_SECONDS: Final = 120.0

NEXT: Final = """
What to type next
  .venv/bin/penstock run --once examples/minutes.sql  a script, from rows in to windows out
  .venv/bin/penstock sql                              a prompt; \\? tells what it can do
  .venv/bin/penstock explain examples/trades.sql      how queries would run, before they do
  docs/index.md                                       everything else
"""


def main(arguments: Sequence[str] = ()) -> int:
    """Run the demo; the exit code. Ctrl-C leaves nothing behind. `--install-java` gets a Java where apt can."""
    if not have_java(install="--install-java" in arguments):
        return 1
    seconds = _seconds(os.environ.get("PENSTOCK_DEMO_SECONDS"))
    if seconds is None:
        sys.stderr.write("PENSTOCK_DEMO_SECONDS must be a number of seconds above 0\n")
        return 2
    progress = Progress()
    try:
        with tempfile.TemporaryDirectory(prefix="penstock-demo-") as directory:
            return _run(Path(directory) / "state", seconds, progress)
    except KeyboardInterrupt:
        progress.clear()
        _say("\nStopped; nothing is left behind.")
        return _INTERRUPTED
    except PenstockError as error:
        from penstock.interfaces.cli.messages import print_error

        progress.clear()
        print_error(error)
        return 1


def _seconds(text: str | None) -> float | None:
    """How long to show the stream; None for what is no length of time.

    >>> _seconds(None), _seconds("7.5"), _seconds("soon"), _seconds("-1"), _seconds("nan")
    (30.0, 7.5, None, None, None)
    """
    try:
        seconds = float(text or SECONDS)
    except ValueError:
        return None
    return seconds if 0 < seconds < float("inf") else None


def _run(state: Path, seconds: float, progress: Progress) -> int:
    from penstock import connect

    _say("A stream of trades in four partitions, and a view for each kind of window:\n")
    _say("\n\n".join(f"{text};" for text in (STREAM, *(view.create for view in VIEWS))) + "\n")
    with connect(state) as database:
        with progress.during("starting Spark"):
            database.execute(STREAM)
            for view in VIEWS:
                database.execute(view.create)
        demo = Demo(database, seconds)
        with progress.during("warming up"):
            # The first batches of a JVM are slow; they are not what is to be seen.
            demo.feed()
            database.settle(_DRAIN_SECONDS)
        with screen() as shown:
            demo.play(shown)
        _say("\nThe stream has ended. Closing the windows that are still open …")
        with progress.during("draining"):
            for view in VIEWS:
                database.drain(view.name, _DRAIN_SECONDS)
        with progress.during("computing the same in one batch with DuckDB"):
            verdicts = compare(database, demo.appended)
        with progress.during("stopping Spark"):
            database.close()
    _say(summary(verdicts, demo.appended))
    _say(NEXT.rstrip())
    return 0 if all(verdict.good for verdict in verdicts) else 1


class Demo:
    """Feeds the stream and looks at what becomes of it. `appended` holds every row by its partition and offset."""

    def __init__(self, database: Database, seconds: float) -> None:
        self._database = database
        self._seconds = seconds
        self._generator = TradeGenerator()
        self._watermark: datetime | None = None
        self.appended: dict[Place, Trade] = {}

    def play(self, shown: Screen) -> None:
        """Append a step at a time, at the pace of the clock, for as long as the demo lasts."""
        began = time.monotonic()
        for step in range(1, round(self._seconds / _STEP) + 1):
            self.feed()
            shown.show(self.look(time.monotonic() - began))
            time.sleep(max(0.0, began + step * _STEP - time.monotonic()))

    def feed(self) -> None:
        """Append the rows of one step."""
        for partition, trades in self._generator.step(_STEP, self._watermark).items():
            for place in self._database.append("trades", to_arrow(trades), partition=partition):
                for number in range(place.count):
                    self.appended[place.partition, place.first_offset + number] = trades[number]

    def look(self, elapsed: float) -> Picture:
        """The views, the watermarks and the late rows as they are now."""
        latest, closed = {}, {}
        for view in VIEWS:
            newest = f"ORDER BY {view.columns[0]} DESC, symbol LIMIT {SHOWN_ROWS}"
            latest[view.name] = self._database.sql(f"SELECT {', '.join(view.columns)} FROM {view.name} {newest}").rows()
            ((closed[view.name],),) = self._database.sql(f"SELECT COUNT(*) AS n FROM {view.name}").rows()
        rows = self._database.sql(
            "SELECT job, partition, max_event_time, current_watermark FROM penstock.watermarks ORDER BY partition"
        ).rows()
        known = [watermark for _, _, _, watermark in rows if watermark is not None]
        self._watermark = min(known) if len(known) == len(VIEWS) * PARTITIONS else None
        ((late,),) = self._database.sql(
            f"SELECT COUNT(*) AS n FROM penstock.late_rows WHERE job = '{VIEWS[0].name}'"
        ).rows()
        return Picture(
            elapsed,
            self._seconds,
            len(self.appended),
            self._generator.clock,
            latest,
            closed,
            [(partition, newest, mark) for job, partition, newest, mark in rows if job == VIEWS[0].name],
            self._watermark,
            late,
        )


def summary(verdicts: list[Verdict], appended: dict[Place, Trade]) -> str:
    """The end of the demo in words and numbers."""
    meant = sum(trade.meant_late for trade in appended.values())
    lines = [
        f"{len(appended):,} trades; {meant} were sent far too late on purpose.",
        "",
        f"  {'view':<11} {'windows':<26} {'rows':>7}  {'late rows':>9}  streaming = batch?",
    ]
    for verdict in verdicts:
        word = "yes" if verdict.equal else f"NO: {len(verdict.missing)} missing, {len(verdict.extra)} too much"
        lines.append(
            f"  {verdict.view.name:<11} {verdict.view.title:<26} {verdict.rows:>7,}  {len(verdict.late):>9}  {word}"
        )
        lines += [f"      missing {row}" for row in verdict.missing[:3]]
        lines += [f"      too much {row}" for row in verdict.extra[:3]]
        if verdict.late != verdict.meant_late:
            lines.append(f"      the late rows are not the {len(verdict.meant_late)} that were sent late")
    lines += [
        "",
        "The batch answer is DuckDB's, over every trade that is not in penstock.late_rows for that view.",
    ]
    return "\n".join(lines)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
