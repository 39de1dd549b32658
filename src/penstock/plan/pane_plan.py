"""Windows kept as panes: how windows are made of them.

The windows of HOP overlap, so a row is in size / slide of them. Cut at every start and end of a window, event time
falls into panes: a pane lies in a window as a whole or not at all, so all its rows are in the same windows. The view
store keeps the groups of each pane once, and a window that closes is merged from its panes.
"""

from __future__ import annotations

from math import gcd
from typing import Final

from penstock.frozen import frozen

PANE: Final = "__pane"  # the column of a batch with the start of the pane, in microseconds since 1970
START: Final = "__start"  # what the columns of the view are computed from, beside keys and partials
END: Final = "__end"
TIME: Final = "__time"
WINDOW: Final = "__window"  # start and end as one value
TIME_BEFORE_END_US: Final = 1_000  # the event time of a window lies so far before its end


@frozen
class PanePlan:
    """Windows of `size_us` that begin every `slide_us`, `offset_us` after 1970; times in microseconds.

    `cumulates`: they begin every `size_us`, and each is shown at every `slide_us` of it, with its rows so far. `shown`
    names the partial results that penstock.window_aggregates shows as count, sum, min and max.

    >>> plan = PanePlan(size_us=10, slide_us=4)
    >>> plan.pane_us, plan.windows
    (2, 3)
    >>> plan.first_end(6), plan.last_end(6)
    (10, 14)
    >>> plan = PanePlan(size_us=12, slide_us=4, cumulates=True)
    >>> plan.first_end(16), plan.last_end(16)
    (20, 24)
    """

    size_us: int
    slide_us: int
    offset_us: int = 0
    shown: tuple[tuple[str, str], ...] = ()
    cumulates: bool = False

    @property
    def pane_us(self) -> int:
        """How long a pane is: the longest that no start and no end of a window cuts."""
        return gcd(self.size_us, self.slide_us)

    @property
    def windows(self) -> int:
        """In how many windows a row can be."""
        return -(-self.size_us // self.slide_us)

    def first_end(self, pane: int) -> int:
        """The end of the first window that a pane lies in."""
        return pane - (pane - self.offset_us - self.size_us) % self.slide_us + self.slide_us

    def last_end(self, pane: int) -> int:
        """The end of the last window that a pane lies in."""
        return pane - (pane - self.offset_us) % (self.size_us if self.cumulates else self.slide_us) + self.size_us
