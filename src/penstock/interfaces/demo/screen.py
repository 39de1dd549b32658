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
SHOWN_ROWS: Final = 6


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
    from rich.columns import Columns
    from rich.console import Group
    from rich.text import Text

    head = Text.assemble(
        ("Penstock  ", "bold"),
        f"{picture.elapsed:.0f} of {picture.total:.0f} s   {picture.appended:,} trades in   ",
        f"event clock {picture.clock:%H:%M:%S}   ",
        (f"late rows {picture.late}", "yellow" if picture.late else "dim"),
    )
    tables = [_view(view, picture) for view in VIEWS]
    foot = Text(
        "Windows close when the watermark passes their end; partition 3 is slow and holds it back. Ctrl-C ends."
    )
    foot.stylize("dim")
    return Group(head, "", Columns([*tables, _watermarks(picture)], padding=(0, 3)), "", foot)


def _view(view: DemoView, picture: Picture) -> Table:
    from rich.table import Table

    table = Table(title=f"{view.name}: {view.title}, {picture.closed[view.name]:,} closed", title_justify="left")
    for name in view.columns:
        table.add_column(name, justify="left" if name in {"symbol", view.columns[0]} else "right")
    rows = picture.latest[view.name]
    for row in rows:
        table.add_row(*(f"{value:%H:%M:%S}" if isinstance(value, datetime) else f"{value}" for value in row))
    for _ in range(SHOWN_ROWS - len(rows)):
        table.add_row(*("" for _ in view.columns))
    return table


def _watermarks(picture: Picture) -> Table:
    from rich.table import Table

    table = Table(title="watermarks, by partition", title_justify="left")
    for name in ("partition", "newest event", "watermark", "behind the clock"):
        table.add_column(name, justify="right")
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
