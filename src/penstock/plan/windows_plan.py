"""Windows that show each change, as the view store keeps them.

A batch comes as partial results by key and window. The store merges them into the rows of the view, which change until
the watermark passes the end of their window. What comes for a closed window changes nothing: its rows are late.
"""

from __future__ import annotations

from typing import Final

from penstock.frozen import frozen

ROW_TIME: Final = "__row_time"  # of sessions, the column of a batch with the time of its rows


@frozen
class WindowsPlan:
    """How windows are kept.

    `column` is the column of a batch that tells when a window closes: it does when the watermark reaches its value plus
    `gap_us`. Of windows that are known before their rows come it is their end. Of sessions it is the time of a row, and
    `gap_us` is the gap: the store finds the sessions. `final`: a session is shown once, when it closes.
    `shown` names the partial results that penstock.window_aggregates shows as count, sum, min and max.
    """

    column: str
    gap_us: int = 0
    shown: tuple[tuple[str, str], ...] = ()
    final: bool = False

    @property
    def sessions(self) -> bool:
        """Whether the windows are sessions, which grow and merge as rows come."""
        return self.column == ROW_TIME
