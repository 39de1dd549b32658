"""Notes of the planner on the tree it makes for Spark: what bounds a join, which column of a SELECT is its time, and
which key stands in for a missing one.

They are known where they arise and needed where a job is made of the tree, and ride on its nodes, as types do (see
trees.py); they are not part of the text.
"""

from __future__ import annotations

from typing import Final, Literal

from sqlglot import exp

from penstock.frozen import frozen

_JOIN: Final = "penstock_join"
_TIME: Final = "penstock_time"
_STAND_IN: Final = "penstock_stand_in"

TimeColumn = tuple[str, str]  # alias, column
JoinBound = Literal["interval", "window", "forever", "broadcast", "batch"]


@frozen
class JoinTime:
    """How long a join waits for partners.

    `interval`: `left` minus `right` lies between `low_us` and `high_us`. `window`: `left` and `right` are the windows
    that must be equal. `forever`: every row of both streams is kept; `ends` are windows of both sides, of different
    kinds or sizes, that must end at the same time, where there are such. `broadcast` and `batch`: nothing is kept.
    """

    bound: JoinBound
    kind: str  # as in nodes.Join
    left: TimeColumn | None = None
    right: TimeColumn | None = None
    low_us: int = 0
    high_us: int = 0
    ends: tuple[TimeColumn, TimeColumn] | None = None

    @property
    def closes(self) -> bool:
        """Whether the watermark lets go of its rows."""
        return self.bound in ("interval", "window")

    @property
    def of_streams(self) -> bool:
        return self.bound not in ("broadcast", "batch")

    @property
    def columns(self) -> tuple[TimeColumn, ...]:
        """The times or windows of both sides."""
        return tuple(side for side in (self.left, self.right) if side is not None)


def note_join(clause: exp.Join, time: JoinTime) -> exp.Join:
    """The clause, with what bounds it."""
    clause.meta[_JOIN] = time
    return clause


def join_time(clause: exp.Expr) -> JoinTime | None:
    """What bounds a join; None for what is no join of relations, such as UNNEST."""
    found: JoinTime | None = clause.meta.get(_JOIN)
    return found


def closing_together(tree: exp.Expr) -> exp.Expr:
    """The tree, changed in place, with joins by the end of windows that differ as joins of windows: for who closes the
    windows of both sides at once."""
    for clause in tree.find_all(exp.Join):
        time = join_time(clause)
        if time is not None and time.ends is not None:
            note_join(clause, JoinTime("window", time.kind, *time.ends))
    return tree


def note_time(query: exp.Select, name: str | None) -> exp.Select:
    """The query, with the name of the output column that carries its event time or window."""
    query.meta[_TIME] = name
    return query


def time_output(query: exp.Select) -> str | None:
    """The output column that carries the event time or window of a SELECT."""
    found: str | None = query.meta.get(_TIME)
    return found


def note_stand_in(key: exp.Expr) -> exp.Expr:
    """The key of a GROUP BY, noted as one that nobody has asked for."""
    key.meta[_STAND_IN] = True
    return key


def is_stand_in(key: exp.Expr) -> bool:
    """Whether a key stands in for a missing one."""
    return bool(key.meta.get(_STAND_IN))
