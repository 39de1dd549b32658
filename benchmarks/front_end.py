"""How fast the front end is: `make bench`.

Each figure is the median of several runs, with the smallest and the largest beside it, and the aim it is held against.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent

STREAM = """
CREATE STREAM stream_{n} (
  id BIGINT NOT NULL, symbol STRING, price DECIMAL(12, 4), volume INT, ts TIMESTAMP,
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (connector = 'topic', partitions = 4);
"""
VIEW = """
CREATE MATERIALIZED VIEW view_{n} AS
SELECT symbol, TUMBLE_START(ts, INTERVAL '1' MINUTE) AS minute, AVG(price) AS average, SUM(volume) AS volume,
  COUNT(*) FILTER (WHERE price > 100) AS dear, MAX(CASE WHEN volume > 10 THEN price ELSE 0 END) AS top
FROM stream_{n} WHERE price IS NOT NULL AND symbol NOT LIKE 'X%'
GROUP BY symbol, TUMBLE(ts, INTERVAL '1' MINUTE) HAVING COUNT(*) > 1;
"""
TOTALS = """
CREATE MATERIALIZED VIEW totals_{n} AS
SELECT symbol, COUNT(*) AS trades, SUM(price * volume) AS turnover FROM stream_{n} GROUP BY symbol;
"""
TABLE_WINDOW = """
SELECT window_start, window_end, COUNT(*) AS n
FROM TABLE(HOP(TABLE stream_{n}, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '5' MINUTE))
GROUP BY window_start, window_end;
"""


@dataclass(frozen=True)
class Figure:
    """What was measured, in milliseconds, and the aim."""

    name: str
    runs: list[float]
    aim: float

    def __str__(self) -> str:
        middle = statistics.median(self.runs)
        verdict = "within" if middle <= self.aim else "OVER"
        return (
            f"{self.name:<44} {middle:9.1f} ms   {min(self.runs):9.1f} … {max(self.runs):9.1f}"
            f"   {verdict} the aim of {self.aim:g} ms ({len(self.runs)} runs)"
        )


def script() -> str:
    """A script of 200 statements, all of them accepted."""
    return "".join(text.format(n=n) for n in range(50) for text in (STREAM, VIEW, TOTALS, TABLE_WINDOW))


def measure(name: str, work: Callable[[], object], *, runs: int, aim: float) -> Figure:
    """Run something several times."""
    taken = []
    for _ in range(runs):
        begin = time.perf_counter()
        work()
        taken.append((time.perf_counter() - begin) * 1000)
    return Figure(name, taken, aim)


def command(*arguments: str) -> Callable[[], object]:
    """A run of the command line in a process of its own."""

    def run() -> object:
        return subprocess.run([sys.executable, "-m", "penstock", *arguments], cwd=ROOT, check=True, capture_output=True)

    return run


def main() -> None:
    """Measure and print."""
    from penstock.plan.script import analyze_script

    text = script()
    reports = analyze_script(text)
    wrong = [str(report.error) for report in reports if report.error is not None]
    if len(reports) != 200 or wrong:
        raise SystemExit(f"the benchmark's script is not accepted: {len(reports)} statements, {wrong[:3]}")
    statement = (STREAM + VIEW).format(n=0)
    create = STREAM.format(n=0)

    print(measure("check a script of 200 statements", lambda: analyze_script(text), runs=7, aim=1000))
    both = measure("", lambda: analyze_script(statement), runs=60, aim=0)
    first = measure("", lambda: analyze_script(create), runs=60, aim=0)
    print(Figure("one CREATE STREAM, warm", first.runs, 5))
    view = [pair - statistics.median(first.runs) for pair in both.runs]
    print(Figure("one windowed CREATE MATERIALIZED VIEW, warm", view, 5))
    print(measure("penstock --help", command("--help"), runs=9, aim=300))
    print(measure("penstock check, one small script", command("check", "examples/trades.sql"), runs=9, aim=300))
    print(
        measure(
            "python, doing nothing", lambda: subprocess.run([sys.executable, "-c", ""], check=True), runs=9, aim=300
        )
    )


if __name__ == "__main__":
    main()
