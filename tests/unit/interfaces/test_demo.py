"""The demo: its rows, its proof, and its screen, without Spark."""

from __future__ import annotations

import os
import shutil
from datetime import timedelta
from typing import Any, cast

import pytest

from penstock.interfaces.demo import java as demo_java
from penstock.interfaces.demo.pipeline import DELAY_SECONDS, PARTITIONS, STREAM, VIEWS
from penstock.interfaces.demo.screen import Lines, Picture, draw
from penstock.interfaces.demo.story import summary
from penstock.interfaces.demo.trades import OPENING, Trade, TradeGenerator, to_arrow
from penstock.interfaces.demo.verdict import batch_answer, compare
from penstock.interfaces.result import Result
from penstock.plan.script import analyze_script
from penstock.spark.java import JavaFound, JavaProblem

MINUTE = timedelta(minutes=1)


def stream(steps: int, *, watermark_behind: int = 60) -> dict[tuple[int, int], Trade]:
    """What a run would append, by partition and offset, under a watermark that follows the clock."""
    generator = TradeGenerator()
    appended: dict[tuple[int, int], Trade] = {}
    ends = [0] * PARTITIONS
    for _ in range(steps):
        watermark = generator.clock - timedelta(seconds=watermark_behind)
        for partition, trades in generator.step(0.5, watermark).items():
            for trade in trades:
                appended[partition, ends[partition]] = trade
                ends[partition] += 1
    return appended


class Answers:
    """A database that answers as a right engine would."""

    def __init__(self, appended: dict[tuple[int, int], Trade], late: dict[str, list[tuple[int, int]]]) -> None:
        self.views: dict[str, list[tuple[Any, ...]]] = {
            view.name: batch_answer(view, [trade for place, trade in appended.items() if place not in late[view.name]])
            for view in VIEWS
        }
        self._late = [(job, *place) for job, places in late.items() for place in places]

    def sql(self, text: str) -> Result:
        import pyarrow as pa

        if "late_rows" in text:
            columns = list(zip(*self._late, strict=True)) or [(), (), ()]
            return Result(pa.table(dict(zip(("job", "partition", "offset"), columns, strict=True))))
        rows = self.views[text.rsplit(" ", 1)[1]]
        return Result(
            pa.table({str(number): pa.array(column) for number, column in enumerate(zip(*rows, strict=True))})
        )


def meant_late(appended: dict[tuple[int, int], Trade]) -> dict[str, list[tuple[int, int]]]:
    return {view.name: [place for place, trade in appended.items() if trade.meant_late] for view in VIEWS}


def test_the_sql_of_the_demo_is_accepted() -> None:
    reports = analyze_script(";".join([STREAM, *(view.create for view in VIEWS)]))
    assert [report.error for report in reports] == [None] * 4


def test_the_same_seed_makes_the_same_stream() -> None:
    assert stream(10) == stream(10)


def test_no_row_is_late_unless_it_is_meant_to_be() -> None:
    newest = [0] * PARTITIONS
    for (partition, _), trade in stream(60).items():
        if not trade.meant_late:
            assert trade.us > newest[partition] - DELAY_SECONDS * 1_000_000
            newest[partition] = max(newest[partition], trade.us)


def test_late_rows_are_behind_every_open_window() -> None:
    late = [trade for trade in stream(120).values() if trade.meant_late]
    assert len(late) > 3
    generator = TradeGenerator()
    watermark = OPENING + MINUTE
    made = [trade for trades in generator.step(0.5, watermark).values() for trade in trades if trade.meant_late]
    assert len(made) == 1
    assert made[0].us + 50_000_000 < watermark.timestamp() * 1_000_000


def test_rows_are_out_of_order_and_one_partition_is_slow() -> None:
    appended = stream(20)
    times = [
        [trade.us for (part, _), trade in appended.items() if part == partition] for partition in range(PARTITIONS)
    ]
    assert all(sorted(one) != one for one in times)
    assert max(times[3]) < min(max(one) for one in times[:3])


def test_rows_become_arrow() -> None:
    table = to_arrow(list(stream(1).values()))
    assert table.column_names == ["symbol", "price", "volume", "ts"]
    assert str(table.schema.field("ts").type) == "timestamp[us, tz=UTC]"


