"""Windows of several GROUP BYs that the view store joins when they close: what it keeps, and the query over them.

    SELECT p.id, a.n FROM (SELECT id, … FROM TUMBLE(…) GROUP BY …) AS p
    JOIN (SELECT seller, COUNT(*) AS n, … FROM TUMBLE(…) GROUP BY …) AS a
    ON p.id = a.seller AND p.window_start = a.window_start AND p.window_end = a.window_end

Each GROUP BY is a side. All sides have the same windows and close with the same watermark, so whatever is joined of a
window is there when it closes, and nothing of it is needed afterwards.
"""

from __future__ import annotations

from penstock.frozen import frozen
from penstock.plan.merge_plan import MergePlan
from penstock.plan.pane_plan import PanePlan
from penstock.types import SqlType


@frozen
class PaneSide:
    """One GROUP BY. `name` is the relation that stands in the query for its windows that close."""

    name: str
    panes: PanePlan
    merge: MergePlan

    @property
    def columns(self) -> list[tuple[str, SqlType]]:
        """Its columns and their types, all of which are known."""
        return [(column.name, column.type) for column in self.merge.columns if column.type is not None]


@frozen
class JoinedPanes:
    """The sides, whose places tell the rows of a batch apart, and the query over what closes, for DuckDB."""

    sides: tuple[PaneSide, ...]
    text: str


def batch_column(side: int, name: str) -> str:
    """What a key, an argument or a partial result of a side is called in a batch, which has those of all sides.

    >>> batch_column(1, "__k0")
    '__s1__k0'
    """
    return f"__s{side}{name}"
