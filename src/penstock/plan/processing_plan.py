"""Windows over processing time: when rows are read, not when something happened.

All rows of a batch have one time, which Spark writes down before the batch runs; so a batch that is run again has the
same. The job's own clock follows these times, as a watermark follows event time, and closes windows. It never goes
back: where it has been moved ahead, by a drain, the rows that follow have its time until the real one has caught up.
"""

from __future__ import annotations

from typing import Final

from penstock.frozen import frozen
from penstock.plan.pane_plan import PANE

CLOCK: Final = "processing time"  # what the job's clock is called among the sources of event time


@frozen
class ProcessingPlan:
    """Windows over the clock, `size_us` long, that begin every `slide_us`; or sessions with a gap of `gap_us`.

    `cumulates`: they begin every `size_us`, and end at every `slide_us` of it, with all rows so far.

    `column` is the column of a batch that says which windows its rows are in: a pane, an end, or the time itself.

    >>> plan = ProcessingPlan("__end", size_us=10, slide_us=4)
    >>> plan.stamps(9), plan.due(9, 9), plan.due(10, 9), plan.due(18, 9)
    ((10, 14, 18), 10, 14, None)
    >>> plan = ProcessingPlan("__end", size_us=12, slide_us=4, cumulates=True)
    >>> plan.stamps(17), plan.due(17, 17), plan.due(20, 17), plan.due(24, 17)
    ((20, 24), 20, 24, None)
    """

    column: str
    size_us: int = 0
    slide_us: int = 0
    offset_us: int = 0
    gap_us: int = 0
    cumulates: bool = False

    @property
    def spread_us(self) -> int:
        """How far behind a time the last of its windows ends at most."""
        return self.gap_us or self.size_us

    def stamps(self, time_us: int) -> tuple[int, ...]:
        """The values of `column` for the rows of a time, one for each of their windows or panes."""
        if self.gap_us:
            return (time_us,)
        if self.column == PANE:
            return (time_us - (time_us - self.offset_us) % self.slide_us,)
        return self._ends(time_us)

    def _ends(self, time_us: int) -> tuple[int, ...]:
        if self.cumulates:
            begins = time_us - (time_us - self.offset_us) % self.size_us
            first = time_us - (time_us - self.offset_us) % self.slide_us + self.slide_us
            return tuple(range(first, begins + self.size_us + 1, self.slide_us))
        first = time_us - (time_us - self.offset_us) % self.slide_us + self.size_us
        return tuple(sorted(range(first, time_us, -self.slide_us)))

    def due(self, reached_us: int, newest_us: int) -> int | None:
        """When the clock of a job, which has reached a moment, has to move for a window to close; None where none is
        open, after rows of the time `newest_us`."""
        last = newest_us + self.gap_us if self.gap_us else self._ends(newest_us)[-1]
        if reached_us >= last:
            return None
        if self.gap_us:
            return last
        ends = self.offset_us + self.size_us
        return reached_us - (reached_us - ends) % self.slide_us + self.slide_us