def test_a_right_answer_is_found_right() -> None:
    appended = stream(60)
    verdicts = compare(cast("Any", Answers(appended, meant_late(appended))), appended)
    assert all(verdict.good for verdict in verdicts)
    assert "NO" not in summary(verdicts, appended)


@pytest.mark.parametrize("harm", ["lose", "double", "change"])
def test_a_wrong_answer_is_found_wrong(harm: str) -> None:
    appended = stream(60)
    answers = Answers(appended, meant_late(appended))
    rows = answers.views["moving"]
    row = rows.pop(len(rows) // 2)
    if harm == "double":
        rows += [row, row]
    elif harm == "change":
        rows.append((*row[:-1], row[-1] + 1))
    verdicts = {verdict.view.name: verdict for verdict in compare(cast("Any", answers), appended)}
    assert not verdicts["moving"].equal
    assert verdicts["per_window"].good
    assert verdicts["bursts"].good
    assert "NO: " in summary(list(verdicts.values()), appended)


def test_a_row_that_is_called_late_without_cause_is_told() -> None:
    appended = stream(60)
    late = meant_late(appended)
    late["bursts"].append(next(place for place, trade in appended.items() if not trade.meant_late))
    verdicts = compare(cast("Any", Answers(appended, late)), appended)
    assert [verdict.good for verdict in verdicts] == [True, True, False]
    assert "are not the" in summary(verdicts, appended)


def test_sessions_end_where_a_symbol_pauses() -> None:
    bursts = batch_answer(VIEWS[2], list(stream(60).values()))
    assert len(bursts) > 12


def picture() -> Picture:
    return Picture(
        12.0,
        30.0,
        24_000,
        OPENING + MINUTE,
        {view.name: [] for view in VIEWS} | {"bursts": [(OPENING, "ACME", 3, 4)]},
        {view.name: 2 for view in VIEWS},
        [(0, OPENING, OPENING), (1, None, None)],
        OPENING,
        3,
    )


def test_lines_are_printed_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines()
    lines.show(picture())
    lines.show(picture())
    assert capsys.readouterr().out == (
        " 12 s   24,000 rows  event clock 09:31:00  watermark 09:30:00  "
        "closed: per_window 2, moving 2, bursts 2  late rows 3\n"
    )


def test_the_screen_shows_views_and_watermarks_on_any_terminal() -> None:
    from rich.console import Console

    console = Console(width=80)
    with console.capture() as captured:
        console.print(draw(picture()))
    shown = captured.get()
    assert "sessions, 6 s apart: 2 closed" in shown
    assert "ACME" in shown
    assert "60.0 s" in shown
    assert len(shown.splitlines()) <= 23


# Java


def test_a_java_that_is_there_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_java, "find_java", lambda: JavaFound(cast("Any", "/java"), 17))
    monkeypatch.setattr(demo_java, "_run", lambda _: pytest.fail("nothing is to be run"))
    assert demo_java.have_java(install=True)


def test_a_missing_java_is_asked_for_with_its_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo_java, "find_java", lambda: JavaProblem("there is none", ""))
    monkeypatch.setattr(demo_java, "remedy", lambda: "brew install openjdk@17")
    monkeypatch.setattr(demo_java, "_run", lambda _: pytest.fail("nothing is to be run"))
    assert not demo_java.have_java(install=False)
    assert capsys.readouterr().err.endswith("  brew install openjdk@17\n")


def test_apt_is_tried_with_a_second_package(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []
    found: list[JavaFound | JavaProblem] = [JavaProblem("there is none", ""), JavaFound(cast("Any", "/java"), 21)]

    def run(command: list[str]) -> int:
        ran.append(command)
        return int("openjdk-17-jre-headless" in command)

    monkeypatch.setattr(demo_java, "find_java", lambda: found.pop(0))
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(demo_java, "_run", run)
    assert demo_java.have_java(install=True)
    assert [command[-1] for command in ran] == [
        "-q",
        "openjdk-17-jre-headless",
        "-q",
        "default-jre-headless",
    ]
