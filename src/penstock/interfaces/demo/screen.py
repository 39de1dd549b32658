"""What the demo shows: a live screen on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol

from penstock.frozen import frozen
from penstock.interfaces.demo.pipeline import VIEWS, DemoView

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live
    from rich.table import Table

_PLAIN_SECONDS: Final = 5.0
# Everything fits a terminal of 80 columns and 24 lines.
SHOWN_ROWS: Final = 5


@frozen
class Picture:
    """One moment of the demo."""

    elapsed: float
    total: float
    appended: int
    clock: datetime
    latest: dict[str, list[tuple[Any, ...]]]  # by view, its newest rows
    closed: dict[str, int]  # by view, how many windows are closed
    watermarks: list[tuple[int, datetime | None, datetime | None]]  # partition, newest event, watermark
    watermark: datetime | None  # no job is behind it
    late: int


class Screen(Protocol):
    """Something that shows pictures."""

    def show(self, picture: Picture) -> None: ...


@contextmanager
def screen() -> Iterator[Screen]:
    """A live screen where the standard output is a terminal, lines otherwise."""
    if not sys.stdout.isatty():
        yield Lines()
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(), refresh_per_second=4, transient=False) as live:
        yield LiveScreen(live)


class Lines:
    """A line every few seconds."""

    def __init__(self) -> None:
        self._said = -_PLAIN_SECONDS

    def show(self, picture: Picture) -> None:
        if picture.elapsed - self._said < _PLAIN_SECONDS:
            return
        self._said = picture.elapsed
        watermark = f"{picture.watermark:%H:%M:%S}" if picture.watermark is not None else "not yet"
        windows = ", ".join(f"{view.name} {picture.closed[view.name]}" for view in VIEWS)
        sys.stdout.write(
            f"{picture.elapsed:3.0f} s  {picture.appended:>7,} rows  event clock {picture.clock:%H:%M:%S}  "
            f"watermark {watermark}  closed: {windows}  late rows {picture.late}\n"
        )
        sys.stdout.flush()


class LiveScreen:
    """Tables that change in place."""

    def __init__(self, live: Live) -> None:
        self._live = live

    def show(self, picture: Picture) -> None:
        self._live.update(draw(picture))


def draw(picture: Picture) -> RenderableType:
    """The whole screen."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    head = Text.assemble(
        ("Penstock  ", "bold"),
        f"{picture.elapsed:.0f} of {picture.total:.0f} s   {picture.appended:,} trades in   ",
        f"event clock {picture.clock:%H:%M:%S}   ",
        (f"late rows {picture.late}", "yellow" if picture.late else "dim"),
    )
    tumbling, hopping, sessions = (_view(view, picture) for view in VIEWS)
    grid = Table.grid(padding=(1, 4, 0, 0))
    grid.add_row(tumbling, hopping)
    grid.add_row(sessions, _watermarks(picture))
    foot = Text("A window closes when the watermark passes its end. Ctrl-C ends.", style="dim")
    return Group(head, grid, foot)


def _table(title: str, *names: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False
    )
    for name in names:
        table.add_column(name, justify="left" if name in {"start", "symbol"} else "right")
    return table


def _view(view: DemoView, picture: Picture) -> Table:
    table = _table(f"{view.title}: {picture.closed[view.name]:,} closed", "start", "symbol", "trades", view.columns[-1])
    rows = picture.latest[view.name]
    for start, symbol, trades, *_, last in rows:
        table.add_row(f"{start:%H:%M:%S}", symbol, f"{trades}", f"{last}")
    for _ in range(SHOWN_ROWS - len(rows)):
        table.add_row("", "", "", "")
    return table


def _watermarks(picture: Picture) -> Table:
    table = _table("watermarks by partition", "part", "newest", "watermark", "behind")
    low = min((watermark for _, _, watermark in picture.watermarks if watermark is not None), default=None)
    for partition, newest, watermark in picture.watermarks:
        table.add_row(
            str(partition),
            f"{newest:%H:%M:%S}" if newest is not None else "-",
            f"{watermark:%H:%M:%S}" if watermark is not None else "-",
            _behind(picture.clock, watermark),
            style="yellow" if watermark is not None and watermark == low else None,
        )
    return table


def _behind(clock: datetime, watermark: datetime | None) -> str:
    return "-" if watermark is None else f"{(clock - watermark) / timedelta(seconds=1):.1f} s"
